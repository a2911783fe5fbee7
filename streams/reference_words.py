"""The words by which English refers to people, things and places, and those that only look as if they did."""

import re

from lamina.streams.fact_rules import CAPITAL


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


ROLES = frozenset({"user", "assistant", "system", "tool"})
"""Speakers that are no names."""
SHE = frozenset({"she", "her", "hers"})
PERSONS = SHE | {"he", "him", "his"}
ADDRESSED = frozenset({"you", "your", "yours"})
MANY = frozenset({"they", "them", "their", "theirs"})
REFERENCE = _compiled(
    r"\b(?:she|hers?|he|him|his|they|them|theirs?|you|yours?|it|there)\b(?![-\w])(?!['’]d\b)"
)
SENTENCE_END = re.compile(r"[.!?…]+(?=\s)|\n+")
YEAR = re.compile(r"\b(?:19|20)\d\d\b")
OPENS = _compiled(r"\W*(?:(?:and|but|so|oh|yeah|yes|wow|well)\W+)?")
"""What may stand before a sentence's subject."""

OWNED = _compiled(
    r"\s+(?!(?:to|in|on|at|for|with|and|or|but|so|about|from|that|if|when|while|because|as|a|an|the|my|your|his"
    r"|is|was|how|what|why|where|up|out|off|down|back|by|too|again|yesterday|today|tomorrow|last|next|this|it"
    r"|some|very|really|more|than|now|then)\b)\w"
)
"""What follows "her" where it is "hers": no function word, not the end of the clause."""

ACTED_ON = _compiled(r"\b(?:help(?:s|ed|ing)?|ma(?:ke|kes|de)|lets?|see|saw|watch(?:ed|ing)?|heard?) \Z")
"""What stands before "her" where she does what follows ("helped her find")."""

AGREEING = _compiled(r"\b(do|don't|are|aren't|have|haven't|were|weren't)\s+\Z")
"""A verb right before "you"."""
THIRD = {
    "do": "does",
    "don't": "doesn't",
    "are": "is",
    "aren't": "isn't",
    "have": "has",
    "haven't": "hasn't",
    "were": "was",
    "weren't": "wasn't",
}
SHORTENED = _compiled(r"(['’](?:re|ve|ll)\b|['’]s\b(?! (?:been|got)\b)|\s+(?:are|have|were)\b)")
"""What is joined to a pronoun and is written out behind a name."""
SHORTENED_THIRD = {
    "'re": " is",
    "'s": " is",
    "'ve": " has",
    "'ll": " will",
    "are": " is",
    "have": " has",
    "were": " was",
}

ANYONE = _compiled(
    r"\byou (?:know|never|can(?:'t|not)?|get|see|name it|guys|all|gotta|have to|need to|want to|could say"
    r"|only live)\b"
    r"|\b(?:if|when|whenever|makes?|lets?|helps?|gives?|before|after|as|thank|bless|see|love) you\b"
    r"|\blike you['’]re\b|\b(?:if|when|as) your\b"
)
"""Where "you" is anyone, or says nothing of the other."""
TO_YOU = _compiled(
    r"\b(?:proud of|happy for|glad|hope|wish|tell|told|miss|missed|heard|sounds like|looks like|bet|remember"
    r"|good for) you\b"
    r"|\byou(?:['’]re|['’]ve| are| have| were| did| should| must| said| told| mentioned| made| look| sound)\b"
    r"|\byours?\b"
)
"""Where a statement speaks to the other."""

EXISTS = _compiled(
    r"there(?:['’](?:s|re|ll|ve)\b|\s+(?:is|are|was|were|will|might|has|have|had|must|seems?|you|we|i|for)\b)"
)
""""There" that points nowhere ("there is", "there you go", "there for me")."""
EXPLETIVE = _compiled(
    r"it\s*(?:['’]s|is|was|['’]ll be|will be|has been|['’]s been|must be|seems|sounds|looks|feels|takes|took)"
    r"\s+(?:like|so|really|very|too|a|an|been|time|important|hard|easy|great|good|nice|tough|fun|amazing"
    r"|awesome|cool|crazy|wonderful|not|\w+ing|\w+ (?:to|that|how|when))\b"
    r"(?=[^.!?]*\b(?:to|that|how|when|since)\b)"
    r"|it(?:['’]s| is) (?:raining|snowing|late|early|time|dark|cold|hot|sunny|\d)"
    r"|it (?:out|up)?\s*(?:happen|together)\b"
)
""""It" that stands for nothing ("it's important to", "make it happen")."""
PLACE = re.compile(
    r"\b(?:in|at|to|near|visit|visited|visiting|from) "
    rf"((?:the )?{CAPITAL}(?:(?: | of | of the | de ){CAPITAL}){{0,3}})(?!['’]s)"
)
"""A place by name."""
