"""A plan becomes rows: versions, links, facts that end each other, and nothing said is touched."""

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid5

import numpy as np

from lamina.streams.consolidation import Current, apply, edit_of
from lamina.streams.namespace import namespace_of
from lamina.streams.records import Command, EpisodeDraft, FactDraft, Link, Plan, Resolution, Unit
from lamina.streams.recurrence import Exchange, Thread

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


def a_current(*facts: Unit, heads: tuple[Unit, ...] = (), command: str = "one", **more) -> Current:
    thread = Thread(uuid5(ROOT, "thread"), np.ones(2, np.float32), 2, None, tuple(head.id for head in heads))
    return Current(a_command(command), thread, heads, facts, TURNS, **more)


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
    assert [thread.heads for thread in done.threads] == [(episode.id,)]
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
    assert (done.inserted, done.archived, done.threads) == ([], [], [])
    assert edit_of(done, a_current(heads=(old,))) is None


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


def towards(degrees: float) -> np.ndarray:
    """A unit vector; the thread's centroid lies at 45 degrees."""
    return np.asarray([np.cos(np.radians(degrees)), np.sin(np.radians(degrees))], np.float32)


def an_exchange(*turns: UUID, command: str | None = "one", vector: np.ndarray | None = None) -> Exchange:
    state = "pending" if command is None else "claimed"
    claimed_by = None if command is None else uuid5(ROOT, command)
    thread = uuid5(ROOT, "thread")
    return Exchange(turns[-1], turns, START, START, vector, None, state, thread, claimed_by)


TWO = Plan(engine="x", episodes=(an_episode("walks", FIRST, SECOND), an_episode("bees", THIRD)))


def test_of_several_episodes_the_nearest_inherits_the_thread_and_the_others_open_their_own() -> None:
    exchanges = (
        an_exchange(FIRST),
        an_exchange(SECOND),
        an_exchange(THIRD),
        an_exchange(FIRST, command="no"),
    )
    current = a_current(vectors=(towards(0), towards(40)), exchanges=exchanges)
    done = applied(TWO, current)
    walks, bees = done.inserted
    heir, other = done.threads
    assert (heir.id, heir.heads, heir.members) == (current.thread.id, (bees.id,), current.thread.members)
    assert (other.heads, other.members, other.promoted) == ((walks.id,), 2, current.command.id)
    assert np.allclose(other.total, 2 * towards(0))
    assert other.id not in {current.thread.id, None}
    assert [thread.id for thread in applied(TWO, current).threads] == [heir.id, other.id]


def test_a_merge_into_several_links_each_to_every_ancestor_and_archives_the_head_once() -> None:
    (old,) = applied(Plan(engine="x", episodes=(an_episode("walks", FIRST),)), a_current()).inserted
    current = a_current(heads=(old,), command="two", vectors=(towards(45), towards(0)))
    done = applied(TWO, current)
    links = {(link.source, link.target) for link in done.links if link.type == "version"}
    assert links == {(unit.id, old.id) for unit in done.inserted}
    assert [unit.id for unit in done.archived] == [old.id]


def test_a_long_chain_of_versions_stays_one_hop_deep() -> None:
    heads: tuple[Unit, ...] = ()
    versions: list[Link] = []
    for number in range(12):
        plan = Plan(engine="x", episodes=(an_episode(f"walk {number}", FIRST),))
        current = a_current(heads=heads, command=str(number), versions=tuple(versions))
        done = applied(plan, current)
        versions += [link for link in done.links if link.type == "version"]
        heads = tuple(done.inserted)
    assert len({link.target for link in versions if link.source == heads[0].id}) == 11


def test_no_episode_closes_the_thread_and_releases_what_it_took() -> None:
    claimed, waiting = an_exchange(FIRST, SECOND), an_exchange(THIRD, command=None, vector=towards(10))
    current = a_current(exchanges=(claimed, waiting), embedded={claimed.id: towards(20)})
    done = applied(Plan(engine="x", note="small talk"), current)
    (thread,) = done.threads
    assert (thread.id, thread.closed, thread.heads) == (current.thread.id, True, ())
    assert [(each.id, each.state, each.thread, each.command) for each in done.exchanges] == [
        (claimed.id, "unconsolidated", None, None), (waiting.id, "unconsolidated", None, None),
    ]  # fmt: skip
    assert [each.vector is not None for each in done.exchanges] == [True, True]


def test_a_resolved_turn_gets_its_form_beside_its_words_and_nothing_else_changes() -> None:
    plain = TURNS[SECOND].text
    resolved = (Resolution(turn=FIRST, text="Nora walks (2026-03-01)"), Resolution(turn=SECOND, text=plain))
    done = applied(Plan(engine="x", resolved=resolved), a_current(heads=()))
    (turn,) = done.resolved
    assert turn == TURNS[FIRST].model_copy(update={"summary": "Nora walks (2026-03-01)"})


def test_the_plan_may_say_itself_whether_a_relation_holds_one_value() -> None:
    (hamburg,) = fact_units(Plan(engine="x", facts=(lives_in("Hamburg", FIRST, 0),)))
    both = lives_in("Lisbon", SECOND, 1).model_copy(update={"single": False})
    assert applied(Plan(engine="x", facts=(both,)), a_current(hamburg)).archived == []
    (rain,) = fact_units(Plan(engine="x", facts=(lives_in("rain", FIRST, 0, "mood"),)))
    one = lives_in("sun", SECOND, 1, "mood").model_copy(update={"single": True})
    assert [unit.id for unit in applied(Plan(engine="x", facts=(one,)), a_current(rain)).archived] == [
        rain.id
    ]


def test_the_journal_records_what_was_replaced_as_it_was_and_what_came() -> None:
    (old,) = applied(Plan(engine="x", episodes=(an_episode("walks", FIRST),)), a_current()).inserted
    (hamburg,) = fact_units(Plan(engine="x", facts=(lives_in("Hamburg", FIRST, 0),)))
    plan = Plan(
        engine="x", episodes=(an_episode("more walks", THIRD),), facts=(lives_in("Lisbon", SECOND, 1),)
    )
    current = a_current(hamburg, heads=(old,), command="two")
    done = applied(plan, current)
    edit = edit_of(done, current)
    assert edit is not None
    assert edit.before == (old, hamburg)
    assert edit.created == tuple(unit.id for unit in done.inserted)
    assert edit.added == tuple(done.links)
    assert (edit.targets, edit.heads) == ((old.id,), {current.thread.id: (old.id,)})
