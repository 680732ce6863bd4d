"""Feedback is found by its query however that is spelled: case and blanks make no difference to its words."""

from hashlib import sha256

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """The digest of each query without what makes no difference."""
    table = sa.table("sparserank_feedback", sa.column("query", sa.Text), sa.column("query_digest", sa.String))
    connection = op.get_bind()
    known = sa.select(table.c.query, table.c.query_digest).distinct()
    for query, before in connection.execute(known).all():
        digest = sha256(" ".join(query.casefold().split()).encode()).hexdigest()[:32]
        if digest != before:
            # by the digest too, which has an index: a table of many queries is not read once for each
            found = (table.c.query_digest == before) & (table.c.query == query)
            connection.execute(table.update().where(found).values(query_digest=digest))
