"""Who "I" is, written into a turn: the Φ_coref of SimpleMem eq. 3 for the speaker.

Names take the verb's third person where the verb is an auxiliary or one of the common ones; other verbs stay
as they are, which a reader and an embedder understand.
"""

import re
from collections.abc import Iterator

from lamina.streams.people import possessive


def in_own_name(text: str, speaker: str, both: str | None) -> Iterator[tuple[int, int, str]]:
    """Yield where the speaker means themself, and what to write: "I'm" → "Sarah is", "my" → "Sarah's".

    Args:
        text: what the speaker said.
        speaker: takes the place of "I", "me", "my".
        both: takes the place of "we" where the two who talk are plainly meant; None where they are not two.

    Yields:
        Start, end and new words, in no set order, never overlapping.
    """
    for match in _I.finditer(text):
        yield match.start(), match.end(), f"{_capital(match, speaker)}{_agreeing(match)}"
    for match in _MY.finditer(text):
        owns = match.group().lower() in {"my", "mine"}
        yield match.start(), match.end(), _capital(match, possessive(speaker) if owns else speaker)
    for match in _WE_TWO.finditer(text) if both else ():
        yield match.start(), match.end("we"), both or ""


def _capital(match: re.Match[str], name: str) -> str:
    """Begin with a capital where a sentence does ("The user's sister …")."""
    opens = _OPENS.search(match.string[max(0, match.start() - 3) : match.start()]) or match.start() == 0
    return name[0].upper() + name[1:] if opens else name


def _agreeing(match: re.Match[str]) -> str:
    short, verb = match["short"], match["verb"]
    adverb = match["adverb"] or ""
    if short:
        word = short.lower()[1:]
        if word == "d":
            return " had" if _PARTICIPLE.match(match.string, match.end()) else " would"
        return {"m": " is", "ve": " has", "ll": " will"}[word]
    return f"{adverb} {_THIRD[verb.lower()]}" if verb else adverb


_PLAIN_TEXT = """
love like live work think know feel want need hope enjoy hate play own prefer plan remember believe guess
mean wish bet see say make take come look keep run read write paint cook bake drive swim dance sing speak
stay start
"""
_THIRD = {verb: f"{verb}s" for verb in _PLAIN_TEXT.split()} | {
    "am": "is",
    "have": "has",
    "haven't": "hasn't",
    "do": "does",
    "don't": "doesn't",
    "was": "was",
    "go": "goes",
    "try": "tries",
    "study": "studies",
    "teach": "teaches",
    "miss": "misses",
}
_ADVERBS = (
    "just|really|actually|also|still|always|usually|often|never|finally|recently|currently|only|even|already"
)
_VERBS = "|".join(sorted(_THIRD, key=len, reverse=True))
_I = re.compile(
    r"\bI\b(?!\.\w)(?![-/])(?:(?P<short>['’](?:m|ve|ll|d)\b)"
    rf"|(?P<adverb>(?: (?:{_ADVERBS}))?)(?: (?P<verb>{_VERBS})\b(?!['’]))?)"
)
_MY = re.compile(r"\b(?:[Mm]y|[Mm]ine|[Mm]e|[Mm]yself)\b(?![-'’])")
_WE_TWO = re.compile(
    r"\b(?P<we>[Ww]e)(?= (?:should|could|can|must|need to|have to|gotta) (?:\w+ )?"
    r"(?:catch up|meet|get together|hang out|talk|chat|go together)\b)"
)
_OPENS = re.compile(r"(?:\A|[.!?…]\s|\n\s?)\Z")
_PARTICIPLE = re.compile(r" (?:better\b|been\b|\w+ed\b|gone\b|done\b|had\b)", re.IGNORECASE)
