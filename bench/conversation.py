"""What every data set is read into: conversations with their turns, and the questions asked of them."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from lamina.streams.conversations import DialogueTurn

Category = int | str
"""A kind of question as its data set calls it: LoCoMo numbers them, LongMemEval names them."""

Level = Literal["turn", "session"]
"""What a data set cites as evidence."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question with what holds its answer."""

    text: str
    answer: str
    category: Category
    evidence: tuple[str, ...]
    """Ids of turns, or of sessions where the data set cites those; cleaned: each exists, none twice."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation, which is one memory: turns in order, over all sessions."""

    id: str
    speakers: tuple[str, str]
    turns: tuple[DialogueTurn, ...]
    questions: tuple[Question, ...]
    dropped_evidence: int
    """Evidence ids that name nothing."""
    asked_at: datetime | None = None
    """When the questions were asked, where the data set says so: "last week" counts from here."""

    def sessions(self) -> dict[str, tuple[DialogueTurn, ...]]:
        """Return the turns by session, both in order."""
        found: dict[str, list[DialogueTurn]] = {}
        for turn in self.turns:
            found.setdefault(turn.session, []).append(turn)
        return {session: tuple(turns) for session, turns in found.items()}

    def evidence(self, categories: Collection[Category]) -> frozenset[str]:
        """Return what questions of these categories cite."""
        return frozenset(
            each
            for question in self.questions
            if question.category in categories
            for each in question.evidence
        )


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set as it was found on disk."""

    name: str
    level: Level
    conversations: tuple[Conversation, ...]
