"""Pack what was found into one block of text that can stand in a prompt, within a token budget.

Abstracts, then facts, episodes, chains, and what was said: from the general to the verbatim, so that a reader
knows what a detail belongs to when it comes, and reads the evidence last, next to the question (as SimpleMem
§2.3 takes abstracts first, and RecMem §3.5 its tiers). Facts and episodes stand best first, chains best first
with their turns in time order (Chain-of-Memory §3.2), other turns in time order.

Every line is one memory with its citation, `[date · speaker · id]`. Line breaks inside a memory become
spaces, so nothing that was said can pass for a line, or a citation, of its own. A memory that holds no
longer says so at its end, "(until 2026-04-02; now: Kiel)", and facts that cannot both hold are followed by a
line that names the conflict.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from lamina.streams.recall.block import Block, Place
from lamina.streams.recall.conflicts import Conflict, conflicts
from lamina.streams.recall.found import TIERS, Found, known
from lamina.streams.recall.lines import citation_of, line_of, note_of
from lamina.streams.recall.standing import UNKNOWN, Standing
from lamina.streams.records import Kind, Unit

__all__ = ["Packed", "Packing", "citation_of", "pack", "tokens_of"]

BYTES_PER_TOKEN = 4
"""A token is counted as four UTF-8 bytes: about right for English, careful for Chinese and emoji."""

_SECTIONS: dict[Kind, tuple[int, str]] = {
    "abstract": (0, "Abstracts"),
    "fact": (1, "Facts"),
    "episode": (2, "Episodes"),
    "turn": (4, "Conversation"),
}
_CHAIN = 3


@dataclass(frozen=True, slots=True)
class Packing:
    """How a block is packed."""

    superseded: Literal["mark", "leave_out"] = "mark"
    """What holds no longer: marked with its end and with what holds now; or, of derived memories, replaced by
    what holds now. Turns are evidence: they stay, marked."""
    dates: Literal["resolved", "as_said"] = "resolved"
    """Whether a relative date in a turn is followed by what it means: "yesterday (2023-07-01)"."""
    numbered: bool = False
    """Cite by the number of the line in the block, from 1, in the place of the id: a model's reply that
    points at a number costs one token, and an invented one is caught."""


@dataclass(frozen=True, slots=True)
class Packed:
    """A prompt-ready block."""

    text: str
    citations: tuple[Unit, ...]
    """The memories that it cites, in its order."""
    tokens: int
    """Its size, estimated."""
    conflicts: tuple[Conflict, ...] = ()
    """Those that it names."""


def tokens_of(text: str) -> int:
    """Estimate a text's tokens: a quarter of its UTF-8 bytes, rounded up."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def pack(
    found: Sequence[Found], max_tokens: int, packing: Packing = Packing(), standing: Standing = UNKNOWN
) -> Packed:
    """Pack memories, given best first, into at most `max_tokens` estimated tokens.

    The best are taken first. Where a whole exchange does not fit, its found turn may; what does not fit at
    all is left out, and a shorter memory after it may still come in. Each memory stands at most once. When
    the very first does not fit it is cut, so that a small budget still gives something; a budget too small
    for that gives an empty text. A fact that disagrees with one in the block comes in only with the note
    that says so.

    Args:
        found: by any strategy; `why.chain` puts a turn into the block of that chain.
        max_tokens: the budget.
        packing: how.
        standing: what is known to hold no longer (`lamina.streams.recall.standing`), and the time that
            nothing in the block may be later than.
    """
    block = Block(max_tokens * BYTES_PER_TOKEN)
    most = sum(1 + len(one.turns) for one in found) + sum(map(len, standing.held.values()))
    width = len(str(most)) if packing.numbered else None
    facts: list[Unit] = []
    notes: tuple[Conflict, ...] = ()
    for one in _with_held(found, standing):
        best = _standing_in(one.unit, packing, standing)
        if not known(best, standing.as_of) or (best.kind != "turn" and block.holds(best.id)):
            continue
        place = _place(best, one)
        disagree = _disagreeing(best, facts, notes, standing)
        for units in (one.turns, (best,)) if best.kind == "turn" else ((best,),):
            lines = [
                line_of(unit, standing, width, dates=packing.dates == "resolved")
                for unit in units
                if known(unit, standing.as_of) and not block.holds(unit.id)
            ]
            if block.add(place, lines, [note_of(each) for each in disagree] if best.kind == "fact" else None):
                facts += [best] if best.kind == "fact" and best.id not in standing.ended else []
                notes = disagree
                break
        else:
            if block.empty:
                block.cut(place, line_of(best, standing, width, dates=False))
    text, citations = block.text(numbered=packing.numbered)
    return Packed(text, citations, tokens_of(text), notes)


def _with_held(found: Sequence[Found], standing: Standing) -> Iterator[Found]:
    """Give each result, and behind it the facts that its turns stated and that held at the time."""
    for one in found:
        yield one
        for turn in one.turns:
            for fact in standing.held.get(turn.id, ()):
                yield Found(fact, one.score, TIERS[fact.kind], one.turns)


def _standing_in(unit: Unit, packing: Packing, standing: Standing) -> Unit:
    """Return what holds in the place of a derived memory, where what is superseded is left out."""
    ended = standing.ended.get(unit.id)
    if packing.superseded == "mark" or ended is None or ended.now is None or unit.kind == "turn":
        return unit
    return ended.now


def _disagreeing(
    new: Unit, facts: Sequence[Unit], notes: tuple[Conflict, ...], standing: Standing
) -> tuple[Conflict, ...]:
    """Return the conflicts among the facts of the block and a new memory."""
    if new.kind != "fact" or new.id in standing.ended:
        return notes
    rivals = any(_about(each) == _about(new) for each in facts)
    return conflicts([*facts, new]) if rivals else notes


def _about(fact: Unit) -> tuple[str, str]:
    return (fact.subject or "").casefold(), (fact.relation or "").casefold()


def _place(unit: Unit, one: Found) -> Place:
    chain = one.why.get("chain")
    if unit.kind == "turn" and isinstance(chain, int | float):
        return _CHAIN, int(chain), f"Chain {int(chain)}"
    rank, title = _SECTIONS[unit.kind]
    return rank, 0, title
