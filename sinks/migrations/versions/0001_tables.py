"""The first tables: units, links, recurrence, the journal and the outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Types are spelled out here and not shared with the schema: this file stays as it is when that moves on.
NAMESPACE = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
ASCENDING = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "namespaces",
        sa.Column("namespace", NAMESPACE, primary_key=True),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("recurrence_version", sa.BigInteger(), nullable=False),
        sa.Column("lane_owner", sa.Text()),
        sa.Column("lane_until", sa.BigInteger()),
        sa.Column("lane_fence", sa.BigInteger(), nullable=False),
    )
    _create_units()
    _create_recurrence()
    _create_journal()
    op.create_table(
        "requests",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("namespace", NAMESPACE, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("turns", sa.Text(), nullable=False),
        sa.Column("accepted_at", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "faults",
        sa.Column("source", sa.Text(), primary_key=True),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
    )


def downgrade() -> None:
    """Drop the tables."""
    for table in (
        "faults",
        "requests",
        "outbox",
        "commands",
        "threads",
        "recurrence",
        "links",
        "evidence",
        "units",
        "namespaces",
    ):
        op.drop_table(table)


def _create_units() -> None:
    op.create_table(
        "units",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("namespace", NAMESPACE, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=False),
        sa.Column("session_key", sa.BigInteger(), nullable=False),
        sa.Column("ordinal", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("speaker", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("keywords", sa.Text(), nullable=False),
        sa.Column("entities", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text()),
        sa.Column("salience", sa.Text()),
        sa.Column("subject", sa.Text()),
        sa.Column("relation", sa.Text()),
        sa.Column("object", sa.Text()),
        sa.Column("about_key", sa.BigInteger()),
        sa.Column("evidence", sa.Text(), nullable=False),
        sa.Column("said_at", sa.BigInteger(), nullable=False),
        sa.Column("time_source", sa.Text(), nullable=False),
        sa.Column("occurred_from", sa.BigInteger()),
        sa.Column("occurred_to", sa.BigInteger()),
        sa.Column("valid_from", sa.BigInteger()),
        sa.Column("valid_to", sa.BigInteger()),
        sa.Column("recorded_at", sa.BigInteger(), nullable=False),
        sa.Column("visible", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("engine", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("score", sa.Double()),
        sa.Column("reason", sa.Text()),
        sa.Column("metadata", sa.Text(), nullable=False),
        sa.Column("dirty", sa.Boolean(), nullable=False),
    )
    op.create_index("ix_units_position", "units", ["namespace", "position"])
    op.create_index("ix_units_tally", "units", ["kind", "status", "namespace", "visible"])
    _partial("ix_units_place", "units", ["session_key", "ordinal"], "kind = 'turn'")
    _partial(
        "ix_units_unfinished",
        "units",
        ["namespace", "position"],
        "(kind = 'turn' AND status IN ('accepted', 'admitted')) IS true",
        sqlite="(kind = 'turn' AND status IN ('accepted', 'admitted')) IS 1",
    )
    _partial("ix_units_dirty", "units", ["namespace", "position"], "dirty IS true", sqlite="dirty IS 1")
    _partial(
        "ix_units_about",
        "units",
        ["about_key"],
        "kind = 'fact' AND visible",
        sqlite="kind = 'fact' AND visible = 1",
    )
    op.create_table(
        "evidence",
        sa.Column("turn", sa.Uuid(), primary_key=True),
        sa.Column("unit", sa.Uuid(), primary_key=True),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "links",
        sa.Column("source", sa.Uuid(), primary_key=True),
        sa.Column("target", sa.Uuid(), primary_key=True),
        sa.Column("type", sa.Text(), primary_key=True),
        sa.Column("namespace", NAMESPACE, nullable=False),
        sa.Column("weight", sa.Double(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_links_target", "links", ["target"])


def _create_recurrence() -> None:
    op.create_table(
        "recurrence",
        sa.Column("ordinal", ASCENDING, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("namespace", NAMESPACE, nullable=False),
        sa.Column("turns", sa.Text(), nullable=False),
        sa.Column("said_at", sa.BigInteger(), nullable=False),
        sa.Column("observed_at", sa.BigInteger(), nullable=False),
        sa.Column("vector", sa.LargeBinary()),
        sa.Column("salience", sa.Text()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("thread", sa.Uuid()),
        sa.Column("command", sa.Uuid()),
    )
    op.create_index("ux_recurrence_id", "recurrence", ["id"], unique=True)
    _partial(
        "ix_recurrence_live", "recurrence", ["namespace", "ordinal"], "state IN ('unconsolidated', 'pending')"
    )
    _partial(
        "ix_recurrence_pending", "recurrence", ["namespace", "thread", "observed_at"], "state IN ('pending')"
    )
    op.create_table(
        "threads",
        sa.Column("ordinal", ASCENDING, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("namespace", NAMESPACE, nullable=False),
        sa.Column("total", sa.LargeBinary(), nullable=False),
        sa.Column("members", sa.BigInteger(), nullable=False),
        sa.Column("promoted", sa.Uuid()),
        sa.Column("heads", sa.Text(), nullable=False),
    )
    op.create_index("ux_threads_id", "threads", ["id"], unique=True)
    op.create_index("ix_threads_namespace", "threads", ["namespace", "ordinal"])


def _create_journal() -> None:
    op.create_table(
        "commands",
        sa.Column("ordinal", ASCENDING, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("namespace", NAMESPACE, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("plan", sa.Text()),
        sa.Column("issued_at", sa.BigInteger(), nullable=False),
        sa.Column("finished_at", sa.BigInteger()),
    )
    op.create_index("ux_commands_id", "commands", ["id"], unique=True)
    op.create_index("ix_commands_state", "commands", ["state", "ordinal"])
    op.create_index("ix_commands_tally", "commands", ["namespace", "state"])
    _partial("ix_commands_open", "commands", ["namespace", "ordinal"], "state IN ('issued', 'planned')")
    op.create_table(
        "outbox",
        sa.Column("id", ASCENDING, primary_key=True, autoincrement=True),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("key", NAMESPACE),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.Column("headers", sa.Text(), nullable=False),
        sa.Column("command", sa.Uuid()),
        sqlite_autoincrement=True,
    )
    _partial("ix_outbox_command", "outbox", ["command"], "command IS NOT NULL")


def _partial(name: str, table: str, columns: list[str], where: str, *, sqlite: str = "") -> None:
    op.create_index(
        name, table, columns, sqlite_where=sa.text(sqlite or where), postgresql_where=sa.text(where)
    )
