"""RecMem's running example (app. B) with real words and the bundled model: cake, jeans, cake again."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from lamina.sinks.embed_onnx import open_onnx_embedder
from lamina.sinks.in_memory import FixedClock, InMemoryMetrics, InMemoryStore
from lamina.sinks.llm_extractive import ExtractiveEngine
from lamina.sinks.tables import open_tables
from lamina.streams import flow
from lamina.streams.facts import replaces
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import namespace_of
from lamina.streams.placement import arrive
from lamina.streams.records import Turn
from lamina.streams.settings import Settings
from lamina.streams.steps.embed import embed
from lamina.streams.steps.gate import gate
from lamina.streams.steps.ports import Ports
from lamina.streams.steps.remember import RecurrenceCache, remember

USER = namespace_of("local", "tess")
START = datetime(2026, 4, 1, 10, 0, tzinfo=UTC)

EXCHANGES = (
    (
        "Where should I order a birthday cake for my sister Mia? Mia is allergic to peanuts.",
        "Ask a bakery that takes cake orders for a peanut-free birthday cake and say it is for Mia.",
    ),
    (
        "How do I wash dark jeans without them fading?",
        "Turn the jeans inside out, wash them cold and let them dry in the shade.",
    ),
    (
        "I will order the birthday cake for my sister Mia at SweetLeaf, with her name on it.",
        "A birthday cake from SweetLeaf for Mia: order it peanut-free and give the cake message.",
    ),
)


def exchange(number: int):
    user, assistant = EXCHANGES[number]
    for place, (role, text) in enumerate((("user", user), ("assistant", assistant))):
        key = f"{number}-{place}"
        said_at = START + timedelta(minutes=2 * number + place)
        turn = Turn(role=role, content=text, message_id=key, timestamp=said_at, run_id="cake")
        yield arrive(USER, turn, fallback_id=turn_id_from_message(USER, key), received_at=said_at)


async def test_the_third_exchange_promotes_the_two_about_the_cake(
    tmp_path: Path, weights_cache: Path
) -> None:
    settings = Settings(theta_count=2, salience=False)
    metrics = InMemoryMetrics()
    embedder = await open_onnx_embedder(settings, weights_cache, metrics)
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    store = InMemoryStore(embedder.dimension)
    ports = Ports(settings, tables, store, embedder, ExtractiveEngine(), FixedClock(START), metrics)
    cache = RecurrenceCache(100)
    sizes, promoted = [], []
    try:
        for number in range(3):
            judged = await gate(list(exchange(number)), ports)
            done = await remember(await embed(judged.forwarded, ports), ports, cache)
            closing = turn_id_from_message(USER, f"{number}-1")
            sizes.append(len(done.decisions[closing].similar))
            promoted += [command for command in done.commands if command.reason == "recurrence"]
        await flow.carry_out_commands(ports, replaces)
        facts = [
            unit
            for ids in (await tables.derived_from(USER, [turn_id_from_message(USER, "0-0")])).values()
            for unit in (await tables.find(ids)).values()
            if unit.kind == "fact"
        ]
    finally:
        await tables.close()
        await embedder.close()
    assert sizes == [1, 1, 2], "the unit itself is counted; the jeans are alone"
    (command,) = promoted
    assert command.exchanges == (turn_id_from_message(USER, "0-1"), turn_id_from_message(USER, "2-1"))
    assert ("allergic_to", "peanuts") in {(fact.relation, fact.object) for fact in facts}
