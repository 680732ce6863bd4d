"""Find feedback by its query, by a digest: a query may be longer than a database index allows."""

from hashlib import sha256

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add a digest column with an index and fill it."""
    op.add_column("sparserank_feedback", sa.Column("query_digest", sa.String(32), nullable=False, server_default=""))
    table = sa.table("sparserank_feedback", sa.column("query", sa.Text), sa.column("query_digest", sa.String))
    connection = op.get_bind()
    for query in connection.scalars(sa.select(table.c.query).distinct()).all():
        digest = sha256(query.encode()).hexdigest()[:32]
        connection.execute(table.update().where(table.c.query == query).values(query_digest=digest))
    op.create_index("sparserank_feedback_by_query", "sparserank_feedback", ["query_digest"])
