"""Random sequences of edits and undos over one memory: what must hold whatever the model proposes.

Each step of the machine is a run of a few edits, applied by the executor to what the runs before it left, or
an undo; after each step every promise is checked on the whole memory.
"""

from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import numpy as np
import pytest
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from lamina.streams.records import Span, Unit
from lamina.streams.recurrence import Thread
from lamina.streams.topology.abstraction import Affinity, groups
from lamina.streams.topology.bank import Limits
from lamina.streams.topology.diagnosis import Thresholds, queue
from lamina.streams.topology.editing import abstract, applicable, decline, merge, split, update
from lamina.streams.topology.representatives import Part
from lamina.streams.topology.values import layer_of
from lamina.streams.undo import Refused, Standing, reverse, to_reverse, touched
from lamina.streams.vector_table import unit_length

from .bank_kit import START, Memory, a_fact, a_turn, a_unit, described, key, proposed

LIMITS = Limits(semantic=3, sibling=2, redundancy=0.7)
TOPICS = 3
SAID = "I learned PyTorch today. Also, I need to buy eggs."


def a_vector(seed):
    """One of a few topics, with a little noise: some units are near-duplicates, others unrelated."""
    noise = np.random.default_rng(seed).normal(0, 0.15, 8)
    noise[seed % TOPICS] += 1
    return unit_length(noise.astype(np.float32))


