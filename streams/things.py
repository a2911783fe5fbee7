"""The one thing that a text introduces, by rules: what "it" in the next sentence most likely means.

It reads only what an article announces as new ("a pottery class"), in the sentence before, and tells nothing
where there are two things or "the" points further back. English.
"""

import re

from lamina.streams.fact_rules import KIN
from lamina.streams.phatic_words import GENERIC
from lamina.streams.words import STOP_WORDS

FEWEST_WORDS = 2
"""Words of a thing after its article: behind a single noun "it" as often means the whole sentence."""
MOST_WORDS = 3
"""Words of a thing after its article; a longer run is no plain noun phrase."""


def introduced(text: str) -> str | None:
    """Return the one thing that the last sentence of a text introduces, with "the" for "a"."""
    sentence = _LAST.search(text)
    things = {} if sentence is None else dict(_things(sentence.group()))
    if len(things) != 1:
        return None
    ((noun, article),) = things.items()
    return None if article == "the" or not _plain(noun) else f"the {noun}"


def _things(sentence: str) -> list[tuple[str, str]]:
    found = []
    for match in _ANNOUNCED.finditer(sentence):
        words: list[str] = []
        for word in match[2].split():
            if word in STOP_WORDS or _NO_NOUN.fullmatch(word):
                break
            words.append(word)
        if words and words[-1] not in KIN and not _VAGUE.fullmatch(words[-1]):
            found.append((" ".join(words), match[1].lower()))
    return found


def _plain(noun: str) -> bool:
    """Tell whether a thing is named by its kind: "pottery class", not "difference" or "good plan"."""
    words = noun.split()
    return FEWEST_WORDS <= len(words) <= MOST_WORDS and words[0] not in GENERIC


_LAST = re.compile(r"[^.!?…\n]+[.!?…]*\s*\Z")
_ANNOUNCED = re.compile(r"\b(an?|the|[Aa]n?|[Tt]he)\s+(?=((?:[a-z][a-z'-]*\s*){1,5}))")
_NO_NOUN = re.compile(
    r"yesterday|today|tomorrow|tonight|last|next|ago|recently|now|then|soon|\w+(?:ed|ly)|made|done|called|named"
    r"|near|like|since|with|without|because|during"
)
_VAGUE = re.compile(
    r"lot|bit|ton|tons|couple|few|while|time|times|day|days|week|weekend|month|year|years|moment|way|thing|things|one"
    r"|ones|kind|sort|part|end|start|chance|reason|great|good|big|new|same|first|best|people|others|kids|world|break"
)
