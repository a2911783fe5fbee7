"""The people that turns speak of, and whom "she" and "he" mean, by rules (the Φ_coref of SimpleMem eq. 3).

It would rather not tell than tell wrongly: a pronoun is understood where one person fits and no other name
or figure ("the teacher") that might be meant was mentioned. English.
"""

import re
from dataclasses import dataclass, field

from lamina.streams.fact_rules import APPOSITION, CAPITAL, HE, KIN, NO_NAMES, SHE


@dataclass(slots=True)
class People:
    """Whom the speakers have mentioned so far; `speaker` is the one who is heard now."""

    speaker: str
    named: dict[tuple[str, str], str] = field(default_factory=dict)
    """Name by speaker and relation: (Nora, sister) → Mia."""
    pronouns: dict[str, str] = field(default_factory=dict)
    """By person: "she", "he", or "" where the text does not tell."""

    def listen(self, text: str) -> None:
        """Note the relatives and companions that a part of the speaker's words mentions."""
        for match in _MY_KIN.finditer(text):
            kin, name = KIN[match[1].lower()], match[2] or match[3]
            if name and name.lower() not in NO_NAMES:
                self.pronouns.pop(self.called(kin), None)
                self.named[self.speaker, kin] = name
            self.pronouns[self.called(kin)] = "she" if kin in SHE else "he" if kin in HE else ""
        for match in _COMPANY.finditer(text):
            name = match[1] or match[2]
            if name.lower() not in NO_NAMES:
                self.pronouns.setdefault(name, "")

    def called(self, kin: str) -> str:
        """Return the name of the speaker's relative, or "Nora's sister"."""
        return self.named.get((self.speaker, kin)) or f"{possessive(self.speaker)} {kin}"

    def meant(self, pronoun: str) -> str | None:
        """Return whom "she" or "he" means, where only one person fits."""
        fitting = [person for person, theirs in self.pronouns.items() if theirs in {pronoun, ""}]
        return fitting[0] if len(fitting) == 1 else None


def possessive(name: str) -> str:
    """Return "Nora's", "James'"."""
    return f"{name}'" if name.endswith("s") else f"{name}'s"


def strangers(text: str, known: frozenset[str]) -> bool:
    """Tell whether a text mentions someone beside the known who might be meant by "she" or "he".

    A capitalised word that is not known might be a person, unless it opens a sentence or stands behind "in",
    "at" or "to"; so might "a teacher", "the guy", "her friend".

    Args:
        text: what was said.
        known: names and their parts, lower-case.
    """
    if _FIGURE.search(text):
        return True
    names = {match[1].lower() for match in _NAME_INSIDE.finditer(text)}
    return bool(names - NO_NAMES - known)


_MY_KIN = re.compile(rf"\bmy\s+(?:[a-z-]+\s+)??({'|'.join(KIN)})\b(?:{APPOSITION})?", re.IGNORECASE)
_COMPANY = re.compile(
    r"\b(?:told|with|met|saw|asked|invited|visited|called|and|friend|colleague)\s+"
    rf"({CAPITAL})|({CAPITAL})\s+and\s+I\b"
)
_NAME_INSIDE = re.compile(
    rf"(?<=[\w,;:'’] )(?<!\bin )(?<!\bat )(?<!\bto )(?<!\bfrom )(?<!\bIn )(?<!\bAt )(?<!\bnear )({CAPITAL})"
)
_FIGURE = re.compile(
    r"(?<!is )(?<!was )(?<!am )(?<!['’][sm] )"
    r"\b(?:an?|the|his|her|their|your|this|that|one|another)\s+(?:[a-z-]+\s+)?"
    rf"(?:{'|'.join(KIN)}|wom[ae]n|m[ae]n|girl|boy|guy|lady|child|kid|baby|person|teacher|doctor|coach|instructor"
    r"|owner|artist|author|singer|student|customer|client|nurse|therapist|driver|player|host|guest)\b",
    re.IGNORECASE,
)
