"""The recall benchmark: figures by hand, baselines, and what a result stands for."""

from io import StringIO
from math import log2
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from rich.progress import Progress

from lamina.bench.bm25 import BM25
from lamina.bench.conversation import Question
from lamina.bench.locomo import load_locomo
from lamina.bench.ranking import distinct, hit, ndcg, recall
from lamina.bench.recall import Bench, measure_recall, turns_of
from lamina.bench.recall_memory import remembered
from lamina.bench.recall_report import Asked, Report, row_of
from lamina.bench.recall_strategies import STRATEGIES
from lamina.sinks.in_memory import HashEmbedder
from lamina.streams.recall.found import Found
from lamina.streams.settings import Settings

DATA = Path(__file__).parents[3] / "shared" / "data" / "locomo"
with_data = pytest.mark.skipif(
    not DATA.is_dir(),
    reason="LoCoMo is not here: put its JSON files into ../shared/data/locomo beside the checkout",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Two sessions; one question of each kind that is counted apart."""
    raw = {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "9:00 am on 1 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "I checked the bee hives behind the old barn"},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "How many frames of honey did they give?"},
            {"speaker": "Ada", "dia_id": "D1:3", "text": "Wow!"},
        ],
        "session_2_date_time": "9:00 am on 2 May, 2023",
        "session_2": [
            {"speaker": "Bo", "dia_id": "D2:1", "text": "My violin broke on the train to Lisbon"},
            {"speaker": "Ada", "dia_id": "D2:2", "text": "Oh no, the violin from your grandmother?"},
        ],
        "qa": [
            {"question": "Who checked the bee hives?", "answer": "Ada", "evidence": ["D1:1"], "category": 4},
            {"question": "Violin?", "answer": "broke", "evidence": ["D2:1", "D2:2"], "category": 1},
            {"question": "Is Bo rich?", "answer": "unknown", "evidence": [], "category": 3},
            {"question": "Who sold honey?", "adversarial_answer": "Bo", "evidence": ["D1:2"], "category": 5},
        ],
    }
    (tmp_path / "1.json").write_bytes(orjson.dumps(raw))
    return tmp_path


async def report_on(data: Path, *names: str) -> Report:
    bench = Bench(Settings(), HashEmbedder(), edge=False)
    report = await measure_recall(data, names, bench, Progress(disable=True))
    assert isinstance(report, Report)
    return report


def test_figures_of_a_ranking_by_hand():
    ranked, evidence = ("a", "b", "c", "d"), ("b", "d", "x")
    assert recall(ranked, evidence, 3) == pytest.approx(1 / 3)
    assert recall(ranked, evidence, 4) == pytest.approx(2 / 3)
    assert (hit(ranked, evidence, 1), hit(ranked, evidence, 2)) == (0.0, 1.0)
    ideal = 1 + 1 / log2(3) + 1 / log2(4)
    assert ndcg(ranked, evidence, 4) == pytest.approx((1 / log2(3) + 1 / log2(5)) / ideal)


def test_the_ideal_is_no_longer_than_the_depth_and_nothing_to_find_counts_nothing():
    assert ndcg("ab", "abcdef", 2) == 1.0
    assert (recall("ab", "", 2), hit("ab", "", 2), ndcg("ab", "", 2)) == (0.0, 0.0, 0.0)


def test_an_item_counts_at_its_first_place():
    assert distinct("abacb", 2) == ("a", "b")


def test_bm25_prefers_rare_words_and_short_texts():
    index = BM25(["the cat sat", "a cat and a dog sat down together", "a violin", ""])
    scores = index.scores("Did the cats play the violin?")
    assert scores.argmax() == 2
    assert scores[0] > scores[1] > scores[3] == 0.0
    # "violin" stands in 1 of 4 texts, 1 word long; the mean length is (2 + 4 + 1 + 0) / 4.
    norm = 1.2 * (0.25 + 0.75 * 1 / 1.75)
    assert scores[2] == pytest.approx(2.2 / (1 + norm) * 1.2039728, rel=1e-6)


def test_bm25_of_nothing_and_of_stop_words_is_zero():
    assert BM25(["the"]).scores("the cat").tolist() == [0.0]


def asked(category: int, evidence: tuple[str, ...], *ranked: str) -> Asked:
    question = Question("?", "!", category, evidence)
    return Asked("1", "bm25", question, ranked, tokens=10, seconds=0.002)


def test_a_row_is_the_mean_over_its_questions():
    row = row_of("bm25", "all", [asked(1, ("D1:1", "D2:1"), "D1:1", "D2:9"), asked(4, ("D3:1",), "D1:1")])
    assert (row.n, row.recall5, row.hit5) == (2, 0.25, 0.5)
    assert row.session5 == 0.5
    assert row.p50_ms == pytest.approx(2.0)
    assert row.tokens == 10.0


async def test_questions_without_evidence_count_nothing_only_over_all_five_categories(data: Path):
    rows = {row.category: row for row in (await report_on(data, "bm25")).rows()}
    assert set(rows) == {"all", "1", "4", "all-five"}
    assert (rows["all"].n, rows["all"].recall5) == (2, 1.0)
    assert (rows["all-five"].n, rows["all-five"].recall5) == (4, 0.75)


async def test_the_json_has_the_published_form_and_its_definitions(data: Path):
    plain = (await report_on(data, "bm25", "dense", "tiers")).json()
    assert (plain["dataset"], plain["level"]) == ("LoCoMo", "turn")
    first = plain["rows"][0]
    assert (first["strategy"], first["category"]) == ("bm25", "all")
    assert {"n", "recall@5", "ndcg@5", "recall@10", "hit@5", "tokens", "p50_ms", "p99_ms"} <= first.keys()
    assert {"recall@k", "ndcg@5", "all-five", "ranking"} <= plain["definitions"].keys()
    assert orjson.loads(orjson.dumps(plain)) == plain


async def test_every_strategy_ranks_what_was_asked_for_first(data: Path):
    report = await report_on(data, *STRATEGIES)
    first = {each.strategy: each.ranked[0] for each in report.asked if each.question.category == 4}
    assert first == dict.fromkeys(STRATEGIES, "D1:1")


async def test_baselines_rank_gated_turns_too(data: Path):
    report = await report_on(data, "dense")
    assert {len(each.ranked) for each in report.asked} == {5}


async def test_a_turn_stands_for_itself_and_a_fact_for_its_evidence_in_time_order(data: Path):
    (conversation,) = load_locomo(data)
    async with remembered(
        conversation, HashEmbedder(), Settings(), edge=False, told=lambda _: None
    ) as memory:
        first, second, third, *_ = memory.turns
        fact = second.model_copy(update={"kind": "fact"})
        found = [
            Found(third, 0.9, "subconscious", (second, third)),
            Found(fact, 0.8, "semantic", (first, third)),
        ]
        assert turns_of(found, memory) == ("D1:3", "D1:1")


async def test_the_printed_report_defines_what_it_counts(data: Path):
    out = StringIO()
    Console(file=out, width=140).print((await report_on(data, "bm25")).tables())
    assert "fraction of the question's evidence turns among the first k distinct turns" in out.getvalue()
    assert "single-hop" in out.getvalue()


@with_data
async def test_bm25_stands_where_it_stood_on_locomo():
    (conversation, *_) = load_locomo(DATA)
    spoken = BM25([f"{turn.speaker}: {turn.text}" for turn in conversation.turns])
    found = [
        recall(
            [conversation.turns[n].id for n in (-spoken.scores(question.text)).argsort(kind="stable")],
            question.evidence,
            5,
        )
        for question in conversation.questions
        if question.evidence and question.category in (1, 2, 3, 4)
    ]
    assert len(found) == 150
    assert sum(found) / len(found) == pytest.approx(0.5, abs=0.1)
