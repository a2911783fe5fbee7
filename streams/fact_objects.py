"""The objects of facts: where one ends in a clause, and which are too vague to keep."""

import re
from collections.abc import Sequence

from lamina.streams.dates import ResolvedDate, spelled
from lamina.streams.fact_rules import NO_NAMES, FactRule
from lamina.streams.sentences import in_third_person

MOST_WORDS = {"list": 4, "liking": 9, "thing": 9, "action": 14}
"""Words of an object; a longer one is a clause that the pattern misread."""


def objects_in(text: str, rule: FactRule, dates: Sequence[ResolvedDate], speaker: str) -> list[str]:
    """Return the objects that a pattern's match holds: none where it is vague, several for a list.

    Args:
        text: what the pattern matched as `what`; may run on to the end of the clause.
        rule: tells how to read it.
        dates: of the clause.
        speaker: takes the place of "my" and "me".
    """
    if rule.what == "exact":
        return [text.strip() if "@" in text else text.strip().lower()]
    if rule.what == "date":
        return _dates(text, rule, dates)
    if rule.what in {"place", "name"}:
        name = _DATE_TAIL.sub("", text).strip(" ,.")
        return [name] if name and name.split()[0].lower() not in NO_NAMES else []
    if rule.what == "list":
        items = [_trimmed(item, MOST_WORDS["list"]) for item in _items(text)]
        return [item for item in items if _definite(item)]
    return [in_third_person(thing, speaker) for thing in _things(text, rule)]


def _things(text: str, rule: FactRule) -> list[str]:
    thing = _trimmed(text, MOST_WORDS[rule.what])
    if rule.what == "action":
        thing = _MOVING.sub("move to", thing)
        good = not _POINTS.search(thing)
    elif rule.what == "liking":
        good = _definite(thing) and not _narrowed(text)
    else:
        if rule.relation == "works_as":
            thing = _AROUND_POST.sub("", thing)
        good = not _NO_EMPLOYER.search(thing)
    return [thing] if thing and good else []


def _trimmed(text: str, most_words: int) -> str:
    """Cut an object off where the next clause begins; empty where what is left is unfinished or too long."""
    end = _END.search(text)
    kept = (text[: end.start()] if end else text).strip(" ,.'\"")
    cut_off = end is not None and _UNFINISHED.search(text[: end.end()].rstrip())
    if cut_off or _UNFINISHED.search(kept) or len(kept.split()) > most_words:
        return ""
    return kept


def _definite(thing: str) -> bool:
    return bool(thing) and not _VAGUE.match(thing) and not _POINTS.search(thing)


def _items(text: str) -> list[str]:
    """Split "nuts, eggs and milk, please": commas part items only up to an "and"."""
    parts = re.split(r",\s+", text)
    last = next((place for place, part in enumerate(parts) if _AND.search(part)), 0)
    if any(len(part.split()) > MOST_WORDS["list"] for part in parts[:last]):
        last = 0
    return [item for part in parts[: last + 1] for item in _AND.split(part) if item]


def _narrowed(text: str) -> bool:
    """Tell whether what was cut off narrows the object down: "stories" of "stories that …"."""
    end = _END.search(text)
    return end is not None and _RESTRICTS.match(end.group()) is not None


def _dates(text: str, rule: FactRule, dates: Sequence[ResolvedDate]) -> list[str]:
    """Write a deadline in ISO 8601; a birthday, of one day, as "3 May", with a year where one is said."""
    named = [date for date in dates if date.phrase in text or text.strip(" .!") in date.phrase]
    if not named:
        return []
    start, end = named[0].start, named[0].end
    if rule.relation == "deadline":
        return [spelled(start, end)]
    if (end - start).days != 1:
        return []
    year = f" {start.year}" if str(start.year) in named[0].phrase else ""
    return [f"{start.day} {start:%B}{year}"]


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_END = _compiled(
    r"\s*[;:()–—!?…]|\s+-+\s|[.,](?:\s|$)|\s+(?:because|since|when|while|so|but|as|if|though|although|especially"
    r"|ever|until|where|which|who|that|too"
    r"|and\s+(?:I|my|we|it|he|she|they|you|the|then|also|am|have|has|will|want|need|would|could)"
    r"|(?:for|since)\s+(?:the\s+(?:last|past)|about|over|almost|nearly|\d+|an?\s+(?:year|month|while|long)|many"
    r"|years|two|three|four|five|six|seven|eight|nine|ten))\b"
)
_RESTRICTS = _compiled(r"\s+(?:that|which|who|where|when|if|as|while|until)\Z")
_UNFINISHED = _compiled(
    r"\b(?:(?:a|an|the|some|my|such)\s+\w+,|(?:to|of|in|for|with|and|or|a|an|the|about|from|on|at|by),?)\Z"
)
_VAGUE = _compiled(
    r"(?:it|that|this|these|those|you|your|yours|him|her|hers|his|them|their|its|the|how|when|what|where|who|why"
    r"|which|everything|anything|something|nothing|all|every|being|seeing|hearing|knowing|talking|chatting"
    r"|to\s+(?:think|know|say|see|hear|help|thank|tell|be|get|hope|ask|have|keep)|one|some|mine|both|each|us|me"
    r"|myself|our|there|here|everywhere|someone|a\s+(?:lot|ton|bunch)|in|at|on|for|with|about|of|by|doing|so)\b"
)
_POINTS = _compiled(r"\b(?:you|your|yours|this|that|these|those|it|them|they|their|him|his|her|here|I|we)\b")
_NO_EMPLOYER = _compiled(
    r"\b(?:moment|end|time|weekend|same|best|while|living|bit|lot|day|week|month|year|years|minute|change|future"
    r"|nights?|least|first|last|next|minimum|good|sake|home)\b"
)
_AROUND_POST = _compiled(r"\A(?:an?|the)\s+|\s+(?:at|for|in|with)\s.*\Z")
_MOVING = _compiled(r"\Amoving to\b")
_AND = _compiled(r"(?:\A|\s+)(?:and|or|&)\s+")
_DATE_TAIL = _compiled(
    r"\s+(?:(?:on|in|by|since)\s+)?(?:the\s+)?(?:january|february|march|april|may|june|july|august|september|october"
    r"|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b.*\Z"
)
