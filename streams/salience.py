"""Salience: what must be remembered after being said once (RecMem §6 names the gap; the rules are ours).

Each rule is a plain statement of a kind a person would be angry to have forgotten. Precision comes first,
since a hit costs a promotion, with one exception: a stated allergy, illness or medicine is never missed.
Rules read one sentence at a time, in English; questions do not state anything.
"""

import re
from functools import lru_cache

from lamina.streams.salience_rules import HINTS, RULES
from lamina.streams.sentences import sentences
from lamina.streams.words import normalise

_CAPTION = re.compile(r"\[photo: [^\]]*\]")

# "I'm allergic to penicillin, can I take amoxicillin?" states as it asks; a plain question turns the words
# round ("Am I …").
_ASSERTS = re.compile(
    r"(?<!\bdo )(?<!\bdid )\b(?:i'm|i am|i have|i've|i take|i was|i suffer|(?:he|she)(?:'s| is| has| takes"
    r"| was)|we have|we're|they're|(?:my|our) (?:\w+ ){1,2}(?:is|are|has|have|takes|was)|(?:my|our) \w+'s)\b",
    re.IGNORECASE,
)
# A supposition states nothing.
_HYPOTHETICAL = re.compile(
    r"^(?:(?:and|but|so|oh)[, ]+)*(?:if|imagine|suppose|what if|wish|i wish)\b", re.IGNORECASE
)
_ASKS_TO_REMEMBER = re.compile(
    r"^(?:(?:hey|please|ok|and)[, ]+)*(?:can|could|would|will) you\b", re.IGNORECASE
)


@lru_cache(maxsize=32)
def salience_of(text: str) -> str | None:
    """Return the name of the first rule of `RULES` that a sentence of the text satisfies, or None.

    Questions satisfy none, but for requests to remember ("Can you remember that …?") and for what they state
    about someone's health ("I'm diabetic, can I eat this?"). A photo's caption is
    not the speaker's statement and is not read.
    """
    said = sentences(_CAPTION.sub("", normalise(text)))
    folded = [sentence.casefold() for sentence in said]
    for name, rule in RULES.items():
        hints = HINTS.get(name, ("",))
        if any(
            any(hint in low for hint in hints) and _may_state(sentence, name) and rule.search(sentence)
            for sentence, low in zip(said, folded, strict=True)
        ):
            return name
    return None


def _may_state(sentence: str, rule: str) -> bool:
    if sentence.rstrip("\"' )").endswith("?"):
        if rule == "safety":
            return _ASSERTS.search(sentence) is not None
        return rule == "remember" and _ASKS_TO_REMEMBER.match(sentence) is not None
    # "If I eat peanuts, my throat closes" is as serious without the if.
    return rule == "safety" or not _HYPOTHETICAL.match(sentence)
