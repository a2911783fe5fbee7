"""Fitting the fusion of `auto`: the loss by hand, conversations left out, the report, the file of weights."""

from io import StringIO
from pathlib import Path
from uuid import UUID

import numpy as np
import orjson
import pytest
from rich.console import Console

from lamina.bench.fusion import COMPONENTS, Figures, ranking, validate
from lamina.bench.fusion_fit import Fitted, Sample, fit
from lamina.bench.fusion_folds import unseen, write_folds
from lamina.bench.fusion_pools import Case, Cases, pooled
from lamina.bench.fusion_report import FusionReport
from lamina.sinks.in_memory import HashEmbedder
from lamina.streams.errors import Misconfigured
from lamina.streams.recall.auto.features import FEATURES
from lamina.streams.settings import Settings

NAMES = FEATURES["tokens"]


def a_sample(rows, *evidence):
    target = np.zeros(len(rows))
    target[list(evidence)] = 1 / len(evidence)
    return Sample(np.array(rows, np.float64), target)


def loss(samples, weights, l2, spread):
    """The loss as the module states it, one question at a time."""
    total = 0.0
    for sample in samples:
        scores = sample.matrix @ (weights)
        total -= sample.target @ (scores - np.log(np.exp(scores).sum()))
    return total / len(samples) + l2 * np.sum((weights * spread) ** 2)


def test_two_candidates_and_one_feature_by_hand():
    """p = σ(d·w) with d = 2 between the candidates; at the minimum 2(σ(2w) − 1) + 2·λ·w = 0, spread 1."""
    fitted = fit([a_sample([[2.0], [0.0]], 0)], l2=0.5)
    w = float(fitted.weights[0])
    assert fitted.spread.tolist() == [1.0]
    assert 2 * (1 / (1 + np.exp(-2 * w)) - 1) + 2 * 0.5 * w == pytest.approx(0, abs=1e-4)


def test_no_weights_nearby_have_a_lower_loss():
    rng = np.random.default_rng(4)
    samples = [a_sample(rng.normal(size=(9, 3)) * (1, 5, 0.2), n % 9, (n + 4) % 9) for n in range(12)]
    fitted = fit(samples)
    least = loss(samples, fitted.weights, 3e-3, fitted.spread)
    for step in (*np.eye(3), *-np.eye(3)):
        assert loss(samples, fitted.weights + 0.02 * step / fitted.spread, 3e-3, fitted.spread) > least
    again = fit(samples, start=fitted.weights + 1)
    assert again.weights == pytest.approx(fitted.weights, abs=1e-4)


def test_a_feature_that_never_varies_weighs_nothing():
    fitted = fit([a_sample([[1.0, 4.0], [0.0, 4.0]], 0)])
    assert fitted.weights[0] > 0
    assert fitted.weights[1] == 0


def test_questions_without_candidates_or_without_their_evidence_change_nothing():
    held = a_sample([[1.0], [0.0], [0.5]], 0)
    empty = Sample(np.zeros((0, 1)), np.zeros(0))
    assert fit([held, empty]).weights == pytest.approx(fit([held]).weights)
    missing = Sample(np.array([[1.0], [0.0], [0.5]]), np.zeros(3))
    assert 0 < fit([held, missing], l2=0.1).weights[0] < fit([held], l2=0.1).weights[0]


class Turns:
    """Six turns that only their ids tell apart."""

    context = None

    def __init__(self, ids):
        self.ids = ids
        self.said_at = np.zeros(len(ids))

    def __len__(self):
        return len(self.ids)


def a_case(conversation, number, *, category=4, evidence=(0,), informative="rank"):
    """A pool of six turns of which the informative feature tells the evidence."""
    rng = np.random.default_rng(number)
    matrix = rng.normal(size=(6, len(NAMES)))
    matrix[:, NAMES.index(informative)] = [place in evidence for place in range(6)]
    ids = tuple(UUID(int=number * 100 + place) for place in range(6))
    found = frozenset(ids[place] if place < 6 else UUID(int=10**9 + place) for place in evidence)
    target = np.array([turn in found for turn in ids]) / len(found)
    return Case(conversation, category, Turns(ids), found, target, {"tokens": matrix})


def some_cases():
    made = [a_case(name, 10 * n + k, category=1 + k % 4) for n, name in enumerate("abc") for k in range(8)]
    return Cases(("a", "b", "c"), 90, "hash", tuple(made))


def test_a_ranking_counts_evidence_outside_the_pool_as_not_found():
    case = a_case("a", 1, evidence=(2, 9))
    weights = np.array([5.0 if name == "rank" else 0.0 for name in NAMES])
    every = tuple(range(len(NAMES)))
    recall5, ndcg5, recall10 = ranking(case, "tokens", every, Fitted(weights, np.ones(len(NAMES))))
    assert (recall5, recall10) == (0.5, 0.5)
    assert ndcg5 == pytest.approx(1 / (1 + 1 / np.log2(3)))


