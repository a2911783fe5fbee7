"""Facts that a turn states about its speaker, by rules (RecMem §3.4, without the language model).

RecMem's refiner recovers what an episode leaves out: a sister's name, an allergy, an address. Ours reads
plain statements only and would rather miss one than invent one: nothing comes from a question, a denial, a
supposition, a report or a sentence about "you", and only users' turns are read, since an assistant's repeat
or advise. English.

Subjects are the speaker, a relative or friend ("my sister Mia … She is allergic to peanuts" is about Mia),
someone called by name, or, for a deadline, the thing that is due.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from lamina.streams.dates import ResolvedDate, resolve_dates, spelled
from lamina.streams.entities import entities
from lamina.streams.fact_clauses import Clause, clauses
from lamina.streams.fact_objects import objects_in
from lamina.streams.fact_rules import (
    BEGINS,
    KIN,
    LIKINGS,
    NO_KINDS,
    NO_NAMES,
    RULES,
    SINGLE_VALUED,
    SPELLINGS,
    FactRule,
    replaces,
)
from lamina.streams.people import People, strangers
from lamina.streams.records import FactDraft, Unit
from lamina.streams.sentences import sentences

__all__ = ["SINGLE_VALUED", "facts_across", "facts_in", "replaces"]

LONGEST_SENTENCE = 400
"""Characters; a longer one is pasted text, not something said about oneself."""
MOST_SENTENCES = 100
"""Sentences of a turn that are read, for the same reason; bounds its cost to some 50 ms."""


def facts_in(turn: Unit, before: Sequence[Unit] = ()) -> list[FactDraft]:
    """Return the facts that a user's turn states, in its order, each once, with the turn as evidence.

    A fact holds from the past date that its clause names ("I moved to Lisbon on 3 May"), else from when it
    was said; the date of a plan or a deadline is when it occurs instead.

    Args:
        turn: what is read.
        before: up to two turns before it in its session: who "she" and "he" may be, and nothing else.
    """
    if turn.role != "user" or not _TRIGGER.search(turn.text):
        return []
    people = _people(turn, before)
    found: dict[tuple[str, str, str], FactDraft] = {}
    for sentence in sentences(turn.text)[:MOST_SENTENCES]:
        if len(sentence) > LONGEST_SENTENCE:
            continue
        for clause in clauses(sentence):
            people.listen(clause.text)
            if clause.stated:
                for fact in _facts_of(clause, turn, people):
                    found.setdefault((fact.subject, fact.relation, fact.object.casefold()), fact)
    return list(found.values())


def facts_across(
    turns: Sequence[Unit], before: Mapping[UUID, Sequence[Unit]] | None = None
) -> tuple[FactDraft, ...]:
    """Return the facts of several turns in time order; a repetition adds its turn to the evidence.

    What a single-valued relation says again after another value is a new fact: Lisbon, Porto, Lisbon are
    three moves.

    Args:
        turns: what is read.
        before: for each of them, the turns before it, as `facts_in` takes them.
    """
    scope = before or {}
    found: list[FactDraft] = []
    places: dict[tuple[str, ...], int] = {}
    for turn in sorted(turns, key=lambda turn: (turn.recent_at, turn.position, turn.ordinal, str(turn.id))):
        for fact in facts_in(turn, scope.get(turn.id, ())):
            about = (fact.subject, fact.relation)
            key = about if replaces(fact.relation) else (*about, fact.object.casefold())
            place = places.get(key)
            if place is not None and found[place].object.casefold() == fact.object.casefold():
                evidence = tuple(dict.fromkeys((*found[place].evidence, turn.id)))
                found[place] = found[place].model_copy(update={"evidence": evidence})
            else:
                places[key] = len(found)
                found.append(fact)
    return tuple(found)


def _people(turn: Unit, before: Sequence[Unit]) -> People:
    """Return whom the turns before have spoken of; nobody, where someone else might be meant."""
    people = People(turn.speaker or turn.role)
    if not before or not _SHE_OR_HE.search(turn.text):
        return people
    for each in before:
        people.speaker = each.speaker or each.role
        people.listen(each.text[:LONGEST_SENTENCE])
    people.speaker = turn.speaker or turn.role
    named = (*people.pronouns, *(each.speaker for each in (*before, turn)))
    known = frozenset(part.casefold().removesuffix("'s") for name in named for part in name.split())
    if any(strangers(each.text[:LONGEST_SENTENCE], known) for each in before):
        return People(people.speaker)
    return people


def _facts_of(clause: Clause, turn: Unit, people: People) -> Iterator[FactDraft]:
    for rule in RULES:
        match = rule.pattern.search(clause.text)
        if match is None or not clause.plainly_at(match.start()):
            continue
        if rule.relation in LIKINGS and not clause.opens_with(match.start()):
            continue
        if rule.relation == "favourite" and match["kind"].lower() in NO_KINDS:
            continue
        subject = _subject(match, rule, clause.text, people)
        dates = resolve_dates(clause.text, turn.said_at)
        done = rule.relation == "plans_to" and any(date.end <= turn.said_at for date in dates)
        if subject is None or done:
            continue
        for what in objects_in(match["what"], rule, dates, people.speaker):
            yield _fact(rule, match.groupdict(), subject, what, dates, turn)


def _subject(match: re.Match[str], rule: FactRule, clause: str, people: People) -> str | None:
    """Return whom or what the fact is about; None where the clause does not tell."""
    groups = match.groupdict()
    who = (groups.get("who") or "I").strip()
    if rule.relation == "deadline":
        thing = _DETERMINER.sub("", who)
        return None if _POINTER.search(thing) else thing
    if who.lower() in {"i", "we", "my"}:
        return people.speaker
    if who.lower() in {"she", "he"}:
        return people.meant(who.lower())
    if groups.get("kin"):
        return people.called(KIN[groups["kin"].lower()])
    name = who.removesuffix("'s")
    known = name.split()[0].lower() not in NO_NAMES and name.casefold() in entities(clause)
    return name if known else None


def _fact(
    rule: FactRule,
    groups: dict[str, str | None],
    subject: str,
    what: str,
    dates: Sequence[ResolvedDate],
    turn: Unit,
) -> FactDraft:
    date = dates[-1] if dates else None
    began = date if date and rule.relation in BEGINS and date.start <= turn.said_at else None
    note = f"said {turn.said_at.date().isoformat()}"
    if began is not None:
        note = f"since {spelled(began.start, began.end)}; {note}"
    elif date is not None and date.phrase in what:
        note = f"{date.phrase} = {spelled(date.start, date.end)}; {note}"
    relation, predicate = _predicate(rule, groups, what)
    name = f"the {subject}" if subject in _ROLES or relation == "deadline" else subject
    owner = f"{name}'s" if rule.relation == "favourite" else name
    return FactDraft(
        text=f"{owner[0].upper()}{owner[1:]} {predicate} ({note})",
        subject=subject,
        relation=relation,
        object=what,
        evidence=(turn.id,),
        valid_from=began.start if began is not None else turn.recent_at,
        occurred_from=date.start if date is not None else None,
        occurred_to=date.end if date is not None else None,
    )


def _predicate(rule: FactRule, groups: dict[str, str | None], what: str) -> tuple[str, str]:
    """Return the relation and the readable rest of the sentence: "lives_in", "lives in Lisbon"."""
    kind = " ".join(SPELLINGS.get(word, word) for word in (groups.get("kind") or "").lower().split())
    if rule.relation == "kin":
        kin = KIN[(groups["kin"] or "").lower()]
        return kin, f"has {_article(kin)} {kin} named {what}"
    if rule.relation == "favourite":
        return f"favourite_{kind.replace(' ', '_')}", f"favourite {kind} is {what}"
    if rule.relation == "works_as":
        return rule.relation, f"{rule.verb} {_article(what)} {what}"
    if kind:
        return f"{kind}_{rule.relation}", f"{rule.verb.replace('the ', f'the {kind} ')} {what}"
    return rule.relation, f"{rule.verb} {what}"


def _article(word: str) -> str:
    return "an" if word[0].lower() in "aeiou" else "a"


_TRIGGER = re.compile(
    r"\b(?:i|im|ive|my|our|we|me|she|he|due|deadline|allerg\w+|lives|works|moved|birthday)\b", re.IGNORECASE
)
_SHE_OR_HE = re.compile(r"\b(?:she|he)\b", re.IGNORECASE)
_DETERMINER = re.compile(r"\A(?:the|my|our)\s+", re.IGNORECASE)
_POINTER = re.compile(r"\b(?:you|your|this|that|these|those|it|them|they|their|her|his)\b", re.IGNORECASE)
_ROLES = frozenset({"user", "assistant", "system", "tool"})
