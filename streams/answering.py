"""Answers by extraction: the sentence of memory that answers a question best, quoted with date and speaker.

Every sentence of the evidence is scored by the cosine of what found it, by the IDF-weighted share of the
question's words that it covers (with what its turn states as facts), and by whether it holds what the kind of
question asks for: a date for "when", a place for "where", a name for "who". What was replaced since stands
behind what holds, and a question is poor evidence. Where nothing supports an answer there is none: "Not in
memory." beats a guess.

Weights and thresholds are ours, set by hand with two LoCoMo conversations (26 and 42) in view. There, halving
or doubling the two main weights moves the share of answers that quote the evidence by at most 0.03. The
support asked for trades answers for abstentions: of the questions of one conversation put to the memory of
the other, 11 and 5 % are answered at 0.3, 48 and 32 % at half of it, none at twice. A sentence neither by nor
about a speaker that the question names is no answer, however near: `docs/answering.md` has what that and the
cosine asked for cost and gain.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import log
from uuid import UUID

from lamina.streams.dates import resolve_dates, spelled
from lamina.streams.fact_rules import CAPITAL
from lamina.streams.facts import facts_in, replaces
from lamina.streams.questions import Question, relation_words, understood, word_stems
from lamina.streams.records import FactDraft, Unit
from lamina.streams.sentences import clipped, is_question, sentences
from lamina.streams.words import tokens

NOT_IN_MEMORY = "Not in memory."


@dataclass(frozen=True, slots=True)
class Evidence:
    """A found memory: its cosine to the question, and the turns it rests on (of a turn, its exchange)."""

    unit: Unit
    score: float
    turns: tuple[Unit, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What memory says, the ids of the turns that say it, and those turns; none where it is not grounded."""

    text: str
    evidence: tuple[UUID, ...]
    grounded: bool
    engine: str = "extractive"
    turns: tuple[Unit, ...] = ()


