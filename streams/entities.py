"""Named-entity candidates of a text, by rules: the E of SimpleMem eq. 1.

The paper names no recogniser; ours is cheap and deterministic. It prefers precision on names (a sentence's
first word counts only where it cannot be a common word) and recall on numbers, dates, money, times and
addresses, which are rarely said for nothing. Time is linear in the length of the text.
"""

import re

from lamina.streams.words import normalise

_MONTHS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec"
)
_DAYS = "monday|tuesday|wednesday|thursday|friday|saturday|sunday"
_HOURS = r"one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"

# Alternatives are tried in this order at each word's start, so the most specific one wins. They are grouped
# by their first character, which spares most words most of the tries.
_PATTERN = re.compile(
    r"(?<![\w.])(?=[\w@$€£¥])(?:"
    r"(?=[\d$€£¥])(?:"
    + "|".join(
        (
            r"[$€£¥]\s?\d[\d.,]*(?:\s?(?:k|m|bn|million|billion)\b)?",
            r"\d[\d.,]*\s?(?:dollars?|euros?|pounds?|yen|usd|eur|gbp|bucks|€)(?!\w)",
            r"\d{4}-\d{2}-\d{2}\b|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b",
            rf"\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTHS})\b(?:,?\s+\d{{4}}\b)?",
            r"\d{1,2}:\d{2}(?::\d{2})?(?:\s?[ap]\.?m\b)?|\d{1,2}\s?[ap]\.?m\b",
            r"\d{1,2} o'clock\b",
            r"\d(?:[\d.,]*\d)?(?:st|nd|rd|th|k|km|kg|cm|mm|g|ml|l|m|%)?(?!\w)",
        )
    )
    + r")|@\w{2,}"
    r"|(?=[hw])(?:https?://|www\.)[^\s<>\"']+"
    r"|(?<![+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|(?-i:[A-Z]\.){2,}"  # U.S.
    r"|(?-i:[a-z]{1,3}[A-Z])\w+"  # iPhone
    rf"|(?=[adfjmnos])(?:{_MONTHS})\b\.?\s+\d{{1,4}}(?:st|nd|rd|th)?\b(?:,?\s+\d{{4}}\b)?"
    rf"|(?=[mtwfs])(?:{_DAYS})(?=s?\b)"
    r"|(?=[adfjnos])(?:january|february|april|june|july|august|september|october|november|december)\b"
    # March and May are months only behind a preposition: both are also verbs.
    r"|(?:(?<=\bin )|(?<=\bby )|(?<=\bof )|(?<=\blast )|(?<=\bnext )|(?<=\bthis )|(?<=\bsince ))"
    r"(?:march|may)\b"
    r"|(?=[lnty])(?:yesterday|tomorrow|tonight|today"
    r"|(?:last|next|this) (?:night|weekend|week|month|year|spring|summer|fall|autumn|winter))\b"
    rf"|(?=[eohntsf])(?:(?:{_HOURS}) o'clock|half past (?:{_HOURS}))\b"
    r"|(?=[tfsenhmd])(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen"
    r"|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand"
    r"|million|dozen|twice|half)\b)",
    re.IGNORECASE,
)

# Capitalised words of the scripts that have capitals (Latin, Greek, Cyrillic, Armenian), joined by spaces or
# small particles: "Dr. Salgueiro", "Universal Studios", "Bank of Spain".
_UPPER = "".join(chr(code) for code in range(0x41, 0x557) if chr(code).isupper())
_CAPITAL = rf"[{_UPPER}][^\W_]*(?:['-][^\W_]+)*"
_NAME = re.compile(
    rf"(?<![\w'])({_CAPITAL}(?:(?:\.?\s+|\s+(?:of|de|da|do|del|van|von|der|la|the|&)\s+){_CAPITAL})*)"
)
_SENTENCE_START = re.compile(r"(?:\A|[.!?…:;\n\"“(\[*-])\s*\Z")
_START_WIDTH = 8
_WRITTEN_AS_NAME = re.compile(rf"[^\W\d_][^\W_]*[{_UPPER}0-9]")
# What follows a name that opens a sentence: "Max is my dog", "Lena's birthday", "Ben and I went".
_NAME_VERB = re.compile(
    rf"(?:'s|\s+(?:is|isn't|was|wasn't|has|had|says|said|told|called|loves|loved|likes|lives|works|wants"
    rf"|wanted|moved|got|came|went|gave|took|and (?:i|me|my|(?-i:[{_UPPER}])\w*)))\b",
    re.IGNORECASE,
)
_VERB_FORM = re.compile(r"(?:ing|ed|ly)\Z")
_POSSESSIVE = re.compile(r"'s?\Z")

