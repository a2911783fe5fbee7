"""A message is remembered once, however often and in whatever shape a client sends it again."""

import random
from datetime import timedelta

import httpx
import pytest

from lamina.query.chat_history import (
    CLOSE,
    OPEN,
    cleaned,
    fresh_in,
    reply_to,
    spoken_in,
    without_recalled,
    words_of,
)
from lamina.query.chat_upstream import Upstream
from lamina.query.chat_window import block_of
from lamina.sinks.in_memory import InMemoryPublisher
from lamina.streams.codec import decode
from lamina.streams.errors import BrokerUnavailable
from lamina.streams.records import Turn
from tests.query.chat_kit import said, user

BLOCK = block_of("[2026-03-01 · ada · 1] I keep bees.")


class Broker(InMemoryPublisher):
    away = False

    async def publish(self, records):
        if self.away:
            raise BrokerUnavailable("away")
        await super().publish(records)


class Customer:
    """A chat client, and the proxy it talks to, which may be started anew at any time."""

    def __init__(self, world, name="ada", **fields):
        world.publisher = world.publisher if isinstance(world.publisher, Broker) else Broker()
        self.world, self.name, self.fields = world, name, fields
        self.words = ""
        self.history = []
        self.restart()

    def restart(self):
        """Start the proxy anew: nothing but the tables stays."""
        upstream = httpx.AsyncClient(
            transport=httpx.MockTransport(self._model), base_url="http://upstream.test"
        )
        api = self.world.api(upstream=Upstream(upstream, "m", "k"), accept_rows=True)
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://lamina.test")

    def _model(self, _):
        choice = {"index": 0, "message": said(self.words), "finish_reason": "stop"}
        return httpx.Response(200, json={"choices": [choice]})

    async def send(self, history, words):
        """Send one request, to which the model replies with these words; return the answer's headers."""
        self.words = words
        body = {"messages": history, "user": self.name, **self.fields}
        answer = await self.http.post("/v1/chat/completions", json=body)
        assert answer.status_code == 200
        return answer.headers

    async def say(self, text, words):
        self.history.append(user(text))
        await self.send(self.history, words)
        self.history.append(said(words))

    @property
    def kept(self):
        records = [one for one in self.world.publisher.records if one.key == f"local/{self.name}"]
        turns = {turn.id: turn for turn in (decode(Turn, record.value) for record in records)}
        return [turn.content for turn in turns.values()]


async def test_a_history_that_is_sent_again_adds_only_what_is_new(world):
    ada = Customer(world)
    for number in range(5):
        await ada.say(f"question {number}", f"answer {number}")
    assert ada.kept == [one["content"] for one in ada.history]


async def test_the_same_words_said_twice_are_two(world):
    ada = Customer(world)
    for _ in range(4):
        await ada.say("go on", "done")
    assert ada.kept == ["go on", "done"] * 4


async def test_a_request_that_is_tried_again_is_one(world):
    ada = Customer(world)
    await ada.say("I keep bees.", "Nice.")
    for _ in range(3):
        await ada.send(ada.history[:1], "Nice.")
    assert ada.kept == ["I keep bees.", "Nice."]


async def test_a_restart_doubles_nothing(world):
    ada = Customer(world)
    await ada.say("I keep bees.", "Nice.")
    ada.restart()
    await ada.send(ada.history[:1], "Nice.")
    ada.restart()
    await ada.say("Two hives.", "Where?")
    assert ada.kept == ["I keep bees.", "Nice.", "Two hives.", "Where?"]


async def test_another_reply_is_remembered_beside_the_first_and_the_question_once(world):
    ada = Customer(world)
    await ada.say("Name a bee", "Maya")
    await ada.send(ada.history[:1], "Willy")
    await ada.send([user("Name a bee"), said("Willy"), user("Thanks")], "Welcome.")
    assert ada.kept == ["Name a bee", "Maya", "Willy", "Thanks", "Welcome."]


async def test_an_edited_question_is_remembered_beside_the_first(world):
    ada = Customer(world)
    await ada.say("one", "1")
    await ada.say("two", "2")
    await ada.send([*ada.history[:2], user("two, I mean three")], "3")
    assert ada.kept == ["one", "1", "two", "2", "two, I mean three", "3"]


