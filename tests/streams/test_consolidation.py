"""A plan becomes rows: versions, links, facts that end each other, and nothing said is touched."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import numpy as np

from lamina.streams.consolidation import Current, apply
from lamina.streams.namespace import namespace_of
from lamina.streams.records import Command, EpisodeDraft, FactDraft, Plan, Unit
from lamina.streams.recurrence import Thread

NAMESPACE = namespace_of("acme", "nora")
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ROOT = UUID(int=9)
SINGLE = {"lives_in"}


def a_turn(name: str, day: int = 0) -> Unit:
    said_at = START + timedelta(days=day)
    return Unit(
        id=uuid5(ROOT, name), namespace=NAMESPACE, kind="turn", session="s", text=name, said_at=said_at,
        recorded_at=said_at, speaker="Nora",
    )  # fmt: skip


TURNS = {turn.id: turn for turn in (a_turn("first"), a_turn("second", 1), a_turn("third", 2))}
FIRST, SECOND, THIRD = TURNS


def a_command(name: str = "one") -> Command:
    return Command(
        id=uuid5(ROOT, name), namespace=NAMESPACE, kind="promote", thread=uuid5(ROOT, "thread"), exchanges=(),
        evidence=tuple(TURNS), reason="recurrence", position=3, issued_at=START,
    )  # fmt: skip


def a_current(*facts: Unit, heads: tuple[Unit, ...] = (), command: str = "one") -> Current:
    thread = Thread(uuid5(ROOT, "thread"), np.ones(2, np.float32), 2, None, tuple(head.id for head in heads))
    return Current(a_command(command), thread, heads, facts, TURNS)


def an_episode(text: str, *turns: UUID) -> EpisodeDraft:
    return EpisodeDraft(text=text, evidence=turns)


def lives_in(place: str, turn: UUID, day: int, relation: str = "lives_in") -> FactDraft:
    said = f"Nora {relation} {place}"
    since = START + timedelta(days=day)
    return FactDraft(
        text=said, subject="Nora", relation=relation, object=place, evidence=(turn,), valid_from=since
    )


def applied(plan: Plan, current: Current):
    return apply(plan, current, replaces=SINGLE.__contains__, now=START)


def fact_units(plan: Plan, command: str = "earlier") -> list[Unit]:
    return applied(plan, a_current(command=command)).inserted


def test_an_episode_rests_on_its_turns_by_evidence_links_and_heads_its_thread() -> None:
    done = applied(Plan(engine="x", episodes=(an_episode("walks", FIRST, SECOND),)), a_current())
    (episode,) = done.inserted
    assert (episode.kind, episode.version, episode.engine, episode.visible) == ("episode", 1, "x", True)
    assert {(link.type, link.target) for link in done.links} == {("evidence", FIRST), ("evidence", SECOND)}
    assert episode.said_at == TURNS[SECOND].said_at
    assert done.thread.heads == (episode.id,)
    assert done.archived == []


def test_a_merge_is_a_new_version_linked_to_every_ancestor_which_is_archived() -> None:
    (old,) = applied(Plan(engine="x", episodes=(an_episode("walks", FIRST),)), a_current()).inserted
    current = a_current(heads=(old,), command="two")
    done = applied(Plan(engine="x", episodes=(an_episode("more walks", FIRST, THIRD),)), current)
    (new,) = done.inserted
    assert new.version == 2
    assert [(unit.id, unit.visible) for unit in done.archived] == [(old.id, False)]
    assert (new.id, old.id, "version") in {(link.source, link.target, link.type) for link in done.links}
    assert [(unit.id, change) for unit, change in done.changes] == [(new.id, "updated"), (old.id, "archived")]


def test_a_plan_without_an_episode_archives_nothing() -> None:
    (old,) = applied(Plan(engine="x", episodes=(an_episode("walks", FIRST),)), a_current()).inserted
    done = applied(Plan(engine="x"), a_current(heads=(old,)))
    assert (done.inserted, done.archived, done.thread) == ([], [], None)


def test_applying_a_plan_twice_gives_the_same_rows() -> None:
    plan = Plan(engine="x", episodes=(an_episode("walks", FIRST),), facts=(lives_in("Rome", SECOND, 1),))
    assert applied(plan, a_current()).inserted == applied(plan, a_current()).inserted


def test_a_newer_fact_ends_the_older_one_and_points_to_it() -> None:
    (hamburg,) = fact_units(Plan(engine="x", facts=(lives_in("Hamburg", FIRST, 0),)))
    done = applied(Plan(engine="x", facts=(lives_in("Lisbon", SECOND, 1),)), a_current(hamburg))
    (lisbon,) = done.inserted
    (ended,) = done.archived
    assert (ended.id, ended.visible, ended.valid_to) == (hamburg.id, False, lisbon.valid_from)
    assert (lisbon.id, hamburg.id, "version") in {(k.source, k.target, k.type) for k in done.links}


def test_an_older_fact_that_arrives_late_never_supersedes() -> None:
    (lisbon,) = fact_units(Plan(engine="x", facts=(lives_in("Lisbon", SECOND, 1),)))
    done = applied(Plan(engine="x", facts=(lives_in("Hamburg", FIRST, 0),)), a_current(lisbon))
    (hamburg,) = done.inserted
    assert (hamburg.visible, hamburg.valid_to) == (False, lisbon.valid_from)
    assert done.archived == []
    assert (lisbon.id, hamburg.id, "version") in {(k.source, k.target, k.type) for k in done.links}


def test_a_fact_said_again_is_no_second_fact() -> None:
    (lisbon,) = fact_units(Plan(engine="x", facts=(lives_in("Lisbon", FIRST, 0),)))
    assert applied(Plan(engine="x", facts=(lives_in("lisbon", SECOND, 1),)), a_current(lisbon)).inserted == []


def test_facts_of_a_relation_with_many_values_stand_beside_each_other() -> None:
    (bees,) = fact_units(Plan(engine="x", facts=(lives_in("bees", FIRST, 0, "likes"),)))
    done = applied(Plan(engine="x", facts=(lives_in("rain", SECOND, 1, "likes"),)), a_current(bees))
    assert [unit.visible for unit in done.inserted] == [True]
    assert done.archived == []


def test_only_the_same_subject_and_relation_is_ended() -> None:
    (works,) = fact_units(Plan(engine="x", facts=(lives_in("Tinta", FIRST, 0, "works_at"),)))
    done = applied(Plan(engine="x", facts=(lives_in("Lisbon", SECOND, 1),)), a_current(works))
    assert done.archived == []


def test_within_one_plan_the_newest_of_a_single_valued_relation_stays_visible() -> None:
    drafts = (lives_in("Rome", FIRST, 0), lives_in("Oslo", SECOND, 1), lives_in("Bonn", THIRD, 2))
    done = applied(Plan(engine="x", facts=drafts), a_current())
    assert [(unit.object, unit.visible) for unit in done.inserted] == [
        ("Rome", False), ("Oslo", False), ("Bonn", True),
    ]  # fmt: skip
    archived = {unit.id for unit in done.inserted if not unit.visible}
    assert archived <= {link.target for link in done.links if link.type == "version"}
