"""`deep` (RLM-Memory §4): the model writes programs that read the history, until one of them calls FINAL.

As published: the history is an environment, not a prompt; `search_history` and `get_recent` are lexical and
by position; sessions go to sub-agents with a fresh context, up to 20 at once; every question is read in the
same way, since routing by type lost 6 points at four times the tokens (§8, table 5); at the last iteration an
answer is forced; and it abstains. Ours: programs run in a sandbox and not in this interpreter, hits come
newest first, every part of the cost has a bound, and an answer must name turns that a model has seen.
"""

from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

from lamina.streams.answering import NOT_IN_MEMORY
from lamina.streams.errors import UnusableReply
from lamina.streams.llm import Prompt
from lamina.streams.prompts import deep as program_prompt
from lamina.streams.prompts import deep_forced, deep_sub_query
from lamina.streams.prompts.deep import Program
from lamina.streams.recall.deep.budget import Budget, Spent, Why
from lamina.streams.recall.deep.doors import Doors, Question, Reading
from lamina.streams.recall.deep.events import (
    Answered,
    Event,
    Forced,
    HistoryRead,
    Looked,
    Printed,
    ProgramWritten,
    SubQueries,
    SubReplies,
)
from lamina.streams.recall.deep.functions import (
    DELEGATES,
    FINAL,
    LOOKS,
    MOST_EVIDENCE,
    NAMES,
    NOTHING,
    Claim,
    Misuse,
    Texts,
    claim_of,
    look,
    numbered,
    texts_of,
)
from lamina.streams.recall.deep.history import History, read_history
from lamina.streams.recall.deep.sandbox import Call, Ended, Pause, Session
from lamina.streams.recall.deep.shown import Shown
from lamina.streams.recall.found import in_time

T = TypeVar("T")

UNREAD = "(not read: the reader gave no usable reply)"
"""In the place of a finding that did not come."""
_UNREADABLE = "The reply was not of the form asked for; nothing was run."
_TIME_OVER = "The time for this question is over."
_MOST_REFUSALS = 20
"""Refused calls of FINAL after which another one ends its program."""


def deep(question: Question, doors: Doors, budget: Budget, reading: Reading) -> AsyncGenerator[Event, None]:
    """Answer from a namespace's history, and tell each step as it happens.

    The first event is `HistoryRead`, the last `Answered`. Close the iterator (`contextlib.aclosing`) to end
    the run: no call is made after that.

    Args:
        question: what is asked, of whom and when.
        doors: the ports.
        budget: bounds of this question.
        reading: how much is read.

    Raises:
        TablesUnavailable: the history cannot be read.
        ModelUnavailable, BudgetSpent: the model writes no program now; nothing is known of the answer.
        SandboxBusy: no process runs programs now.
    """
    return _Run(question, doors, budget, reading).events()


@dataclass(frozen=True, slots=True)
class _Step:
    """A program that was run, as later prompts show it."""

    program: str
    ended: Ended

    @property
    def error(self) -> str | None:
        if self.ended.error is None or not self.ended.lost:
            return self.ended.error
        return f"{self.ended.error}\nAll variables are lost."

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = {"program": self.program, "printed": self.ended.printed}
        if self.ended.cut:
            data["cut"] = True
        if self.error is not None:
            data["error"] = self.error
        return data