class Edits(RuleBasedStateMachine):
    """The memory under random runs; see the rules."""

    kinds = "derived"

    def __init__(self):
        super().__init__()
        self.memory = Memory()
        self.said = {}
        self.versions = {}
        self.runs = 0
        self.count = 0

    # What arrives

    @initialize()
    def some_units(self):
        for number in range(8):
            self.arrive(number)

    @rule(seed=st.integers(0, 50))
    def arrive(self, seed):
        number, memory = self.count, self.memory
        self.count += 1
        turn = memory.add(a_turn(f"t{number}", SAID, day=number), a_vector(seed))
        kind = ("fact", "episode")[seed // TOPICS % 2]
        if kind == "fact":
            unit = a_fact(f"u{number}", f"Nora {seed}.", turn, about=("Nora", "likes", str(seed)), day=number)
        else:
            unit = a_unit(f"u{number}", "episode", f"Nora {seed}.", turn, day=number)
        vector = a_vector(seed)
        near = sorted(
            (each for each in memory.visible(kind) if each.id in memory.vectors),
            key=lambda each: -float(memory.vectors[each.id] @ vector),
        )
        links = [
            (each.id, "semantic", float(memory.vectors[each.id] @ vector)) for each in near[: LIMITS.semantic]
        ]
        memory.add(unit, vector, *links)
        if kind == "episode":
            thread = key(f"th{number}")
            memory.threads[thread] = Thread(thread, vector * 2, 2, None, heads=(unit.id,))
        for each in memory.units.values():
            if each.kind == "turn":
                self.said.setdefault(each.id, each)

    # What is edited

    @rule(data=st.data(), edits=st.integers(1, 3))
    def run(self, data, edits):
        bank = self.a_bank()
        self.carry_out(bank, [self.a_proposal(bank, data) for _ in range(edits)], data)

    @rule(data=st.data())
    def run_on_nonsense(self, data):
        targets = st.lists(st.sampled_from(sorted(self.memory.units, key=str)), min_size=1, max_size=5)
        operator = data.draw(st.sampled_from(("split", "merge", "update")))
        confidence = data.draw(st.sampled_from((0.5, 0.95, 95.0)))
        found = [proposed(operator, *data.draw(targets), key("invented"), confidence=confidence)]
        self.carry_out(self.a_bank(), [*found, proposed(operator, *data.draw(targets))], data)

    def a_proposal(self, bank, data):
        """A target and what is like it, as a sensible diagnosis would name them."""
        units = [unit for unit in self.memory.visible() if self.kinds == "all" or unit.kind != "turn"]
        seed = data.draw(st.sampled_from(sorted(units, key=lambda unit: str(unit.id))))
        like = sorted(
            (
                unit
                for unit in units
                if unit.id != seed.id
                and layer_of(unit.kind) == layer_of(seed.kind)
                and (bank.similarity(seed.id, unit.id) or 0) > 0.7
            ),
            key=lambda unit: (unit.said_at, str(unit.id)),
        )
        operator = data.draw(st.sampled_from(("split", "merge", "update")))
        if operator == "split" or not like:
            return proposed("split", seed.id)
        others = [unit.id for unit in like[: data.draw(st.integers(1, 3))]]
        return proposed(operator, seed.id, *(others if operator == "merge" else others[:1]))

    @precondition(lambda self: self.runs % 4 == 0)
    @rule(trigger=st.sampled_from(("pairwise", "mean")))
    def abstract_what_is_related(self, trigger):
        bank = self.a_bank()
        units = [unit for unit in bank.units.values() if self.kinds == "all" or unit.kind != "turn"]
        for group in groups(units, bank.vectors, Affinity(trigger, threshold=0.9))[:1]:
            abstract(bank, group, described("What they share."), bank.vectors[group.units[0]])
        self.memory.finish(bank)

    def a_bank(self):
        self.runs += 1
        return self.memory.bank(f"run {self.runs}", limits=LIMITS, kinds=self.kinds)

    def carry_out(self, bank, found, data):
        diagnosis = queue([found], bank.units, Thresholds(), self.kinds)
        bank.edits += diagnosis.skipped
        for proposal in diagnosis.queued:
            if why := applicable(bank, proposal):
                decline(bank, proposal, why)
                continue
            words = described(f"{proposal.operator} {self.runs}", "word")
            vector = a_vector(data.draw(st.integers(0, 50)))
            if proposal.operator == "split":
                split(bank, proposal, self.parts(bank, proposal.targets[0], data))
            elif proposal.operator == "merge":
                merge(bank, proposal, words, bank.vectors[proposal.targets[0]])
            else:
                update(bank, proposal, words, data.draw(st.sampled_from((None, vector))))
        assert len(bank.edits) >= len(diagnosis.queued) + len(diagnosis.skipped)
        rows = bank.rows()
        self.memory.finish(bank)
        once = (dict(self.memory.units), dict(self.memory.links), dict(self.memory.threads))
        self.memory.write(rows)
        assert once == (self.memory.units, self.memory.links, self.memory.threads), "written twice"
        # The same run once more finds what it edited stale.
        again = self.memory.bank(f"run {self.runs}", limits=LIMITS, kinds=self.kinds)
        for edit in bank.edits:
            if edit.outcome == "executed" and edit.operator in {"split", "merge"}:
                assert applicable(again, proposed(edit.operator, *edit.targets)) is not None

    def parts(self, bank, target, data):
        unit = bank.units[target]
        turns = unit.evidence or (unit.id,)
        cuts = sorted({0, len(SAID), *data.draw(st.lists(st.integers(1, len(SAID) - 1), max_size=3))})
        return [
            Part(
                (Span(turn=turns[number % len(turns)], start=start, end=end),),
                described(f"part {number} of {unit.version}"),
                a_vector(number),
            )
            for number, (start, end) in enumerate(pairwise(cuts))
        ]

    # What is undone

    @precondition(lambda self: self.memory.visible())
    @rule(data=st.data(), edits=st.integers(1, 3))
    def run_and_undo(self, data, edits):
        """A run and its undo leave every unit and link as they were; what is new stays archived."""
        memory = self.memory
        units, links, threads = dict(memory.units), set(memory.links), dict(memory.threads)
        self.run(data, edits)
        entry = memory.journal[-1]
        chosen = to_reverse(entry, None, [])
        if isinstance(chosen, Refused):
            assert all(edit.outcome != "executed" for edit in entry.edits)
            return
        self.reverse(chosen)
        created = {each for edit in entry.edits for each in edit.created}
        assert memory.units.keys() - units.keys() == created
        for unit in units.values():
            now = memory.units[unit.id]
            assert now.model_copy(update={"version": unit.version}) == unit
        assert links <= set(memory.links)
        for source, target, kind in set(memory.links) - links:
            assert kind in {"version", "evidence"}
            assert created & {source, target}
        assert {each.id: each.heads for each in memory.threads.values()} == {
            each.id: each.heads for each in threads.values()
        }

    @precondition(lambda self: self.memory.journal)
    @rule(data=st.data(), cascade=st.booleans(), whole=st.booleans())
    def undo(self, data, cascade, whole):
        memory = self.memory
        entry = data.draw(st.sampled_from(memory.journal))
        ordinal = None if whole or not entry.edits else data.draw(st.integers(0, len(entry.edits) - 1))
        later = [each for each in memory.journal if each.ordinal > entry.ordinal]
        chosen = to_reverse(entry, ordinal, later, cascade=cascade)
        if isinstance(chosen, Refused):
            assert chosen.reason
            return
        self.reverse(chosen)
        self.restored(chosen)
        again = to_reverse(
            next(each for each in memory.journal if each.command.id == entry.command.id), ordinal, later
        )
        assert isinstance(again, Refused)

    def reverse(self, chosen):
        memory, ids = self.memory, touched(chosen)
        heads = {key for at in chosen for key in at.edit.heads}
        reversal = reverse(
            chosen,
            Standing(
                {each: memory.units[each] for each in ids},
                [link for link in memory.links.values() if link.source in ids],
                [each for each in memory.threads.values() if each.id in heads or ids & set(each.heads)],
            ),
            key("undo"),
            LIMITS,
        )
        memory.reverse(reversal)

    def restored(self, chosen):
        """What the edits changed is as it was before the first of them; what they made is archived."""
        memory = self.memory
        created = {each for at in chosen for each in at.edit.created}
        before: dict[UUID, Unit] = {}
        for at in chosen:  # newest first: the oldest image wins
            before |= {unit.id: unit for unit in at.edit.before}
        for unit in before.values():
            if unit.id not in created:
                now = memory.units[unit.id]
                for name in ("visible", "text", "summary", "keywords", "valid_to", "evidence", "spans"):
                    assert getattr(now, name) == getattr(unit, name)
        for each in created:
            assert not memory.units[each].visible
        for at in chosen:
            for thread, heads in at.edit.heads.items():
                assert not created & set(memory.threads[thread].heads) or created & set(heads)
        oldest = chosen[-1].edit
        for link in oldest.added:
            if link.type in {"semantic", "temporal", "sibling"} and link.source not in created:
                assert (link.source, link.target, link.type) not in memory.links

    # What always holds

    @invariant()
    def what_was_said_never_changes(self):
        for turn in self.said.values():
            now = self.memory.units[turn.id]
            assert (now.text, now.said_at, now.evidence) == (turn.text, turn.said_at, turn.evidence)
            assert now.kind == "turn"
            assert self.kinds == "all" or now.visible

    @invariant()
    def evidence_is_immutable_and_linked(self):
        for unit in self.memory.units.values():
            known = self.versions.get(unit.id)
            assert known is None or (known.evidence, known.spans) == (unit.evidence, unit.spans)
            linked = self.memory.linked(unit.id, "evidence")
            assert set(linked) >= set(unit.evidence)

    @invariant()
    def versions_only_grow(self):
        for unit in self.memory.units.values():
            known = self.versions.get(unit.id)
            if known is not None:
                assert unit.version >= known.version
                if (unit.text, unit.summary, unit.keywords) != (known.text, known.summary, known.keywords):
                    assert unit.version > known.version
        assert self.versions.keys() <= self.memory.units.keys(), "a unit is gone"
        self.versions = dict(self.memory.units)

    @invariant()
    def every_archived_unit_is_reachable(self):
        found = self.memory.recoverability()
        assert found.unreachable == ()
        assert found.orphans == ()
        assert found.coverage(4) >= 0.95

    @invariant()
    def degrees_are_capped(self):
        for unit in self.memory.visible():
            assert len(self.memory.linked(unit.id, "semantic")) <= LIMITS.semantic
            assert len(self.memory.linked(unit.id, "sibling")) <= LIMITS.sibling

    @invariant()
    def heads_of_threads_are_visible(self):
        for thread in self.memory.threads.values():
            for head in thread.heads:
                assert self.memory.units[head].visible


class EditsOfAll(Edits):
    """The same where turns may be archived too (All-Mem)."""

    kinds = "all"


EFFORT = effort(
    max_examples=40, stateful_step_count=30, deadline=None, derandomize=True, print_blob=False, database=None
)
TestDerived = pytest.mark.timeout(120)(Edits.TestCase)
TestDerived.settings = EFFORT
TestAll = pytest.mark.timeout(120)(EditsOfAll.TestCase)
TestAll.settings = EFFORT


def test_a_chain_of_versions_stays_within_four_hops():
    memory = Memory()
    turn = memory.add(a_turn("t", SAID))
    head = memory.add(a_unit("first", "episode", "Version 0.", turn), a_vector(0))
    for number in range(1, 70):
        new = memory.add(a_unit(f"n{number}", "episode", "More.", turn, day=number), a_vector(0))
        bank = memory.bank(f"run {number}")
        edit = merge(bank, proposed("merge", head, new), described(f"Version {number}."), a_vector(0))
        assert edit.outcome == "executed"
        memory.finish(bank)
        (head,) = edit.created
        if number == 12:
            assert memory.recoverability().coverage(1) == 1
    found = memory.recoverability()
    assert found.archived == 138
    assert found.coverage(4) == 1
    assert memory.units[head].version == 70
    assert memory.units[head].said_at == START + timedelta(days=69)