# Words that a sentence, a heading or emphasis may capitalise; a name that is one of them is lost on purpose.
_COMMON_TEXT = """
a about absolutely actually after agreed ah aha all alright also although always am amazing an and any
anyway anything are as at aw awesome awww aww bad be because been before being best better big both
bravo but by bye can cause cheers come congrats congratulations cool could damn dear definitely did do
does doing don't dont done each either else enjoy even ever every everyone everything exactly fair
fantastic feel feeling few finally fine first for from fun funny get getting give glad go going gonna
good goodbye got gotcha great guess ha had haha happy has have having he hello her here hey hi him his
hmm hope hopefully how however huge i if in indeed instead interesting is it its just keep know last
lately later let life like lol look looking looks lots love lovely loving lucky make making man many
maybe me mine more morning most my nah need never new next nice night no nope not nothing now of off oh
ok okay omg on once one only oops or other ouch our out over perfect perhaps phew please plus pretty
probably proud quick quite ready really recently remember right sad same see seeing seems seriously
several she should since small so some somebody someone something sometimes soon sorry sound sounds
speaking still stay such super sure surely take taking talk tell thank thanks thankfully that the their
them then there these they thing things think this those though thx till to too totally true trust try
ugh until up us very was way we well were what whatever when whenever where whether which while who whoa
whole whose why will wish with without woah wonderful woohoo work working would wow yay yeah yep yes yet
you your yours yup that's it's there's here's what's how's where's who's let's i'm i've i'd i'll you're
you've you'll you'd he's she's we're we've we'll they're they've can't won't isn't didn't doesn't
wouldn't couldn't mr mrs ms dr photo
"""
_COMMON = frozenset(_COMMON_TEXT.split())


def entities(text: str) -> frozenset[str]:
    """Return the named-entity candidates, lower-case, spaces collapsed, without a possessive 's.

    Names of one or more capitalised words, numbers (figures, and words from two on), dates, weekdays and
    months, relative days, clock times, money, addresses and handles. A single capitalised word that opens a
    sentence counts only where it is no common word and a verb of people follows ("Max is"), the same word
    stands capitalised within a sentence of the text, or it is written as a name (inner capitals, digits).
    Scripts without capitals give only numbers and addresses.
    """
    plain = normalise(text)
    found: set[str] = set()

    def mask(match: re.Match[str]) -> str:
        found.add(_key(match.group()))
        return " " * len(match.group())

    masked = _PATTERN.sub(mask, plain)
    opening: set[str] = set()
    for match in _NAME.finditer(masked):
        words = _without_common_ends(match.group(1).split())
        if not words:
            continue
        name = _key(" ".join(words))
        alone = len(words) == 1 and match.group(1).startswith(words[0])
        if alone and _opens_sentence(masked, match.start()) and not _is_named(words[0], masked, match.end()):
            opening.add(name)
        else:
            found.add(name)
    # A name that opens one sentence is confirmed by standing capitalised within another.
    inside = {word for name in found for word in name.split()}
    return frozenset(found | (opening & inside))


def _without_common_ends(words: list[str]) -> list[str]:
    start, stop = 0, len(words)
    while start < stop and _key(words[start]) in _COMMON:
        start += 1
    while start < stop and (_key(words[stop - 1]) in _COMMON or not words[stop - 1][0].isupper()):
        stop -= 1
    return words[start:stop]


def _opens_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - _START_WIDTH) : start]
    return start == 0 or _SENTENCE_START.search(before if start > _START_WIDTH else f"\n{before}") is not None


def _is_named(word: str, text: str, end: int) -> bool:
    if _WRITTEN_AS_NAME.match(word) or word.endswith("'s"):
        return True
    return _NAME_VERB.match(text, end) is not None and not _VERB_FORM.search(word)


def _key(name: str) -> str:
    return _POSSESSIVE.sub("", " ".join(name.casefold().split()).rstrip(".,"))
