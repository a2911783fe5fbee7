"""The command line: `lamina up | demo | ingest | search | ask | doctor | worker | bench`."""

import asyncio
import logging
import os
import signal
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from lamina.agents.connection import connected
from lamina.agents.demo import demo
from lamina.agents.doctor import examine
from lamina.agents.embedded import embedded
from lamina.agents.ingest import ingest_files
from lamina.agents.process import Running
from lamina.agents.reference import write
from lamina.agents.worker import Part, mark_everything, store_command, working
from lamina.query.client import ServiceError
from lamina.sinks.environment import settings_from
from lamina.streams.errors import LaminaError
from lamina.streams.settings import Settings

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Streaming long-term memory for agents.")
console = Console()

DataDir = Annotated[Path | None, typer.Option(help="Folder of the embedded system; default: your own.")]
Port = Annotated[int | None, typer.Option(help="Port of the HTTP service; 0 takes a free one.")]
User = Annotated[str, typer.Option(help="Whose memory.")]
Url = Annotated[str | None, typer.Option(help="A running service; default: the one on the data folder.")]
Key = Annotated[str | None, typer.Option("--api-key", envvar="LAMINA_API_KEY", help="Key for that service.")]


@app.command()
def up(data_dir: DataDir = None, port: Port = None) -> None:
    """Run the embedded system until Ctrl-C."""
    settings = _settings(data_dir, port)

    async def main() -> None:
        async with embedded(settings) as running:
            console.print(f"lamina is up at {running.url} (documentation at {running.url}/docs)")
            console.print(f"try: lamina ingest FILE --user U{_flag(data_dir)}", highlight=False)
            await _until_told(running)
        if running.fault is not None:
            raise running.fault

    _run(main())


@app.command()
def worker(part: Annotated[Part, typer.Argument(help="What this process does.")]) -> None:
    """Run one part of a production system against LAMINA_BROKER and LAMINA_DATABASE."""
    settings = _settings(None, None)

    async def main() -> None:
        async with working(settings, part) as running:
            where = f" at {running.url}" if running.url else ""
            console.print(f"lamina {part} is up{where}", highlight=False)
            await _until_told(running)
        if running.fault is not None:
            raise running.fault

    _run(main())


@app.command()
def store(data_dir: DataDir = None) -> None:
    """Serve the vector store on the socket LAMINA_STORE, for workers on this machine."""
    settings = _settings(data_dir, None)

    async def main() -> list[str]:
        return await store_command(settings)

    command = _run(main())
    os.execv(command[0], command)  # noqa: S606  # no shell is wanted: the words are ours


@app.command()
def reindex(data_dir: DataDir = None) -> None:
    """Build the vector store anew from the tables: mark every unit; the running system copies them."""
    settings = _settings(data_dir, None)

    async def main() -> int:
        return await mark_everything(settings)

    console.print(f"{_run(main())} units marked; the running system, or the next start, copies them")


@app.command()
def ingest(
    files: Annotated[list[Path], typer.Argument(help="JSONL of turns, OpenAI messages, or LoCoMo.")],
    user: User,
    data_dir: DataDir = None,
    url: Url = None,
    api_key: Key = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Return once accepted.")] = False,  # noqa: FBT002
) -> None:
    """Send conversation files into memory."""
    settings = _settings(data_dir, None)

    async def main() -> bool:
        async with connected(settings, url=url, api_key=api_key, writes=True) as client:
            done = await ingest_files(client, files, user, console, wait=not no_wait)
        outcome = ", ".join(f"{count} {status}" for status, count in sorted(done.statuses.items()))
        console.print(f"{done.turns} turns: {outcome or 'accepted'}", highlight=False)
        if done.faults:
            console.print(f"{done.faults} could not be read", highlight=False)
        for failed in done.failed:
            console.print(failed, markup=False, highlight=False)
        return done.ok

    if not _run(main()):
        raise typer.Exit(1)


@app.command()
def search(
    query: str,
    user: User,
    top_k: Annotated[int, typer.Option(help="Most results.")] = 10,
    data_dir: DataDir = None,
    url: Url = None,
    api_key: Key = None,
) -> None:
    """Find memories."""
    settings = _settings(data_dir, None)

    async def main() -> None:
        async with connected(settings, url=url, api_key=api_key, writes=False) as client:
            found = await client.search(query, user, top_k=top_k)
        for result in found.results:
            head = f"{result.score:.3f}  {result.said_at:%Y-%m-%d}  {result.kind:7}  {result.speaker}"
            console.print(head, style="dim", markup=False, highlight=False)
            console.print(result.text, markup=False, highlight=False)
        if not found.results:
            console.print("nothing in memory")

    _run(main())


@app.command()
def ask(question: str, user: User, data_dir: DataDir = None, url: Url = None, api_key: Key = None) -> None:
    """Answer a question from memory, with the turns it rests on."""
    settings = _settings(data_dir, None)

    async def main() -> None:
        async with connected(settings, url=url, api_key=api_key, writes=False) as client:
            answer = await client.answer(question, user)
        console.print(answer.answer, markup=False, highlight=False)
        for said in answer.evidence:
            line = f"  rests on: {said.said_at:%d %B %Y} · {said.speaker}: {said.text}"
            console.print(line, style="dim", markup=False, highlight=False)

    _run(main())


@app.command("demo")
def demo_command(data_dir: DataDir = None) -> None:
    """Run the sample conversation through the whole system and ask three questions."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415  # only this command needs it

    with TemporaryDirectory(prefix="lamina-demo-", ignore_cleanup_errors=True) as fresh:
        settings = _settings(data_dir or Path(fresh), 0)
        if not _run(demo(settings, console)):
            raise typer.Exit(1)


@app.command()
def doctor(data_dir: DataDir = None) -> None:
    """Say what is configured, what answers, and how to mend what does not."""
    settings = _settings(data_dir, None)

    async def main() -> bool:
        table = Table(show_header=False, box=None)
        well = True
        async for finding in examine(settings):
            mark = "[green]ok[/]" if finding.ok else "[red]--[/]"
            table.add_row(mark, finding.what, finding.detail)
            well = well and finding.ok
        console.print(table)
        return well

    if not _run(main()):
        raise typer.Exit(1)


@app.command(hidden=True)
def reference(folder: Path) -> None:
    """Write the generated pages of docs/ into a folder."""
    write(folder)


def main() -> None:
    """Entry point of the `lamina` command."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    for name in ("faust", "mode", "aiokafka"):
        logging.getLogger(name).setLevel(logging.ERROR)
    app()


def _settings(data_dir: Path | None, port: int | None) -> Settings:
    try:
        return settings_from(os.environ, data_dir=None if data_dir is None else str(data_dir), http_port=port)
    except LaminaError as fault:
        _fail(fault)


def _run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run to the end; a fault is printed as its one sentence, without a traceback."""
    try:
        return asyncio.run(coroutine)
    except (LaminaError, ServiceError) as fault:
        _fail(fault)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _fail(fault: Exception) -> NoReturn:
    Console(stderr=True).print(f"lamina: {fault}", style="red", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1)


def _flag(data_dir: Path | None) -> str:
    return "" if data_dir is None else f" --data-dir {data_dir}"


async def _until_told(running: Running) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.stopping.set)
    await running.stopping.wait()


if __name__ == "__main__":
    main()
