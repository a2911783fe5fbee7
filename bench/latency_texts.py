"""Made-up talk for the latency benchmark: turns and questions as long as LoCoMo's, the same on every run.

LoCoMo's turns have 26 words on average (5 % below 8, half below 22, 5 % above 55), its questions 10. What
is said here means little: it only has to cost the embedder, the tables and the store what real talk costs.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

SPEAKERS = ("Ada", "Grace")
"""Who talks, in turn."""

_WHO = ("I", "my sister", "our neighbour", "the vet", "my old teacher", "Bo", "the whole team", "my landlord")
_DID = (
    "repaired",
    "gave away",
    "found",
    "painted",
    "borrowed",
    "sold",
    "photographed",
    "lost",
    "planned",
    "wrote about",
)
_WHAT = (
    "the green canoe",
    "a box of letters",
    "the beehives",
    "an old violin",
    "the spare key",
    "a recipe for plum cake",
    "the greenhouse",
    "two tickets to Lisbon",
    "the harbour mural",
    "a stray cat",
    "the telescope",
    "grandmother's ring",
)
_WHERE = (
    "behind the barn",
    "in Porto",
    "at the night market",
    "near the lighthouse",
    "on the train",
    "by the river",
    "in the attic",
    "at work",
)
_WHEN = (
    "last weekend",
    "in early May",
    "before the storm",
    "on my birthday",
    "two years ago",
    "this morning",
    "after the exam",
    "during the holidays",
)
_SAID = (
    "and honestly it went better than anyone had expected",
    "which took the whole afternoon and most of my patience",
    "so now we have to think about what comes next",
    "but I am not sure that it was the right thing to do",
    "and the children have been talking about nothing else since",
    "because there was no room left for it at home",
    "and it cost almost nothing in the end",
    "though the weather was terrible and we were soaked",
)
_ASKS = (
    "What happened to {what} {where} {when}?",
    "Who {did} {what} {where}?",
    "When was it that {who} {did} {what}?",
    "Where is {what} that {who} {did} {when}?",
    "Did {who} ever say why {what} was in the way {when}?",
)


def turns(count: int, seed: int = 0) -> list[str]:
    """Return that many texts of turns; hardly two of them are alike."""
    chance = np.random.default_rng(seed)
    # About 20 words a sentence, and half a sentence more: lengths spread as LoCoMo's do.
    return [" ".join(_sentence(chance) for _ in range(1 + int(chance.poisson(0.5)))) for _ in range(count)]


def questions(count: int, seed: int = 0) -> list[str]:
    """Return that many distinct questions.

    Raises:
        ValueError: more than there are.
    """
    chance = np.random.default_rng(seed)
    every = sorted(set(_every_question()))
    if count > len(every):
        raise ValueError(f"{count} distinct questions were asked for; there are {len(every)}")
    return [every[place] for place in chance.permutation(len(every))[:count]]


def _sentence(chance: np.random.Generator) -> str:
    parts = [_one(chance, part) for part in (_WHO, _DID, _WHAT, _WHERE, _WHEN)]
    if chance.random() < 0.6:  # noqa: PLR2004  # of the sentences go on
        parts.append(_one(chance, _SAID))
    words = " ".join(parts)
    return f"{words[0].upper()}{words[1:]}{'?' if chance.random() < 0.2 else '.'}"  # noqa: PLR2004


def _every_question() -> Iterator[str]:
    for ask, who, did, what, where, when in product(_ASKS, _WHO, _DID, _WHAT, _WHERE, _WHEN):
        yield ask.format(who=who, did=did, what=what, where=where, when=when)


def _one(chance: np.random.Generator, choices: tuple[str, ...]) -> str:
    return choices[int(chance.integers(len(choices)))]
