"""LoCoMo: conversations, turns and questions as frozen records, read from a folder of its JSON files.

Maharana et al., "Evaluating Very Long-Term Conversational Memory of LLM Agents" (ACL 2024). The files are
licensed CC BY-NC 4.0: they are read where they lie and never copied here. A turn's text is what was said
plus, where a photo was shared, " [photo: CAPTION]" with the data set's BLIP caption: the photo itself is not
part of the release, and questions ask about it. Times are those of the sessions, read as UTC.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from lamina.streams.conversations import LocomoTurn, locomo_turns
from lamina.streams.errors import Misconfigured

ANSWERABLE = (1, 2, 3, 4)
"""Question categories with an answer: multi-hop, temporal, open-domain, single-hop; 5 has none."""

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True, slots=True)
class LocomoQuestion:
    """One question with the ids of the turns that hold its answer, cleaned: each exists, none twice."""

    text: str
    answer: str
    category: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    """One conversation: turns in order, over all sessions."""

    id: str
    speakers: tuple[str, str]
    turns: tuple[LocomoTurn, ...]
    questions: tuple[LocomoQuestion, ...]
    dropped_evidence: int
    """Evidence ids that name no turn."""

    def sessions(self) -> dict[str, tuple[LocomoTurn, ...]]:
        """Return the turns by session, both in order."""
        found: dict[str, list[LocomoTurn]] = {}
        for turn in self.turns:
            found.setdefault(turn.session, []).append(turn)
        return {session: tuple(turns) for session, turns in found.items()}

    def evidence(self, categories: Sequence[int] = ANSWERABLE) -> frozenset[str]:
        """Return the turns that questions of these categories cite."""
        return frozenset(
            turn
            for question in self.questions
            if question.category in categories
            for turn in question.evidence
        )


def load_locomo(folder: Path) -> list[Conversation]:
    """Read every `*.json` of a folder, ordered by name.

    Raises:
        Misconfigured: the folder holds no LoCoMo file, or a file is not one.
    """
    files = sorted(folder.glob("*.json"))
    if not files:
        raise Misconfigured(f"{folder} holds no LoCoMo file (one JSON file a conversation): pass its folder")
    return [_conversation(file) for file in files]


def _conversation(file: Path) -> Conversation:
    try:
        raw: dict[str, Any] = orjson.loads(file.read_bytes())
        turns = tuple(locomo_turns(raw))
        known = {turn.id for turn in turns}
        cleaned = [_question(item, known) for item in raw["qa"]]
        return Conversation(
            id=file.stem,
            speakers=(raw["speaker_a"], raw["speaker_b"]),
            turns=turns,
            questions=tuple(question for question, _ in cleaned),
            dropped_evidence=sum(dropped for _, dropped in cleaned),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError) as exc:
        raise Misconfigured(f"{file} is not a LoCoMo conversation: {exc!r}") from exc


def _question(item: dict[str, Any], known: set[str]) -> tuple[LocomoQuestion, int]:
    named = [
        f"D{int(session)}:{int(turn)}"
        for entry in item.get("evidence") or ()
        for session, turn in _EVIDENCE.findall(str(entry))
    ]
    evidence = tuple(dict.fromkeys(turn for turn in named if turn in known))
    question = LocomoQuestion(
        text=str(item["question"]),
        answer=str(item.get("answer", item.get("adversarial_answer", ""))),
        category=int(item["category"]),
        evidence=evidence,
    )
    return question, sum(turn not in known for turn in named)
