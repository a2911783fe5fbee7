"""The patterns of first-person statements that become facts, and the relations they give.

High precision, low recall, English: a pattern is read on one clause of a statement that denies, supposes,
asks and quotes nothing (`lamina.streams.facts` sees to that), with contractions written out and adverbs
such as "just" left out. The group `who` is the one spoken of and `what` the object.
"""

import re
from dataclasses import dataclass
from typing import Literal

SINGLE_VALUED = frozenset(
    {
        "age",
        "birthday",
        "born_in",
        "children",
        "comes_from",
        "deadline",
        "diet",
        "email",
        "lives_in",
        "marital_status",
        "name",
        "phone",
        "spouse",
        "studies_at",
        "works_as",
        "works_at",
    }
)
"""Relations that hold one object at a time, besides every `favourite_…`, `…_email` and `…_phone`."""


def replaces(relation: str) -> bool:
    """Tell whether a newer object of the relation ends the older one ("lives in"), or joins it ("likes")."""
    return (
        relation in SINGLE_VALUED
        or relation.startswith("favourite_")
        or relation.endswith(("_email", "_phone"))
    )


What = Literal["place", "thing", "list", "liking", "action", "name", "date", "exact"]
"""How the object is read: `lamina.streams.facts` has a reader for each."""


@dataclass(frozen=True, slots=True)
class FactRule:
    """One pattern: what it matches in a clause, and the fact that it gives.

    `verb` is the relation in a readable sentence: "Nora lives in Lisbon".
    """

    relation: str
    verb: str
    what: What
    pattern: re.Pattern[str]


SHE = frozenset(
    {"aunt", "daughter", "girlfriend", "granddaughter", "grandmother", "mother", "niece", "sister", "wife"}
)
HE = frozenset(
    {"boyfriend", "brother", "father", "grandfather", "grandson", "husband", "nephew", "son", "uncle"}
)
_EITHER = (
    "boss",
    "cat",
    "colleague",
    "cousin",
    "dog",
    "fiancé",
    "flatmate",
    "friend",
    "hamster",
    "hedgehog",
    "horse",
    "neighbour",
    "parrot",
    "partner",
    "rabbit",
    "turtle",
)
KIN: dict[str, str] = {word: word for word in (*sorted(SHE), *sorted(HE), *_EITHER)} | {
    "mom": "mother",
    "mum": "mother",
    "dad": "father",
    "puppy": "dog",
    "kitten": "cat",
    "grandma": "grandmother",
    "grandpa": "grandfather",
    "hubby": "husband",
    "roommate": "flatmate",
    "neighbor": "neighbour",
    "fiancee": "fiancé",
    "fiance": "fiancé",
    "fiancée": "fiancé",
    "manager": "boss",
    "coworker": "colleague",
}
"""Words for people and animals one has → the relation."""

SPELLINGS = {"color": "colour", "movie": "film", "flavor": "flavour"}
"""One spelling in the names of relations, so that a "favorite color" replaces a "favourite colour"."""
LIKINGS = frozenset({"likes", "dislikes", "prefers"})
"""Relations whose verb must open its clause."""
BEGINS = frozenset(
    {"lives_in", "works_at", "works_as", "marital_status", "spouse", "studies", "studies_at", "learning"}
)
"""Relations that begin at the past date of their clause."""
NO_KINDS = frozenset(
    {
        "aspect",
        "bit",
        "day",
        "memory",
        "moment",
        "one",
        "ones",
        "part",
        "people",
        "person",
        "place",
        "question",
        "thing",
        "things",
        "time",
        "way",
    }
)
"""What a favourite of is no lasting fact ("my favourite part")."""
_MONTHS_AND_DAYS = (
    "january|february|march|april|may|june|july|august|september|october|november|december"
    "|monday|tuesday|wednesday|thursday|friday|saturday|sunday"
)
NO_NAMES = frozenset(_MONTHS_AND_DAYS.split("|")) | {
    "god",
    "christmas",
    "easter",
    "thanks",
    "yes",
    "no",
    "ok",
    "okay",
}
"""Capitalised words that name no person or place."""

