"""A real conversation through the broker: every turn ends well, and search finds the evidence."""

from pathlib import Path

import pytest
from rich.console import Console

from lamina.agents.connection import connected
from lamina.agents.ingest import ingest_files
from lamina.bench.locomo import load_locomo
from lamina.streams.identity import turn_id_from_message
from lamina.streams.namespace import namespace_of
from lamina.streams.settings import Settings

DATA = Path(__file__).parents[3] / "shared" / "data" / "locomo"
FILE = DATA / "26.json"


@pytest.mark.broker
@pytest.mark.skipif(not FILE.exists(), reason=f"LoCoMo is not at {DATA}: put its files there to run this")
async def test_a_locomo_conversation_is_remembered_and_its_evidence_found(
    tmp_path: Path, weights_cache: Path
) -> None:
    (conversation,) = [each for each in load_locomo(DATA) if each.id == "26"]
    settings = Settings(data_dir=str(tmp_path), cache_dir=str(weights_cache))
    async with connected(settings, url=None, api_key=None, writes=True) as client:
        done = await ingest_files(client, [FILE], "c26", Console(quiet=True), wait=True)
    assert done.ok
    assert done.turns == sum(done.statuses.values()) == 419
    assert set(done.statuses) <= {"gated", "remembered", "consolidated"}

    message_ids = {turn.id: "+".join(conversation.speakers) + f":{turn.id}" for turn in conversation.turns}
    turn_ids = {
        key: turn_id_from_message(namespace_of("local", "c26"), value) for key, value in message_ids.items()
    }
    found = asked = 0
    async with connected(settings, url=None, api_key=None, writes=False) as client:
        for question in conversation.questions:
            if question.category == 5 or not question.evidence:
                continue
            answer = await client.search(question.text, "c26", top_k=10, include=["turns"])
            shown = {turn.id for result in answer.results for turn in result.turns or ()}
            found += bool(shown & {turn_ids[turn] for turn in question.evidence})
            asked += 1
    assert asked > 100
    assert found / asked > 0.6, "dense search over exchanges finds evidence for two questions of three"
