"""Marks of what was accepted: by them a chat's history is known again. They are dropped when they are old."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "marks",
        sa.Column("id", sa.Uuid(), primary_key=True),
        sa.Column("namespace", sa.Text().with_variant(sa.Text(collation="C"), "postgresql"), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
    )
    op.create_index("ix_marks_at", "marks", ["at"])


def downgrade() -> None:
    """Take it away; histories are known again by the ids of their messages."""
    op.drop_table("marks")