class _Run:
    """The state of one question."""

    def __init__(self, question: Question, doors: Doors, budget: Budget, reading: Reading) -> None:
        self._question = question
        self._doors = doors
        self._reading = reading
        self._now = question.as_of or doors.clock.now()
        self._spent = Spent(budget, doors.clock.now())
        self._history = History(())
        self._shown = Shown(self._history)
        self._steps: list[_Step] = []
        self._told = 0
        """Steps whose output some prompt has shown."""
        self._claim: Claim | None = None
        self._pause: Pause = Ended("")
        """Where the program at hand stands."""
        self._refusals = 0
        self._late = False
        """Whether something was broken off for time."""

    async def events(self) -> AsyncGenerator[Event, None]:
        """Run the question in a session of the sandbox: a busy one refuses it before anything is read."""
        async with self._doors.sandbox.session(NAMES) as session, aclosing(self._read(session)) as reading:
            async for event in reading:
                yield event

    async def _read(self, session: Session) -> AsyncGenerator[Event, None]:
        self._history = await read_history(
            self._doors.tables,
            self._question.namespace,
            self._question.as_of,
            turns=self._reading.turns,
            characters=self._reading.characters,
        )
        self._shown = Shown(self._history)
        yield HistoryRead(len(self._history.turns), self._history.sessions, self._history.cut)
        if not self._history.turns:
            yield self._answered(NOTHING, None)
            return
        why: Why | None = None
        while self._claim is None and (why := self._over()) is None:
            async with aclosing(self._step(session)) as step:
                async for event in step:
                    yield event
        if why is not None:
            yield Forced(why)
            self._claim = await self._forced(why)
        yield self._answered(self._claim or NOTHING, why)

    def _over(self) -> Why | None:
        """Return the part of the budget that allows no further program, if one does not."""
        if self._late:
            return "seconds"
        if not self._spent.affords([self._program_prompt()]):
            return "tokens"
        return self._spent.over(self._doors.clock.now())

    async def _step(self, session: Session) -> AsyncGenerator[Event, None]:
        """Ask for a program and run it."""
        try:
            written = await self._timed(self._written())
        except TimeoutError:
            return
        self._spent.programs += 1
        number = self._spent.programs
        if written is None:
            self._steps.append(_Step("", Ended("", error=_UNREADABLE)))
            yield Printed(number, "", cut=False, error=_UNREADABLE)
            return
        yield ProgramWritten(number, written.plan, written.program)
        try:
            self._pause = await self._timed(session.run(written.program))
            while isinstance(self._pause, Call):
                async with aclosing(self._serve(session, self._pause, number)) as serving:
                    async for event in serving:
                        yield event
            ended = self._pause
        except TimeoutError:
            ended = await session.abandon(_TIME_OVER)
        step = _Step(written.program, ended)
        self._steps.append(step)
        yield Printed(number, ended.printed, ended.cut, step.error)

    async def _serve(self, session: Session, call: Call, step: int) -> AsyncGenerator[Event, None]:
        """Answer one call, and go on to where the program stands then."""
        try:
            if call.name in LOOKS:
                looked = look(call, self._history, self._reading.sub_query_characters)
                yield Looked(step, call.name, looked.query, looked.found)
                value = looked.value
            elif call.name in DELEGATES:
                texts = self._affordable(call)
                yield SubQueries(step, texts.question, len(texts.texts))
                findings = await self._timed(self._delegated(texts))
                yield SubReplies(step, tuple(findings))
                value = findings[0] if texts.alone else findings
            else:
                self._claim = self._judged(call)
                self._pause = await session.abandon()
                return
        except Misuse as misuse:
            self._refusals += call.name == FINAL
            if self._refusals > _MOST_REFUSALS:
                self._pause = await session.abandon(misuse.words)
            else:
                self._pause = await self._timed(session.refuse(misuse.fault, misuse.words))
        else:
            self._pause = await self._timed(session.give(value))

    def _affordable(self, call: Call) -> Texts:
        """Read a call to the model, and check that the budget allows it.

        Raises:
            Misuse: it does not, or the arguments are not what the function takes.
        """
        texts = texts_of(call, self._question.text, self._reading.sub_query_characters)
        left = self._spent.budget.calls - self._spent.calls
        if len(texts.texts) > left:
            raise Misuse(
                "RuntimeError",
                f"{call.name}: {len(texts.texts)} texts, only {left} calls are left: choose, or call FINAL",
            )
        prompts = [deep_sub_query.prompt(texts.question, text) for text in texts.texts]
        if not self._spent.affords(prompts):
            raise Misuse("RuntimeError", f"{call.name}: too few tokens are left: choose, or call FINAL")
        return texts

    async def _delegated(self, texts: Texts) -> list[str]:
        """Return what readers find in the texts: '' for nothing."""
        asked = [place for place, text in enumerate(texts.texts) if text.strip()]
        prompts = [deep_sub_query.prompt(texts.question, texts.texts[place]) for place in asked]
        findings = [""] * len(texts.texts)
        if not prompts:
            return findings
        first = self._spent.ask(*prompts)
        replies = await self._doors.ask.many(prompts, first=first)
        for place, reply in zip(asked, replies, strict=True):
            if isinstance(reply, Exception):
                findings[place] = UNREAD
                continue
            text = texts.texts[place]
            self._shown.read(text)
            self._spent.reply(reply.finding)
            turns = [number for number in reply.turns[:MOST_EVIDENCE] if self._shown.stands(number, text)]
            findings[place] = numbered(reply.finding, turns)
        return findings

    def _judged(self, call: Call) -> Claim:
        """Return what a program calls final, with those of its turns that a model has seen.

        Raises:
            Misuse: it names none of them, or the arguments are not what the function takes.
        """
        claim = claim_of(call)
        if claim.answer in {"", NOT_IN_MEMORY}:
            return NOTHING
        if not claim.evidence:
            raise Misuse("ValueError", "FINAL: name the turns that say it as evidence, or call FINAL('', [])")
        seen = self._seen(claim.evidence)
        if not seen:
            raise Misuse(
                "ValueError",
                "FINAL: none of these turns was read by you or a reader yet: print them with their numbers, "
                "look at them, and call FINAL in a later program",
            )
        return Claim(claim.answer, seen)

    def _seen(self, numbers: Sequence[int]) -> tuple[int, ...]:
        return tuple(number for number in dict.fromkeys(numbers) if self._shown.holds(number))

    async def _written(self) -> Program | None:
        """Return the next program, or None where the reply cannot be read."""
        prompt = self._program_prompt()
        ordinal = self._spent.ask(prompt)
        self._tell()
        try:
            written = await self._doors.ask.one(prompt, ordinal)
        except UnusableReply:
            return None
        self._spent.reply(written.plan + written.program)
        return written

    async def _forced(self, why: Why) -> Claim:
        """Return what the transcript says (RLM-Memory §4.1, step 5); nothing where no reply can be read."""
        prompt = deep_forced.prompt(self._question.text, self._asked, self._transcript, why)
        ordinal = self._spent.ask(prompt)
        self._tell()
        try:
            forced = await self._doors.ask.one(prompt, ordinal)
        except UnusableReply:
            return NOTHING
        self._spent.reply(forced.answer)
        answer = forced.answer.strip()
        seen = self._seen(forced.evidence[:MOST_EVIDENCE])
        return Claim(answer, seen) if answer and seen else NOTHING

    def _program_prompt(self) -> Prompt[Program]:
        turns = self._history.turns
        budget = self._spent.budget
        return program_prompt.prompt(
            self._question.text,
            self._asked,
            {
                "turns": len(turns),
                "sessions": self._history.sessions,
                "from": f"{turns[0].said_at:%Y-%m-%d}",
                "to": f"{turns[-1].said_at:%Y-%m-%d}",
                "cut": self._history.cut,
            },
            {"programs": budget.programs - self._spent.programs, "calls": budget.calls - self._spent.calls},
            self._transcript,
        )

    @property
    def _transcript(self) -> Sequence[dict[str, Any]]:
        return [step.data for step in self._steps]

    @property
    def _asked(self) -> str:
        return f"{self._now:%Y-%m-%d %H:%M} UTC"

    def _tell(self) -> None:
        """Note that the prompt at hand shows what the programs printed."""
        for step in self._steps[self._told :]:
            self._shown.printed(step.ended.printed)
        self._told = len(self._steps)

    async def _timed(self, work: Awaitable[T]) -> T:
        """Await within the time that is left.

        Raises:
            TimeoutError: it is over.
        """
        try:
            async with self._doors.timeout(self._spent.seconds_left(self._doors.clock.now())):
                return await work
        except TimeoutError:
            self._late = True
            raise

    def _answered(self, claim: Claim, forced: Why | None) -> Answered:
        evidence = in_time(self._history.turns[number - 1] for number in claim.evidence)
        return Answered(
            claim.answer if evidence else NOT_IN_MEMORY,
            bool(evidence),
            evidence,
            self._spent.programs,
            self._spent.calls,
            self._spent.tokens,
            forced,
        )
