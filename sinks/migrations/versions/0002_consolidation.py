"""Consolidation: the journal's history, replies and spending, the topology buffer, spans and summaries."""

import orjson
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Types are spelled out here and not shared with the schema: this file stays as it is when that moves on.
NAMESPACE = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ASCENDING = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

_NEW_KINDS = {"topology", "undo"}
"""Kinds of command that the version before cannot read."""


def upgrade() -> None:
    """Add columns and tables; commands that are there get the history that their row still tells."""
    op.add_column("namespaces", _count("sessions_since"))
    op.add_column("namespaces", sa.Column("similarities", sa.Text()))
    op.add_column("units", sa.Column("summary", sa.Text()))
    op.add_column("units", sa.Column("spans", sa.Text(), nullable=False, server_default=sa.text("'[]'")))
    op.add_column("threads", sa.Column("closed", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("commands", sa.Column("edits", sa.Text()))
    op.add_column("commands", sa.Column("note", sa.Text()))
    op.add_column("commands", _count("attempts", sa.Integer()))
    op.add_column("commands", sa.Column("not_before", sa.BigInteger()))
    for index in ("ix_commands_state", "ix_commands_tally", "ix_commands_open"):
        op.drop_index(index, "commands")
    op.create_index("ix_commands_state", "commands", ["state", "ordinal", "namespace"])
    op.create_index("ix_commands_tally", "commands", ["namespace", "state", "ordinal"])
    _partial(
        "ix_commands_open", "commands", ["namespace", "ordinal"], "state IN ('issued', 'planned', 'waiting')"
    )
    _partial(
        "ix_commands_put_off",
        "commands",
        ["not_before"],
        "(state IN ('waiting')) IS true",
        sqlite="(state IN ('waiting')) IS 1",
    )
    _create_buffer()
    _create_history()
    _create_replies()


def downgrade() -> None:
    """Take them away; what waits is planned again, and open commands of the new kinds are skipped."""
    for table in ("spending", "replies", "transitions", "buffer"):
        op.drop_table(table)
    for index in ("ix_commands_put_off", "ix_commands_open", "ix_commands_tally", "ix_commands_state"):
        op.drop_index(index, "commands")
    op.execute("UPDATE commands SET state = 'planned' WHERE state = 'waiting'")
    _skip_new_kinds()
    for table, columns in {
        "commands": ("edits", "note", "attempts", "not_before"),
        "threads": ("closed",),
        "units": ("summary", "spans"),
        "namespaces": ("sessions_since", "similarities"),
    }.items():
        for column in columns:
            op.drop_column(table, column)
    op.create_index("ix_commands_state", "commands", ["state", "ordinal"])
    op.create_index("ix_commands_tally", "commands", ["namespace", "state"])
    _partial("ix_commands_open", "commands", ["namespace", "ordinal"], "state IN ('issued', 'planned')")


def _create_buffer() -> None:
    op.create_table(
        "buffer",
        sa.Column("ordinal", ASCENDING, primary_key=True, autoincrement=True),
        sa.Column("unit", sa.Uuid(), nullable=False),
        sa.Column("namespace", NAMESPACE, nullable=False),
        sa.Column("pushed_at", sa.BigInteger(), nullable=False),
        sa.Column("command", sa.Uuid()),
    )
    op.create_index("ux_buffer_unit", "buffer", ["unit"], unique=True)
    _partial("ix_buffer_waiting", "buffer", ["namespace", "ordinal", "pushed_at"], "command IS NULL")


def _create_history() -> None:
    op.create_table(
        "transitions",
        sa.Column("ordinal", ASCENDING, primary_key=True, autoincrement=True),
        sa.Column("command", sa.Uuid(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("note", sa.Text()),
    )
    op.execute(
        "INSERT INTO transitions (command, at, state)"
        " SELECT id, issued_at, 'issued' FROM commands ORDER BY ordinal"
    )
    op.execute(
        "INSERT INTO transitions (command, at, state)"
        " SELECT id, finished_at, state FROM commands WHERE finished_at IS NOT NULL ORDER BY ordinal"
    )
    op.create_index("ix_transitions_command", "transitions", ["command", "ordinal"])


def _create_replies() -> None:
    op.create_table(
        "replies",
        sa.Column("command", sa.Uuid(), primary_key=True),
        sa.Column("purpose", sa.Text(), primary_key=True),
        sa.Column("ordinal", sa.BigInteger(), primary_key=True, autoincrement=False),
        sa.Column("digest", sa.Text(), primary_key=True),
        sa.Column("namespace", NAMESPACE, nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("asked", sa.Integer(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("estimate", sa.BigInteger(), nullable=False),
        sa.Column("held_in", sa.BigInteger()),
        sa.Column("ended_at", sa.BigInteger()),
        sa.Column("text", sa.Text()),
        sa.Column("answered_by", sa.Text()),
        sa.Column("tokens_in", sa.BigInteger()),
        sa.Column("tokens_out", sa.BigInteger()),
        sa.Column("attempts", sa.Integer()),
        sa.Column("seconds", sa.Double()),
        sa.Column("fault", sa.Text()),
    )
    op.create_index("ix_replies_namespace", "replies", ["namespace"])
    op.create_table(
        "spending",
        sa.Column("tenant", sa.Text(), primary_key=True),
        sa.Column("window_start", sa.BigInteger(), primary_key=True),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
    )


def _skip_new_kinds() -> None:
    connection = op.get_bind()
    commands = sa.table(
        "commands", sa.column("ordinal"), sa.column("state"), sa.column("payload", sa.LargeBinary())
    )
    is_open = commands.c.state.in_(["issued", "planned"])
    rows = connection.execute(sa.select(commands.c.ordinal, commands.c.payload).where(is_open)).all()
    unknown = [row.ordinal for row in rows if orjson.loads(row.payload)["kind"] in _NEW_KINDS]
    for ordinal in unknown:
        connection.execute(sa.update(commands).where(commands.c.ordinal == ordinal).values(state="skipped"))


def _count(name: str, kind: sa.types.TypeEngine[int] | None = None) -> sa.Column[int]:
    return sa.Column(name, kind or sa.BigInteger(), nullable=False, server_default=sa.text("0"))


def _partial(name: str, table: str, columns: list[str], where: str, *, sqlite: str = "") -> None:
    op.create_index(
        name, table, columns, sqlite_where=sa.text(sqlite or where), postgresql_where=sa.text(where)
    )
