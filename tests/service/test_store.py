"""Feedback: stored once, in order, durable when acknowledged, whoever writes beside; in SQLite and in PostgreSQL."""

from __future__ import annotations

import json
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sparserank.errors import DataError
from sparserank.service import database as databases
from sparserank.service import store as stores
from sparserank.service.feedback import Feedback
from sparserank.service.store import Conflict, FeedbackStore, NotStored

from .conftest import python


@pytest.fixture
def store(database):
    opened = FeedbackStore(database)
    yield opened
    opened.close()


def said(number, **other):
    return Feedback(**({"id": f"id-{number}", "kind": "judgment", "query": "red car", "document": "d"} | other))


def without_place(found):
    return [Feedback(one.id, one.kind, one.query, one.document, one.shown, one.grade) for one in found]


def test_a_repeated_id_is_stored_once_and_other_content_under_it_is_rejected(store):
    one = said(1, kind="click", shown=("a", "d"), grade=0.5)
    assert store.add(one) is True
    assert store.add(one) is False
    for other in ({"query": "x"}, {"grade": 0.25}, {"shown": ("d",)}, {"document": "a"}, {"kind": "judgment"}):
        with pytest.raises(Conflict, match="'id-1' is stored with different content"):
            store.add(Feedback(**({**one.__dict__} | other)))
    assert without_place(store.since(0)) == [one]


def test_numbers_count_what_is_stored_from_1_without_gaps(store):
    for number in range(5):
        store.add(said(number))
        store.add(said(number))
    found = store.since(0)
    assert [one.number for one in found] == [1, 2, 3, 4, 5]
    assert [one.id for one in found] == [f"id-{n}" for n in range(5)]
    assert [one.number for one in store.since(3)] == [4, 5]
    assert [one.number for one in store.since(1, limit=2)] == [2, 3]
    assert store.last() == 5
    assert all(one.received is not None and one.received.tzinfo is not None for one in found)


def test_what_was_said_about_some_queries_is_found_however_many_and_long_they_are(store):
    long = "ж" * 1000  # 2,000 bytes, and no index of PostgreSQL's takes a text that cannot be shortened
    queries = [long, long + "!", *(f"query {n}" for n in range(700))]
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(store.add, [said(n, query=query) for n, query in enumerate(queries)]))
    found = store.of_queries([long, *queries[2:], "never asked"])
    assert {one.query for one in found} == {long, *queries[2:]}
    assert [one.number for one in found] == sorted(one.number for one in found)
    assert store.of_queries([]) == []


def test_what_was_said_is_found_however_the_query_was_spelled(store):
    for number, query in enumerate(("Red Car", "red  car", "red cars", "RED CAR ")):
        store.add(said(number, query=query))
    for asked in ("red car", "Red  CAR"):
        assert [one.query for one in store.of_queries([asked])] == ["Red Car", "red  car", "RED CAR "]
    assert len(store.of_queries(["red car", "Red Car"])) == 3


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=50)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=texts, document=texts, shown=st.lists(texts, max_size=4), grade=st.floats(-1, 4))
def test_what_is_stored_is_read_back_as_it_was(store, query, document, shown, grade):
    one = Feedback(f"n{store.last()}", "click", query, document, tuple(shown), grade)
    assert store.add(one)
    assert without_place(store.since(store.last() - 1)) == [one]
    assert without_place(store.of_queries([query]))[-1] == one


def test_those_who_wait_together_share_one_commit(store):
    commits = []
    sa.event.listen(store._database.engine, "commit", commits.append)
    with store._database.writing():  # meanwhile the writer waits with the first, and all others gather
        waiting = [store.submit(said(number)) for number in range(100)]
    assert all(done.result() for done in waiting)
    assert len(commits) <= 3, "the one above, the first, and the rest"
    assert [one.number for one in store.since(0)] == list(range(1, 101))


def test_a_batch_that_holds_an_id_twice_stores_it_once(store):
    with store._database.writing():
        first = store.submit(said(0))
        rest = [store.submit(said(1)), store.submit(said(1)), store.submit(said(1, grade=3.0))]
    assert [done.result().stored for done in (first, *rest[:2])] == [True, True, False]
    with pytest.raises(Conflict):
        rest[2].result()
    assert store.last() == 2


WRITER = """
import sys
from sparserank.service.store import FeedbackStore
from sparserank.service.feedback import Feedback
store = FeedbackStore(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[2])):
    stored = store.add(Feedback(f"id-{number}", "judgment", "q", "d"))
    print(number, int(stored), flush=True)
store.close()
"""


def test_several_processes_store_every_id_once(database):
    writers = [python(WRITER, database, "100", stdin=-1) for _ in range(3)]
    for writer in writers:
        assert writer.stdout.readline() == "ready\n", writer.stderr.read()
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    outputs = [writer.communicate(timeout=120) for writer in writers]
    assert [error for _, error in outputs] == ["", "", ""]
    stored = [line.split()[0] for out, _ in outputs for line in out.splitlines() if line.endswith(" 1")]
    assert sorted(stored, key=int) == [str(n) for n in range(100)], "each was new to one of them"
    store = FeedbackStore(database)
    assert [one.number for one in store.since(0)] == list(range(1, 101))
    assert {one.id for one in store.since(0)} == {f"id-{n}" for n in range(100)}
    store.close()


