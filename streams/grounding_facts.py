"""A model's facts and answers made into drafts; what their turns do not support is left out, and said why.

Nothing here raises for what a model may have written.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from lamina.streams.fact_rules import RULES, replaces
from lamina.streams.grounding_shown import Shown, existing
from lamina.streams.grounding_support import Sources, day_of, days_in
from lamina.streams.prompts.consolidate import Answer
from lamina.streams.prompts.refine import Fact
from lamina.streams.records import FactDraft, Resolution, Unit
from lamina.streams.resolution import answered
from lamina.streams.words import STOP_WORDS, tokens

LONGEST_FACT = 300
"""Characters of a fact's text."""
MOST_FACTS = 12
"""Facts of one reply; the prompts ask for eight at most."""
_LONGEST_RELATION = 40
_LONGEST_OBJECT = 160
_MOST_ANSWER_WORDS = 8
_LEAST_OF_OBJECT = 0.5
"""Share of an object's content stems that its turns must hold."""


def facts_in(replies: Sequence[Fact], shown: Shown) -> tuple[tuple[FactDraft, ...], list[str]]:
    """Return the grounded facts in their order, each once, and what was dropped.

    A fact `updates` a known one only where subject and relation are the same; else it is new. It holds from
    the day it gives, if its turns name that day and it is not after them, else from when it was said.
    """
    kept: dict[tuple[str, str, str], FactDraft] = {}
    dropped: list[str] = []
    named = shown.named
    known = {_key(fact.subject or "", fact.relation or "", fact.object or "") for fact in shown.known}
    for place, reply in enumerate(replies, start=1):
        numbers, unknown = existing(reply.turns, len(shown.turns))
        fault = _fault_of_fact(reply, numbers, shown, named)
        if unknown and not numbers:
            fault = f"cites turns that were not shown: {unknown}"
        if fault is None and len(kept) == MOST_FACTS:
            fault = "is one too many"
        if fault is None:
            fact = _fact(reply, numbers, shown)
            key = _key(fact.subject, fact.relation, fact.object)
            fault = "is known already" if key in known or key in kept else None
        if fault is not None:
            dropped.append(f"fact {place} {fault}")
        else:
            kept[key] = fact
    return tuple(kept.values()), dropped


def resolved_in(replies: Sequence[Answer], shown: Shown) -> tuple[tuple[Resolution, ...], list[str]]:
    """Return the resolved form of each turn with more to resolve than "I", and the answers that were dropped.

    An answer stands beside a reference that the rules left open, and names only what was named in scope. The
    words of the turn all stay.
    """
    answers: dict[int, list[tuple[str, str]]] = {}
    dropped: list[str] = []
    sources = shown.sources(range(1, len(shown.turns) + 1), (*shown.heads, *shown.known))
    for place, reply in enumerate(replies, start=1):
        fault = _fault_of_answer(reply, shown, sources)
        if fault is None:
            answers.setdefault(reply.turn, []).append((reply.phrase, " ".join(reply.means.split())))
        else:
            dropped.append(f"answer {place} {fault}")
    resolved = []
    for number, reading in enumerate(shown.readings, start=1):
        text = answered(reading, answers.get(number, ()))
        if reading.meanings or text != reading.text:
            resolved.append(Resolution(turn=reading.turn, text=text))
    return tuple(resolved), dropped


def _fault_of_fact(reply: Fact, numbers: list[int], shown: Shown, named: Sources) -> str | None:
    if not numbers:
        return "rests on no turn"
    if not (
        reply.subject.strip() and _relation(reply.relation) and reply.object.strip() and reply.text.strip()
    ):
        return "has no subject, relation, object or text"
    if len(reply.object) > _LONGEST_OBJECT or len(reply.text) > LONGEST_FACT:
        return "is too long"
    sources = shown.sources(numbers)
    if sources.share(reply.object) < _LEAST_OF_OBJECT and not set(tokens(reply.object)) & sources.words:
        return "has an object that its turns do not name"
    wide = shown.sources(numbers, (*shown.heads, *shown.known))
    return wide.fault(f"{reply.subject}: {reply.text} {reply.object}", names=named)


