from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from lamina.bench.locomo import ANSWERABLE, load_locomo
from lamina.streams.errors import Misconfigured

DATA = Path(__file__).parents[3] / "shared" / "data" / "locomo"
with_data = pytest.mark.skipif(
    not DATA.is_dir(),
    reason="LoCoMo is not here: put its JSON files into ../shared/data/locomo beside the checkout",
)


def a_conversation(**changed):
    return {
        "speaker_a": "Ann",
        "speaker_b": "Ben",
        "session_2_date_time": "12:05 am on 1 June, 2023",
        "session_2": [{"speaker": "Ben", "dia_id": "D2:1", "text": "Hello again!"}],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {
                "speaker": "Ann",
                "dia_id": "D1:1",
                "text": "Look!",
                "blip_caption": "a red car",
                "query": "car",
            },
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Nice."},
        ],
        "session_3_date_time": "1:00 pm on 2 June, 2023",
        "qa": [
            {"question": "What?", "answer": 2022, "evidence": ["D1:1; D1:2", "D1:1"], "category": 1},
            {"question": "When?", "answer": "May", "evidence": ["D9:9", "D", "D:2:1"], "category": 2},
            {"question": "Who?", "adversarial_answer": "Ben", "evidence": ["D1:2"], "category": 5},
        ],
    } | changed


def loaded(folder, raw):
    (folder / "7.json").write_bytes(orjson.dumps(raw))
    (conversation,) = load_locomo(folder)
    return conversation


def test_turns_come_in_order_with_captions_and_session_times_in_utc(tmp_path):
    conversation = loaded(tmp_path, a_conversation())
    assert conversation.id == "7"
    assert conversation.speakers == ("Ann", "Ben")
    assert [turn.id for turn in conversation.turns] == ["D1:1", "D1:2", "D2:1"]
    assert conversation.turns[0].text == "Look! [photo: a red car]"
    assert conversation.turns[0].said_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert conversation.turns[2].said_at == datetime(2023, 6, 1, 0, 5, tzinfo=UTC)
    assert {name: len(turns) for name, turns in conversation.sessions().items()} == {
        "session_1": 2,
        "session_2": 1,
    }


def test_evidence_is_split_deduplicated_and_what_does_not_exist_is_dropped_and_counted(tmp_path):
    conversation = loaded(tmp_path, a_conversation())
    assert [question.evidence for question in conversation.questions] == [
        ("D1:1", "D1:2"),
        ("D2:1",),
        ("D1:2",),
    ]
    assert conversation.dropped_evidence == 1
    assert conversation.questions[0].answer == "2022"
    assert conversation.questions[2].answer == "Ben"


def test_evidence_of_answerable_questions_leaves_out_category_5(tmp_path):
    raw = a_conversation()
    raw["qa"] = raw["qa"][1:]
    assert loaded(tmp_path, raw).evidence(ANSWERABLE) == {"D2:1"}
    assert loaded(tmp_path, raw).evidence((5,)) == {"D1:2"}


def test_the_public_single_file_holds_the_same_conversations_under_the_same_names(tmp_path):
    raw = a_conversation()
    asked = raw.pop("qa")
    samples = [
        {"sample_id": "conv-7", "qa": asked, "conversation": raw, "event_summary": {}, "observation": {}},
        {"sample_id": 8, "qa": [], "conversation": raw, "session_summary": {}},
    ]
    file = tmp_path / "locomo10.json"
    file.write_bytes(orjson.dumps(samples))
    single = load_locomo(file)
    assert load_locomo(tmp_path) == single
    assert [each.id for each in single] == ["7", "8"]
    file.unlink()
    assert single[0] == loaded(tmp_path, a_conversation())
    assert load_locomo(tmp_path / "7.json") == [single[0]]


def test_a_folder_without_conversations_says_what_is_wanted(tmp_path):
    with pytest.raises(Misconfigured, match="no LoCoMo file"):
        load_locomo(tmp_path)


@pytest.mark.parametrize(
    "raw",
    [b"[]", b"[3]", b"{", b'{"speaker_a": "A"}', b'{"session_1": 3}', b'{"qa": []}', b'[{"sample_id": 1}]'],
)
def test_a_file_that_is_no_conversation_is_named(tmp_path, raw):
    (tmp_path / "x.json").write_bytes(raw)
    with pytest.raises(Misconfigured, match=r"x\.json"):
        load_locomo(tmp_path)


@with_data
def test_the_seven_shared_conversations_load_whole():
    conversations = load_locomo(DATA)
    assert [each.id for each in conversations] == ["26", "30", "41", "42", "43", "44", "47"]
    assert sum(len(each.turns) for each in conversations) == 4124
    assert sum(len(each.evidence(ANSWERABLE)) for each in conversations) == 941
    assert sum(each.dropped_evidence for each in conversations) == 2
