"""Plans by rules: what the edits that `lamina.streams.topology.rules` proposes are to write (ours). English.

Nothing here is written anew: segments are copied, descriptors are a source's own words. So a plan can say
no more than its sources, and the grounding that a model's reply goes through holds by construction.
"""

import re
from collections import Counter
from collections.abc import Sequence

from lamina.streams.engine import Node
from lamina.streams.entities import entities
from lamina.streams.phatic import is_phatic
from lamina.streams.records import Descriptor, Unit
from lamina.streams.sentences import clipped, is_question, sentences
from lamina.streams.topology.statements import content_of
from lamina.streams.words import STOP_WORDS, tokens

FEWEST_SOURCES = 3
"""Units that an abstract needs: of two, the one merge is enough."""
_KEYWORDS = 8
_FEWEST_STEMS = 3
"""Content words of a sentence that makes a part of a turn worth a memory."""
_FEWEST_EPISODE_STEMS = 8
"""Content words of a part of an episode: a shorter one is an aside."""
_LONGEST_ITEM = 120
_SHORTEST_KEYWORD = 3

_APART = re.compile(
    r"(?:(?:and|oh|ok|okay|well|so)[, ]+)*(?:by the way|btw|on (?:another|a different|an unrelated) note"
    r"|unrelated(?:ly)?|separately|changing the subject|different topic)\b",
    re.IGNORECASE,
)
_BESIDES = re.compile(
    r"(?:(?:and|oh)[, ]+)*(?:also|besides|plus|another thing|one more thing)\b", re.IGNORECASE
)
_CHAINED = re.compile(
    r"\b(?:then|because|so|after|afterwards|before|since|therefore|that's why|when|while|until|later|finally"
    r"|first|next|it|its|they|them|their|he|him|his|she|her|this|that|these|those|there)\b",
    re.IGNORECASE,
)
"""What ties a sentence to those before it: a sequence, a cause, a reference."""
_TASK = re.compile(
    r"\b(?:(?:need|have|ought|want|plan|remember) to|must|should|don't forget|remind me|(?:can|could) you)\b",
    re.IGNORECASE,
)
_ONESELF = re.compile(r"\b(?:i|we|my|our|me|us)\b", re.IGNORECASE)
_DATED = re.compile(r"\A\[\d{4}-\d{2}-\d{2}\]|\((?:said|since|[^()]* = )[^()]*\)\s*\Z")
_NOTE = re.compile(r"\s*\([^()]*\)\s*\Z")


def parts_of(target: Node) -> tuple[tuple[str, ...], bool]:
    """Return the separable parts of a unit's evidence, verbatim, and whether there is no doubt about them.

    Fewer than two: the unit is one. A fact is one statement; an abstract is meant to span.
    """
    if target.unit.kind in {"fact", "abstract"} or not target.evidence:
        return (), False
    if len(target.evidence) == 1:
        return _parts_of_turn(target.evidence[0].text)
    groups = _groups(target.evidence)
    parts = tuple("\n".join(turn.text for turn in group) for group in groups)
    told = [len(set(content_of(part))) for part in parts]
    sure = min(map(len, groups)) > 1 and min(told) >= _FEWEST_EPISODE_STEMS
    return (parts, sure) if len(parts) > 1 else ((), False)


def _parts_of_turn(text: str) -> tuple[tuple[str, ...], bool]:
    """Cut a turn before a sentence that a marker sets apart from those before it."""
    said = sentences(text)
    for place in range(1, len(said)):
        apart, besides = _APART.match(said[place]), _BESIDES.match(said[place])
        marker = apart or besides
        if marker is None:
            continue
        first, second = _between(text, said[0], said[place - 1]), _between(text, said[place], said[-1])
        rest = second[marker.end() :]
        if _share(first, rest) or _CHAINED.search(rest) or not (_tells(first) and _tells(rest)):
            continue
        report_and_task = bool(_TASK.search(first)) != bool(_TASK.search(rest))
        return (first, second), apart is not None or report_and_task
    return (), False


def _between(text: str, first: str, last: str) -> str:
    """Return the text from one sentence to another, verbatim."""
    start = text.find(first)
    return text[start : text.find(last, start) + len(last)]


