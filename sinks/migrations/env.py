"""Alembic's entry: it runs this file itself, with the connection that `lamina.sinks.migrate` gave it."""

from alembic import context

from lamina.sinks.schema_journal import commands

# The transaction is the caller's: it holds the lock that keeps two processes from migrating at once.
context.configure(connection=context.config.attributes["connection"], target_metadata=commands.metadata)
with context.begin_transaction():
    context.run_migrations()
