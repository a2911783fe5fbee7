"""What a question asks: its words, its kind, and whether it asks for the past or the present. English."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from lamina.streams.words import content, stem, tokens

Kind = Literal["when", "where", "who", "how_many", "other"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question as answering sees it."""

    words: frozenset[str]
    """Stems of what it is about; of "When did Nora last run?" they are nora and run."""
    names: frozenset[str]
    """Those words that are names of speakers."""
    kind: Kind
    past: bool
    """Whether it may ask for what held once."""
    latest: bool
    """Whether it asks for what holds now, or happened last."""
    plain: str

    @property
    def about(self) -> frozenset[str]:
        """The words, without names of speakers unless there are no others."""
        return self.words - self.names or self.words


def understood(question: str, speakers: Iterable[str]) -> Question:
    """Read a question put to a memory in which these speakers speak."""
    kinds: list[Kind] = [kind for kind, pattern in _KINDS.items() if pattern.search(question)]
    words = frozenset(word_stems(question)) - _ASKING
    return Question(
        words=words,
        names=words & {word for speaker in speakers for word in word_stems(speaker)},
        kind=kinds[0] if kinds else "other",
        past=_PAST.search(question) is not None,
        latest=_LATEST.search(question) is not None,
        plain=" ".join(tokens(question)),
    )


def word_stems(text: str) -> list[str]:
    """Return the stems of the content words, with irregular pasts as their present: "ran" counts as "run"."""
    return [stem(_PRESENT.get(word, word)) for word in content(text)]


def relation_words(relation: str) -> Collection[str]:
    """Return the stems by which a question may ask for a relation: "live" and "move" for `lives_in`."""
    return {*word_stems(relation.replace("_", " ")), *_RELATION_WORDS.get(relation, ())}


_KINDS: Mapping[Kind, re.Pattern[str]] = {
    "when": re.compile(r"\bwhen\b|\b(?:what|which) (?:date|day|month|year)\b", re.IGNORECASE),
    "where": re.compile(r"\bwhere\b|\b(?:what|which) (?:city|town|country|place)\b", re.IGNORECASE),
    "who": re.compile(r"\b(?:who|whom|whose)\b|\bnames?\b", re.IGNORECASE),
    "how_many": re.compile(r"\bhow (?:many|much|long|old|often|far|tall|big)\b", re.IGNORECASE),
}
_PAST = re.compile(
    r"\b(?:before|used to|previous(?:ly)?|former(?:ly)?|first|original(?:ly)?|earlier|in (?:19|20)\d\d|was"
    r"|were|did)\b",
    re.IGNORECASE,
)
_LATEST = re.compile(
    r"\b(?:now|current(?:ly)?|these days|latest|last|most recent(?:ly)?|still|today)\b", re.IGNORECASE
)
_ASKING = frozenset(
    stem(word)
    for word in (
        *("date", "day", "month", "year", "time", "many", "much", "long", "kind", "type", "name", "old"),
        *(
            "often",
            "current",
            "currently",
            "now",
            "last",
            "latest",
            "recent",
            "recently",
            "ever",
            "tell",
            "know",
        ),
    )
)
"""Words that say what is asked, not what it is asked about."""

_RELATION_WORDS = {
    relation: frozenset(map(stem, words.split()))
    for relation, words in {
        "lives_in": "live reside home move based city town address",
        "comes_from": "come from originally hometown country native",
        "born_in": "born birthplace",
        "works_at": "work job employer company employed office",
        "works_as": "work job occupation profession career living",
        "allergic_to": "allergic allergy allergies allergen eat",
        "diet": "diet eat vegan vegetarian food",
        "spouse": "married marry husband wife spouse",
        "marital_status": "married marry status single divorced engaged",
        "birthday": "birthday born birth",
        "age": "age old",
        "children": "children kids child sons daughters",
        "deadline": "deadline due submit",
        "email": "email mail address contact",
        "phone": "phone number call contact mobile",
        "name": "name called",
        "likes": "like love enjoy hobby hobbies interest favourite favorite",
        "prefers": "prefer favourite favorite like",
        "dislikes": "dislike hate",
        "studies": "study major degree field",
        "studies_at": "study university college school",
        "speaks": "speak language languages",
        "learning": "learn study language",
        "plans_to": "plan intend going",
        "sister": "sibling",
        "brother": "sibling",
        "dog": "pet",
        "cat": "pet",
    }.items()
}

_PRESENT = {
    past: present
    for present, pasts in {
        "become": "became",
        "begin": "began begun",
        "break": "broke broken",
        "bring": "brought",
        "build": "built",
        "buy": "bought",
        "catch": "caught",
        "choose": "chose chosen",
        "come": "came",
        "cut": "cut",
        "draw": "drew drawn",
        "drive": "drove driven",
        "eat": "ate eaten",
        "fall": "fell fallen",
        "feel": "felt",
        "find": "found",
        "fly": "flew flown",
        "get": "got gotten",
        "give": "gave given",
        "go": "went gone",
        "grow": "grew grown",
        "hear": "heard",
        "hold": "held",
        "keep": "kept",
        "know": "knew known",
        "leave": "left",
        "lose": "lost",
        "make": "made",
        "meet": "met",
        "pay": "paid",
        "read": "read",
        "ride": "rode ridden",
        "run": "ran",
        "say": "said",
        "see": "saw seen",
        "sell": "sold",
        "send": "sent",
        "sing": "sang sung",
        "sleep": "slept",
        "speak": "spoke spoken",
        "spend": "spent",
        "start": "started",
        "swim": "swam swum",
        "take": "took taken",
        "teach": "taught",
        "tell": "told",
        "think": "thought",
        "throw": "threw thrown",
        "wear": "wore worn",
        "win": "won",
        "write": "wrote written",
    }.items()
    for past in pasts.split()
}
