"""The database: migrations, durability settings, and what is refused by name."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from hashlib import sha256

import pytest
import sqlalchemy as sa

from sparserank.errors import ConfigError, DataError
from sparserank.service.database import REVISION, Database, feedback_table, hide_password
from sparserank.service.store import FeedbackStore

from .conftest import new_postgres_database, python

ROW = (
    "INSERT INTO sparserank_feedback (number, id, kind, query, document, shown, grade, received) "
    "VALUES ({}, 'id-{}', 'click', 'query {}', 'd', '[\"a\", \"d\"]', 1.5, '2026-01-02 03:04:05')"
)


def test_a_database_of_the_first_release_is_taken_to_the_last_with_all_it_holds(database):
    first = Database(database, revision="0001")
    with first.writing() as connection:
        for number in range(1, 51):
            connection.execute(sa.text(ROW.format(number, number, number % 3)))
    with first.reading() as connection:
        columns = {column["name"] for column in sa.inspect(connection).get_columns("sparserank_feedback")}
    assert "query_digest" not in columns
    first.close()

    store = FeedbackStore(database)
    assert [one.number for one in store.since(0)] == list(range(1, 51))
    assert [one.number for one in store.of_queries(["query 2"])] == list(range(2, 51, 3))
    assert store.since(0)[0].received.isoformat() == "2026-01-02T03:04:05+00:00"
    assert store.since(0)[0].shown == ("a", "d")
    with store._database.reading() as connection:
        indexes = {index["name"] for index in sa.inspect(connection).get_indexes("sparserank_feedback")}
    assert "sparserank_feedback_by_query" in indexes
    store.close()


def test_what_was_stored_before_is_found_however_its_query_was_spelled(database):
    """Before step 3 the digest was that of a query as it was spelled."""
    before, spelled = Database(database, revision="0002"), ("Red  CAR", "red car", " red\tcar", "red cars")
    with before.writing() as connection:
        for number, query in enumerate(spelled, start=1):
            row = {
                "number": number, "id": str(number), "kind": "click", "query": query, "document": "d", "shown": "[]",
                "grade": 1.0, "query_digest": sha256(query.encode()).hexdigest()[:32],
                "received": datetime(2026, 1, 2, tzinfo=UTC).replace(tzinfo=None),
            }  # fmt: skip
            connection.execute(feedback_table.insert(), row)
    before.close()
    store = FeedbackStore(database)
    assert [one.query for one in store.of_queries(["RED car"])] == list(spelled[:3])
    store.close()


def test_the_last_migration_is_the_last(database):
    from alembic.script import ScriptDirectory

    script = ScriptDirectory("src/sparserank/service/migrations")
    assert script.get_current_head() == REVISION
    opened = Database(database)
    assert opened._revision() == REVISION
    opened.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(database, monkeypatch):
    Database(database, revision="0001").close()
    from alembic.operations import Operations

    def fail(*_, **__):
        raise RuntimeError("the power went")

    with monkeypatch.context() as broken:
        broken.setattr(Operations, "create_index", fail)
        with pytest.raises(RuntimeError, match="the power went"):
            Database(database)
    still = Database(database, revision="0001")
    with still.reading() as connection:
        columns = {column["name"] for column in sa.inspect(connection).get_columns("sparserank_feedback")}
    assert "query_digest" not in columns
    still.close()
    Database(database).close()


def test_several_processes_that_open_a_new_database_at_once_all_find_it_ready(database):
    code = (
        "import sys; from sparserank.service.store import FeedbackStore as F; s = F(sys.argv[1]); print(s.last()); "
        "s.close()"
    )
    openers = [python(code, database) for _ in range(3)]
    assert [opener.communicate(timeout=120) for opener in openers] == [("0\n", "")] * 3


def test_sqlite_keeps_what_it_acknowledged_through_a_power_cut(tmp_path):
    opened = Database(f"sqlite:///{tmp_path}/f.sqlite")
    with opened.reading() as connection:
        assert connection.scalar(sa.text("PRAGMA journal_mode")) == "wal"
        assert connection.scalar(sa.text("PRAGMA synchronous")) == 2, "FULL"
    opened.close()


def test_postgresql_keeps_what_it_acknowledged_even_where_the_server_would_not(postgres):
    url = new_postgres_database(postgres)
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    name = sa.make_url(url).database
    with admin.connect() as connection:
        connection.execute(sa.text(f"ALTER DATABASE {name} SET synchronous_commit = off"))
    admin.dispose()
    opened = Database(url)
    with opened.writing() as connection:
        assert connection.scalar(sa.text("SHOW synchronous_commit")) == "on"
    opened.close()


def damaged(path):
    Database(f"sqlite:///{path}").close()
    store = FeedbackStore(f"sqlite:///{path}")
    with store._database.writing() as connection:
        for number in range(1, 501):
            text = (
                ROW.format(number, number, number).replace("grade,", "grade, query_digest,").replace("1.5,", "1.5, '',")
            )
            connection.execute(sa.text(text))
    store.close()
    content = bytearray(path.read_bytes())
    content[8192:12288] = b"\x5a" * 4096
    path.write_bytes(content)


def foreign(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE accounts (name TEXT)")
    connection.close()


def newer(path):
    Database(f"sqlite:///{path}").close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE sparserank_migrations SET version_num = '9999'")
    connection.close()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda path: path.write_text("dear diary, " * 500), "damaged, or not a database"),
        (damaged, "damaged"),
        (foreign, "a database of another program; choose another file with --database"),
        (newer, "written by a newer release of SparseRank"),
        (lambda path: path.mkdir(), "is a folder"),
    ],
    ids=["text", "damaged", "foreign", "newer", "folder"],
)
def test_a_file_that_is_not_our_database_is_rejected_by_name_and_left_alone(tmp_path, make, told):
    path = tmp_path / "f.sqlite"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(DataError, match=told) as refused:
        FeedbackStore(f"sqlite:///{path}")
    assert str(path) in str(refused.value)
    assert before is None or path.read_bytes() == before


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("feedback.sqlite", "must be a URL"),
        ("mysql://localhost/x", "must begin with sqlite:/// or postgresql"),
        ("sqlite://", "must name a file"),
        ("sqlite:///:memory:", "must name a file"),
        ("sqlite:///file:x?mode=memory&uri=true", "must name a file"),
    ],
)
def test_a_url_that_cannot_keep_anything_is_rejected(url, told):
    with pytest.raises(ConfigError, match=told):
        Database(url)


def test_a_server_that_does_not_answer_is_named_without_its_password(tmp_path):
    pytest.importorskip("psycopg", reason="the PostgreSQL driver is an extra: pip install 'sparserank[postgres]'")
    with pytest.raises(DataError, match="postgresql") as refused:
        Database(f"postgresql://me:secret@/feedback?host={tmp_path}")
    assert "secret" not in str(refused.value)


def test_a_folder_that_is_not_there_is_rejected_by_name(tmp_path):
    with pytest.raises(DataError, match="nowhere"):
        Database(f"sqlite:///{tmp_path}/nowhere/f.sqlite")


def test_a_password_is_not_shown():
    assert hide_password("postgresql+psycopg://me:secret@host/db") == "postgresql+psycopg://me:***@host/db"
