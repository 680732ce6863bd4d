"""Count clicks by impression, visitor and address; keep the key that signs impressions."""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Feedback that was stored before counts as it did."""
    for name, length in (("impression", 64), ("visitor", 64), ("address", 32)):
        op.add_column("sparserank_feedback", sa.Column(name, sa.String(length), nullable=False, server_default=""))
    op.add_column("sparserank_feedback", sa.Column("counted", sa.Boolean, nullable=False, server_default=sa.true()))
    table = op.create_table(
        "sparserank_settings",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.bulk_insert(table, [{"name": "impression_key", "value": secrets.token_hex(32)}])