_UPPER = "".join(chr(code) for code in range(0x41, 0x557) if chr(code).isupper())
CAPITAL = rf"(?-i:[{_UPPER}])\w+(?:['’](?!s\b)\w+)*(?:-\w+)*"
"""A capitalised word of two letters or more, without a possessive 's."""
_NAME = rf"{CAPITAL}(?:\s+{CAPITAL}){{0,2}}"
_WITHIN_PLACE = r"(?:,\s+|\s+|\s+(?:de|da|do|del|of|the|la|le|am|an\s+der|upon|on)\s+)"
_PLACE = rf"(?:the\s+)?{CAPITAL}(?:{_WITHIN_PLACE}{CAPITAL}){{0,4}}"
_SMALL_PLACE = (
    r"(?:(?:new|san|los|las|santa|st|south|north|hong|tel|abu|cape|el|rio de|buenos)\s+)?"
    r"(?!the\b|an?\b|my\b|our\b|this\b|that\b|your\b|his\b|her\b|with\b|for\b|fear\b|hope\b|peace\b|town\b|pain\b|sin\b"
    r"|it\b|one\b|home\b|night\b|least\b)[a-z]{3,}"
    r"(?=\s*(?:$|[,.!;]|\s(?:since|with|for|because|from)\b))"
)
APPOSITION = rf"\s+({_NAME})|,\s+({_NAME}),(?!\s+and\b)"
"""The name after "my sister": "Mia", or ", Mia,"."""
_MY_KIN = rf"my\s+(?:\w+\s+)?(?P<kin>{'|'.join(KIN)})(?:{APPOSITION})?"
_WHO = rf"(?P<who>\bI\b|\bwe\b|\b{_MY_KIN}|\b(?:she|he)\b|{_NAME})(?:,?\s+who)?"
_BE = r"(?:\s+(?:am|are|is))"
_HAVE = r"(?:\s+(?:have|has))"
_WORK = rf"(?:\s+works?|{_BE}\s+working|{_HAVE}\s+(?:worked|been\s+working))"
_MONTH_DAY = r"[\w ,.]{3,30}"
_OCCUPATION = (
    "accountant|actor|actress|analyst|architect|artist|author|baker|barber|barista|biologist|bookkeeper|builder"
    "|butcher|carpenter|cashier|chef|chemist|clerk|coach|composer|consultant|cook|counsell?or|curator|dancer"
    "|dentist|designer|developer|director|doctor|driver|economist|editor|electrician|engineer|farmer|filmmaker"
    "|firefighter|florist|gardener|geologist|hairdresser|illustrator|instructor|interpreter|journalist|judge"
    "|lawyer|lecturer|librarian|manager|mathematician|mechanic|midwife|musician|nurse|nutritionist|optician"
    "|painter|paramedic|pharmacist|photographer|physicist|physiotherapist|pilot|plumber|postman|potter|producer"
    "|professor|programmer|psychologist|researcher|retiree|salesman|scientist|secretary|singer|statistician"
    "|student|surgeon|tailor|teacher|technician|therapist|translator|tutor|veterinarian|vet|waiter|waitress"
    "|welder|writer"
)
_ROLE = rf"(?P<what>(?:(?!of\b)[\w-]+\s+){{0,3}}?(?:{_OCCUPATION}))\b"


def _rule(relation: str, verb: str, what: What, *patterns: str) -> list[FactRule]:
    return [FactRule(relation, verb, what, re.compile(pattern, re.IGNORECASE)) for pattern in patterns]


