"""Diagnosis by rules: which edits a neighbourhood shows plainly (All-Mem app. C.2 without a model).

For the extractive engine, and for counting calls and tokens without a model. Ours, English, and far more
careful than a model: a rule proposes with a confidence that passes θ_op = 0.9 only where the pattern leaves
no doubt (`CERTAIN`), else with `LIKELY`, which the gate turns down and the journal of a run may show.

- *merge*: units of one kind and speaker that state the same and nothing else ("I live in Tokyo." and "My
  residence is in Tokyo."), with nothing contrary said between them; or the same words about the same days.
- *update*: a newer unit ends an older one that says nothing else: another value of a relation that holds one
  at a time, the opposite liking of the same thing, another number in a running total.
- *split*: sentences that a marker sets apart ("by the way"), or "also" between a report and a task, and that
  share no content word.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from lamina.streams.dates import resolve_dates
from lamina.streams.engine import Neighbourhood, Node, Proposal
from lamina.streams.facts import replaces
from lamina.streams.records import Unit
from lamina.streams.topology.rule_plans import parts_of
from lamina.streams.topology.statements import Reading, Statement, read, same_but_number, same_total

CERTAIN = 0.95
"""Of a pattern that leaves no doubt (ours)."""
LIKELY = 0.7
"""Of a pattern that a model should decide (ours)."""
MOST_MERGED = 4
"""Units of one merge (All-Mem app. C.2)."""
_FEWEST_WORDS = 3
"""Content words below which equal words are a phrase, not a memory."""
_LIKINGS = frozenset({"likes", "dislikes"})


def diagnose(context: Neighbourhood) -> tuple[Proposal, ...]:
    """Propose the edits that the target and its anchors show, splits before merges before updates.

    Of several redundant anchors the nearest three join the target: anchors come nearest first.
    """
    return diagnose_all([context])[0]


def diagnose_all(contexts: Sequence[Neighbourhood]) -> list[tuple[Proposal, ...]]:
    """Propose for each neighbourhood, reading a unit that stands in several only once."""
    nodes = (node for context in contexts for node in (context.target, *context.anchors))
    readings = {unit.id: read(unit) for unit in {node.unit.id: node.unit for node in nodes}.values()}
    return [_proposals(context, readings) for context in contexts]


def _proposals(context: Neighbourhood, readings: Mapping[UUID, Reading]) -> tuple[Proposal, ...]:
    target = readings[context.target.unit.id]
    anchors = [readings[anchor.unit.id] for anchor in context.anchors]
    peers = [anchor for anchor in anchors if _comparable(target.unit, anchor.unit)]
    return (*_splits(context.target), *_merges(target, peers), *_updates(target, peers))


def _comparable(one: Unit, other: Unit) -> bool:
    same_voice = one.kind != "turn" or (one.speaker, one.role) == (other.speaker, other.role)
    return one.id != other.id and one.kind == other.kind and same_voice


def _splits(target: Node) -> Iterable[Proposal]:
    parts, sure = parts_of(target)
    if len(parts) > 1:
        confidence = CERTAIN if sure else LIKELY
        yield Proposal("split", (target.unit.id,), f"{len(parts)} topics that share no word", confidence)


def _merges(target: Reading, peers: Sequence[Reading]) -> Iterable[Proposal]:
    alike = [peer for peer in peers if _redundant(target, peer, peers)]
    if alike:
        units = (target.unit, *(peer.unit for peer in alike[: MOST_MERGED - 1]))
        yield Proposal("merge", tuple(unit.id for unit in units), "they state the same", CERTAIN)


def _redundant(one: Reading, other: Reading, peers: Sequence[Reading]) -> bool:
    if one.alone is not None and one.alone == other.alone:
        return not _denied_between(one.alone, one.unit, other.unit, peers)
    return one.alone is other.alone is None and _same_words(one, other)


def _same_words(one: Reading, other: Reading) -> bool:
    """Tell whether two units say the same in the same words of the same days.

    An event said twice on two days may be two events, so without a date they must be of one day.
    """
    if one.words != other.words or len(set(one.words)) < _FEWEST_WORDS:
        return False
    first, second = one.unit, other.unit
    days, others = ([(d.start, d.end) for d in resolve_dates(u.text, u.said_at)] for u in (first, second))
    return days == others and (bool(days) or first.said_at.date() == second.said_at.date())


def _denied_between(said: Statement, one: Unit, other: Unit, peers: Sequence[Reading]) -> bool:
    """Tell whether a peer says the contrary between the two: Tokyo, Osaka, Tokyo are not one stay."""
    first, last = sorted((one, other), key=_time_of)
    between = [peer for peer in peers if _time_of(first) < _time_of(peer.unit) < _time_of(last)]
    return any(_ends(said, each) for peer in between for each in peer.statements)


def _updates(target: Reading, peers: Sequence[Reading]) -> Iterable[Proposal]:
    for peer in peers:
        older, newer = sorted((target, peer), key=lambda each: _time_of(each.unit))
        reason = _supersedes(newer, older)
        if reason is not None and _time_of(older.unit)[0] < _time_of(newer.unit)[0]:
            yield Proposal("update", (newer.unit.id, older.unit.id), reason, CERTAIN)


def _supersedes(newer: Reading, older: Reading) -> str | None:
    """Return why a newer unit ends an older one that says nothing else; None where it does not."""
    was = older.alone
    if was is not None:
        for now in newer.statements:
            same_pair = (was.subject, was.relation) == (now.subject, now.relation)
            if _ends(was, now) or (same_pair and same_but_number(was, now)):
                return f"{now.said}; before: {was.said}"
    if older.unit.kind == "turn" and len(older.counts) == older.sentences == 1:
        for count in newer.counts:
            if same_total(count, older.counts[0]):
                return f"{count.said}; before: {older.counts[0].said}"
    return None


def _ends(was: Statement, now: Statement) -> bool:
    """Tell whether a statement contradicts an earlier one."""
    if was.subject != now.subject:
        return False
    if was.relation == now.relation:
        return replaces(was.relation) and was.object != now.object
    return {was.relation, now.relation} == _LIKINGS and was.object == now.object


def _time_of(unit: Unit) -> tuple[datetime, int, int, str]:
    since = unit.valid_from or unit.recent_at if unit.kind == "fact" else unit.recent_at
    return since, unit.position, unit.ordinal, str(unit.id)
