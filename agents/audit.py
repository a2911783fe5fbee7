"""The audit of accepted edits: a stratified sample as one page for a person to judge (All-Mem app. H).

All-Mem labels 190 accepted edits: valid 94.2 %, harmful 3.7 %. Its sample sizes are its own; here every
operator gets the same number of edits as far as it has so many (ours: splits are rare, and a sample in
proportion would hold none), so the page weighs its total by how often each operator was accepted.
"""

from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from random import Random
from uuid import UUID

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from lamina.agents.journal_read import with_evidence
from lamina.agents.journal_view import printable
from lamina.streams.journal import JournalEntry
from lamina.streams.ports import Tables
from lamina.streams.records import Edit, Unit

OPERATORS = ("split", "merge", "update", "abstract")
"""The strata: what topology does."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where an accepted edit stands in the journal: light, since all of them are looked at."""

    ordinal: int
    """Of its command."""
    number: int
    """Which of the command's edits, from 0."""
    command: UUID
    operator: str

    @property
    def name(self) -> str:
        """What `lamina undo` takes."""
        return f"{self.command}:{self.number}"


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample and what it was drawn from."""

    places: tuple[Place, ...]
    """By operator, then in the order in which the edits were made."""
    accepted: Mapping[str, int]
    """All accepted edits by operator, undone ones included: they had been accepted, too."""
    seed: int


@dataclass(frozen=True, slots=True)
class Case:
    """One edit as it is judged."""

    place: Place
    edit: Edit
    before: tuple[Unit, ...]
    after: tuple[Unit, ...]
    """As the edit left them, whatever happened to them since."""
    evidence: tuple[Unit, ...]
    """The turns that the units before it rested on, in time order."""


def accepted_in(entry: JournalEntry) -> list[Place]:
    """Return the executed edits of a topology command, whether they were undone since or not."""
    if entry.command.kind != "topology":
        return []
    return [
        Place(entry.ordinal, number, entry.command.id, edit.operator)
        for number, edit in enumerate(entry.edits)
        if edit.outcome == "executed" and edit.operator in OPERATORS
    ]


def draw(accepted: Iterable[Place], size: int, seed: int) -> Sample:
    """Draw up to `size` edits, as evenly over the operators as they allow; the same seed draws the same."""
    strata: dict[str, list[Place]] = {name: [] for name in OPERATORS}
    for place in sorted(accepted):
        strata[place.operator].append(place)
    random = Random(seed)  # noqa: S311  # a sample that can be drawn again is the point
    shuffled = {name: random.sample(strata[name], len(strata[name])) for name in OPERATORS}
    rounds = (name for row in range(size) for name in OPERATORS if row < len(strata[name]))
    shares = Counter(islice(rounds, size))
    chosen = (place for name in OPERATORS for place in sorted(shuffled[name][: shares[name]]))
    return Sample(tuple(chosen), {name: len(strata[name]) for name in OPERATORS if strata[name]}, seed)


def case_of(
    place: Place, entry: JournalEntry, later: Iterable[JournalEntry], units: Mapping[UUID, Unit]
) -> Case:
    """Return an edit with the units before and after it.

    Args:
        place: of the edit.
        entry: its command.
        later: the namespace's applied commands issued after it, in order. Whatever changed a unit since
            keeps the unit as it was until then.
        units: what the edit names and the turns that those rest on, as they are now.
    """
    edit = entry.edits[place.number]
    was = {unit.id: unit for unit in edit.before}
    since = [*entry.edits[place.number + 1 :], *(each for next_ in later for each in next_.edits)]
    then = {unit.id: unit for each in reversed(since) for unit in each.before}
    before = [was.get(key) or then.get(key) or units.get(key) for key in edit.targets or was]
    # An update changes its current unit in place: nothing was created that could stand after it.
    after = [then.get(key) or units.get(key) for key in edit.created or edit.targets[:1]]
    known = [unit for unit in before if unit is not None]
    keys = {turn for unit in known for turn in unit.evidence} | {u.id for u in known if u.kind == "turn"}
    said = sorted((units[key] for key in keys & units.keys()), key=lambda turn: (turn.said_at, turn.position))
    return Case(place, edit, tuple(known), tuple(unit for unit in after if unit is not None), tuple(said))


async def cases_of(tables: Tables, sample: Sample) -> list[Case]:
    """Return the edits of a sample with the units before and after each."""
    cases = []
    for place in sample.places:
        entry = await tables.journal_entry(place.command)
        if entry is not None:
            async with tables.transaction([entry.command.namespace]) as tx:
                later = await tx.entries_after(entry.command.namespace, entry.ordinal)
            cases.append(case_of(place, entry, later, await with_evidence(tables, [entry])))
    return cases


def page(sample: Sample, cases: Sequence[Case]) -> str:
    """Return the sample as one HTML page that needs nothing else and sends nothing anywhere.

    Memory text is escaped, and the page's own policy runs no script but its own.
    """
    folder = files("lamina.agents")
    script = (folder / "audit.js").read_text(encoding="utf-8")
    environment = Environment(
        autoescape=True, finalize=_shown, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string((folder / "audit.html").read_text(encoding="utf-8")).render(
        sample=sample,
        cases=cases,
        operators=[name for name in OPERATORS if name in sample.accepted],
        digest=sha256("\n".join(place.name for place in sample.places).encode()).hexdigest()[:16],
        script=Markup(script),  # noqa: S704  # our own file
        policy=b64encode(sha256(script.encode()).digest()).decode(),
        style=Markup((folder / "audit.css").read_text(encoding="utf-8")),  # noqa: S704  # our own file
    )


def _shown(value: object) -> object:
    """Spell out control characters of memory text, which HTML does not allow; markup of ours passes."""
    return printable(value) if type(value) is str else value
