"""A needle in a haystack: a long conversation of small talk in which one fact is said once.

RLM-Memory §6.1: N turns, one holds the fact, all others come from a pool of filler. Ours, since its pool and
facts are not published: small talk from `lamina.bench.niah_words`, of about the length of its turns (72
characters); depths spread evenly over the runs, so that no part of the history is left out; and, harder than
the paper, distractors, facts of the same kind about somebody else and others about the same one; and each
needle is asked for twice, in its own words and in others. The same numbers give the same haystack, on every
machine.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from string import ascii_uppercase, digits

from lamina.bench.conversation import Conversation, Question
from lamina.bench.niah_words import ASIDES, FACTS, SLOTS, TALK, THANKS, Fact
from lamina.streams.conversations import DialogueTurn
from lamina.streams.errors import Misconfigured

DISTRACTORS = 6
"""By turns facts of the needle's kind about others, and others about whom it is about; the paper: none."""
FEWEST_TURNS = 2
MOST_DISTRACTORS = 8
"""About each there are five facts, the needle among them."""
SPEAKERS = ("Robin", "Assistant")

_SESSION_TURNS = 20
_BEGIN = datetime(2024, 1, 8, 9, tzinfo=UTC)
_BETWEEN_SESSIONS = timedelta(days=1)
_BETWEEN_TURNS = timedelta(minutes=1)
_TRIES = 50
_ASIDES = 0.5
"""Share of the sentences that something is added to."""
_CATEGORY = 4
"""LoCoMo's number of a single-hop question, which a needle's is."""

Exchange = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Haystack:
    """One conversation with its needle."""

    conversation: Conversation
    """Its questions are `asked` and `otherwise`; their evidence is the needle's turn."""
    depth: float
    """Share of the turns that come before the needle, 0 to 1."""

    @property
    def asked(self) -> Question:
        """Return the question in the needle's words; its answer is the needle's value."""
        return self.conversation.questions[0]

    @property
    def otherwise(self) -> Question:
        """Return the same question in other words."""
        return self.conversation.questions[1]

    @property
    def text(self) -> str:
        """Return the whole history, one `speaker: text` line a turn."""
        return "\n".join(f"{turn.speaker}: {turn.text}" for turn in self.conversation.turns)


def haystack(turns: int, run: int, runs: int, *, seed: int = 0, distractors: int = DISTRACTORS) -> Haystack:
    """Make the haystack of one run.

    Args:
        turns: in all; at least 2. In a short one the distractors that find no room are left out.
        run: 0 to runs - 1; its needle lies in the run-th of so many equal parts.
        runs: of this length.
        seed: of the choice of words.
        distractors: 0 to `MOST_DISTRACTORS`.

    Raises:
        Misconfigured: fewer than 2 turns, or more distractors than there are facts of a kind.
    """
    if turns < FEWEST_TURNS:
        raise Misconfigured(f"a haystack of {turns} turns: at least {FEWEST_TURNS} are needed")
    if not 0 <= distractors <= MOST_DISTRACTORS:
        raise Misconfigured(f"{distractors} distractors: allowed are 0 to {MOST_DISTRACTORS}")
    random = Random(f"{seed}/{turns}/{run}")  # noqa: S311  # words for a benchmark, no secret
    places = -(-turns // 2)
    needle = min(int((run + random.random()) / runs * places), places - 1)
    kinds = Random(f"{seed}/{turns}").sample(FACTS, len(FACTS))  # noqa: S311
    fact = kinds[run % len(kinds)]
    who, said = _facts(fact, min(distractors, places - 1), random)
    others = random.sample([place for place in range(places) if place != needle], len(said) - 1)
    exchanges = _talk(places, random)
    for place, (_, sentence) in zip((needle, *others), said, strict=True):
        exchanges[place] = (_with_aside(sentence, 0, random), random.choice(THANKS))
    spoken = [_turn(number, exchanges[number // 2][number % 2]) for number in range(turns)]
    questions = tuple(
        Question(asked.format(who=who), said[0][0], _CATEGORY, (spoken[2 * needle].id,))
        for asked in (fact.asked, fact.otherwise)
    )
    name = f"niah-{turns}-{run}"
    return Haystack(Conversation(name, SPEAKERS, tuple(spoken), questions, 0), 2 * needle / turns)


def _turn(number: int, text: str) -> DialogueTurn:
    session, place = divmod(number, _SESSION_TURNS)
    return DialogueTurn(
        id=f"D{session + 1}:{place + 1}",
        session=f"session_{session + 1}",
        speaker=SPEAKERS[number % 2],
        text=text,
        said_at=_BEGIN + session * _BETWEEN_SESSIONS + place * _BETWEEN_TURNS,
    )


def _facts(fact: Fact, distractors: int, random: Random) -> tuple[str, list[tuple[str, str]]]:
    """Return whom the needle is about, and value and sentence of the needle, then of its distractors."""
    who, *rest = random.sample(fact.about, len(fact.about))
    kinds = [kind for kind in FACTS if kind.about is fact.about and kind is not fact]
    random.shuffle(kinds)
    chosen = [(fact, who)]
    chosen += [(kinds.pop(), who) if number % 2 else (fact, rest.pop()) for number in range(distractors)]
    values: dict[str, tuple[Fact, str]] = {}
    for kind, about in chosen:
        value = _value(kind.value, random)
        while value in values:
            value = _value(kind.value, random)
        values[value] = (kind, about)
    return who, [(value, kind.said.format(who=about, value=value)) for value, (kind, about) in values.items()]


def _value(form: str, random: Random) -> str:
    if form.startswith("Word"):
        return _name(random) + _value(form.removeprefix("Word"), random)
    chosen = {"9": digits, "A": ascii_uppercase}
    return "".join(random.choice(chosen[char]) if char in chosen else char for char in form)


def _name(random: Random) -> str:
    syllables = (random.choice("bdfgklmnprstvz") + random.choice("aeiou") for _ in range(3))
    return "".join(syllables).capitalize() + random.choice("lnrs")


def _talk(count: int, random: Random) -> list[Exchange]:
    """Return so many exchanges of small talk; what one says comes again only when the words run out."""
    said: set[str] = set()
    talk: list[Exchange] = []
    while len(talk) < count:
        for _ in range(_TRIES):
            first, reply = random.choice(TALK)
            words = {slot: random.choice(choices) for slot, choices in SLOTS.items()}
            sentence = first.format_map(words)
            if sentence not in said:
                break
        said.add(sentence)
        reply = reply.format_map(words)
        talk.append((_with_aside(sentence, 0, random), _with_aside(reply, 1, random)))
    return talk


def _with_aside(sentence: str, who: int, random: Random) -> str:
    return f"{sentence} {random.choice(ASIDES[who])}" if random.random() < _ASIDES else sentence
