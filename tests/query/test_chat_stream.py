"""A stream passes byte for byte, however it is cut, and its words are put together beside it."""

import json

import pytest

from lamina.query.chat_stream import MAX_LINE_BYTES, ReplyReader, whole_reply
from lamina.streams.topics import MAX_CONTENT_BYTES


def event(content, index=0, finish=None):
    choice = {"index": index, "delta": {"content": content}, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice]}, ensure_ascii=False).encode() + b"\n\n"


END = b"data: [DONE]\n\n"


def read(data, step):
    reader = ReplyReader()
    passed = b"".join(reader.feed(data[at : at + step]) for at in range(0, len(data), step))
    return reader, passed + reader.flush()


@pytest.mark.parametrize("step", [1, 2, 7, 64, 10_000])
def test_however_it_is_cut_all_but_the_end_passes_and_the_words_are_whole(step):
    data = event("Grüezi ") + b": ping\n\n" + event("🐝 wohl", finish="stop") + b"event: x\nid: 7\n\n"
    reader, passed = read(data + END, step)
    assert passed == data
    assert (reader.done, reader.text) == (True, "Grüezi 🐝 wohl")


def test_half_a_stream_has_no_words():
    reader, passed = read(event("half"), 5)
    assert passed == event("half")
    assert reader.text is None
    assert read(event("half", finish="length"), 5)[0].text == "half"


@pytest.mark.parametrize(
    "data",
    [
        event("one") + event("two", index=1),
        event("one") + b"data: {broken\n\n",
        event("one") + b"data: [1]\n\n",
        event("one") + b'data: {"error": {"message": "overloaded"}}\n\n',
        event("x" * (MAX_CONTENT_BYTES + 1)),
        event(" \n"),
        event(None),
        b'data: {"choices": ["x"]}\n\n',
        b'data: {"choices": [{"index": 0, "delta": null}]}\n\n',
        b"",
    ],
)
def test_what_memory_does_not_take_passes_all_the_same(data):
    reader, passed = read(data + END, 10_000)
    assert passed == data
    assert reader.done
    assert reader.text is None


def test_a_line_without_end_is_not_held():
    reader = ReplyReader()
    passed = reader.feed(b"data: " + b"x" * (MAX_LINE_BYTES + 1))
    assert len(passed) == MAX_LINE_BYTES + 7
    assert reader.feed(b"\n\n" + END) == b"\n\n"
    assert reader.text is None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"choices": [{"message": {"content": "hi"}}]}', "hi"),
        (b'{"choices": [{"message": {"content": null}}]}', None),
        (b'{"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}]}', None),
        (b'{"choices": [{"text": "completion"}]}', None),
        (b'{"choices": []}', None),
        (b"[]", None),
        (b"<html>", None),
    ],
)
def test_of_a_whole_reply_the_one_choice_s_words_are_taken(body, words):
    assert whole_reply(body)[0] == words
