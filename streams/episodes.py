"""Episodes by extraction: the sentences that stand for a cluster of turns (RecMem §3.3 without a model).

RecMem's LLM_epi and LLM_merge (eq. 6–7) write a narrative; ours quotes. Sentences are ranked by their cosine
to the cluster's TF-IDF centroid (centroid-based extraction, Radev et al. 2004), with small credits for names
and figures, and taken greedily without near-repetitions until the text is full. The same turns give the same
episode, whatever their order. A merge reads all turns again instead of its own last summary, so nothing
fades through repeated merging.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from math import log, sqrt
from uuid import UUID

from lamina.streams.dates import ResolvedDate, resolve_dates, spelled
from lamina.streams.entities import entities
from lamina.streams.phatic import is_phatic
from lamina.streams.phatic_words import GENERIC
from lamina.streams.records import EpisodeDraft, Unit
from lamina.streams.sentences import clipped, is_question, sentences
from lamina.streams.words import STOP_WORDS, stem, stems, tokens

MOST_CHARACTERS = 700
"""Length of an episode's text: about 170 tokens, so that five of them fit a small context."""
MOST_TURNS = 200
"""Turns that are read for one episode; of more, an even sample. Bounds a merge of a thread of hundreds."""

_LONGEST_LINE = 240
"""Characters of one quoted sentence."""
_MOST_SENTENCES = 40
"""Sentences of one turn that are read: a pasted document must not crowd the conversation out."""
_REPEATED = 0.6
"""Cosine from which a sentence repeats one that was taken."""
_NAMES_CREDIT = 0.05
"""Credit for each name, date or figure, of at most three, beside a cosine of typically 0.1 to 0.5."""
_FEW_WORDS = 3
"""Content words below which a sentence says little."""
_KEYWORDS = 5
_ENTITIES = 10
_SHORTEST_KEYWORD = 3

Vector = dict[str, float]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A sentence on its own, whoever said it: what is read of it does not depend on the episode."""

    text: str
    stems: tuple[str, ...]
    entities: frozenset[str]
    tokens: tuple[str, ...]
    says_little: bool
    """A question, or nothing but manners."""


@dataclass(frozen=True, slots=True)
class _Sentence:
    turn: Unit
    text: str
    stems: tuple[str, ...]
    entities: frozenset[str]
    tokens: tuple[str, ...]
    says_little: bool


@lru_cache(maxsize=1024)
def _readings(text: str) -> tuple[_Reading, ...]:
    """Read a turn's sentences; kept, since every next version of an episode reads its old turns again."""
    lines = (clipped(sentence, _LONGEST_LINE) for sentence in sentences(text)[:_MOST_SENTENCES])
    return tuple(
        _Reading(
            text=line,
            stems=tuple(stems(line)),
            entities=entities(line),
            tokens=tuple(tokens(line)),
            says_little=is_question(line) or is_phatic(line),
        )
        for line in lines
    )


def episode_of(turns: Sequence[Unit]) -> EpisodeDraft | None:
    """Return the episode of a cluster, or None where its turns carry no sentence.

    Its evidence is all turns in time order; it occurred when the quoted sentences say, else when they were
    said. The text has at most `MOST_CHARACTERS` characters.
    """
    return _episode(turns, _sample(_in_time_order(turns), MOST_TURNS), frozenset(), None)


