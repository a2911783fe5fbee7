"""Clauses of a sentence, in plain form, and whether they state something: what fact patterns are read on."""

import re
from dataclasses import dataclass

from lamina.streams.sentences import is_question
from lamina.streams.words import normalise


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause: contractions written out ("I'm" → "I am"), adverbs such as "just" left out."""

    text: str
    before: str
    """The sentence up to the clause."""
    stated: bool
    """Whether it is said as true: not asked, denied, supposed, reported or taken back."""

    def plainly_at(self, start: int) -> bool:
        """Tell whether what begins at this place of the clause is the speaker's own word, not a report."""
        lead = self.text[:start]
        return not _REPORTS.search(lead) and (self.before + lead).count('"') % 2 == 0

    def opens_with(self, start: int) -> bool:
        """Tell whether nothing but a lead-in stands before this place: not so in "something I love is"."""
        return _LEADS_IN.match(self.text[:start]) is not None


def clauses(sentence: str) -> list[Clause]:
    """Cut a sentence into its clauses, in order."""
    statement = _AND_YOU.sub("", " ".join(normalise(sentence).split()))
    plain = statement
    for pattern, replacement in _WRITTEN_OUT:
        plain = pattern.sub(replacement, plain)
    if _ABOUT_SELF.match(plain):
        plain = _ELIDED.sub(" and I ", plain)
    said = not (is_question(statement) or _TAKES_BACK.search(plain))
    found: list[Clause] = []
    before = ""
    for text in filter(None, _BORDER.split(plain)):
        stated = said and not (
            _DENIES.search(text) or _SUPPOSES.search(before + text) or _REPORTED.search(before)
        )
        found.append(Clause(text, before, stated))
        before += text + " "
    return found


def _words(*lines: str) -> str:
    return "(?:" + "|".join("|".join(line.split()) for line in lines) + ")"


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_ADVERBS = _words(
    "just really actually recently currently also still finally absolutely totally definitely",
    "honestly officially personally already basically literally truly simply now always both",
)
_WRITTEN_OUT = (
    (_compiled(r"\b(?:i'm|im)\b"), "I am"),
    (_compiled(r"\b(?:i've|ive)\b"), "I have"),
    (re.compile(r"\bi\b"), "I"),
    (_compiled(r"\b(we|they|you)'re\b"), r"\1 are"),
    (_compiled(r"\b(we|they|you)'ve\b"), r"\1 have"),
    (_compiled(r"\b(she|he)'s (?=(?:got|lived|moved|worked|been)\b)"), r"\1 has "),
    (
        re.compile(
            r"\b(\w+)'s (?=(?:\w+ly |so |very |now )?"
            r"(?:allergic|living|based|working|called|named|due|an?)\b)"
        ),
        r"\1 is ",
    ),
    (_compiled(rf"\b{_ADVERBS}\s+"), ""),
    (
        _compiled(
            r",?\s+(?:now|too|as well|though|these days|nowadays|right now|at the moment|currently)"
            r"(?=\s*(?:[,.!;]|$))"
        ),
        "",
    ),
)
_NEW_SUBJECT = r"(?:I|my|we|our|she|he|it|they|you)\b"
_BORDER = _compiled(
    r"\s*[;:–—(]\s*|\s+-+\s+"
    rf"|,?\s+{_words('and but so because though although while whereas which plus')}\s+"
    rf"(?=(?:{_NEW_SUBJECT}|(?:there|this|that|the|then)\b))"
    rf"|,\s+(?={_NEW_SUBJECT})|\s+(?:but|because|so)\s+"
)
_ABOUT_SELF = re.compile(r"(?:\w+,?\s+){0,3}(?:I|we)\b")
_ELIDED = _compiled(r",?\s+and\s+(?=(?:live\s+in|work\s+(?:at|for|as)|study|speak|moved\s+to)\b)")
_AND_YOU = _compiled(r",?\s+(?:how|what|and)\s+(?:about\s+)?(?:you|yours|yourself)\s*\?+\s*\Z")
_REPORTED = _compiled(r"\b(?:(?<!\bI )(?:said|told\s+\w+)|says|saying|thinks?|believes?|claims?|asked)\W*\Z")
_REPORTS = _compiled(
    r"\b"
    + _words(
        r"said says? saying tells? told thinks? thought believes? believed assum\w+ claim\w* ask\w* heard",
        r"guess\w* figured swear you your they who whom where which what how why whose",
    )
    + r"\b"
)
_DENIES = _compiled(
    r"\b(?:\w+n't|"
    + _words(
        "not never no nobody nothing none cannot dont cant wont isnt didnt doesnt aint havent wasnt hardly",
        "barely neither nor anymore stopped quit without except",
    )
    + r")\b"
)
_SUPPOSES = _compiled(
    r"\b(?:used to|one day|as though|(?:when|once|until|before|after) I|\w+'d|"
    + _words(
        r"if wish wished would could might maybe perhaps imagin\w+ suppos\w+ unless hope hoping hopefully",
        r"dream\w* pretend\w* whether almost probably possibly someday should joking kidding",
    )
    + r")\b"
)
_TAKES_BACK = _compiled(r"\b(?:just kidding|jk|kidding|joking|in my dreams?|yeah right)\b")
_LEADS_IN = _compiled(
    r"(?:.*[,:]\s*|(?:(?:"
    + _words(
        "and but so plus yes yeah yep oh well ok okay absolutely besides wow also thanks cool ha haha then",
        "again indeed honestly btw because cause 'cause since",
    )
    + r"|my\s+\w+\s+and)\s*)*)\Z"
)
