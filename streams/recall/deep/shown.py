"""Which turns a model has seen: an answer may rest on no other (ours).

A turn counts as seen when its number and the first words that it says both stand in a text that was put into
a prompt. A number alone can be invented by a program; words alone cannot be pointed at.
"""

import re

import orjson

from lamina.streams.recall.deep.history import History

_WORD = re.compile(r"\w+")
_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")
_BREAK = re.compile(r"\\[ntr]")
"""A line break as a printed list or dict shows it."""
_OPENING_WORDS = 8
_OPENING_CHARACTERS = 40


class Shown:
    """The texts that were put into prompts, and the turns found in them when an answer names them."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._texts: list[str] = []
        self._printed: list[tuple[str, str]] = []
        self._looked: dict[int, tuple[int, int]] = {}
        self._seen: set[int] = set()

    def read(self, text: str) -> None:
        """Note a text of the history that was given to a reader: turns stand there as they are."""
        self._texts.append(text)

    def printed(self, text: str) -> None:
        """Note what a program printed, where line breaks, quotes and letters may stand as escapes."""
        plain = _BREAK.sub(" ", _ESCAPED.sub(_unescaped, text))
        self._printed.append((text, _words(plain)))

    def holds(self, number: int) -> bool:
        """Tell whether the turn of this number exists and was seen; no text is searched twice for it."""
        if number not in self._seen and self._said(number) is not None and self._found(number):
            self._seen.add(number)
        return number in self._seen

    def stands(self, number: int, text: str) -> bool:
        """Tell whether the turn of this number exists and stands, number and words, in a text as it is."""
        said = self._said(number)
        if said is None:
            return False
        opening = said.partition("\n")[0][:_OPENING_CHARACTERS]
        return opening in text and _named(number).search(text) is not None

    def _said(self, number: int) -> str | None:
        there = 1 <= number <= len(self._history.turns)
        return self._history.turns[number - 1].text.strip() if there else None

    def _found(self, number: int) -> bool:
        texts, printed = self._looked.get(number, (0, 0))
        self._looked[number] = (len(self._texts), len(self._printed))
        said = self._said(number) or ""
        words = _WORD.findall(said.casefold())[:_OPENING_WORDS]
        spoken = f" {' '.join(words)} "
        return any(self.stands(number, text) for text in self._texts[texts:]) or any(
            (spoken in plain if words else said in text) and _named(number).search(text)
            for text, plain in self._printed[printed:]
        )


def _named(number: int) -> re.Pattern[str]:
    return re.compile(rf"(?<!\d){number}(?!\d)")


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _unescaped(match: re.Match[str]) -> str:
    """Return what `json.dumps` wrote as escapes; half a pair stays as it is."""
    try:
        text: str = orjson.loads(f'"{match[0]}"')
    except orjson.JSONDecodeError:
        return match[0]
    return text