RULES: tuple[FactRule, ...] = (
    *_rule(
        "lives_in",
        "lives in",
        "place",
        rf"{_WHO}(?:\s+lives?|{_BE}\s+(?:living|based)|{_HAVE}\s+(?:lived|been\s+living))\s+(?:over\s+|up\s+|down\s+)?"
        rf"in\s+(?P<what>{_PLACE}|{_SMALL_PLACE})(?!\s+(?:before|once|back|during|in\s+my\s+head)\b)",
        rf"{_WHO}{_HAVE}?\s+(?:moved|relocated)\s+(?:back\s+|over\s+|down\s+|up\s+)?"
        rf"(?:from\s+(?:{_PLACE}|[a-z]+)\s+)?to\s+(?P<what>{_PLACE}|{_SMALL_PLACE})(?!\s+(?:once|back\s+in)\b)",
        rf"\bmy\s+(?:new\s+|home\s+)?(?:address|home|residence)\s+is\s+(?:now\s+)?in\s+(?P<what>{_PLACE})",
    ),
    *_rule(
        "comes_from",
        "comes from",
        "place",
        rf"(?P<who>\bI\b)(?:{_BE}(?:\s+originally)?|\s+come|\s+originally\s+come)\s+from\s+(?P<what>{_PLACE})",
    ),
    *_rule(
        "born_in",
        "was born in",
        "place",
        rf"(?P<who>\bI\b)\s+was\s+born(?:\s+and\s+raised)?\s+in\s+(?P<what>{_PLACE})",
    ),
    *_rule(
        "works_at",
        "works at",
        "thing",
        rf"{_WHO}{_WORK}(?:\s+as\s+an?\s+[\w -]+?)?"
        rf"\s+(?:at|for)\s+(?P<what>{_PLACE}|(?:an?|the|my)\s+[^,;]+|{_SMALL_PLACE})",
        r"(?P<who>\bI\b)(?:\s+have)?\s+(?:got|started|accepted|took|landed)\s+(?:a|my|the)\s+(?:new\s+)?(?:[\w-]+\s+)?"
        rf"(?:job|position|role)\s+(?:at|with)\s+(?P<what>{_PLACE}|(?:an?|the)\s+[^,;]+)",
        rf"(?P<who>\bI\b)(?:\s+have)?\s+(?:started\s+(?:working\s+)?at|joined)\s+(?P<what>{_PLACE})\s+as\s+an?\b",
    ),
    *_rule(
        "works_as",
        "works as",
        "thing",
        rf"{_WHO}{_WORK}(?:\s+(?:at|for)\s+[\w -]+?)?"
        r"\s+as\s+(?P<what>an?\s+(?!team\b|group\b|whole\b|pair\b|kid\b|child\b|unit\b|rule\b)[^,;]+)",
        rf"{_WHO}{_BE}\s+(?:an?|the)\s+{_ROLE}(?!\s+(?:of|in\s+the\s+making|at\s+heart|who)\b|-|')",
    ),
    *_rule(
        "allergic_to",
        "is allergic to",
        "list",
        rf"{_WHO}(?:{_BE}|{_HAVE}\s+been)\s+(?:[a-z]+ly\s+|so\s+|very\s+)?allergic\s+to\s+(?P<what>[^;()]+)",
        rf"{_WHO}{_HAVE}\s+an?\s+(?:[a-z]+\s+)??(?P<what>[a-z]+)\s+allergy\b",
        rf"{_WHO}{_HAVE}\s+an?\s+(?:[a-z]+\s+)?allergy\s+to\s+(?P<what>[^;()]+)",
    ),
    *_rule(
        "diet",
        "is",
        "exact",
        rf"{_WHO}{_BE}\s+(?:an?\s+)?(?P<what>vegan|vegetarian|pescatarian|lactose[ -]intolerant"
        r"|gluten[ -]intolerant|coeliac|celiac)\b(?!\s+(?:food|place|restaurant)|-)",
    ),
    *_rule(
        "kin",
        "has",
        "name",
        rf"(?P<who>\bI\b|\bwe\b){_HAVE}\s+(?:got\s+)?(?:an?|one)\s+(?:[\w-]+\s+){{0,2}}?(?P<kin>{'|'.join(KIN)})"
        rf"\s*,?\s+(?:named|called|whose\s+name\s+is)\s+(?P<what>{_NAME})",
        rf"(?P<who>\bI\b|\bwe\b)(?:\s+have)?\s+(?:got|adopted)\s+(?:an?|our|my)\s+(?:[\w-]+\s+){{0,2}}?"
        rf"(?P<kin>{'|'.join(KIN)})\s*,?\s+(?:named|called)\s+(?P<what>{_NAME})",
        rf"\bmy\s+(?:[a-z-]+\s+)?(?P<kin>{'|'.join(KIN)})(?:'s\s+name\s+is|\s+is\s+(?:named|called))\s+(?P<what>{_NAME})",
        rf"\bmy\s+(?:(?:younger|older|elder|little|big|twin|best|late|dear|baby)\s+)?(?P<kin>{'|'.join(KIN)})\s+"
        rf"(?P<what>{_NAME})",
        rf"\bmy\s+(?:[a-z-]+\s+)?(?P<kin>{'|'.join(KIN)}),\s+(?P<what>{_NAME}),(?!\s+and\b)",
        rf"(?P<what>{_NAME}),?\s+(?:is\s+)?my\s+(?:(?:younger|older|elder|little|big|twin|best)\s+)?"
        rf"(?P<kin>{'|'.join(KIN)})(?=\s*(?:$|[,.!;]))",
    ),
    *_rule(
        "spouse",
        "is married to",
        "name",
        rf"(?P<who>\bI\b)(?:{_BE}|{_HAVE}\s+been|\s+got)\s+married\s+to\s+(?P<what>{_NAME})",
    ),
    *_rule(
        "marital_status",
        "is",
        "exact",
        rf"(?P<who>\bI\b)(?:{_BE}|{_HAVE}\s+been|\s+got|{_HAVE}\s+gotten)\s+(?P<what>married|engaged|divorced|widowed)\b"
        r"(?!\s+(?:in|with)\b(?!\s+(?:\d|january|february|march|april|may|june|july|august|september|october|november"
        r"|december)))",
    ),
    *_rule(
        "birthday",
        "has a birthday on",
        "date",
        rf"(?P<who>\bmy|\b{_MY_KIN}'s?|{_NAME}'s)\s+birthday\s+(?:is|falls)\s+(?:on\s+)?(?P<what>{_MONTH_DAY})",
        rf"(?P<who>\bI\b)\s+was\s+born\s+on\s+(?P<what>{_MONTH_DAY})",
    ),
    *_rule(
        "age", "is aged", "exact", r"(?P<who>\bI\b)\s+am\s+(?P<what>\d{1,3})(?=\s+years?\s+old\b|\s*[.!]*$)"
    ),
    *_rule(
        "children",
        "has",
        "exact",
        rf"(?P<who>\bI\b|\bwe\b){_HAVE}\s+(?:got\s+)?(?P<what>(?:\d|one|two|three|four|five|six)\s+"
        r"(?:(?:little|young|small|grown)\s+)?(?:kids?|children|child))\b",
    ),
    *_rule(
        "deadline",
        "is due on",
        "date",
        r"\b(?P<who>(?:my|our|the)\s+[\w' -]{2,60}?)\s+(?:is|are)\s+due\s+(?:on\s+|by\s+)?(?P<what>.+)",
        r"\b(?:the|my|our)\s+deadline\s+(?:for|of)\s+(?P<who>[\w' -]{2,60}?)\s+is\s+(?:on\s+)?(?P<what>.+)",
        r"\b(?:I|we)\s+(?:have\s+to|need\s+to|must)\s+(?:submit|hand\s+in|finish|deliver|send(?:\s+in)?"
        r"|file|renew|pay)\s+(?P<who>(?:my|our|the)\s+[\w' -]{2,60}?)\s+by\s+(?P<what>.+)",
    ),
    *_rule(
        "email",
        "has the e-mail address",
        "exact",
        r"\bmy\s+(?:new\s+)?(?:(?P<kind>work|private|personal|business|school)\s+)?e-?mail(?:\s+address)?\s+is\s+"
        r"(?P<what>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)",
        r"\b(?:e-?mail|write\s+to|reach|contact)\s+me\s+(?:at|on)\s+(?P<what>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)",
    ),
    *_rule(
        "phone",
        "has the phone number",
        "exact",
        r"\bmy\s+(?:new\s+)?(?:(?P<kind>work|private|personal|business|office)\s+)?(?:(?:phone|mobile|cell|telephone)\s+)?"
        r"(?:number|phone|mobile|cell)\s+is\s+(?P<what>\+?\(?\d[\d ()./-]{4,20}\d)",
        r"\b(?:call|text|ring|reach|phone)\s+me\s+(?:at|on)\s+(?P<what>\+?\(?\d[\d ()./-]{4,20}\d)",
    ),
    *_rule("name", "is named", "name", rf"\bmy\s+(?:full\s+|real\s+)?name\s+is\s+(?P<what>{_NAME})"),
    *_rule(
        "likes",
        "likes",
        "liking",
        r"(?P<who>\bI\b)(?:\s+have\s+(?:loved|enjoyed)|\s+(?:like|love|enjoy|adore))\s+(?P<what>.+)",
        r"(?P<who>\bI\b)\s+am\s+(?:an?\s+(?:big\s+|huge\s+|massive\s+|real\s+)?fan\s+of|passionate\s+about|keen\s+on"
        r"|fond\s+of|crazy\s+about)\s+(?P<what>.+)",
    ),
    *_rule("prefers", "prefers", "liking", r"(?P<who>\bI\b)\s+prefer\s+(?P<what>.+)"),
    *_rule(
        "dislikes", "dislikes", "liking", r"(?P<who>\bI\b)\s+(?:hate|dislike|detest|loathe)\s+(?P<what>.+)"
    ),
    *_rule(
        "favourite",
        "is",
        "liking",
        r"\bmy\s+(?:all-time\s+|absolute\s+|new\s+)?favou?rite\s+(?P<kind>[a-z]+(?:\s+[a-z]+){0,2}?)\s+(?:is|are)\s+"
        r"(?P<what>.+)",
        rf"(?P<what>{_NAME})\s+(?:is|are)\s+my\s+(?:all-time\s+|absolute\s+|new\s+)?favou?rite\s+"
        r"(?P<kind>[a-z]+(?:\s+[a-z]+){0,2})(?=\s*(?:$|[,.!;]))",
    ),
    *_rule(
        "studies_at",
        "studies at",
        "place",
        rf"(?P<who>\bI\b)(?:\s+study|\s+am\s+studying)(?:\s+[a-z ]+?)?\s+at\s+(?P<what>{_PLACE})",
    ),
    *_rule(
        "studies",
        "studies",
        "liking",
        r"(?P<who>\bI\b)(?:\s+study|\s+am\s+studying|\s+major\s+in|\s+am\s+majoring\s+in)\s+(?!at\b|in\b|for\b|with\b"
        r"|hard\b|a\s+lot\b|too\b)(?P<what>.+?)(?=\s+at\b|$)",
    ),
    *_rule("speaks", "speaks", "list", rf"(?P<who>\bI\b)\s+speak\s+(?:fluent\s+)?(?P<what>{CAPITAL}.*)"),
    *_rule(
        "learning",
        "is learning",
        "liking",
        r"(?P<who>\bI\b)(?:\s+am|\s+have\s+(?:been|started))\s+learning\s+(?!about\b|from\b|a\s+lot\b|so\b|more\b)"
        r"(?P<what>.+)",
        r"(?P<who>\bI\b)\s+am\s+taking\s+(?P<what>[\w -]{2,30}?)\s+(?:lessons|classes)\b",
    ),
    *_rule(
        "plans_to",
        "plans to",
        "action",
        r"(?P<who>\bI\b|\bwe\b)(?:\s+plan|\s+am\s+planning|\s+are\s+planning|\s+intend|\s+have\s+decided)"
        r"\s+to\s+(?P<what>.+)",
        r"(?P<who>\bI\b|\bwe\b)\s+(?:am|are)\s+(?P<what>moving\s+to\s+.+)",
    ),
)