def test_what_was_acknowledged_outlives_the_process(database):
    writer = python(WRITER, database, "100000", stdin=-1)
    writer.stdin.write("go\n")
    writer.stdin.flush()
    writer.stdout.readline()
    told = [writer.stdout.readline() for _ in range(50)]
    writer.kill()
    rest, _ = writer.communicate()
    told += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
    store = FeedbackStore(database)
    found = [one.id for one in store.since(0, limit=100_000)]
    assert {f"id-{line.split()[0]}" for line in told} <= set(found)
    assert len(found) == len(set(found)) == store.last()
    store.close()


def test_a_database_that_cannot_be_written_says_so_and_works_again_when_it_can(tmp_path, monkeypatch):
    monkeypatch.setattr(databases, "LOCK_TIMEOUT_S", 0.05)
    store = FeedbackStore(f"sqlite:///{tmp_path}/f.sqlite")
    holder = sqlite3.connect(tmp_path / "f.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(NotStored, match="not stored: database is locked; send it again later with the same id"):
        store.add(said(1))
    holder.execute("ROLLBACK")
    holder.close()
    assert store.add(said(1))
    store.close()


def test_no_more_is_held_for_a_database_that_hangs_than_there_is_room_for(tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "MAX_WAITING", 3)
    store = FeedbackStore(f"sqlite:///{tmp_path}/f.sqlite")
    holder = sqlite3.connect(tmp_path / "f.sqlite", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    taken = []
    with pytest.raises(NotStored, match="too slow; send the feedback again later"):
        taken.extend(store.submit(said(number)) for number in range(100))
    holder.execute("ROLLBACK")
    holder.close()
    assert all(one.result(30) for one in taken)
    assert store.last() == len(taken) < 100
    store.close()


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_gone_or_replaced_takes_nothing_that_would_be_lost(tmp_path, replaced):
    path, kept, other = tmp_path / "f.sqlite", tmp_path / "kept", tmp_path / "other.sqlite"
    kept.mkdir()
    FeedbackStore(f"sqlite:///{other}").close()
    store = FeedbackStore(f"sqlite:///{path}")
    assert store.add(said(1))
    for part in tmp_path.glob("f.sqlite*"):  # what is written and not yet in its place lies in a file beside it
        part.rename(kept / part.name)
    if replaced:
        other.rename(path)
    with pytest.raises(NotStored, match=r"not stored: .*f\.sqlite was removed or replaced by another file; send it"):
        store.add(said(2))
    if replaced:
        assert (store.add(said(2)), store.last()) == (True, 1), "the one that is there now"
    else:
        for refused in (store.last, lambda: store.since(0), lambda: store.of_queries(["red car"])):
            with pytest.raises(NotStored, match="feedback cannot be read: unable to open database file"):
                refused()
        assert not path.exists(), "none is made in its place"
        for part in kept.iterdir():
            part.rename(tmp_path / part.name)
        assert (store.add(said(2)), store.last()) == (True, 2), "it is back"
    path.unlink()
    with pytest.raises(NotStored, match=r"feedback cannot be read: .* was removed"):
        store.last()
    store.close()


def test_a_file_that_is_not_there_is_made_only_where_it_may_be(tmp_path):
    with pytest.raises(DataError, match="unable to open database file"):
        FeedbackStore(f"sqlite:///{tmp_path}/f.sqlite", create=False)
    assert list(tmp_path.iterdir()) == []


def test_who_gives_up_harms_nobody_who_waits(store):
    with store._database.writing():
        first, given_up, last = (store.submit(said(number)) for number in range(3))
        assert given_up.cancel()
    assert (first.result(60).stored, last.result(60).stored) == (True, True)
    assert store.add(said(1)) is True, "it was not stored, and may be sent again"


def test_a_disk_that_is_full_loses_nothing_that_was_acknowledged(tmp_path):
    store = FeedbackStore(f"sqlite:///{tmp_path}/f.sqlite")
    pages = "PRAGMA max_page_count = 20"  # the same answer as of a full disk, and no disk need be filled
    sa.event.listen(store._database.engine, "checkout", lambda connection, *_: connection.execute(pages))
    acknowledged = []
    with pytest.raises(NotStored, match="full"):
        for number in range(1000):
            store.add(said(number, query="x" * 900))
            acknowledged.append(f"id-{number}")
    assert acknowledged
    store.close()
    again = FeedbackStore(f"sqlite:///{tmp_path}/f.sqlite")
    assert [one.id for one in again.since(0)] == acknowledged
    again.close()


def test_a_store_that_is_closed_takes_nothing_and_stores_what_waited(database):
    store = FeedbackStore(database)
    waiting = [store.submit(said(number)) for number in range(20)]
    store.close()
    assert all(done.result() for done in waiting)
    with pytest.raises(NotStored, match="the service is stopping"):
        store.add(said(99))
    assert threading.active_count() < 20


def test_an_error_nobody_foresaw_reaches_who_waits_and_the_writer_goes_on(store, monkeypatch):
    broken = Feedback("x", "judgment", "q", "d", shown=(object(),))  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        store.add(broken)
    assert store.add(said(1))


def test_shown_documents_keep_their_order(store):
    store.add(said(1, kind="click", shown=("b", "a", "d")))
    with store._database.reading() as connection:
        (text,) = connection.scalars(sa.select(databases.feedback_table.c.shown))
    assert json.loads(text) == ["b", "a", "d"]
