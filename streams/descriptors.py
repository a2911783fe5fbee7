"""Descriptors by rules: a dated summary and keywords of turns (All-Mem app. C.1, without a model).

Also what stands in where a model's descriptor is missing or unsupported: the paper's executor falls back to
defaults derived from the raw evidence.
"""

from collections.abc import Sequence
from datetime import UTC, date

from lamina.streams.dates import resolve_dates
from lamina.streams.entities import entities
from lamina.streams.episodes import keywords_of
from lamina.streams.phatic import is_phatic
from lamina.streams.records import Descriptor, Unit
from lamina.streams.resolution import read
from lamina.streams.sentences import clipped, is_question, sentences
from lamina.streams.words import stems

_LONGEST = 260
"""Characters of the quoted sentences: one or two of them."""
_MOST_SENTENCES = 2
_FEWEST_KEYWORDS = 3
_MOST_KEYWORDS = 5


def described(turns: Sequence[Unit]) -> Descriptor:
    """Return the descriptor of turns, or parts of them: "[YYYY-MM-DD]", then the best one or two sentences.

    The day is the latest one-day date that the quoted sentences name, else the day on which the last of their
    turns was said. The sentences are resolved ("Sarah signed up …"), ranked by the keywords, names and
    figures they hold, and stand in their order. Keywords: three to five; fewer where no more words are there.

    Args:
        turns: at least one, in time order.
    """
    keywords = _keywords(turns)
    weights = {word for keyword in keywords for word in stems(keyword)}
    said = [(turn, text) for turn in turns for text in sentences(_resolved(turn, turns))[:40]]
    if not said:
        last = turns[-1]
        return Descriptor(summary=f"[{_day(last)}] {clipped(last.spoken, _LONGEST)}", keywords=keywords)
    order = sorted(range(len(said)), key=lambda place: (-_worth(said[place][1], weights), place))
    taken, room = [order[0]], _LONGEST - len(said[order[0]][1])
    for place in order[1:]:
        if (
            len(taken) < _MOST_SENTENCES
            and len(said[place][1]) <= room
            and _worth(said[place][1], weights) > 1
        ):
            taken.append(place)
            break
    best = [said[place] for place in sorted(taken)]
    text = " ".join(f"{turn.speaker or turn.role}: {sentence}" for turn, sentence in best)
    return Descriptor(summary=f"[{_salient(best)}] {clipped(text, _LONGEST)}", keywords=keywords)


def _resolved(turn: Unit, turns: Sequence[Unit]) -> str:
    place = next(place for place, each in enumerate(turns) if each is turn)
    before = [each for each in turns[max(0, place - 2) : place] if each.session == turn.session]
    return read(turn, before).text


def _worth(sentence: str, weights: set[str]) -> float:
    own = set(stems(sentence))
    worth = len(own & weights) + 0.5 * min(3, len(entities(sentence))) + 0.05 * min(10, len(own))
    return worth * 0.3 if is_question(sentence) or is_phatic(sentence) else worth


def _salient(best: Sequence[tuple[Unit, str]]) -> str:
    days = [
        each.start.date()
        for turn, sentence in best
        for each in resolve_dates(sentence, turn.said_at)
        if (each.end - each.start).days == 1
    ]
    return max(days, default=_day(best[-1][0])).isoformat()


def _day(turn: Unit) -> date:
    return turn.said_at.astimezone(UTC).date()


def _keywords(turns: Sequence[Unit]) -> tuple[str, ...]:
    """Return the keywords of the turns, filled up to three by the names in them."""
    found = list(keywords_of(turns))
    if len(found) < _FEWEST_KEYWORDS:
        found += sorted({name for turn in turns for name in entities(turn.text)} - set(found))
    return tuple(dict.fromkeys(found))[:_MOST_KEYWORDS]
