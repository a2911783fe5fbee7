"""Facts as many as a language model would note, for a rehearsal.

The extractive rules state a fact only where they are sure, a handful in a conversation of hundreds of turns.
A model notes what someone did, has, likes or plans whenever they say it, and what it notes is read again by
every later call. So that the rehearsal does not count too little, it notes each sentence in which a speaker
tells of themself, in the words of the sentence.
"""

import re
from collections.abc import Iterator, Sequence

from lamina.streams.facts import facts_across
from lamina.streams.phatic import is_phatic
from lamina.streams.records import FactDraft, Unit
from lamina.streams.sentences import is_question, sentences
from lamina.streams.words import stems

_BETWEEN = (
    "so very super pretty gonna really just also always recently finally actually even still totally"
    " definitely have had am was are were been do did will would can could might should be"
)
"""Words that may stand between "I" and what is told."""
_TELLS = re.compile(
    rf"\b(?:I|we)(?:['’](?:m|ve|d|ll|re))?\s+(?:(?:{'|'.join(_BETWEEN.split())})\s+)*"
    r"(?P<verb>[a-z]+(?:\s+(?:up|out|on|in|to|for|at|with|about|of|into|like))*)\s+"
    r"(?P<what>[^.;!?,:()\[\]\n]+)",
    re.IGNORECASE,
)
_LONGEST = 9
"""Words of an object."""
_FEWEST = 2
"""Content words that an object needs."""


def noted(turns: Sequence[Unit]) -> list[FactDraft]:
    """Return the facts that the rules state, then those that the turns tell in their own words, in order."""
    sure = facts_across(turns)
    stated = {(fact.evidence[-1], word) for fact in sure for word in stems(fact.object)}
    told = [
        fact
        for turn in turns
        for fact in _told(turn)
        if not any((turn.id, word) in stated for word in stems(fact.object))
    ]
    return [*sure, *told]


def _told(turn: Unit) -> Iterator[FactDraft]:
    for sentence in sentences(turn.text):
        match = None if is_question(sentence) or is_phatic(sentence) else _TELLS.search(sentence)
        if match is None:
            continue
        verb, what = match["verb"].lower(), " ".join(match["what"].split()[:_LONGEST])
        if len(set(stems(what))) < _FEWEST:
            continue
        yield FactDraft(
            text=f"{turn.speaker} {verb} {what}.",
            subject=turn.speaker or turn.role,
            relation=verb.replace(" ", "_"),
            object=what,
            evidence=(turn.id,),
            valid_from=turn.said_at,
        )
