"""The database that feedback is kept in: SQLite in WAL mode, or PostgreSQL, by URL.

A commit is on the disk when it returns. A file that is damaged, or that something else has made, is refused by name.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError, SQLAlchemyError

from ..errors import ConfigError, DataError, NotInstalled

LAST = "0003"
"""The step of the migrations that this version of SparseRank works with."""

WAIT, OPENING = 4.0, 20.0
"""Seconds that a writer waits for another one before it gives up; and at the start, when another may be migrating."""

NAP = 0.001
"""Seconds between two tries to be the only writer."""

_STEPS = "sparserank_migrations"
_FILE = "sparserank_file"
_LOCK = 0x5B_A25E_4A4B  # any number that nobody else takes: PostgreSQL's advisory locks are named by numbers

_NOTICE = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}  # fmt: skip
"""After how long (seconds; the last in milliseconds) a PostgreSQL server whose machine is gone is given up."""

feedback = sa.table(
    "sparserank_feedback",
    sa.column("number", sa.BigInteger),
    sa.column("id", sa.String),
    sa.column("kind", sa.String),
    sa.column("query", sa.Text),
    sa.column("query_digest", sa.String),
    sa.column("document", sa.Text),
    sa.column("shown", sa.Text),
    sa.column("grade", sa.Float),
    sa.column("received", sa.DateTime),
)
"""The table of feedback, as the last migration leaves it."""


class Gone(SQLAlchemyError):
    """The file that a connection writes to is no longer the one that bears its name: what it stores would be lost."""


class Database:
    """An open database, migrated to a step, by default the last. make : a file that is not there is made."""

    def __init__(self, url: str, step: str = LAST, *, make: bool = True) -> None:
        self.engine = _engine(url, OPENING)
        self.name = self.engine.url.render_as_string(hide_password=True)
        self._sqlite = self.engine.dialect.name == "sqlite"
        if self._sqlite:
            self.name = self.engine.url.database or ""
        try:
            with _told(self.name):
                if self._sqlite:
                    _checked(self.name)
                    if make:
                        _made(self.name)
                if self._step() != step:
                    self._migrate(step)
        finally:
            self.close()
        self.engine = _engine(url, WAIT)

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that no other writer runs beside, in this process or another; on the disk when it ends."""
        with self.engine.connect() as connection:
            if self._sqlite:
                connection.execution_options(sparserank_write=True)
            with connection.begin():
                if not self._sqlite:
                    connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
                yield connection
                self._must_be_there(connection)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection that sees what is stored."""
        with self.engine.connect() as connection:
            self._must_be_there(connection)
            yield connection

    def close(self) -> None:
        """Let go of every connection."""
        self.engine.dispose()

    def _must_be_there(self, connection: sa.Connection) -> None:
        """Refuse a connection to a file that was removed or replaced; the next one is to what is there then."""
        if self._sqlite and connection.info[_FILE] != _file(self.name):
            connection.invalidate()
            self.engine.dispose()
            raise Gone(f"{self.name} is gone, or another file is in its place")

    def _migrate(self, to: str) -> None:
        """Take the tables to a step; of several processes one does it and the others wait."""
        from alembic.config import Config  # rarely needed, and slow to import
        from alembic.runtime.environment import EnvironmentContext
        from alembic.script import ScriptDirectory
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", (Path(__file__).parent / "migrations").as_posix())
        script = ScriptDirectory.from_config(config)
        steps: Any = lambda revision, context: script._upgrade_revs(to, revision)  # noqa: E731 - as alembic's pages show
        with self.writing() as connection, EnvironmentContext(config, script, fn=steps) as environment:
            environment.configure(connection=connection, version_table=_STEPS)
            try:
                environment.run_migrations()
            except CommandError:
                raise DataError(f"{self.name}: made by a newer version of SparseRank; use that one") from None

    def _step(self) -> str | None:
        """The last migration that was made here; None where there is none."""
        with self.reading() as connection:
            if not sa.inspect(connection).has_table(_STEPS):
                return None
            return str(connection.scalar(sa.text(f"SELECT version_num FROM {_STEPS}")))


def _checked(path: str) -> None:
    """Refuse a file that is damaged or of something else; it is only read, so that it stays as it is."""
    if not Path(path).exists():
        return
    if Path(path).is_dir():
        raise DataError(f"{path}: is a folder; give the name of a file")
    with closing(sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode=ro", uri=True, timeout=OPENING)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and _STEPS not in tables:
            raise DataError(f"{path}: a database of something else; give another with --database")
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise DataError(f"{path}: damaged: {found}; restore it from a copy, or move it away")


def _made(path: str) -> None:
    """An empty file is an empty database. Connections make none: one that vanishes later is missed, not replaced."""
    with suppress(OSError):  # what cannot be made is refused where it is opened
        Path(path).touch(mode=0o644)


def _file(path: str) -> tuple[int, int] | None:
    """Which file bears this name; None where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def shown_url(url: str) -> str:
    """Without its password.

    >>> shown_url("postgresql+psycopg://me:secret@localhost/feedback")
    'postgresql+psycopg://me:***@localhost/feedback'
    """
    return sa.make_url(url).render_as_string(hide_password=True)


