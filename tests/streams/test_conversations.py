"""Conversation files: three shapes, everything that can be read is read, and the rest is named."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.streams.conversations import Fault, read_conversation
from lamina.streams.topics import MAX_CONTENT_BYTES

SAID = "2026-03-01T12:00:00Z"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def lines(*records, end="\n") -> bytes:
    """A JSONL file; a record that is text already is written as it is."""
    texts = (each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in records)
    return "".join(f"{text}{end}" for text in texts).encode()


def locomo(**changes) -> dict[str, object]:
    return {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ada", "dia_id": "D1:1", "text": "Look!", "blip_caption": "a red kite"},
            {"speaker": "Bo", "dia_id": "D1:2", "text": "Lovely."},
        ],
        "session_2_date_time": "12:05 am on 1 June, 2023",
    } | changes


def said(data: bytes) -> list[str]:
    return [turn.content for turn in read_conversation(data).turns]


def ids(data: bytes) -> list[str | None]:
    return [turn.message_id for turn in read_conversation(data).turns]


def test_lines_are_turns_with_what_their_author_said_about_them():
    data = lines(
        {"content": "I keep bees.", "name": "Ada", "timestamp": SAID, "run_id": "r", "message_id": "m1"},
        {"content": "How many hives?", "role": "assistant", "metadata": {"app": "chat"}, "colour": "red"},
    )
    conversation = read_conversation(data)
    assert conversation.faults == ()
    first, second = conversation.turns
    assert (first.content, first.name, first.timestamp) == ("I keep bees.", "Ada", NOON)
    assert (first.role, first.run_id, first.message_id) == ("user", "r", "m1")
    assert (second.role, second.metadata, second.timestamp) == ("assistant", {"app": "chat"}, None)


def test_one_line_is_a_file():
    assert said(lines({"content": "I keep bees."})) == ["I keep bees."]


def test_a_messages_file_shares_its_session_and_time():
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "run_id": "own"}]
    data = json.dumps({"messages": messages, "run_id": "r", "timestamp": SAID, "model": "x"}, indent=2)
    turns = read_conversation(data.encode()).turns
    assert [(turn.role, turn.content, turn.run_id) for turn in turns] == [
        ("user", "a", "r"),
        ("assistant", "b", "own"),
    ]
    assert {turn.timestamp for turn in turns} == {NOON}


def test_a_list_of_messages_is_a_messages_file():
    assert said(json.dumps([{"content": "a"}, {"content": "b"}]).encode()) == ["a", "b"]


def test_the_text_parts_of_a_message_are_joined_and_other_parts_are_left_out():
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "data:,"}},
        {"type": "text", "text": "It stings."},
    ]
    assert said(json.dumps({"messages": [{"role": "user", "content": parts}]}).encode()) == [
        "What is this?\nIt stings."
    ]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "assistant", "content": None, "tool_calls": []}, "content"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "content is empty"),
        ({"role": "wizard", "content": "x"}, "role"),
        ("just text", "a JSON str"),
        ({"content": "x", "timestamp": "yesterday"}, "timestamp"),
        ({"content": "x", "timestamp": "9999-12-31T23:59:59-10:00"}, "timestamp"),
        ({"content": " \n"}, "content is empty"),
        ({"text": "x"}, "content"),
        ({"content": "é" * (MAX_CONTENT_BYTES // 2 + 1)}, str(MAX_CONTENT_BYTES)),
    ],
)
@pytest.mark.parametrize("shape", ["messages", "list", "lines"])
def test_what_is_wrong_with_one_message_is_named_and_the_rest_is_read(message, reason, shape):
    messages = [{"content": "before"}, message, {"content": "after"}]
    if shape == "lines":
        if isinstance(message, dict) and isinstance(message.get("content"), list):
            reason = "content"
        elif isinstance(message, str):
            message = json.dumps(message)
        data, where = lines(messages[0], message, messages[2]), "line 2"
    else:
        data = json.dumps(messages if shape == "list" else {"messages": messages}).encode()
        where = "message 2"
    conversation = read_conversation(data)
    assert [turn.content for turn in conversation.turns] == ["before", "after"]
    [fault] = conversation.faults
    assert fault.where == where
    assert reason in fault.reason


def test_a_locomo_file_gives_turns_in_the_order_of_its_sessions():
    sessions = {f"session_{n}": [{"speaker": "Bo", "dia_id": f"D{n}:1", "text": f"{n}"}] for n in (10, 9, 2)}
    times = {f"session_{n}_date_time": "12:05 am on 1 June, 2023" for n in (10, 9, 2)}
    conversation = read_conversation(json.dumps(locomo(**sessions, **times)).encode())
    assert conversation.faults == ()
    assert [turn.content for turn in conversation.turns][2:] == ["2", "9", "10"]
    assert [turn.run_id for turn in conversation.turns][2:] == ["session_2", "session_9", "session_10"]
    assert conversation.turns[0].name == "Ada"
    assert conversation.turns[0].timestamp == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert conversation.turns[2].timestamp == datetime(2023, 6, 1, 0, 5, tzinfo=UTC)
    assert conversation.turns[0].message_id == "Ada+Bo:D1:1"


def test_the_caption_of_a_shared_photo_is_part_of_what_was_said():
    assert said(json.dumps(locomo()).encode()) == ["Look! [photo: a red kite]", "Lovely."]


def test_a_locomo_file_that_breaks_off_is_read_up_to_there_and_named():
    broken = locomo(session_2=[{"speaker": "Bo", "dia_id": "D2:1", "text": "late"}, {"speaker": "Bo"}])
    conversation = read_conversation(json.dumps(broken).encode())
    assert [turn.content for turn in conversation.turns] == ["Look! [photo: a red kite]", "Lovely.", "late"]
    [fault] = conversation.faults
    assert "dia_id" in fault.reason or "text" in fault.reason


@pytest.mark.parametrize("data", [b"", b"  \n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n"])
def test_an_empty_file_is_named_as_one(data):
    assert read_conversation(data).faults == (Fault("file", "the file is empty"),)


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b'{"conversation": {"turns": []}}',
        b"[1, 2]",
        b'"text"',
        b"42",
        b"null",
        b"Dear diary,\nit rained all day.\n" * 50,
        b"\x89PNG\r\n\x1a\n\x00\x00\xff" * 20,
        b"time,speaker,text\n1,Ada,hello\n",
    ],
)
def test_an_unknown_shape_is_named_once_with_what_is_expected(data):
    conversation = read_conversation(data)
    assert conversation.turns == ()
    [fault] = conversation.faults
    assert fault.where == "file"
    for shape in ("JSON lines", "`messages`", "LoCoMo"):
        assert shape in fault.reason


@pytest.mark.parametrize("data", [b"[]", b'{"messages": []}'])
def test_a_file_without_turns_is_no_success(data):
    [fault] = read_conversation(data).faults
    assert fault.where == "file"


def test_a_messages_file_that_breaks_off_says_where():
    whole = json.dumps({"messages": [{"role": "user", "content": "a"}] * 3}, indent=1)
    [fault] = read_conversation(whole[: len(whole) // 2].encode()).faults
    assert fault.where == "file"
    assert "line" in fault.reason


def test_an_invalid_line_is_named_by_its_number_and_the_rest_is_read():
    data = lines({"content": "a"}, "", '{"content": "b"', {"content": "c"}, "oops", {"content": "d"})
    conversation = read_conversation(data)
    assert [turn.content for turn in conversation.turns] == ["a", "c", "d"]
    assert [fault.where for fault in conversation.faults] == ["line 3", "line 5"]
    assert all(fault.reason.startswith("not JSON: ") for fault in conversation.faults)


def test_a_line_that_is_not_utf8_is_named_and_the_rest_is_read():
    data = lines({"content": "a"}) + b'{"content": "caf\xe9"}\n' + lines({"content": "c"})
    conversation = read_conversation(data)
    assert [turn.content for turn in conversation.turns] == ["a", "c"]
    [fault] = conversation.faults
    assert fault.where == "line 2"
    assert "UTF-8" in fault.reason


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_byte_order_mark_and_windows_line_ends_are_no_part_of_a_turn(mark, end):
    data = lines({"content": "a"}, {"content": "b"}, end=end)
    assert said(mark + data) == ["a", "b"]
    assert read_conversation(mark + data).faults == ()
    assert ids(mark + data) == ids(lines({"content": "a"}, {"content": "b"}))
    assert said(mark + json.dumps([{"content": "a"}]).encode()) == ["a"]


def test_separators_inside_a_text_do_not_end_its_line():
    text = "a\u2028b\x85c\x0bd\x1ce"
    assert said(lines({"content": text}, {"content": "x"})) == [text, "x"]


def test_times_are_kept_as_they_were_given():
    data = lines(
        {"content": "none"},
        {"content": "zoneless", "timestamp": "2026-03-01T12:00:00"},
        {"content": "number", "timestamp": 1_772_366_400},
        {"content": "future", "timestamp": "2099-01-01T00:00:00Z"},
    )
    times = {turn.content: turn.timestamp for turn in read_conversation(data).turns}
    assert times == {
        "none": None,
        "zoneless": datetime(2026, 3, 1, 12),
        "number": NOON,
        "future": datetime(2099, 1, 1, tzinfo=UTC),
    }


def test_the_same_sentence_twice_is_two_turns():
    data = lines(*[{"content": "Again!", "timestamp": SAID}] * 3)
    assert len(set(ids(data))) == 3


def test_the_same_file_read_twice_gives_the_same_ids():
    data = lines({"content": "Again!"}, {"content": "Again!"}, {"content": "b", "timestamp": SAID})
    assert ids(data) == ids(data)
    assert None not in ids(data)


def test_a_line_that_is_mended_later_does_not_change_the_ids_of_the_others():
    broken = lines({"content": "a"}, '{"content": "b', {"content": "c"})
    mended = lines({"content": "a"}, {"content": "b"}, {"content": "c"})
    assert set(ids(broken)) < set(ids(mended))


def test_an_id_in_the_file_is_not_taken_for_one_of_ours():
    first, second = read_conversation(lines({"content": "a", "id": "x1"}, {"content": "b", "id": 7})).turns
    assert (first.id, second.id) == (None, None)


@given(st.binary(max_size=200))
def test_no_bytes_are_read_with_an_error_or_passed_over_in_silence(data):
    conversation = read_conversation(data)
    assert conversation.turns or conversation.faults


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=8))
def test_whatever_was_said_is_read_word_for_word(texts):
    data = json.dumps([{"content": text} for text in texts], ensure_ascii=False).encode(errors="replace")
    expected = [text.encode(errors="replace").decode() for text in texts]
    assert said(data) == expected