def test_the_feature_that_tells_is_weighed_and_missed_when_removed():
    told: list[str] = []
    one = validate(some_cases(), "tokens", ablate=True, told=told.append)
    assert told == ["all", *NAMES, *COMPONENTS]
    assert max(one.standardised, key=one.standardised.get) == "rank"
    assert one.all.n == 24
    assert one.all.ndcg5 > 0.95 > one.without["rank"].ndcg5
    assert {name: each.n for name, each in one.by_conversation.items()} == {"a": 8, "b": 8, "c": 8}
    assert {category: each.n for category, each in one.by_category.items()} == {1: 6, 2: 6, 3: 6, 4: 6}


def test_a_conversation_is_ranked_by_weights_of_the_others():
    """In `c` the feature is turned round, which only weights fitted on `c` could know."""
    made = [a_case(name, 10 * n + k) for n, name in enumerate("ab") for k in range(8)]
    for k in range(8):
        case = a_case("c", 100 + k)
        case.matrices["tokens"][:, NAMES.index("rank")] *= -1
        made.append(case)
    one = validate(
        Cases(("a", "b", "c"), 90, "hash", tuple(made)), "tokens", ablate=False, told=lambda _: None
    )
    assert one.by_conversation["c"].ndcg5 < 0.5 < one.by_conversation["a"].ndcg5
    assert one.without == {}


def test_no_question_is_no_figure():
    assert Figures.of([]) == Figures(0, 0.0, 0.0, 0.0)


def a_report():
    return FusionReport(
        some_cases(), (validate(some_cases(), "tokens", ablate=True, told=lambda _: None),), "a machine"
    )


def test_the_report_says_what_was_measured():
    found = a_report().json()
    assert {"dataset", "level", "conversations", "definitions", "embedder", "machine", "l2"} <= set(found)
    assert [row["of"] for row in found["rows"]][:5] == [
        "all",
        "multi-hop",
        "temporal",
        "open-domain",
        "single-hop",
    ]
    assert all(0 <= row["recall@5"] <= 1 for row in found["rows"] + found["removed"])
    assert [row["feature"] for row in found["removed"]] == [*NAMES, *COMPONENTS]
    assert found["pool"] == {"turns": 6.0, "evidence": 1.0}


def test_the_report_fits_a_terminal():
    page = StringIO()
    Console(file=page, width=120).print(a_report().tables())
    assert "late_interaction_pair" in page.getvalue()
    assert "conversation c" in page.getvalue()


def test_folds_hold_weights_of_the_other_conversations(tmp_path):
    file = tmp_path / "folds.json"
    report = a_report()
    write_folds(report.validated, file)
    written = orjson.loads(file.read_bytes())["tokens"]
    others = [case for case in report.cases.cases if case.conversation != "b"]
    fitted = fit([case.sample("tokens", range(len(NAMES))) for case in others])
    assert list(written["b"].values()) == pytest.approx(fitted.weights.tolist(), abs=1e-3)


def test_a_conversation_that_took_no_part_has_no_fold():
    assert unseen("never seen", "tokens") is None
    for match in FEATURES:
        assert set(unseen("26", match)) == set(FEATURES[match])


def test_writing_weights_keeps_those_of_the_other_match(tmp_path):
    file = tmp_path / "weights.json"
    file.write_bytes(orjson.dumps({"dense": {"weights": {"words": 1.0}}}))
    report = a_report()
    report.write_weights(file)
    written = orjson.loads(file.read_bytes())
    assert written["dense"] == {"weights": {"words": 1.0}}
    assert set(written["tokens"]["weights"]) == set(NAMES)
    assert written["tokens"]["fitted"]["conversations"] == ["a", "b", "c"]


@pytest.fixture
def conversations(tmp_path: Path) -> Path:
    """Two conversations of two people, one question each."""
    for number, (thing, place) in enumerate((("bee hives", "barn"), ("violin", "attic"))):
        raw = {
            "speaker_a": "Ada",
            "speaker_b": "Bo",
            "session_1_date_time": "9:00 am on 1 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": f"I found the {thing} behind the old {place}"},
                {"speaker": "Bo", "dia_id": "D1:2", "text": "My sister moved to Lisbon for her new job"},
            ],
            "qa": [
                {"question": f"Where was the {thing}?", "answer": place, "evidence": ["D1:1"], "category": 4},
                {"question": "Is Bo rich?", "answer": "unknown", "evidence": [], "category": 3},
                {"question": "Who sold it?", "adversarial_answer": "Bo", "evidence": ["D1:2"], "category": 5},
            ],
        }
        (tmp_path / f"{number}.json").write_bytes(orjson.dumps(raw))
    return tmp_path


async def test_pools_are_those_of_the_real_memory(conversations):
    told = []
    cases = await pooled(conversations, HashEmbedder(), Settings(), lambda *each: told.append(each))
    assert cases.conversations == ("0", "1")
    assert told == [("0", 2, 2), ("1", 2, 2)]
    assert [case.category for case in cases.cases] == [4, 4]  # the others have no evidence, or no answer
    for case in cases.cases:
        assert case.evidence <= set(case.pool.ids)
        assert case.target.sum() == 1
    assert cases.matches == ("tokens", "dense")


async def test_one_conversation_is_too_few(conversations):
    (conversations / "1.json").unlink()
    with pytest.raises(Misconfigured, match="another"):
        await pooled(conversations, HashEmbedder(), Settings(), lambda *_: None)