MIN_SUPPORT = 0.3
"""Share of what the question is about below which only a close meaning makes an answer."""
MIN_COSINE = 0.7
"""Cosine that counts as a close meaning."""
_COSINE, _WORDS = 0.45, 0.55
_KIND_CREDIT = 0.12
_HOLDS_CREDIT = 0.12
_ENDED_DEBIT = 0.25
_ASKS_DEBIT = 0.35
_OTHER_DEBIT = 0.15
"""Debit of a sentence neither by nor about the speaker that the question names."""
_FEW_DEBIT = 0.15
_FEW_WORDS = 2
"""Content words below which a sentence says little: "Yep, Mel!"."""
_NEWEST_CREDIT, _LATEST_CREDIT = 0.02, 0.1
"""Credit of the newest evidence over the oldest; the second where the question asks for the present."""
_REPLY_SHARE = 0.7
"""Weight of words that only the question before a reply holds."""
_SHARED = 0.85
"""Weight of the cosine of an episode, and of an exchange for its other turn: several turns share it."""
_ALSO = 0.9
"""Share of the best score from which another sentence may be added."""
_MOST_QUOTED = 3
_LONGEST_QUOTE = 300
_MOST_TURNS = 200
_MOST_SENTENCES = 200
"""Of one turn."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A turn (or a derived unit whose turns were not given), and how it was found."""

    turn: Unit
    cosine: float
    ended: frozenset[str]
    """Objects, case-folded, of facts on it that hold no longer."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    source: _Source
    text: str
    own: frozenset[str]
    """Stems of the sentence."""
    words: frozenset[str]
    """Stems of the sentence, of its speaker, and of what it states."""
    facts: tuple[FactDraft, ...]
    asks: bool


@dataclass(frozen=True, slots=True)
class _Scored:
    candidate: _Candidate
    score: float
    support: float
    """Weighted share of what the question is about that is covered."""


def answer(question: str, found: Sequence[Evidence]) -> Answer:
    """Answer from what was found, or say that memory does not hold it.

    One sentence, or up to three where each adds something asked for, best first; the order of `found` makes
    no difference. A "when" question is answered with the resolved dates.
    """
    sources = _sources(found)
    candidates = [candidate for source in sources for candidate in _candidates(source)]
    if not candidates:
        return Answer(NOT_IN_MEMORY, (), grounded=False)
    asked = understood(question, {source.turn.speaker for source in sources})
    ranked = _ranked(asked, candidates)
    best = ranked[0]
    if not _supported(best, asked):
        return Answer(NOT_IN_MEMORY, (), grounded=False)
    said = [one.candidate for one in (best, *_additions(best, ranked[1:], asked))]
    turns = {candidate.source.turn.id: candidate.source.turn for candidate in said}
    ids = dict.fromkeys(turn_id for turn in turns.values() for turn_id in turn.evidence or (turn.id,))
    text = "\n".join(_quoted(candidate, asked) for candidate in said)
    return Answer(text, tuple(ids), grounded=True, turns=tuple(turns.values()))


def _supported(best: _Scored, asked: Question) -> bool:
    """Tell whether a sentence may answer: near enough, and by or about a speaker that the question names.

    What one said of themselves is no answer about the other; an assistant's words may be about anyone.
    """
    candidate = best.candidate
    if asked.names and candidate.source.turn.role == "user" and not asked.names & candidate.words:
        return False
    return best.support >= MIN_SUPPORT or candidate.source.cosine >= MIN_COSINE


# What may answer


def _sources(found: Sequence[Evidence]) -> list[_Source]:
    """Return each turn once, with the best cosine that found it, in time order."""
    turns: dict[UUID, Unit] = {}
    cosines: dict[UUID, float] = {}
    ended: dict[UUID, set[str]] = {}
    for one in found:
        is_turn = one.unit.kind == "turn"
        own = (one.unit,) if is_turn or not one.turns else ()
        for turn in {turn.id: turn for turn in (*one.turns, *own)}.values():
            shared = one.unit.kind in {"episode", "abstract"} or (is_turn and turn.id != one.unit.id)
            turns.setdefault(turn.id, turn)
            cosines[turn.id] = max(cosines.get(turn.id, -1.0), one.score * (_SHARED if shared else 1.0))
            if one.unit.object and (one.unit.valid_to is not None or not one.unit.visible):
                ended.setdefault(turn.id, set()).add(one.unit.object.casefold())
    best = sorted(turns.values(), key=lambda turn: (-cosines[turn.id], str(turn.id)))[:_MOST_TURNS]
    best.sort(key=lambda turn: (turn.said_at, turn.position, turn.ordinal, str(turn.id)))
    return [_Source(turn, cosines[turn.id], frozenset(ended.get(turn.id, ()))) for turn in best]


def _candidates(source: _Source) -> Iterator[_Candidate]:
    turn = source.turn
    facts = facts_in(turn) if turn.kind == "turn" else []
    for sentence in (clipped(one, _LONGEST_QUOTE) for one in sentences(turn.text)[:_MOST_SENTENCES]):
        own = frozenset(word_stems(sentence))
        dated = bool(facts) and bool(resolve_dates(sentence, turn.said_at))
        stated = tuple(
            fact
            for fact in facts
            if own & set(word_stems(fact.object)) or (dated and fact.relation in {"birthday", "deadline"})
        )
        words = own | set(word_stems(turn.speaker))
        for fact in stated:
            words |= {*word_stems(fact.subject), *relation_words(fact.relation)}
        yield _Candidate(source, sentence, own, words, stated, is_question(sentence))


# How well it answers


def _ranked(asked: Question, candidates: Sequence[_Candidate]) -> list[_Scored]:
    rarity = _rarity(asked.words, candidates)
    newest = _newest(candidates)
    replied = _replied_to(candidates)
    said = [candidate.source.turn.recent_at for candidate in candidates]
    oldest, span = min(said), (max(said) - min(said)).total_seconds() or 1.0
    ranked = []
    for candidate in candidates:
        turn = candidate.source.turn
        share = _share(candidate.words, asked.words, rarity)
        support = _share(candidate.words, asked.about, rarity)
        before = replied.get((turn.session, turn.ordinal), frozenset())
        if before and not candidate.asks:
            both = candidate.words | before
            share = max(share, _REPLY_SHARE * _share(both, asked.words, rarity))
            support = max(support, _REPLY_SHARE * _share(both, asked.about, rarity))
        score = _COSINE * max(0.0, candidate.source.cosine) + _WORDS * share
        score += _KIND_CREDIT * _has_kind(candidate, asked) + _standing(candidate, asked, newest)
        if candidate.asks or " ".join(tokens(candidate.text)) == asked.plain:
            score -= _ASKS_DEBIT
        if asked.names and not asked.names & candidate.words:
            score -= _OTHER_DEBIT
        if len(candidate.own - asked.names) < _FEW_WORDS:
            score -= _FEW_DEBIT
        if support:
            recency = (turn.recent_at - oldest).total_seconds() / span
            score += (_LATEST_CREDIT if asked.latest else _NEWEST_CREDIT) * recency
        ranked.append(_Scored(candidate, score, support))
    ranked.sort(
        key=lambda one: (-one.score, -one.candidate.source.turn.recent_at.timestamp(), one.candidate.text)
    )
    return ranked


def _rarity(words: Iterable[str], candidates: Sequence[_Candidate]) -> dict[str, float]:
    """Return the IDF of words over the sentences; a word that stands in none weighs most."""
    counts = {word: sum(word in candidate.words for candidate in candidates) for word in words}
    return {word: log(1 + (len(candidates) + 1) / (count + 0.5)) for word, count in counts.items()}


def _share(words: frozenset[str], of: frozenset[str], rarity: dict[str, float]) -> float:
    total = sum(rarity[word] for word in sorted(of))
    return sum(rarity[word] for word in sorted(of & words)) / total if total else 0.0


def _has_kind(candidate: _Candidate, asked: Question) -> bool:
    """Tell whether a sentence holds the kind of thing that the question asks for."""
    if asked.kind == "when":
        return bool(resolve_dates(candidate.text, candidate.source.turn.said_at))
    if asked.kind == "where":
        placed = any(fact.relation in _PLACES for fact in candidate.facts)
        return placed or _PLACED.search(candidate.text) is not None
    if asked.kind == "who":
        return any(not set(word_stems(name)) <= asked.words for name in _NAMED.findall(candidate.text))
    return asked.kind == "how_many" and _FIGURE.search(candidate.text) is not None


def _newest(candidates: Sequence[_Candidate]) -> dict[tuple[str, str], FactDraft]:
    """Return, for each subject and single-valued relation, the fact that holds last."""
    newest: dict[tuple[str, str], FactDraft] = {}
    for candidate in candidates:
        for fact in candidate.facts:
            known = newest.get((fact.subject, fact.relation))
            holds = replaces(fact.relation) and fact.object.casefold() not in candidate.source.ended
            if holds and (known is None or fact.valid_from >= known.valid_from):
                newest[fact.subject, fact.relation] = fact
    return newest


def _standing(candidate: _Candidate, asked: Question, newest: dict[tuple[str, str], FactDraft]) -> float:
    """Credit a fact that is asked for and holds; debit one that was replaced, unless the past is asked."""
    if asked.past:
        return 0.0
    credit = 0.0
    for fact in candidate.facts:
        if not asked.words & {*relation_words(fact.relation)}:
            continue
        last = newest.get((fact.subject, fact.relation), fact)
        replaced = last.object.casefold() != fact.object.casefold()
        if replaced or fact.object.casefold() in candidate.source.ended:
            credit -= _ENDED_DEBIT
        else:
            credit += _HOLDS_CREDIT
    return max(-_ENDED_DEBIT, min(credit, _HOLDS_CREDIT))


def _replied_to(candidates: Sequence[_Candidate]) -> dict[tuple[str, int], frozenset[str]]:
    """Return, for the place after each asking sentence, its words: "Where do you live?" – "In Lisbon."."""
    replied: dict[tuple[str, int], frozenset[str]] = {}
    for candidate in candidates:
        turn = candidate.source.turn
        if candidate.asks and turn.kind == "turn":
            place = (turn.session, turn.ordinal + 1)
            replied[place] = replied.get(place, frozenset()) | frozenset(word_stems(candidate.text))
    return replied


# What is said of it


def _additions(best: _Scored, others: Sequence[_Scored], asked: Question) -> list[_Scored]:
    """Choose further sentences: other values of a relation that the best states, or words not covered yet."""
    added: list[_Scored] = []
    covered = best.candidate.words
    values: dict[tuple[str, str], set[str]] = {}
    for fact in best.candidate.facts:
        if not replaces(fact.relation) and asked.words & {*relation_words(fact.relation)}:
            values.setdefault((fact.subject, fact.relation), set()).add(fact.object.casefold())
    for other in others:
        if len(added) + 1 == _MOST_QUOTED or other.score < _ALSO * best.score:
            break
        if other.candidate.asks or other.support < MIN_SUPPORT:
            continue
        more = [
            fact
            for fact in other.candidate.facts
            if fact.object.casefold()
            not in values.get((fact.subject, fact.relation), {fact.object.casefold()})
        ]
        if more or (other.candidate.words & asked.about) - covered:
            added.append(other)
            covered |= other.candidate.words
            for fact in more:
                values[fact.subject, fact.relation].add(fact.object.casefold())
    return added


def _quoted(candidate: _Candidate, asked: Question) -> str:
    turn = candidate.source.turn
    speaker = f"{turn.speaker or turn.role}: " if turn.kind == "turn" else ""
    text, said = candidate.text, turn.said_at
    if asked.kind != "when":
        return f"{speaker}{text} [{said.day} {said:%B} {said.year}]"
    dates = resolve_dates(candidate.text, said)
    meant = "".join(f"; {date.phrase} = {spelled(date.start, date.end)}" for date in dates)
    return f"{speaker}{text} [said {said.date().isoformat()}{meant}]"


_PLACES = frozenset({"lives_in", "comes_from", "born_in", "works_at", "studies_at"})
_PLACED = re.compile(rf"\b(?:in|at|to|from|near|around)\s+(?:the\s+|my\s+|a\s+)?{CAPITAL}")
_NAMED = re.compile(rf"(?<=[\w,] )({CAPITAL})")
_FIGURE = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundred|dozen|twice"
    r"|once|couple|few|several)\b",
    re.IGNORECASE,
)
