"""Backup and restore of feedback: one file that either kind of database can be restored from.

A backup is one JSON object per line: a header with the settings of the database, each feedback in the order of storage,
and a last line with their number and a digest. It is read in one transaction, so that it is consistent while services
write, and written atomically. A restore is one transaction: killed in the middle, it has not happened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ..data.files import PathLike, atomic_write, stream_lines
from ..errors import DataError
from .database import REVISION, Database, feedback_table, settings_table

FORMAT, FORMAT_VERSION = "sparserank feedback", 1
ROWS_PER_STATEMENT = 500
BACKUP_MODE = 0o600
"""A backup has queries of people, and the key that signs impressions: only its owner reads it."""


@dataclass(frozen=True)
class Backup:
    """What a backup contains: the number of feedback entries, and when it was made."""

    entries: int
    made: str


def back_up(url: str, path: PathLike) -> Backup:
    """Write all feedback of a database to a file; services may go on to store feedback.

    Parameters
    ----------
    url : str
        SQLAlchemy URL of the database.
    path : path-like
        The file; it is compressed if its name ends in .gz, .xz or .zst.

    Examples
    --------
    >>> import tempfile
    >>> from sparserank.service.feedback import Feedback
    >>> from sparserank.service.store import FeedbackStore
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = FeedbackStore(f"sqlite:///{folder.name}/feedback.sqlite")
    >>> store.add(Feedback("1", "judgment", "red apple", "d1")); store.close()
    True
    >>> back_up(f"sqlite:///{folder.name}/feedback.sqlite", f"{folder.name}/backup.jsonl").entries
    1
    >>> restore(f"{folder.name}/backup.jsonl", f"sqlite:///{folder.name}/other.sqlite").entries
    1
    >>> folder.cleanup()
    """
    entries, digest = 0, sha256()
    with _opened(url, create=False) as database, database.reading() as connection:
        if connection.dialect.name != "sqlite":  # a transaction of SQLite sees one state in any case
            connection.execution_options(isolation_level="REPEATABLE READ")
        settings = {row.name: row.value for row in connection.execute(sa.select(settings_table))}
        made = datetime.now(UTC).isoformat()
        header = {"format": FORMAT, "version": FORMAT_VERSION, "revision": REVISION, "made": made, "settings": settings}
        rows = connection.execution_options(stream_results=True).execute(
            sa.select(feedback_table).order_by(feedback_table.c.number)
        )
        with atomic_write(path, mode=BACKUP_MODE) as file:
            for content in _contents(header, rows):
                line = json.dumps(content, ensure_ascii=False).encode() + b"\n"
                digest.update(line)
                file.write(line)
                entries += 1
            file.write(json.dumps({"entries": entries - 1, "sha256": digest.hexdigest()}).encode() + b"\n")
    return Backup(entries - 1, made)


def restore(path: PathLike, url: str, *, overwrite: bool = False) -> Backup:
    """Put the feedback of a backup into a database, of whichever kind it came from.

    Stop the services of the database first: they hold its key.

    Parameters
    ----------
    path : path-like
        A file that `back_up` wrote. A truncated or changed one raises DataError, and the database stays as it was.
    url : str
        SQLAlchemy URL of the database; a missing SQLite file is created.
    overwrite : bool, default=False
        Replace the feedback of the database. Otherwise a database with feedback raises DataError.
    """
    lines = _Lines(path)
    header = lines.header()
    with _opened(url) as database, database.writing() as connection:
        stored = connection.scalar(sa.select(sa.func.count()).select_from(feedback_table))
        if stored and not overwrite:
            raise DataError(
                f"{database.name}: has {stored:,} feedback entries; restore into an empty database, "
                "or replace them with --overwrite"
            )
        connection.execute(feedback_table.delete())
        entries = lines.rows()
        while rows := list(islice(entries, ROWS_PER_STATEMENT)):
            connection.execute(feedback_table.insert(), rows)
        connection.execute(settings_table.delete())
        connection.execute(
            settings_table.insert(), [{"name": name, "value": value} for name, value in header["settings"].items()]
        )
    return Backup(lines.entries, header["made"])


@contextmanager
def _opened(url: str, create: bool = True) -> Iterator[Database]:
    with closing(Database(url, create=create)) as database:
        try:
            yield database
        except SQLAlchemyError as error:
            message = " ".join(str(getattr(error, "orig", None) or error).split())
            raise DataError(f"{database.name}: {message}") from None


def _contents(header: Mapping[str, Any], rows: sa.CursorResult[Any]) -> Iterator[Mapping[str, Any]]:
    yield header
    for row in rows.mappings():
        yield {**row, "received": row["received"].isoformat(), "counted": bool(row["counted"])}


class _Lines:
    """The lines of a backup, checked while they are read; `entries` counts the rows."""

    def __init__(self, path: PathLike) -> None:
        self._path, self._lines = path, stream_lines(path)
        self._digest, self.entries = sha256(), 0

    def header(self) -> dict[str, Any]:
        """Return the first line. That of another file raises DataError."""
        header = self._next()
        if not isinstance(header, dict) or header.get("format") != FORMAT:
            raise DataError(f"{self._path}: not a backup of feedback")
        if header.get("version") != FORMAT_VERSION or str(header.get("revision")) > REVISION:
            raise DataError(f"{self._path}: written by a newer release of SparseRank; use that release")
        return header

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield the feedback. A file that is not complete and unchanged raises DataError, at the latest at its end."""
        while True:
            digest = self._digest.hexdigest()
            row = self._next()
            if "sha256" in row:
                if row != {"entries": self.entries, "sha256": digest}:
                    raise DataError(f"{self._path}: damaged: its content does not match its digest")
                return
            self.entries += 1
            try:
                row = {column.name: row[column.name] for column in feedback_table.columns}
                yield row | {"received": datetime.fromisoformat(row["received"])}
            except (KeyError, TypeError, ValueError) as error:
                raise DataError(f"{self._path}: damaged: entry {self.entries}: {error}") from None

    def _next(self) -> Any:
        try:
            number, line = next(self._lines)
        except StopIteration:
            raise DataError(f"{self._path}: not complete: its last line is missing") from None
        self._digest.update(line.encode() + b"\n")
        try:
            return json.loads(line)
        except ValueError:
            raise DataError(f"{self._path}:{number}: damaged, or not a backup of feedback") from None
