"""What a prompt showed, as the measure of its reply: numbers are places in it, words come from it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lamina.streams.grounding_support import Sources, sources_of
from lamina.streams.records import Unit
from lamina.streams.resolution import Reading


@dataclass(frozen=True, slots=True)
class Shown:
    """What a prompt showed: the numbers of its entries are places in these."""

    turns: tuple[Unit, ...]
    readings: tuple[Reading, ...]
    heads: tuple[Unit, ...] = ()
    told: tuple[Unit, ...] = ()
    """The turns that the heads rest on; not shown, but what their text may draw on."""
    known: tuple[Unit, ...] = ()

    @property
    def named(self) -> Sources:
        """Everything shown, and what the heads rest on: where a name may come from."""
        everything = range(1, len(self.turns) + 1)
        return self.sources(everything, (*self.heads, *self.told, *self.known))

    def sources(self, numbers: Iterable[int], more: Iterable[Unit] = ()) -> Sources:
        """Return what a statement that rests on these turns may say: them, as said and as resolved."""
        readings = [self.readings[number - 1] for number in numbers]
        by_id = {turn.id: turn for turn in self.turns}
        texts = [(reading.text, by_id[reading.turn].said_at) for reading in readings]
        before = [turn for reading in readings for turn in reading.before]
        speakers = [(turn.speaker, turn.said_at) for turn in self.turns]
        turns = [by_id[reading.turn] for reading in readings]
        return sources_of((*turns, *before, *more), (*texts, *speakers))


def existing(numbers: Sequence[int], most: int) -> tuple[list[int], list[int]]:
    """Return the numbers that exist, from 1 to `most`, each once and in order, and those that do not."""
    known = sorted({number for number in numbers if 1 <= number <= most})
    return known, [number for number in numbers if not 1 <= number <= most]
