"""The command line: `lamina up | demo | ingest | search | ask | journal | undo | verify | doctor | …`."""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from lamina.agents import cli_bench_basis, cli_bench_fusion, cli_bench_latency, cli_bench_qa, cli_journal
from lamina.agents.cli_bench import bench
from lamina.agents.cli_common import console, run, say, settings_of
from lamina.agents.connection import connected
from lamina.agents.demo import demo
from lamina.agents.doctor import examine
from lamina.agents.embedded import embedded
from lamina.agents.ingest import ingest_files
from lamina.agents.process import Running
from lamina.agents.reference import write
from lamina.agents.worker import Part, mark_everything, store_command, working

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Streaming long-term memory for agents.")
for commands in (cli_bench_qa, cli_bench_fusion, cli_bench_basis, cli_bench_latency):
    commands.register(bench)
app.add_typer(bench, name="bench")
cli_journal.register(app)

DataDir = Annotated[Path | None, typer.Option(help="Folder of the embedded system; default: your own.")]
Port = Annotated[int | None, typer.Option(help="Port of the HTTP service; 0 takes a free one.")]
User = Annotated[str, typer.Option(help="Whose memory.")]
Url = Annotated[str | None, typer.Option(help="A running service; default: the one on the data folder.")]
Key = Annotated[str | None, typer.Option("--api-key", envvar="LAMINA_API_KEY", help="Key for that service.")]


@app.command()
def up(data_dir: DataDir = None, port: Port = None) -> None:
    """Run the embedded system until Ctrl-C."""
    settings = settings_of(data_dir, port)

    def greet(running: Running) -> None:
        say(f"lamina is up at {running.url} (documentation at {running.url}/docs)")
        say(f"try: lamina ingest FILE --user U{_flag(data_dir)}")

    run(_until_told(embedded(settings), greet))


@app.command()
def worker(part: Annotated[Part, typer.Argument(help="What this process does.")]) -> None:
    """Run one part of a production system against LAMINA_BROKER and LAMINA_DATABASE."""
    settings = settings_of()

    def greet(running: Running) -> None:
        where = f" at {running.url}" if running.url else ""
        say(f"lamina {part} is up{where}")

    run(_until_told(working(settings, part), greet))


@app.command()
def store(data_dir: DataDir = None) -> None:
    """Serve the vector store on the socket LAMINA_STORE, for workers on this machine."""
    settings = settings_of(data_dir)

    command = run(store_command(settings))
    os.execv(command[0], command)  # noqa: S606  # no shell is wanted: the words are ours


@app.command()
def reindex(data_dir: DataDir = None) -> None:
    """Build the vector store anew from the tables: mark every unit; the running system copies them."""
    marked = run(mark_everything(settings_of(data_dir)))
    say(f"{marked} units marked; the running system, or the next start, copies them")


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
    settings = settings_of(data_dir)

    async def main() -> bool:
        async with connected(settings, url=url, api_key=api_key, writes=True) as client:
            done = await ingest_files(client, files, user, console, wait=not no_wait)
        outcome = ", ".join(f"{count} {status}" for status, count in sorted(done.statuses.items()))
        rate = done.turns / done.seconds if done.seconds else 0.0
        say(f"{done.turns} turns: {outcome or 'accepted'} ({done.seconds:.1f} s, {rate:.0f} turns/s)")
        if done.faults:
            say(f"{done.faults} could not be taken: see above")
        for failed in done.failed:
            say(failed)
        return done.ok

    if not run(main()):
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
    settings = settings_of(data_dir)

    async def main() -> None:
        async with connected(settings, url=url, api_key=api_key, writes=False) as client:
            found = await client.search(query, user, top_k=top_k)
        for result in found.results:
            head = f"{result.score:.3f}  {result.said_at:%Y-%m-%d}  {result.kind:7}  {result.speaker}"
            say(head, style="dim")
            say(result.text)
        if not found.results:
            say("nothing in memory")

    run(main())


@app.command()
def ask(question: str, user: User, data_dir: DataDir = None, url: Url = None, api_key: Key = None) -> None:
    """Answer a question from memory, with the turns it rests on."""
    settings = settings_of(data_dir)

    async def main() -> None:
        async with connected(settings, url=url, api_key=api_key, writes=False) as client:
            answer = await client.answer(question, user)
        say(answer.answer)
        for said in answer.evidence:
            line = f"  rests on: {said.said_at:%d %B %Y} · {said.speaker}: {said.text}"
            say(line, style="dim")

    run(main())


@app.command("demo")
def demo_command(data_dir: DataDir = None) -> None:
    """Run the sample conversation through the whole system and ask three questions."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415  # only this command needs it

    with TemporaryDirectory(prefix="lamina-demo-", ignore_cleanup_errors=True) as fresh:
        settings = settings_of(data_dir or Path(fresh), 0)
        if not run(demo(settings, console)):
            raise typer.Exit(1)


@app.command()
def doctor(data_dir: DataDir = None) -> None:
    """Say what is configured, what answers, and how to mend what does not."""
    settings = settings_of(data_dir)

    async def main() -> bool:
        well = True
        async for finding in examine(settings):
            mark = ("ok", "green") if finding.ok else ("--", "red")
            line = Text.assemble(mark, f"  {finding.what:<11}  {finding.detail}")
            console.print(line, highlight=False, soft_wrap=True)
            well = well and finding.ok
        return well

    if not run(main()):
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
    # Five times a second while a broker is away; what waits for it says so in its own words.
    logging.getLogger("aiokafka").addFilter(lambda record: "Unable connect" not in record.getMessage())
    app()


def _flag(data_dir: Path | None) -> str:
    return "" if data_dir is None else f" --data-dir {data_dir}"


async def _until_told(
    starting: AbstractAsyncContextManager[Running], greet: Callable[[Running], None]
) -> None:
    """Run until a signal or a fault says so; the fault is raised when everything has ended."""
    async with starting as running:
        greet(running)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, running.ending.told.set)
        await running.ending.told.wait()
    if running.ending.fault is not None:
        raise running.ending.fault


if __name__ == "__main__":
    main()