def _share(one: str, other: str) -> bool:
    common = set(content_of(one)) & set(content_of(other))
    return bool(common) or bool(entities(one) & entities(other))


def _tells(text: str) -> bool:
    """Tell whether a part would be a memory of its own: it tells of oneself, and does not merely agree."""
    return any(
        len(set(content_of(sentence))) >= _FEWEST_STEMS
        and _ONESELF.search(sentence)
        and not (sentence.startswith("[") or is_question(sentence) or is_phatic(sentence))
        for sentence in sentences(text)
    )


def _groups(turns: Sequence[Unit]) -> list[list[Unit]]:
    """Group turns that share a content word or stand side by side in a session, directly or by others."""
    groups: list[list[Unit]] = []
    for turn in turns:
        near = [group for group in groups if any(_belong(turn, other) for other in group)]
        joined = [other for group in near for other in group]
        groups = [group for group in groups if not any(group is each for each in near)]
        groups.append([*joined, turn])
    order = {turn.id: place for place, turn in enumerate(turns)}
    for group in groups:
        group.sort(key=lambda turn: order[turn.id])
    return sorted(groups, key=lambda group: order[group[0].id])


def _belong(one: Unit, other: Unit) -> bool:
    side_by_side = one.session == other.session and abs(one.ordinal - other.ordinal) <= 1
    return side_by_side or _share(one.text, other.text)


def merged(sources: Sequence[Node]) -> Descriptor | None:
    """Return the words of the source that says most, the latest of equals, with the keywords of all."""
    best = max(
        (source.unit for source in sources),
        key=lambda unit: (len(set(content_of(words_of(unit)))), unit.recent_at, str(unit.id)),
        default=None,
    )
    if best is None:
        return None
    return Descriptor(summary=words_of(best), keywords=_united([source.unit for source in sources]))


def refreshed(current: Node) -> Descriptor:
    """Return the current unit's own words with the date from which they hold, where they name none."""
    unit = current.unit
    words = words_of(unit)
    since = unit.valid_from or unit.recent_at
    dated = words if _DATED.search(words) else f"[{since.date().isoformat()}] {words}"
    return Descriptor(summary=dated, keywords=unit.keywords or _united([unit]))


def in_common(sources: Sequence[Node]) -> Descriptor | None:
    """Return one statement over units that share a subject and relation, or two keywords; None declines.

    "Sarah likes: pottery; painting; hiking": every item is a source's own.
    """
    units = [source.unit for source in sources]
    if len(units) < FEWEST_SOURCES:
        return None
    about = {(unit.subject, unit.relation) for unit in units}
    if len(about) == 1 and units[0].subject and units[0].relation:
        items = dict.fromkeys(unit.object or "" for unit in units)
        summary = f"{units[0].subject} {units[0].relation.replace('_', ' ')}: {'; '.join(items)}"
        return Descriptor(summary=summary, keywords=_united(units))
    shared = _shared_keywords(units)
    if len(shared) < 2:  # noqa: PLR2004  # one common word may be chance
        return None
    items = dict.fromkeys(clipped(_NOTE.sub("", words_of(unit)), _LONGEST_ITEM) for unit in units)
    return Descriptor(summary=f"{', '.join(shared)}: {'; '.join(items)}", keywords=shared)


def words_of(unit: Unit) -> str:
    """Return a unit's descriptor: its summary, else its text, with the speaker where it is a turn's."""
    return unit.summary or (unit.spoken if unit.kind == "turn" and unit.speaker else unit.text)


def _united(units: Sequence[Unit]) -> tuple[str, ...]:
    """Return the units' keywords, those of most units first; where they have none, their content words."""
    given = Counter(word for unit in units for word in unit.keywords)
    found = given or Counter(word for unit in units for word in dict.fromkeys(_content(unit.text)))
    return tuple(sorted(found, key=lambda word: -found[word])[:_KEYWORDS])


def _shared_keywords(units: Sequence[Unit]) -> tuple[str, ...]:
    sets = [set(unit.keywords) for unit in units]
    return tuple(word for word in units[0].keywords if all(word in each for each in sets))


def _content(text: str) -> list[str]:
    return [w for w in tokens(text) if w not in STOP_WORDS and len(w) >= _SHORTEST_KEYWORD]
