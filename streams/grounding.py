"""A model's words about units made into proposals, spans and descriptors; what is unsupported is refused.

All-Mem app. B.4: an edit whose ids, segments or descriptor are not grounded is skipped, never repaired. No
function here raises for what a model may have written. Of the episodic side, see
`lamina.streams.grounding_episodes` and `lamina.streams.grounding_facts`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal

from lamina.streams.engine import Neighbourhood, Node, Proposal
from lamina.streams.grounding_episodes import keywords_in
from lamina.streams.grounding_support import Sources, sources_of
from lamina.streams.prompts.diagnose import Diagnosis
from lamina.streams.prompts.plan_split import SplitPlan
from lamina.streams.records import Descriptor, Span, Unit
from lamina.streams.sentences import clipped
from lamina.streams.verbatim import Flat, Range

MOST_MERGED = 4
"""Units of one merge (All-Mem app. C.2)."""
LONGEST_SUMMARY = 1600
_LONGEST_REASON = 200
_LEAST_MERGED = 2


def proposals_in(reply: Diagnosis, context: Neighbourhood) -> tuple[tuple[Proposal, ...], list[str]]:
    """Return the proposals whose numbers, arity, confidence and times are sound, and what was dropped.

    Whether a unit may still be edited is for the executor (All-Mem app. B.3).
    """
    nodes = (context.target, *context.anchors)
    asked = [
        *(_Asked("split", (split.unit,), split.reason, split.confidence) for split in reply.splits),
        *(_Asked("merge", tuple(merge.units), merge.reason, merge.confidence) for merge in reply.merges),
        *(
            _Asked("update", (update.current, update.superseded), update.reason, update.confidence)
            for update in reply.updates
        ),
    ]
    kept: list[Proposal] = []
    dropped: list[str] = []
    for each in asked:
        fault = _fault_of_proposal(each, nodes)
        if fault is not None:
            dropped.append(f"{each.operator} {fault}")
            continue
        targets = tuple(nodes[number - 1].unit.id for number in each.numbers)
        reason = clipped(each.reason, _LONGEST_REASON) if each.reason.strip() else "no reason given"
        kept.append(Proposal(each.operator, targets, reason, each.confidence))
    return tuple(kept), dropped


def segments_in(reply: SplitPlan, evidence: Sequence[Unit]) -> tuple[str, ...] | None:
    """Return the segments of a split plan as text, one line for each piece, in the order of the evidence.

    None where a number was not shown, a quote is not in its turn, or a whole turn stands in two segments: the
    plan is then unusable as a whole. Empty segments are left out.
    """
    segments: list[str] = []
    whole: set[int] = set()
    for segment in reply.segments:
        pieces: list[tuple[int, int, str]] = []
        for number in segment.turns:
            if not 1 <= number <= len(evidence) or number in whole:
                return None
            whole.add(number)
            pieces.append((number, 0, evidence[number - 1].text))
        for quote in segment.quotes:
            if not 1 <= quote.turn <= len(evidence):
                return None
            found = Flat.of(evidence[quote.turn - 1].text).find(quote.text)
            if found is None:
                return None
            pieces.append((quote.turn, found[0], evidence[quote.turn - 1].text[found[0] : found[1]]))
        if pieces:
            segments.append("\n".join(text for _, _, text in sorted(pieces)))
    return tuple(segments)


def spans_of(segments: Sequence[str], evidence: Sequence[Unit]) -> tuple[tuple[Span, ...], ...] | None:
    """Return where verbatim segments stand in their evidence, or None where one does not.

    A line of a segment must occur in one turn, white space apart, between word borders and outside what an
    earlier line took; a leading date or speaker ("[2023-07-02] Sarah: …") may be left on it. Spans of a
    segment that touch are joined.

    Args:
        segments: verbatim pieces; each a line, or several lines from several places.
        evidence: the turns, in time order. A span counts in the characters of a turn's `text`.
    """
    flats = [Flat.of(turn.text) for turn in evidence]
    taken: list[list[Range]] = [[] for _ in evidence]
    found: list[tuple[Span, ...]] = []
    for segment in segments:
        spans: list[Span] = []
        for line in filter(str.strip, segment.splitlines()):
            place = _place(line, flats, taken)
            if place is None:
                return None
            turn, (start, end) = place
            taken[turn].append((start, end))
            spans.append(Span(turn=evidence[turn].id, start=start, end=end))
        if not spans:
            return None
        found.append(_joined(spans, evidence))
    return tuple(found)


def _place(line: str, flats: Sequence[Flat], taken: Sequence[Sequence[Range]]) -> tuple[int, Range] | None:
    """Return the first turn that holds a line, and where; without its date and speaker if not with them."""
    for quote in dict.fromkeys((line, _TAGS.sub("", line), _SPEAKER.sub("", _TAGS.sub("", line)))):
        for turn, flat in enumerate(flats):
            place = flat.find(quote, taken[turn])
            if place is not None:
                return turn, place
    return None


def _joined(spans: Sequence[Span], evidence: Sequence[Unit]) -> tuple[Span, ...]:
    """Return the spans in the order of the evidence, those with nothing between them as one."""
    order = {turn.id: place for place, turn in enumerate(evidence)}
    texts = {turn.id: turn.text for turn in evidence}
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: (order[span.turn], span.start)):
        last = joined[-1] if joined else None
        if last and last.turn == span.turn and not texts[span.turn][last.end : span.start].strip():
            joined[-1] = Span(turn=span.turn, start=last.start, end=span.end)
        else:
            joined.append(span)
    return tuple(joined)


def descriptor_in(
    summary: str, keywords: Sequence[str], nodes: Sequence[Node], *, least: float = 0.5
) -> tuple[Descriptor | None, str | None]:
    """Return the descriptor that a model wrote of units, or None and why not.

    Args:
        summary: must be supported by the units and their evidence.
        keywords: cleaned, each once, those the sources hold.
        nodes: the sources.
        least: share of the summary's content stems that the sources must hold.
    """
    sources = sources_of(unit for node in nodes for unit in (node.unit, *node.evidence))
    text = clipped(summary, LONGEST_SUMMARY) if summary.strip() else ""
    if not text:
        return None, "the descriptor is empty"
    fault = sources.fault(text, least)
    if fault is not None:
        return None, f"the descriptor {fault}"
    words = keywords_in(keywords, sources)
    return (Descriptor(summary=text, keywords=words), None) if words else (None, "no keyword is grounded")


def described_in(summary: str, keywords: Sequence[str], sources: Sources) -> Descriptor | None:
    """Return the descriptor of turns (All-Mem app. C.1), or None where it is unsupported or undated."""
    text = clipped(summary, LONGEST_SUMMARY) if summary.strip() else ""
    words = keywords_in(keywords, sources)
    if not (words and _DATED.match(text)) or sources.fault(text) is not None:
        return None
    return Descriptor(summary=text, keywords=words)


@dataclass(frozen=True, slots=True)
class _Asked:
    operator: Literal["split", "merge", "update"]
    numbers: tuple[int, ...]
    reason: str
    confidence: float


def _fault_of_proposal(asked: _Asked, nodes: Sequence[Node]) -> str | None:
    numbers = asked.numbers
    if any(not 1 <= number <= len(nodes) for number in numbers):
        return f"names units that were not shown: {list(numbers)}"
    if len(set(numbers)) != len(numbers):
        return "names a unit twice"
    if asked.operator == "merge" and not _LEAST_MERGED <= len(numbers) <= MOST_MERGED:
        return f"of {len(numbers)} units: two to four are allowed"
    if not (isfinite(asked.confidence) and 0 <= asked.confidence <= 1):
        return "has no confidence between 0 and 1"
    if asked.operator == "update":
        return _fault_of_update(*(nodes[number - 1].unit for number in numbers))
    return None


def _fault_of_update(current: Unit, superseded: Unit) -> str | None:
    if current.recent_at < superseded.recent_at:
        return "would let an older unit end a newer one"
    facts = current.kind == superseded.kind == "fact"
    same = (current.subject, current.relation) == (superseded.subject, superseded.relation)
    return "of facts with another subject or relation" if facts and not same else None


_DATED = re.compile(r"\[\d{4}-\d\d-\d\d\] \S")
_TAGS = re.compile(r"\A\s*(?:\[[^\]]*\]\s*)+")
_SPEAKER = re.compile(r"\A\s*[^:\s][^:]{0,60}:\s*")