async def test_a_question_without_an_answer_is_once_when_the_next_follows(world):
    ada = Customer(world)
    await ada.send([user("are you there?")], " ")
    await ada.send([user("are you there?"), user("hello?")], "Yes.")
    assert ada.kept == ["are you there?", "hello?", "Yes."]


async def test_a_history_from_before_the_proxy_is_taken_over_once(world):
    old = [one for n in range(30) for one in (user(f"q{n}"), said(f"a{n}"))]
    ada = Customer(world)
    ada.history = list(old)
    await ada.say("new", "reply")
    assert ada.kept == [one["content"] for one in ada.history]
    await ada.say("newer", "reply 2")
    await ada.send([*old[:10], user("back to here")], "from there")  # the client went back
    assert len(ada.kept) == len(set(ada.kept)) == 60 + 4 + 2


@pytest.mark.parametrize("width", [1, 2, 3, 8])
async def test_a_client_that_cuts_its_history_doubles_nothing(world, width):
    ada = Customer(world)
    for number in range(12):
        ada.history.append(user(f"question {number % 3}"))
        await ada.send([{"role": "system", "content": "x"}, *ada.history[-width:]], f"answer {number}")
        ada.history.append(said(f"answer {number}"))
        if width == 1:
            world.clock.advance(timedelta(minutes=31))  # without a history only time tells them apart
    assert ada.kept == [one["content"] for one in ada.history]


@pytest.mark.parametrize(
    "reword", [str.upper, lambda text: text[:3], lambda text: f" {text}\n", lambda text: f"{text} [1]"]
)
async def test_replies_that_come_back_reworded_are_not_taken_for_new(world, reword):
    ada = Customer(world)
    for number in range(4):
        await ada.say(f"question {number}", f"answer {number}")
        ada.history[-1] = said(reword(ada.history[-1]["content"]))
    assert ada.kept == [words for n in range(4) for words in (f"question {n}", f"answer {n}")]


async def test_the_model_s_thinking_is_not_remembered(world):
    ada = Customer(world)
    await ada.say("2 + 2?", "<think>\nThe user asks me to add.\n</think>\n\n4")
    await ada.say("And 3?", "5")
    assert ada.kept == ["2 + 2?", "4", "And 3?", "5"]


async def test_the_same_opening_on_another_day_is_said_again(world):
    ada = Customer(world)
    for _ in range(3):
        await ada.send([user("What is on today?")], "Nothing.")
        await ada.send([user("What is on today?")], "Nothing.")
        world.clock.advance(timedelta(hours=24))
    assert ada.kept == ["What is on today?", "Nothing."] * 3


async def test_conversations_with_names_are_told_apart(world):
    for run in ("monday", "tuesday", "monday"):
        await Customer(world, metadata={"lamina_run_id": run}).say("Hi", "Hello!")
    turns = {one.id: one for one in (decode(Turn, record.value) for record in world.publisher.records)}
    assert sorted((turn.run_id, turn.content) for turn in turns.values()) == [
        ("monday", "Hello!"), ("monday", "Hi"), ("tuesday", "Hello!"), ("tuesday", "Hi"),
    ]  # fmt: skip


