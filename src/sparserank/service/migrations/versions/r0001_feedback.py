"""Create the feedback table."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """`number` is the order of storage; `received` is UTC."""
    op.create_table(
        "sparserank_feedback",
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("id", sa.String(64), nullable=False, unique=True),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("query", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("shown", sa.Text, nullable=False),
        sa.Column("grade", sa.Float(53), nullable=False),
        sa.Column("received", sa.DateTime, nullable=False),
    )
