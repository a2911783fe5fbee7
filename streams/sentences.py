"""Sentences of a text, and who "I" is in them (the Φ_coref of SimpleMem eq. 3, for the speaker alone).

Rules for English punctuation; a text in another language is cut at the same marks. Time is linear in the
length of the text.
"""

import re

from lamina.streams.words import normalise

_END = re.compile(r"[.!?…]+[\"'”’)\]]*(?=\s|$)|[。！？]+|\n+")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|sr|jr|vs|no|approx|e\.g|i\.e|etc|a\.m|p\.m)\.\Z",
    re.IGNORECASE,
)
_SMALL = re.compile(r"\s+[a-z]")
_TITLE = re.compile(r"(?:^|[\s(])(?:mr|mrs|ms|dr|prof|st|no|e\.g|i\.e|vs|(?-i:[A-HJ-Z]))\.\Z", re.IGNORECASE)
_TITLE_REACH = 8
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_LETTER = re.compile(r"[^\W_]")

_ASKS = re.compile(
    r"(?:(?:so|and|but|well|ok|okay|hey|oh)[, ]+)*(?:"
    r"(?:who|what|when|where|why|which|whose|how)(?:'s|'re|'d)?\s+(?:do|does|did|is|are|was|were|have|has|had|can"
    r"|could|would|will|should|many|much|long|often|far|old|about|time|kind|sort)\b"
    r"|(?:what's|who's|where's|when's|how's)\b"
    r"|(?:do|does|did|is|are|was|were|have|has|can|could|would|will|should|don't|didn't|isn't|aren't)\s+"
    r"(?:you|i|we|he|she|they|it|there|this|that|the|my|your|his|her|their|anyone|anybody)\b)",
    re.IGNORECASE,
)
_QUESTION_MARK = re.compile(r"\?[\s\"'”’)\]!?.]*(?:[^\w\s.,;:]\s*)*\Z")

_POSSESSIVES = re.compile(r"\b(?:my|mine|our|ours)\b", re.IGNORECASE)
_PERSONALS = re.compile(r"\b(?:I|me|myself|we|us|ourselves)\b(?!\.\w)")


def sentences(text: str) -> list[str]:
    """Return the sentences in order, trimmed, without bullets; what has no letter or digit is left out."""
    found: list[str] = []
    start = 0
    for mark in _END.finditer(text):
        if mark.group() == "." and _is_abbreviation(text, mark.end()):
            continue
        found.append(text[start : mark.end()])
        start = mark.end()
    found.append(text[start:])
    trimmed = (_BULLET.sub("", piece).strip() for piece in found)
    return [piece for piece in trimmed if _LETTER.search(piece)]


def _is_abbreviation(text: str, end: int) -> bool:
    before = text[max(0, end - _TITLE_REACH) : end]
    if _TITLE.search(before):
        return True
    return _ABBREVIATION.search(before) is not None and _SMALL.match(text, end) is not None


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks: by its question mark, or by its opening words where it has none."""
    plain = normalise(sentence)
    return _QUESTION_MARK.search(plain) is not None or _ASKS.match(plain) is not None


def clipped(sentence: str, most: int) -> str:
    """Return the sentence on one line, cut after a whole word to at most `most` characters, "…" included."""
    line = " ".join(sentence.split())
    if len(line) <= most:
        return line
    return line[: most - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def in_third_person(phrase: str, speaker: str) -> str:
    """Return a phrase of the speaker's with the name for "my" and "me": "my sister" → "Nora's sister".

    Verbs are left as they are, so this is for objects, not for sentences. "We" and "our" are read as the
    speaker too: who else was there the sentence does not tell.
    """
    owner = f"{speaker}'" if speaker.endswith("s") else f"{speaker}'s"
    return _PERSONALS.sub(lambda _: speaker, _POSSESSIVES.sub(lambda _: owner, phrase))
