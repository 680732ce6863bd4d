"""Feedback, stored before it is acknowledged, and stored once.

Requests hand what they have to one writer thread a process; it takes all that wait and commits them together, so that
many share one write to the disk.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from queue import Empty, SimpleQueue
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ..errors import DataError, SparseRankError
from .database import Database, feedback
from .learning.grades import plain
from .records import Feedback

MOST_AT_ONCE = 500
"""The most that one transaction stores, and the most names that one question to the database holds."""

MOST_WAITING = 10_000
"""The most that a process holds for a database that does not answer."""

PATIENCE = 9.0
"""Seconds that anyone waits for the database: for two writers in turn, and less than a service has to stop."""

_Waiting = tuple[Feedback, "Future[bool]"]


class Conflict(DataError):
    """This id was stored before, with other content."""


class NotStored(SparseRankError, OSError):
    """The database could not keep it; the same id may be sent again."""


class FeedbackStore:
    """All feedback, in the order of storing. make : a file that is not there is made.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = FeedbackStore(f"sqlite:///{folder.name}/feedback.sqlite")
    >>> said = Feedback("1", "judgment", "red apple", "d1", grade=2.0)
    >>> store.add(said), store.add(said), store.last()
    (True, False, 1)
    >>> store.close(); folder.cleanup()
    """

    def __init__(self, url: str, *, make: bool = True) -> None:
        self._database = Database(url, make=make)
        self._waiting: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._writer: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closed = False
        self._looking: Future[int] | None = None

    @property
    def name(self) -> str:
        """The file, or the URL without its password."""
        return self._database.name

    def add(self, one: Feedback) -> bool:
        """Store it; True when it is on the disk, False where it was there before. Other content: `Conflict`."""
        return self.submit(one).result()

    def submit(self, one: Feedback) -> Future[bool]:
        """`add`, to be waited for elsewhere."""
        done: Future[bool] = Future()
        with self._starting:
            if self._closed:
                raise NotStored("the service is stopping; send it again with the same id")
            if self._waiting.qsize() >= MOST_WAITING:
                raise NotStored("the database does not keep up; send it again later with the same id")
            self._waiting.put((one, done))
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="feedback", daemon=True)
                self._writer.start()
        return done

    def since(self, number: int, limit: int = 10_000) -> list[Feedback]:
        """What was stored after the one of this number, oldest first."""
        asked = sa.select(feedback).where(feedback.c.number > number).order_by(feedback.c.number).limit(limit)
        with self._reading() as connection:
            return [_feedback(row) for row in connection.execute(asked)]

    def of_queries(self, queries: Collection[str]) -> list[Feedback]:
        """All that was said about these queries, however they were spelled, oldest first."""
        wanted, found = {plain(query) for query in queries}, []
        with self._reading() as connection:
            for part in _parts(sorted({_digest(query) for query in wanted})):
                asked = sa.select(feedback).where(feedback.c.query_digest.in_(part))
                found += [_feedback(row) for row in connection.execute(asked)]
        return sorted((one for one in found if plain(one.query) in wanted), key=lambda one: one.number)

    def last(self) -> int:
        """The number of the last one, which is how many there are; 0 where there is none."""
        with self._reading() as connection:
            return _last(connection)

    def look(self) -> Future[int]:
        """`last`, to be waited for elsewhere; those who ask while one looks share what it finds."""
        with self._starting:
            if self._looking is None or self._looking.done():
                self._looking = Future()
                # a thread of its own: where the database hangs, this one waits with it, and no other
                threading.Thread(target=self._look, args=(self._looking,), name="last", daemon=True).start()
            return self._looking

    def close(self) -> None:
        """Store what waits, and let go of the database; one that does not answer is left to itself."""
        with self._starting:
            self._closed = True
            if self._writer is not None:
                self._waiting.put(None)
        if self._writer is None:
            self._database.close()
        else:
            self._writer.join(PATIENCE)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        try:
            with self._database.reading() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise NotStored(f"feedback cannot be read: {_said(error)}") from None

    def _write(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, more = [first], True
            while more and len(batch) < MOST_AT_ONCE:
                try:
                    following = self._waiting.get_nowait()
                except Empty:
                    break
                if following is None:
                    self._waiting.put(None)  # after this batch
                    break
                batch.append(following)
            self._commit(batch)
        self._database.close()  # here, since it may be long after `close` was called

    def _look(self, done: Future[int]) -> None:
        try:
            done.set_result(self.last())
        except Exception as error:
            done.set_exception(error)

    def _commit(self, waiting: Sequence[_Waiting]) -> None:
        # whoever has given up meanwhile sends it again; from here on nobody can
        batch = [(one, done) for one, done in waiting if done.set_running_or_notify_cancel()]
        try:
            with self._database.writing() as connection:
                outcomes = _store(connection, [one for one, _ in batch])
        except SQLAlchemyError as error:
            failed: Exception = NotStored(f"not stored: {_said(error)}; send it again later with the same id")
        except Exception as error:  # a thread that dies would leave every later request waiting
            failed = error
        else:
            for (_, done), outcome in zip(batch, outcomes, strict=True):
                done.set_exception(outcome) if isinstance(outcome, Conflict) else done.set_result(outcome)
            return
        for _, done in batch:
            done.set_exception(failed)


def _said(error: SQLAlchemyError) -> str:
    """What the database said, on one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def _store(connection: sa.Connection, batch: Sequence[Feedback]) -> list[bool | Conflict]:
    """What became of each: stored now, there before, or in conflict with what was there. Nobody else writes now."""
    stored = {one.id: one for one in _by_id(connection, {one.id for one in batch})}
    last = _last(connection)
    received = datetime.now(UTC)
    outcomes: list[bool | Conflict] = []
    rows: list[dict[str, Any]] = []
    for one in batch:
        before = stored.get(one.id)
        if before is None:
            stored[one.id] = replace(one, number=last + len(rows) + 1, received=received)
            rows.append(_row(stored[one.id]))
            outcomes.append(True)
        elif replace(before, number=one.number, received=one.received) == one:
            outcomes.append(False)
        else:
            outcomes.append(Conflict(f"the id {one.id!r} was stored before with other content; make a new id"))
    if rows:
        connection.execute(feedback.insert(), rows)
    return outcomes


def _by_id(connection: sa.Connection, ids: Collection[str]) -> list[Feedback]:
    return [_feedback(row) for row in connection.execute(sa.select(feedback).where(feedback.c.id.in_(sorted(ids))))]


def _last(connection: sa.Connection) -> int:
    return connection.scalar(sa.select(sa.func.max(feedback.c.number))) or 0


def _row(one: Feedback) -> dict[str, Any]:
    assert one.received is not None
    return {
        "number": one.number,
        "id": one.id,
        "kind": one.kind,
        "query": one.query,
        "query_digest": _digest(one.query),
        "document": one.document,
        "shown": json.dumps(one.shown),
        "grade": float(one.grade),
        "received": one.received.replace(tzinfo=None),
    }


def _feedback(row: Any) -> Feedback:
    return Feedback(
        row.id, row.kind, row.query, row.document, tuple(json.loads(row.shown)), row.grade, row.number,
        row.received.replace(tzinfo=UTC),
    )  # fmt: skip


def _digest(query: str) -> str:
    return sha256(plain(query).encode()).hexdigest()[:32]


def _parts(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[i : i + MOST_AT_ONCE] for i in range(0, len(names), MOST_AT_ONCE))
