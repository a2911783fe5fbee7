"""A model's episodes made into drafts; what their turns do not support is left out, and said why.

Nothing here raises for what a model may have written.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from lamina.streams.episodes import keywords_of
from lamina.streams.grounding_shown import Shown, existing
from lamina.streams.grounding_support import Sources, days_in
from lamina.streams.prompts.episodes import Episode
from lamina.streams.records import EpisodeDraft, Unit
from lamina.streams.sentences import clipped
from lamina.streams.words import stems

LONGEST_EPISODE = 1600
"""Characters of an episode's text; the prompts ask for 110 words, some 700."""
MOST_KEYWORDS = 5
MOST_ENTITIES = 10
_LONGEST_KEYWORD = 60
_LONGEST_TOPIC = 60
_LEAST_OF_KEYWORD = 0.5
"""Share of a keyword's stems that its sources must hold."""
_LEAST_OF_HEAD = 0.3
"""Share of a known episode's content stems that its next version must hold: less would let it fade."""


def episodes_in(replies: Sequence[Episode], shown: Shown) -> tuple[tuple[EpisodeDraft, ...], list[str]]:
    """Return the grounded episodes in their order, and what was dropped.

    One without an existing turn, without text, or with a text, name, figure or date that its turns and the
    episodes it continues do not support is left out. A known episode that no kept one continues stays as it
    is, at the end: what is not told again must not fade. Where nothing is kept, nothing is returned, and the
    thread keeps its heads.
    """
    kept: list[EpisodeDraft] = []
    dropped: list[str] = []
    continued: set[int] = set()
    named = shown.named
    for place, reply in enumerate(replies, start=1):
        numbers, unknown = existing(reply.turns, len(shown.turns))
        if unknown:
            dropped.append(f"episode {place} cites turns that were not shown: {unknown}")
        heads = _heads_of(reply, shown, continued)
        sources = shown.sources(numbers, (shown.heads[head - 1] for head in heads))
        for turn in (turn for turn in shown.told if heads):
            sources.add_unit(turn)
        text = clipped(reply.text, LONGEST_EPISODE) if reply.text.strip() else ""
        fault = _fault_of_episode(numbers, text, sources, named)
        if fault is not None:
            dropped.append(f"episode {place} {fault}")
            continue
        continued.update(heads)
        kept.append(_draft(reply, text, numbers, [shown.heads[head - 1] for head in heads], sources, shown))
    if kept:
        left = [head for number, head in enumerate(shown.heads, start=1) if number not in continued]
        dropped += [
            f"known episode “{head.topic or head.text[:40]}” was not told again: kept" for head in left
        ]
        kept += [_as_it_is(head) for head in left]
    return tuple(kept), dropped


def keywords_in(words: Sequence[str], sources: Sources) -> tuple[str, ...]:
    """Return at most five keywords, cleaned, each once, those that the sources hold alone."""
    found: dict[str, str] = {}
    for word in words:
        plain = " ".join(word.split())
        if plain and len(plain) <= _LONGEST_KEYWORD and sources.share(plain) >= _LEAST_OF_KEYWORD:
            found.setdefault(plain.casefold(), plain)
    return tuple(found.values())[:MOST_KEYWORDS]


def _heads_of(reply: Episode, shown: Shown, taken: set[int]) -> list[int]:
    """Return the known episodes that a reply is the next version of: of those it names, what it tells again.

    Where there is one known episode, a reply that tells it again is its next version without saying so.
    """
    named, _ = existing(getattr(reply, "continues", ()), len(shown.heads))
    told = set(stems(reply.text))
    asked = named or ([1] if len(shown.heads) == 1 else [])
    return [head for head in asked if head not in taken and _tells_again(told, shown.heads[head - 1])]


def _tells_again(told: set[str], head: Unit) -> bool:
    own = set(stems(head.text))
    return len(own & told) >= _LEAST_OF_HEAD * len(own)


def _fault_of_episode(numbers: list[int], text: str, sources: Sources, named: Sources) -> str | None:
    if not numbers:
        return "rests on no turn"
    if not text:
        return "has no text"
    return sources.fault(text, names=named)


def _draft(
    reply: Episode, text: str, numbers: list[int], heads: list[Unit], sources: Sources, shown: Shown
) -> EpisodeDraft:
    cited = [shown.turns[number - 1] for number in numbers]
    rests = {key for head in heads for key in head.evidence}
    evidence = _in_time_order((*(turn for turn in shown.told if turn.id in rests), *cited))
    keywords = keywords_in(reply.keywords, sources) or keywords_of(cited)
    topic = clipped(reply.topic, _LONGEST_TOPIC) if reply.topic.strip() else ""
    named = (" ".join(name.casefold().split()) for name in reply.entities)
    entities = tuple(dict.fromkeys(name for name in named if name and sources.share(name) == 1.0))
    start, end = _occurred(text, cited, heads)
    return EpisodeDraft(
        text=text,
        keywords=keywords,
        entities=entities[:MOST_ENTITIES],
        topic=topic if topic and sources.share(topic) > 0 else (keywords[0] if keywords else None),
        evidence=tuple(turn.id for turn in evidence),
        occurred_from=start,
        occurred_to=end,
    )


def _as_it_is(head: Unit) -> EpisodeDraft:
    return EpisodeDraft(
        text=head.text,
        keywords=head.keywords,
        entities=head.entities,
        topic=head.topic,
        evidence=head.evidence,
        occurred_from=head.occurred_from,
        occurred_to=head.occurred_to,
    )


def _occurred(text: str, cited: Sequence[Unit], heads: Sequence[Unit]) -> tuple[datetime, datetime]:
    """Return when an episode occurred: the dates its text names, else when its turns were said."""
    spans = days_in(text) or [(turn.said_at, turn.said_at) for turn in cited]
    spans += [(head.occurred_from or head.said_at, head.occurred_to or head.said_at) for head in heads]
    return min(start for start, _ in spans), max(end for _, end in spans)


def _in_time_order(turns: Iterable[Unit]) -> list[Unit]:
    once = {turn.id: turn for turn in turns}
    return sorted(once.values(), key=lambda turn: (turn.said_at, turn.position, turn.ordinal, str(turn.id)))
