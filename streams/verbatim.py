"""Where a quoted text stands in another, white space and the form of quotation marks apart."""

from collections.abc import Sequence
from dataclasses import dataclass

_PLAIN = str.maketrans("’‘“”", "''\"\"")

Range = tuple[int, int]
"""Start and end (exclusive), in characters of the text as it was given."""


@dataclass(frozen=True, slots=True)
class Flat:
    """A text on one line: every run of white space one blank, with the way back to its characters."""

    text: str
    places: tuple[int, ...]
    """For each character of `text`, its place in the text as given."""

    @staticmethod
    def of(text: str) -> "Flat":
        """Flatten a text."""
        letters: list[str] = []
        places: list[int] = []
        for place, letter in enumerate(text.translate(_PLAIN)):
            if not letter.isspace():
                letters.append(letter)
                places.append(place)
            elif letters and letters[-1] != " ":
                letters.append(" ")
                places.append(place)
        return Flat("".join(letters), tuple(places))

    def find(self, quote: str, taken: Sequence[Range] = ()) -> Range | None:
        """Return where a quote stands first, between word borders and outside what is taken; else None."""
        wanted = " ".join(quote.translate(_PLAIN).split())
        at = self.text.find(wanted) if wanted else -1
        while at >= 0:
            start, end = self.places[at], self.places[at + len(wanted) - 1] + 1
            free = all(end <= first or last <= start for first, last in taken)
            if free and self._whole_words(at, at + len(wanted)):
                return start, end
            at = self.text.find(wanted, at + 1)
        return None

    def _whole_words(self, start: int, end: int) -> bool:
        joined_before = start > 0 and self.text[start - 1].isalnum() and self.text[start].isalnum()
        joined_after = end < len(self.text) and self.text[end].isalnum() and self.text[end - 1].isalnum()
        return not (joined_before or joined_after)
