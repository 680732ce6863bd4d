"""Find feedback by its query regardless of case and spaces."""

from hashlib import sha256

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Compute the digests of the normalized queries."""
    table = sa.table("sparserank_feedback", sa.column("query", sa.Text), sa.column("query_digest", sa.String))
    connection = op.get_bind()
    known = sa.select(table.c.query, table.c.query_digest).distinct()
    for query, before in connection.execute(known).all():
        digest = sha256(" ".join(query.casefold().split()).encode()).hexdigest()[:32]
        if digest != before:
            # the indexed digest avoids one table scan per query
            same_query = (table.c.query_digest == before) & (table.c.query == query)
            connection.execute(table.update().where(same_query).values(query_digest=digest))
