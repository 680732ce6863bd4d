"""The feedback store: feedback is on disk before it is acknowledged, and each id is stored once.

Requests pass their feedback to one writer thread per process. It commits everything that waits in one transaction.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ..errors import DataError, SparseRankError
from .click_limits import LIMIT_PERIOD, ClickLimits
from .database import Database, feedback_table, settings_table
from .feedback import Feedback, normalize_query

MAX_BATCH = 500
"""Largest number of rows per transaction and of names per SQL query."""
MAX_WAITING = 10_000
"""Largest number of requests that a process holds while the database does not answer."""
DATABASE_TIMEOUT_S = 9.0
"""A request waits so long: longer than two writers in turn, shorter than the shutdown of the service."""


class Receipt(NamedTuple):
    """Whether feedback was stored now, whether it counts, and why not."""

    stored: bool
    counted: bool = True
    reason: str = ""


_Waiting = tuple[Feedback, "Future[Receipt]"]


class Conflict(DataError):
    """The id is stored with different content."""


class NotStored(SparseRankError, OSError):
    """The database could not store the feedback; the client may send the same id again."""


class FeedbackStore:
    """All feedback, in the order of storage.

    Parameters
    ----------
    url : str
        SQLAlchemy URL of the database.
    create : bool, default=True
        Create a missing SQLite file.
    limits : ClickLimits, optional
        How many clicks of one visitor and of one address count.

    Attributes
    ----------
    key : bytes
        The secret of this database that signs impressions.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = FeedbackStore(f"sqlite:///{folder.name}/feedback.sqlite")
    >>> judgment = Feedback("1", "judgment", "red apple", "d1", grade=2.0)
    >>> store.add(judgment), store.add(judgment), store.last()
    (True, False, 1)
    >>> store.close(); folder.cleanup()
    """

    def __init__(self, url: str, *, create: bool = True, limits: ClickLimits | None = None) -> None:
        self._database = Database(url, create=create)
        self._limits = ClickLimits() if limits is None else limits
        with self._reading() as connection:
            key = sa.select(settings_table.c.value).where(settings_table.c.name == "impression_key")
            self.key = bytes.fromhex(connection.scalars(key).one())
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._writer: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._pending_last: Future[int] | None = None

    def add(self, feedback: Feedback) -> bool:
        """Store feedback; return True when it is on disk, False if it was stored before.

        Different content under the same id raises `Conflict`.
        """
        return self.submit(feedback).result().stored

    def submit(self, feedback: Feedback) -> Future[Receipt]:
        """Start `add` and return the future of its receipt."""
        done: Future[Receipt] = Future()
        with self._lock:
            if self._closed:
                raise NotStored("the service is stopping; send the feedback again with the same id")
            if self._queue.qsize() >= MAX_WAITING:
                raise NotStored("the database is too slow; send the feedback again later with the same id")
            self._queue.put((feedback, done))
            if self._writer is None:
                self._writer = threading.Thread(target=self._write, name="feedback", daemon=True)
                self._writer.start()
        return done

    def since(self, number: int, limit: int = 10_000) -> list[Feedback]:
        """Return feedback with larger numbers, oldest first."""
        statement = sa.select(feedback_table).where(feedback_table.c.number > number)
        with self._reading() as connection:
            return _fetch(connection, statement.order_by(feedback_table.c.number).limit(limit))

    def judgments(self, after: int, limit: int) -> list[Feedback]:
        """Return judgments with larger numbers, oldest first."""
        newer = (feedback_table.c.number > after) & (feedback_table.c.kind == "judgment")
        statement = sa.select(feedback_table).where(newer).order_by(feedback_table.c.number)
        with self._reading() as connection:
            return _fetch(connection, statement.limit(limit))

    def of_queries(self, queries: Collection[str]) -> list[Feedback]:
        """Return all feedback about these queries in any spelling, oldest first."""
        normalized, rows = {normalize_query(query) for query in queries}, []
        digests = sorted({_digest(query) for query in normalized})
        with self._reading() as connection:
            for at in range(0, len(digests), MAX_BATCH):
                among = feedback_table.c.query_digest.in_(digests[at : at + MAX_BATCH])
                rows += _fetch(connection, sa.select(feedback_table).where(among))
        rows = [row for row in rows if normalize_query(row.query) in normalized]
        return sorted(rows, key=lambda row: row.number)

    def last(self) -> int:
        """Return the number of the last feedback, which is also the count."""
        with self._reading() as connection:
            return _last(connection)

    def submit_last(self) -> Future[int]:
        """Start `last` and return its future; concurrent callers share one."""
        with self._lock:
            if self._pending_last is None or self._pending_last.done():
                self._pending_last = Future()
                # a thread of its own: if the database hangs, only this thread waits
                threading.Thread(target=self._run_last, args=(self._pending_last,), name="last", daemon=True).start()
            return self._pending_last

    def close(self) -> None:
        """Store what waits and close the database; do not wait longer than DATABASE_TIMEOUT_S."""
        with self._lock:
            self._closed = True
            if self._writer is not None:
                self._queue.put(None)
        if self._writer is None:
            self._database.close()
        else:
            self._writer.join(DATABASE_TIMEOUT_S)

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        try:
            with self._database.reading() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise NotStored(f"feedback cannot be read: {_message(error)}") from None

    def _write(self) -> None:
        """Commit batches until `close`."""
        while (first := self._queue.get()) is not None:
            batch = [first]
            while len(batch) < MAX_BATCH:
                try:
                    following = self._queue.get_nowait()
                except Empty:
                    break
                if following is None:
                    self._queue.put(None)  # after this batch
                    break
                batch.append(following)
            self._commit(batch)
        self._database.close()  # here, because `close` may have returned long ago

    def _run_last(self, done: Future[int]) -> None:
        try:
            done.set_result(self.last())
        except Exception as error:
            done.set_exception(error)

    def _commit(self, waiting: Sequence[_Waiting]) -> None:
        """Store a batch and complete its futures."""
        # a client that gave up sends its feedback again; from here on no future can be cancelled
        batch = [(feedback, done) for feedback, done in waiting if done.set_running_or_notify_cancel()]
        try:
            with self._database.writing() as connection:
                outcomes = _store(connection, [feedback for feedback, _ in batch], self._limits)
        except SQLAlchemyError as error:
            failure: Exception = NotStored(f"not stored: {_message(error)}; send it again later with the same id")
        except Exception as error:  # if this thread died, every later request would wait
            failure = error
        else:
            for (_, done), outcome in zip(batch, outcomes, strict=True):
                done.set_exception(outcome) if isinstance(outcome, Conflict) else done.set_result(outcome)
            return
        for _, done in batch:
            done.set_exception(failure)


def _message(error: SQLAlchemyError) -> str:
    """Return the message of the database on one line."""
    return " ".join(str(getattr(error, "orig", None) or error).split())


def _store(connection: sa.Connection, batch: Sequence[Feedback], limits: ClickLimits) -> list[Receipt | Conflict]:
    """Insert new feedback; return for each whether it is new, or a conflict. No other writer runs now."""
    ids = sorted({feedback.id for feedback in batch})
    known = sa.select(feedback_table).where(feedback_table.c.id.in_(ids))
    stored = {feedback.id: feedback for feedback in _fetch(connection, known)}
    last, received = _last(connection), datetime.now(UTC)
    counter = limits.counter(_recent_clicks(connection, batch, received))
    outcomes: list[Receipt | Conflict] = []
    rows: list[dict[str, Any]] = []
    for feedback in batch:
        before = stored.get(feedback.id)
        if before is None:
            reason = counter.reject(feedback)
            counted = feedback.counted and not reason
            new = replace(feedback, number=last + len(rows) + 1, received=received, counted=counted)
            stored[feedback.id] = new
            rows.append(_row(new))
            outcomes.append(Receipt(True, counted, reason))
        elif _content(before) == _content(feedback):
            outcomes.append(Receipt(False, before.counted))
        else:
            outcomes.append(Conflict(f"the id {feedback.id!r} is stored with different content; use a new id"))
    if rows:
        connection.execute(feedback_table.insert(), rows)
    return outcomes


def _content(feedback: Feedback) -> Feedback:
    """Return what a client says: the same in every attempt to send it."""
    return replace(feedback, number=0, received=None, address="", counted=True)


def _recent_clicks(connection: sa.Connection, batch: Sequence[Feedback], now: datetime) -> list[Feedback]:
    """Return the clicks that count against the limits of the clicks in a batch."""
    clicks, columns = (
        [feedback for feedback in batch if feedback.kind == "click" and feedback.impression],
        feedback_table.c,
    )
    if not clicks:
        return []
    same = (
        getattr(columns, name).in_(sorted({value for one in clicks if (value := getattr(one, name))}))
        for name in ("impression", "visitor", "address")
    )
    statement = sa.select(feedback_table).where(
        columns.query_digest.in_(sorted({_digest(one.query) for one in clicks})),
        columns.received > (now - LIMIT_PERIOD).replace(tzinfo=None),
        columns.counted,
        columns.kind == "click",
        sa.or_(*same),
    )
    return _fetch(connection, statement)


def _last(connection: sa.Connection) -> int:
    return connection.scalar(sa.select(sa.func.max(feedback_table.c.number))) or 0


def _row(feedback: Feedback) -> dict[str, Any]:
    assert feedback.received is not None
    return vars(feedback) | {
        "query_digest": _digest(feedback.query),
        "shown": json.dumps(feedback.shown),
        "grade": float(feedback.grade),
        "received": feedback.received.replace(tzinfo=None),
    }


def _fetch(connection: sa.Connection, statement: sa.Select[Any]) -> list[Feedback]:
    return [
        Feedback(
            row.id, row.kind, row.query, row.document, tuple(json.loads(row.shown)), row.grade, row.number,
            row.received.replace(tzinfo=UTC), row.impression, row.visitor, row.address, bool(row.counted),
        )
        for row in connection.execute(statement)
    ]  # fmt: skip


def _digest(query: str) -> str:
    return sha256(normalize_query(query).encode()).hexdigest()[:32]