def merged_episode(heads: Sequence[Unit], turns: Sequence[Unit], new: Sequence[Unit]) -> EpisodeDraft | None:
    """Return the next version of a thread's episode over its old and new turns, each turn once.

    Of hundreds of turns it reads an even sample of the old ones and all new ones (of which a sample, too,
    beyond half of `MOST_TURNS`). The best sentence of the new turns is always quoted. It keeps the topic of
    the latest head while that is still a keyword.
    """
    fresh = {turn.id for turn in new}
    old = [turn for turn in turns if turn.id not in fresh]
    read_new = _sample(_in_time_order(new), MOST_TURNS // 2)
    read = read_new + _sample(_in_time_order(old), MOST_TURNS - len(read_new))
    latest = max(heads, key=lambda head: (head.version, head.said_at, str(head.id)), default=None)
    return _episode([*old, *new], read, frozenset(fresh), latest.topic if latest is not None else None)


def _episode(
    turns: Sequence[Unit], read: Sequence[Unit], fresh: frozenset[UUID], topic: str | None
) -> EpisodeDraft | None:
    said = _said(_in_time_order(read))
    if not said:
        return None
    vectors = _vectors(said)
    centroid = _centroid(vectors)
    taken = _chosen(said, vectors, centroid, fresh)
    dated = [(sentence, resolve_dates(sentence.text, sentence.turn.said_at)) for sentence in taken]
    spans = [span for sentence, dates in dated for span in _occurred(sentence.turn, dates)]
    keywords = _keywords(said, centroid)
    return EpisodeDraft(
        text="\n".join(_line(sentence, dates) for sentence, dates in dated),
        keywords=keywords,
        entities=_frequent_entities(said),
        topic=topic if topic in keywords else (keywords[0] if keywords else None),
        evidence=tuple(turn.id for turn in _in_time_order(turns)),
        occurred_from=min(start for start, _ in spans),
        occurred_to=max(end for _, end in spans),
    )


def keywords_of(turns: Sequence[Unit]) -> tuple[str, ...]:
    """Return at most five keywords of turns, weightiest first: the words of their TF-IDF centroid."""
    said = _said(turns)
    return _keywords(said, _centroid(_vectors(said))) if said else ()


def _said(turns: Iterable[Unit]) -> list[_Sentence]:
    return [
        _Sentence(turn, each.text, each.stems, each.entities, each.tokens, each.says_little)
        for turn in turns
        for each in _readings(turn.text)
    ]


def _in_time_order(turns: Iterable[Unit]) -> list[Unit]:
    once = {turn.id: turn for turn in turns}
    return sorted(once.values(), key=lambda turn: (turn.said_at, turn.position, turn.ordinal, str(turn.id)))


def _sample(turns: list[Unit], most: int) -> list[Unit]:
    """Return at most so many turns, evenly spaced, the last one included."""
    if len(turns) <= most:
        return turns
    return [turns[(place + 1) * len(turns) // most - 1] for place in range(most)]


def _vectors(said: Sequence[_Sentence]) -> list[Vector]:
    """Return each sentence's TF-IDF vector of unit length (empty where no word counts)."""
    spread = Counter(word for sentence in said for word in set(sentence.stems))
    rarity = {word: log((1 + len(said)) / (1 + count)) + 1 for word, count in spread.items()}
    vectors = []
    for sentence in said:
        vector = {word: (1 + log(count)) * rarity[word] for word, count in Counter(sentence.stems).items()}
        length = sqrt(sum(weight * weight for weight in vector.values()))
        vectors.append({word: weight / length for word, weight in vector.items()})
    return vectors


def _centroid(vectors: Sequence[Vector]) -> Vector:
    total: Counter[str] = Counter()
    for vector in vectors:
        for word, weight in vector.items():
            total[word] += weight  # type: ignore[assignment]  # a Counter adds floats as well
    length = sqrt(sum(weight * weight for weight in total.values())) or 1.0
    return {word: weight / length for word, weight in total.items()}


def _cosine(left: Vector, right: Vector) -> float:
    if len(left) > len(right):
        left, right = right, left
    return sum(weight * right.get(word, 0.0) for word, weight in left.items())


def _chosen(
    said: Sequence[_Sentence], vectors: Sequence[Vector], centroid: Vector, fresh: frozenset[UUID]
) -> list[_Sentence]:
    """Take the best sentences that fit and do not repeat one another; return them in time order.

    The best one of the fresh turns goes first.
    """
    worth = [_worth(sentence, vector, centroid) for sentence, vector in zip(said, vectors, strict=True)]
    taken: list[int] = []
    room = MOST_CHARACTERS
    order = sorted(range(len(said)), key=lambda place: (-worth[place], place))
    first = [place for place in order if said[place].turn.id in fresh][:1]
    for place in (*first, *(place for place in order if place not in first)):
        if taken and len(said[place].text) >= room:
            continue
        dates = resolve_dates(said[place].text, said[place].turn.said_at) if room > 0 else ()
        needed = len(_line(said[place], dates)) + 1
        if taken and needed > room:
            continue
        if any(_cosine(vectors[place], vectors[other]) > _REPEATED for other in taken):
            continue
        taken.append(place)
        room -= needed
    return [said[place] for place in sorted(taken)]


def _worth(sentence: _Sentence, vector: Vector, centroid: Vector) -> float:
    credit = _NAMES_CREDIT * min(3, len(sentence.entities))
    worth = _cosine(vector, centroid) + credit
    if len(set(sentence.stems)) < _FEW_WORDS:
        worth *= 0.5
    return worth * 0.3 if sentence.says_little else worth


def _line(sentence: _Sentence, dates: Sequence[ResolvedDate]) -> str:
    """Quote a sentence with its date, its speaker, and what its date phrases mean."""
    turn = sentence.turn
    head = f"[{turn.said_at.date().isoformat()}] {turn.speaker or turn.role}: "
    meant = "; ".join(f"{date.phrase} = {spelled(date.start, date.end)}" for date in dates[:2])
    tail = f" ({meant})" if meant else ""
    return head + sentence.text + tail


def _occurred(turn: Unit, dates: Sequence[ResolvedDate]) -> list[tuple[datetime, datetime]]:
    return [(date.start, date.end) for date in dates] or [(turn.said_at, turn.said_at)]


def _keywords(said: Sequence[_Sentence], centroid: Vector) -> tuple[str, ...]:
    """Return the words of the centroid's heaviest stems, as most often written, heaviest first.

    Words that carry nothing and the speakers' own names ("Mel" for Melanie, too) are left out.
    """
    names = {token for sentence in said for token in tokens(sentence.turn.speaker)}
    written: dict[str, Counter[str]] = {}
    for sentence in said:
        for token in sentence.tokens:
            word = token.removesuffix("'s")
            idle = word in STOP_WORDS or word in GENERIC or any(name.startswith(word) for name in names)
            if not idle and len(word) >= _SHORTEST_KEYWORD and not word.isdecimal():
                written.setdefault(stem(word), Counter())[word] += 1
    best = sorted(written, key=lambda word: (-centroid.get(word, 0.0), word))[:_KEYWORDS]
    return tuple(min(written[word], key=lambda token: (-written[word][token], token)) for word in best)


def _frequent_entities(said: Sequence[_Sentence]) -> tuple[str, ...]:
    counts = Counter(name for sentence in said for name in sentence.entities)
    return tuple(sorted(counts, key=lambda name: (-counts[name], name))[:_ENTITIES])
