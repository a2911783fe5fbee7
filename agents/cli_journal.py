"""`lamina journal | undo | verify`: what consolidation did, why, and how to take it back."""

import asyncio
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import orjson
import typer
from rich.table import Table

from lamina.agents.cli_common import print_table, run, say, settings_of
from lamina.agents.journal_read import (
    all_of,
    entries_of,
    namespace_of_command,
    namespaces_of,
    opened,
    scope_of,
    told,
)
from lamina.agents.journal_view import as_json, dependent, explained, headline, one_line, summary
from lamina.sinks.system_clock import SystemClock
from lamina.streams.errors import Misconfigured
from lamina.streams.journal import Cost
from lamina.streams.namespace import Namespace
from lamina.streams.records import CommandState
from lamina.streams.recoverability import HOPS, Recoverability, recoverability
from lamina.streams.settings import Settings
from lamina.streams.steps.undo import Undone, undo
from lamina.streams.undo import Refused

SHOWN = 20
"""Unreachable units, and broken links, that are named per namespace; the counts are always of all."""

APPLIED: tuple[CommandState, ...] = ("applied",)

DataDir = Annotated[Path | None, typer.Option(help="Folder of the embedded system; default: your own.")]
User = Annotated[str | None, typer.Option(help="Only this user's memory.")]
Tenant = Annotated[str | None, typer.Option(help="Only this tenant's; default with --user: LAMINA_TENANT.")]
State = Annotated[CommandState | None, typer.Option(help="Only commands in this state.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module to the program."""
    app.command("journal")(journal)
    app.command("undo")(undo_command)
    app.command("verify")(verify)


def journal(
    what: Annotated[
        str | None, typer.Argument(help="A command's id: explain it. With --html: the file to write.")
    ] = None,
    user: User = None,
    tenant: Tenant = None,
    state: State = None,
    limit: Annotated[int, typer.Option(min=1, help="Most commands listed.")] = 20,
    replies: Annotated[bool, typer.Option("--replies", help="Quote the model's stored replies.")] = False,  # noqa: FBT002
    costs: Annotated[bool, typer.Option("--costs", help="Sum calls and tokens instead.")] = False,  # noqa: FBT002
    sample: Annotated[int | None, typer.Option(min=1, help="Draw so many accepted edits.")] = None,
    seed: Annotated[int, typer.Option(help="Of --sample; the same draws the same.")] = 0,
    html: Annotated[bool, typer.Option("--html", help="The sample as a page to judge edits on.")] = False,  # noqa: FBT002
    as_data: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,  # noqa: FBT002
    data_dir: DataDir = None,
) -> None:
    """List what consolidation did, newest first; explain one command; sum costs; or draw an audit sample."""
    settings = settings_of(data_dir)

    async def main() -> None:
        scope = scope_of(settings, tenant, user)
        if sample is not None or html:
            await _sample(settings, scope, (sample, seed), what, as_data=as_data, html=html)
        elif costs:
            await _costs(settings, scope, as_data=as_data)
        elif what is not None:
            await _explain(settings, _id(what), with_replies=replies, as_data=as_data)
        else:
            await _list(settings, scope, () if state is None else (state,), limit, as_data=as_data)

    run(main())


def undo_command(
    what: Annotated[str, typer.Argument(metavar="COMMAND_ID[:EDIT]", help="A command, or one of its edits.")],
    cascade: Annotated[bool, typer.Option("--cascade", help="And what was built on it.")] = False,  # noqa: FBT002
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,  # noqa: FBT002
    data_dir: DataDir = None,
) -> None:
    """Take back a merge or a topology edit: what it archived is visible again, what it made is archived."""
    settings = settings_of(data_dir)
    name, _, number = what.partition(":")

    async def main() -> bool:
        command, edit = _id(name), _number(number)
        async with opened(settings) as tables:
            namespace = await namespace_of_command(tables, command)

            async def reverse(*, cascade: bool, dry_run: bool) -> Undone | Refused:
                now = SystemClock().now()
                return await undo(
                    namespace, command, tables, settings, edit=edit, cascade=cascade, dry_run=dry_run, now=now
                )

            outcome = await reverse(cascade=cascade, dry_run=not yes)
            _show_undo(outcome, "reversed" if yes else "would reverse")
            if isinstance(outcome, Refused):
                if outcome.dependents and isinstance(await reverse(cascade=True, dry_run=True), Undone):
                    say("--cascade reverses those, too")
                return False
            if yes or outcome.already:
                return True
            if not await asyncio.to_thread(typer.confirm, "Reverse it?"):
                return False
            # What stood when it was shown may have moved while the question waited: it is looked at anew.
            outcome = await reverse(cascade=cascade, dry_run=False)
            _show_undo(outcome, "reversed")
            return isinstance(outcome, Undone)

    if not run(main()):
        raise typer.Exit(1)


def verify(user: User = None, tenant: Tenant = None, data_dir: DataDir = None) -> None:
    """Check that every archived unit can be reached from a visible one, and how far it is.

    Prints Cov(1) to Cov(4), the share of archived units within so many links of a visible one (All-Mem,
    app. G), and links whose ends are missing. Looks at the tables alone: not at the vector store or the
    broker. Exits with 1 when a unit cannot be reached or a link has lost an end.
    """
    settings = settings_of(data_dir)

    async def main() -> bool:
        well, seen = True, 0
        async with opened(settings) as tables:
            async for namespace in namespaces_of(tables, scope_of(settings, tenant, user)):
                graph = await tables.graph(namespace)
                if not graph.visible:
                    continue
                found = recoverability(graph)
                if found.unreachable or found.orphans:
                    # It may have been read while someone wrote: look again with the writers held back.
                    async with tables.transaction([namespace]):
                        graph = await tables.graph(namespace)
                    found = recoverability(graph)
                say(_verified(namespace, found))
                for key in found.unreachable[:SHOWN]:
                    say(f"  unreachable: {key} ({graph.kinds[key]})")
                for source, target, kind in found.orphans[:SHOWN]:
                    say(f"  a link has lost an end: {source} → {target} ({kind})")
                well, seen = well and not found.unreachable and not found.orphans, seen + 1
        if not seen:
            say("nothing in memory")
        return well

    if not run(main()):
        raise typer.Exit(1)


async def _list(
    settings: Settings, scope: str, states: tuple[CommandState, ...], limit: int, *, as_data: bool
) -> None:
    async with opened(settings) as tables:
        entries = [entry async for entry in entries_of(tables, scope, states, limit)]
        listed = await told(tables, entries)
    if as_data:
        _print_json([as_json(each) for each in listed])
        return
    for each in listed:
        say(headline(each), style="dim")
        say(f"  {summary(each)}")
    if not listed:
        say("no commands" if states or scope else "no commands yet: nothing recurred and nothing mattered")


async def _explain(settings: Settings, command: UUID, *, with_replies: bool, as_data: bool) -> None:
    async with opened(settings) as tables:
        each = await all_of(tables, command)
    if as_data:
        _print_json(as_json(each))
        return
    for line in explained(each, with_replies=with_replies):
        say(line)


async def _costs(settings: Settings, scope: str, *, as_data: bool) -> None:
    async with opened(settings) as tables:
        costs = await tables.costs(scope)
    if as_data:
        _print_json([_cost_row(cost) for cost in costs])
        return
    table = Table("tenant", "purpose", "model", "calls", "attempts", "tokens in", "tokens out", "seconds")
    for cost in costs:
        table.add_row(cost.tenant, cost.purpose, one_line(cost.model), *_figures([cost]))
    table.add_section()
    table.add_row("all", "", "", *_figures(costs))
    print_table(table)


async def _sample(
    settings: Settings,
    scope: str,
    drawn: tuple[int | None, int],
    file: str | None,
    *,
    as_data: bool,
    html: bool,
) -> None:
    # jinja2 takes a while to import, which only this command shall cost.
    from lamina.agents.audit import accepted_in, cases_of, draw, page  # noqa: PLC0415

    size, seed = drawn
    if size is None:
        raise Misconfigured("--html draws a page to judge edits on: say how many with --sample N")
    if file is not None and not html:
        raise Misconfigured("--sample draws from all commands: leave the command's id out, or add --html")
    async with opened(settings) as tables:
        entries = entries_of(tables, scope, APPLIED)
        sample = draw([place async for entry in entries for place in accepted_in(entry)], size, seed)
        cases = await cases_of(tables, sample)
    if html:
        _written(page(sample, cases), file)
    elif as_data:
        _print_json([{"name": each.place.name, **each.edit.model_dump(mode="json")} for each in cases])
    else:
        for each in cases:
            say(f"{each.place.name}  {each.edit.operator}  {one_line(each.edit.reason)}")
        if not cases:
            say("no topology edit was accepted yet")


def _written(text: str, file: str | None) -> None:
    if file is None:
        typer.echo(text)
        return
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as exc:
        raise Misconfigured(f"{file} cannot be written ({exc.strerror})") from exc
    say(f"wrote {file}: open it in a browser")


def _show_undo(outcome: Undone | Refused, word: str) -> None:
    """Print what an undo did, or would do, or why it does nothing."""
    if isinstance(outcome, Refused):
        say(f"refused: {outcome.reason}")
        for at in outcome.dependents:
            say(f"  {dependent(at)}")
        return
    if outcome.reversal is None:
        say("it is undone already: nothing to do")
        return
    for at in outcome.edits:
        say(f"{word} {dependent(at)}")
    for unit in outcome.reversal.units:
        say(f"  {'back' if unit.visible else 'archived':8}  {unit.kind} {unit.id}  {one_line(unit.text)}")


def _verified(namespace: Namespace, found: Recoverability) -> str:
    coverage = ", ".join(f"Cov({hops}) {100 * found.coverage(hops):.1f} %" for hops in HOPS)
    broken = f", {len(found.orphans):,} links without an end" if found.orphans else ""
    archived = f"{found.archived:,} archived, {len(found.unreachable):,} unreachable{broken}"
    return f"{namespace}  {archived}, {coverage}"


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Misconfigured(f"{text!r} is not a command's id: `lamina journal` lists them") from None


def _number(text: str) -> int | None:
    if not text:
        return None
    if not text.isdecimal():
        raise Misconfigured(f"{text!r} is not the number of an edit: `lamina journal COMMAND_ID` counts them")
    return int(text)


def _cost_row(cost: Cost) -> dict[str, Any]:
    return {
        "tenant": cost.tenant,
        "purpose": cost.purpose,
        "model": cost.model,
        "calls": cost.calls,
        "attempts": cost.attempts,
        "tokens_in": cost.tokens_in,
        "tokens_out": cost.tokens_out,
        "seconds": cost.seconds,
    }


def _figures(costs: list[Cost]) -> tuple[str, ...]:
    whole = (
        sum(cost.calls for cost in costs),
        sum(cost.attempts for cost in costs),
        sum(cost.tokens_in for cost in costs),
        sum(cost.tokens_out for cost in costs),
    )
    return (*(f"{number:,}" for number in whole), f"{sum(cost.seconds for cost in costs):,.1f}")


def _print_json(value: Any) -> None:
    typer.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())