async def test_users_and_tenants_have_conversations_of_their_own(world):
    for name in ("ada", "bo"):
        await Customer(world, name).say("Hi", "Hello!")
    assert Customer(world, "ada").kept == Customer(world, "bo").kept == ["Hi", "Hello!"]


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_a_client_does_each_thing_said_is_kept_once(world, seed):
    """Random clients over few words; a thing said is a path: the words, and all words before them.

    They say, try again, ask for another reply, edit, go back, fork; the proxy is started anew at times.
    """
    chance = random.Random(seed)
    ada = Customer(world)
    paths: set[tuple[str, ...]] = set()

    async def request(history):
        reply = chance.choice(["ok", "fine", f"it is {len(paths)}"])
        await ada.send(history, reply)
        words = [one["content"] for one in history]
        paths.update(tuple(words[: n + 1]) for n in range(len(words)))
        paths.add((*words, reply))
        return [*history, said(reply)]

    history = await request([user("hello")])
    for number in range(25):
        world.clock.advance(timedelta(seconds=chance.randrange(60)))
        if number % 5 == 0:
            ada.restart()
        match chance.choice(["say", "say", "say", "again", "edit", "back"]):
            case "say":
                history = await request([*history, user(chance.choice(["yes", "no", "go on"]))])
            case "again":
                history = await request(history[:-1])
            case "edit":
                history = await request([*history[:-2], user(chance.choice(["yes", "maybe"]))])
            case "back" if len(history) > 4:
                history = history[: 2 * chance.randrange(1, len(history) // 2)]
    assert len(ada.kept) == len(paths)


@pytest.mark.parametrize(
    ("seed", "width", "words"),
    [(0, 99, ["yes", "no"]), (1, 99, ["yes"]), (2, 99, ["yes", "no", "go on"]), (3, 13, None), (4, 9, None)],
)
async def test_outages_lose_nothing_that_the_client_still_sends(world, seed, width, words):
    """One conversation; the broker is away at times, never for longer than the client's history reaches."""
    chance = random.Random(seed)
    ada = Customer(world)
    missed = 0
    for number in range(25):
        ada.history.append(user(chance.choice(words or [f"question {number}"])))
        reply = chance.choice(["ok", "fine", f"it is {number}"])
        world.publisher.away = number < 24 and missed < 3 and chance.random() < 0.4
        missed = missed + 1 if world.publisher.away else 0
        await ada.send(ada.history[-width:], reply)
        ada.history.append(said(reply))
    assert sorted(ada.kept) == sorted(one["content"] for one in ada.history)


def test_ids_and_marks_follow_from_the_history_alone():
    history = [user("a"), said("b"), user("a"), said("b")]
    ids = [one.id for one in spoken_in("c", history)]
    assert ids == [one.id for one in spoken_in("c", history)]
    assert len(set(ids)) == 4
    assert ids[:2] == [one.id for one in spoken_in("c", history[:2])]
    assert not set(ids) & {one.id for one in spoken_in("d", history)}
    reply = reply_to(spoken_in("c", history[:3]), "b")
    assert (reply.id, reply.marks) == (ids[3], spoken_in("c", history)[3].marks)


def test_instructions_tools_and_pictures_say_nothing_to_remember():
    messages = [
        {"role": "system", "content": "be kind"},
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "What is"}, {"type": "text", "text": "this?"}]},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "a bee", "tool_call_id": "1"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        {"role": "user"},
    ]
    spoken = spoken_in("c", messages)
    assert [(one.role, one.text, one.index) for one in spoken] == [("user", "What is\nthis?", 2)]
    assert fresh_in(spoken, messages) is None
    assert fresh_in(spoken, messages[:3]) == spoken[0]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"{BLOCK}Where are they?", "Where are they?"),
        (f"one {BLOCK}two {BLOCK}three", "one two three"),
        (f"{OPEN}{OPEN} x {CLOSE}y", "y"),
        (f"what does {OPEN} mean?", f"what does {OPEN} mean?"),
        (f"{CLOSE} and {OPEN}", f"{CLOSE} and {OPEN}"),
        (BLOCK, ""),
        ("", ""),
    ],
)
def test_recalled_blocks_are_taken_out_and_nothing_else(text, left):
    assert without_recalled(text).replace("\n", "") == left
    assert words_of({"content": [{"type": "text", "text": text}]}).replace("\n", "") == left.strip()


def test_cleaning_leaves_other_messages_and_parts_alone():
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    messages = [user("hi"), user([{"type": "text", "text": BLOCK}, {"type": "text", "text": "x"}, picture])]
    assert cleaned(messages) == [user("hi"), user([{"type": "text", "text": "x"}, picture])]
    assert messages[1]["content"][0]["text"] == BLOCK


def test_many_tags_are_read_in_linear_time():
    text = OPEN * 200_000
    assert without_recalled(text) == text
    assert without_recalled(text + CLOSE) == ""
