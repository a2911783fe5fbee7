"""A diagnosis as a language model would give it, by rules, for a rehearsal.

The extractive rules (`lamina.streams.topology.rules`) propose an edit only where a pattern is plain: on a few
hundred derived units none at all. A model also sees that two units say much the same in part other words. So
that a rehearsal has edits to plan, and a drift gate something to miss, units of one kind and voice that share
three in five of their content words are taken as redundant too. Shared words, not vectors: the drift gate
measures vectors, and must not be judged by its own measure.
"""

import re
from collections.abc import Sequence

from lamina.streams.engine import Neighbourhood, Node, Proposal
from lamina.streams.records import Unit
from lamina.streams.topology.rules import CERTAIN, MOST_MERGED, diagnose
from lamina.streams.topology.statements import content_of

OVERLAP = 0.6
"""Share of all content stems of two units that both hold (Jaccard), from which they are redundant."""
FEWEST = 3
"""Content stems that they share at least."""
_NOTE = re.compile(r"\s*\((?:said|since) [^()]*\)\s*\Z")
"""What a fact says of its own date: no part of the statement."""


def proposed(context: Neighbourhood) -> tuple[Proposal, ...]:
    """Return what the extractive rules propose, and where that holds no merge, one of units that overlap."""
    sure = diagnose(context)
    if any(proposal.operator == "merge" for proposal in sure):
        return sure
    alike = _overlapping(context.target.unit, context.anchors)
    if not alike:
        return sure
    targets = (context.target.unit.id, *(unit.id for unit in alike[: MOST_MERGED - 1]))
    return (*sure, Proposal("merge", targets, "they say much the same in part other words", CERTAIN))


def _overlapping(target: Unit, anchors: Sequence[Node]) -> list[Unit]:
    own = _content(target)
    found = []
    for anchor in anchors:
        unit = anchor.unit
        words = _content(unit)
        both = own & words
        same = (unit.kind, unit.speaker, unit.subject) == (target.kind, target.speaker, target.subject)
        if same and len(both) >= FEWEST and len(both) >= OVERLAP * len(own | words):
            found.append(unit)
    return found


def _content(unit: Unit) -> set[str]:
    return set(content_of(_NOTE.sub("", unit.text)))