def _fact(reply: Fact, numbers: list[int], shown: Shown) -> FactDraft:
    cited = [shown.turns[number - 1] for number in numbers]
    subject, relation = _subject(reply.subject, shown), _relation(reply.relation)
    updated = _updated(reply, subject, relation, shown)
    if updated is not None:
        subject, relation = updated.subject or subject, updated.relation or relation
    dates = days_in(reply.text)
    return FactDraft(
        text=" ".join(reply.text.split()),
        subject=subject,
        relation=relation,
        object=" ".join(reply.object.split()),
        evidence=tuple(turn.id for turn in cited),
        valid_from=_valid_from(reply.valid_from, cited, shown.sources(numbers), late=updated is not None),
        occurred_from=min(dates)[0] if dates else None,
        occurred_to=min(dates)[1] if dates else None,
        single=_single(reply, relation, updated),
    )


def _single(reply: Fact, relation: str, updated: Unit | None) -> bool | None:
    """Tell whether the relation holds one object: an update does; of the rules' own, its name decides."""
    if updated is not None:
        return True
    return None if relation in _RULED or replaces(relation) else reply.holds_one


def _updated(reply: Fact, subject: str, relation: str, shown: Shown) -> Unit | None:
    if reply.updates is None or not 1 <= reply.updates <= len(shown.known):
        return None
    known = shown.known[reply.updates - 1]
    same = _key(known.subject or "", known.relation or "", "") == _key(subject, relation, "")
    return known if same else None


def _subject(name: str, shown: Shown) -> str:
    """Write a subject as it is known: as a speaker's name, or as the subject of a known fact."""
    plain = " ".join(name.split())
    names = [turn.speaker for turn in shown.turns] + [fact.subject or "" for fact in shown.known]
    return next((known for known in names if known.casefold() == plain.casefold()), plain)


def _relation(name: str) -> str:
    """Return a relation in snake_case; empty where nothing is left or it is a sentence."""
    words = _NO_LETTERS.sub("_", name.strip().casefold()).strip("_")
    return words if len(words) <= _LONGEST_RELATION else ""


def _key(subject: str, relation: str, what: str) -> tuple[str, str, str]:
    return subject.casefold(), relation.casefold(), what.casefold().strip(" .")


def _valid_from(given: str | None, cited: Sequence[Unit], sources: Sources, *, late: bool) -> datetime:
    """Return the day given, where the turns name it and it is not after them, else when they were said.

    A change of a known fact holds from the latest turn that states it, another fact from the first.
    """
    said = (max if late else min)(turn.recent_at for turn in cited)
    day = day_of(given) if given else None
    if day is None or day >= said.astimezone(UTC).date():
        return said
    return datetime(day.year, day.month, day.day, tzinfo=UTC) if sources.allows(day, day + _DAY) else said


def _fault_of_answer(reply: Answer, shown: Shown, sources: Sources) -> str | None:
    if not 1 <= reply.turn <= len(shown.readings):
        return "names a turn that was not shown"
    open_ = {phrase.casefold() for phrase in shown.readings[reply.turn - 1].open}
    if reply.phrase.strip().casefold() not in open_:
        return "is to nothing that is open"
    words = tokens(reply.means)
    if not words or len(words) > _MOST_ANSWER_WORDS or _CLOSES.search(reply.means):
        return "is empty or too long"
    if all(word in STOP_WORDS for word in words):
        return "names nothing"
    known = sources.words
    unknown = [word for word in words if word not in STOP_WORDS and word.removesuffix("'s") not in known]
    return f"names what was not named ({unknown[0]})" if unknown else None


_DAY = timedelta(days=1)
_RULED = frozenset(rule.relation for rule in RULES)
_NO_LETTERS = re.compile(r"[^\w]+")
_CLOSES = re.compile(r"[()\n]")
