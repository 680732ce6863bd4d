"""Feedback is found by its query: the learner looks at all that was said about a query.

A query may be longer than what a database takes into an index, so it is found by a digest.
"""

from hashlib import sha256

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """A digest of the query, also of those that are there already, and an index on it."""
    op.add_column("sparserank_feedback", sa.Column("query_digest", sa.String(32), nullable=False, server_default=""))
    table = sa.table("sparserank_feedback", sa.column("query", sa.Text), sa.column("query_digest", sa.String))
    connection = op.get_bind()
    for query in connection.scalars(sa.select(table.c.query).distinct()).all():
        digest = sha256(query.encode()).hexdigest()[:32]
        connection.execute(table.update().where(table.c.query == query).values(query_digest=digest))
    op.create_index("sparserank_feedback_by_query", "sparserank_feedback", ["query_digest"])