def _engine(url: str, wait: float) -> sa.Engine:
    try:
        made = sa.make_url(url)
        kind = made.get_backend_name()
        if kind not in ("sqlite", "postgresql"):
            raise ConfigError(f"--database must begin with sqlite:/// or postgresql+psycopg://; got {kind}://")
        if kind == "sqlite":
            return _sqlite_engine(made, wait)
        return _postgres_engine(made, wait)
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            "--database must be a URL such as sqlite:///feedback.sqlite or postgresql+psycopg://…"
        ) from None
    except ModuleNotFoundError:
        raise NotInstalled("PostgreSQL needs psycopg; install it with: pip install 'sparserank[postgres]'") from None


def _postgres_engine(url: sa.URL, wait: float) -> sa.Engine:
    url = url.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args=_NOTICE)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.execute(f"SET lock_timeout = '{wait:.0f}s'")
        # a server may be told to acknowledge what is not on the disk yet; not to us
        durable = (
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.execute(durable)
        connection.commit()

    return engine


def _sqlite_engine(url: sa.URL, wait: float) -> sa.Engine:
    if not url.database or url.database == ":memory:" or "uri" in url.query:
        raise ConfigError("--database must name a file: what is kept in memory is lost")
    engine = sa.create_engine(url, connect_args={"timeout": wait, "check_same_thread": False})

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, record: Any, words: Any, options: Any) -> Any:
        return dialect.connect(f"{Path(words[0]).as_uri()}?mode=rw", uri=True, **options)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        record.info[_FILE] = _file(url.database or "")
        connection.isolation_level = None  # transactions are begun below, not by the driver
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("sparserank_write", False)
        # a writer takes the lock at once: one that reads first and then writes may be refused without waiting
        if writes:
            _begin_alone(connection, wait)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def _begin_alone(connection: sa.Connection, wait: float) -> None:
    """Wait for other writers in steps of `NAP`: those of SQLite grow, so that who waits long is passed by newcomers."""
    given_up = time.monotonic() + wait
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except OperationalError as error:
                busy = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() > given_up:
                    raise
            time.sleep(NAP)
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {1000 * wait:.0f}")


@contextmanager
def _told(name: str) -> Iterator[None]:
    """What a database says, as one sentence that names it."""
    try:
        yield
    except (DatabaseError, sqlite3.DatabaseError) as error:
        said = " ".join(str(getattr(error, "orig", error)).split())
        if "not a database" in said or "malformed" in said:
            said = f"damaged, or no database at all: {said}; restore it from a copy, or move it away"
        raise DataError(f"{name}: {said}") from None
    except SQLAlchemyError as error:
        raise DataError(f"{name}: {error}") from None
