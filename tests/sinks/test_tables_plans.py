"""Hot reads go by an index: none walks through a table that grows with the memory."""

from uuid import uuid4

import pytest
from sqlalchemy import event

from lamina.sinks.schema import metadata
from lamina.sinks.tables import open_tables
from lamina.streams.buffer import Buffered
from lamina.streams.journal import Budget

from .tables_kit import (
    ANN,
    BOB,
    NOW,
    a_call,
    a_command,
    a_completion,
    a_fact,
    a_thread,
    a_turn,
    an_exchange,
    plan_of,
)


@pytest.fixture
async def seen(tmp_path):
    """Open tables on SQLite, whose planner decides without statistics, and the statements they run."""
    tables = await open_tables(f"sqlite+aiosqlite:///{tmp_path / 'tables.db'}")
    statements: list[tuple[str, object]] = []

    def note(_connection, _cursor, statement, parameters, _context, many):
        if not many and not statement.startswith(("PRAGMA", "BEGIN")):
            statements.append((statement, parameters))

    for engine in (tables._database.writer, tables._database._reader):
        event.listen(engine.sync_engine, "before_cursor_execute", note)
    yield tables, statements
    await tables.close()


async def test_hot_reads_use_an_index(seen):
    tables, statements = seen
    turn, command = a_turn(), a_command()
    async with tables.transaction([ANN]) as transaction:
        await transaction.insert_units([turn, a_fact("a", "b")])
        await transaction.save_recurrence(ANN, [an_exchange()], [a_thread()])
        await transaction.issue_commands([command])
        await transaction.units([turn.id])
        await transaction.last_turn(ANN)
        await transaction.session_length(ANN, "s1")
        await transaction.session_slice(ANN, "s1", 0, 3)
        await transaction.recurrence(ANN)
        await transaction.observed([uuid4()])
        await transaction.visible_facts(ANN, [("a", "b")])
        await transaction.dirty(ANN, 10)
        await transaction.exchanges([uuid4()])
        await transaction.threads_of(ANN, [uuid4()])
        await transaction.push_buffer(ANN, [Buffered(turn.id, NOW)])
        await transaction.buffer(ANN)
        await transaction.claim_buffer([uuid4()], command.id)
        await transaction.count_sessions(ANN, 1)
        await transaction.entry(command.id)
        await transaction.entries_after(ANN, 0)
        await transaction.record_edits(command.id, [])
    await tables.units(ANN, [turn.id])
    await tables.turns_at(ANN, [("s1", 0), ("s2", 1)])
    await tables.links_of(ANN, turn.id)
    await tables.turns_before(ANN, None, 10)
    await tables.turns_before(ANN, 7, 10, said_to=NOW)
    await tables.derived_from(ANN, [turn.id])
    await tables.unfinished_turns(None, 10)
    await tables.unfinished_turns(("a", 1), 10)
    await tables.admit_commands([command])
    claim = await tables.claim("w", NOW, 60)
    await tables.renew(claim, NOW, 60)
    call = a_call(command)
    await tables.begin_call(call, Budget(1_000, 3_600), NOW)
    await tables.end_call(call, a_completion(), NOW)
    await tables.spent("acme", Budget(1_000, 3_600), NOW)
    await tables.costs("acme/")
    await tables.costs("acme/", [command.id])
    await tables.put_off(claim, NOW, "why", NOW)
    await tables.claim("w", NOW, 60)
    await tables.journal()
    await tables.journal("acme/", states=["waiting"], before=7)
    await tables.journal(ANN)
    await tables.journal_entry(command.id)
    await tables.links_from(ANN, [turn.id], ["version"])
    await tables.links_to(ANN, [turn.id])
    await tables.linking_to(ANN, [turn.id], "evidence", ended=True)
    await tables.graph(ANN)
    await tables.visible_units(ANN, ["episode", "fact"])
    await tables.namespaces("acme/", BOB)
    await tables.idle_buffers(NOW, 10)
    await tables.reissue_commands()
    await tables.idle_namespaces(NOW, NOW, 10)
    await tables.dirty_namespaces(10)
    await tables.outbox(10)
    await tables.published([1])
    await tables.marked([uuid4()])
    await tables.requests([uuid4()])
    await tables.drop_marks(NOW, 10)
    await tables.fail_turn(ANN, turn.id, "x")
    await tables.tally()
    await tables.tally("acme/")

    plans: list[str] = []
    async with tables._database.writing() as sql:
        for statement, parameters in list(statements):
            plans += await plan_of(sql, statement, parameters)
    walks = {step for step in plans if step.startswith("SCAN") and " USING " not in step}
    # The outbox is walked in the order of its ids: it holds what waits, not what was. The newest page of the
    # journal is walked from its end. The other two are what was asked for, and one row per quiet thread.
    assert not [step for step in plans if step == "SEARCH units USING INDEX ix_units_tally (kind=?)"]
    assert walks == {"SCAN outbox", "SCAN commands", "SCAN asked VIRTUAL TABLE INDEX 1:", "SCAN anon_1"}
    assert not [step for step in plans if "AUTOMATIC" in step]
    # An index that no read uses costs every write for nothing. (Unique ones are there to refuse.)
    indexes = [index for table in metadata.tables.values() for index in table.indexes]
    declared = {str(index.name) for index in indexes if not index.unique}
    assert {name for name in declared if not any(name in step for step in plans)} == set()
