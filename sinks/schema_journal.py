"""The journal's tables: commands, their history, the model's replies, and what each tenant spent."""

from sqlalchemy import BigInteger, Column, Double, Index, Integer, LargeBinary, Table, Text, text, true

from lamina.sinks.column_types import Ascending, Id, Json, Moment, NamespaceKey, Verbatim
from lamina.sinks.schema import metadata, one_of, partial

commands = Table(
    "commands",
    metadata,
    Column("ordinal", Ascending, primary_key=True, autoincrement=True),  # order of issue
    Column("id", Id, nullable=False),
    Column("namespace", NamespaceKey, nullable=False),
    Column("state", Text, nullable=False),
    Column("payload", LargeBinary, nullable=False),  # the encoded Command
    Column("plan", Json),
    Column("edits", Json),  # NULL until it has ended
    Column("note", Verbatim),
    Column("attempts", Integer, nullable=False, server_default=text("0")),  # ended by unusable replies
    Column("not_before", Moment),  # of a waiting one
    Column("issued_at", Moment, nullable=False),
    Column("finished_at", Moment),
)
"""The journal: issued → planned → (waiting →) applied, no_op or skipped."""

IS_OPEN = one_of(commands.c.state, "issued", "planned", "waiting")
# `IS true` hides the equality from SQLite, for which it would walk through all that wait.
IS_PUT_OFF = one_of(commands.c.state, "waiting").is_(true())

Index("ux_commands_id", commands.c.id, unique=True)
Index("ix_commands_state", commands.c.state, commands.c.ordinal, commands.c.namespace)
Index("ix_commands_tally", commands.c.namespace, commands.c.state, commands.c.ordinal)
partial("ix_commands_open", commands.c.namespace, commands.c.ordinal, where=IS_OPEN)
partial("ix_commands_put_off", commands.c.not_before, where=IS_PUT_OFF)

transitions = Table(
    "transitions",
    metadata,
    Column("ordinal", Ascending, primary_key=True, autoincrement=True),
    Column("command", Id, nullable=False),
    Column("at", Moment, nullable=False),
    Column("state", Text, nullable=False),
    Column("note", Verbatim),
)
"""One row per change of a command's state, or of the note that says why it waits."""

Index("ix_transitions_command", transitions.c.command, transitions.c.ordinal)

replies = Table(
    "replies",
    metadata,
    Column("command", Id, primary_key=True),
    Column("purpose", Text, primary_key=True),
    Column("ordinal", BigInteger, primary_key=True, autoincrement=False),
    Column("digest", Text, primary_key=True),  # of the prompt
    Column("namespace", NamespaceKey, nullable=False),
    Column("version", Integer, nullable=False),  # of the prompt
    Column("model", Text, nullable=False),  # that was asked
    Column("asked", Integer, nullable=False),  # times it was begun
    Column("asked_at", Moment, nullable=False),  # the last time
    Column("estimate", BigInteger, nullable=False),
    Column("held_in", Moment),  # start of the window whose budget holds the estimate; NULL without a budget
    Column("ended_at", Moment),  # NULL until the reply is stored; so are the columns below
    Column("text", Verbatim),
    Column("answered_by", Text),  # the model that the reply names
    Column("tokens_in", BigInteger),
    Column("tokens_out", BigInteger),
    Column("attempts", Integer),
    Column("seconds", Double),
    Column("fault", Verbatim),
)
"""Calls to the model, each at its place in the journal: what was paid once is not paid again."""

Index("ix_replies_namespace", replies.c.namespace)

spending = Table(
    "spending",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("window_start", Moment, primary_key=True),
    Column("tokens", BigInteger, nullable=False),  # paid, and held for calls that have not ended
)
"""Tokens of each tenant by window, where a budget is set."""
