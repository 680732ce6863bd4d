"""The feedback database: SQLite in WAL mode, or PostgreSQL.

A commit is on disk when it returns. Opening a damaged file, or a file of another program, raises DataError.
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

REVISION = "0004"
"""The migration that this release works with."""
LOCK_TIMEOUT_S, OPEN_TIMEOUT_S = 4.0, 20.0
"""How long a writer waits for another one; how long opening waits, while another process may migrate."""
LOCK_RETRY_S = 0.001
"""Time between two attempts to begin a write transaction."""

_REVISION_TABLE = "sparserank_migrations"
_FILE_KEY = "sparserank_file"
_LOCK_KEY = 0x5B_A25E_4A4B  # an arbitrary number for the PostgreSQL advisory lock

_KEEPALIVE = {
    "connect_timeout": 10, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}  # fmt: skip
"""Timeouts for a PostgreSQL server that disappears, in seconds; the last one in milliseconds."""

feedback_table = sa.table(
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
    sa.column("impression", sa.String),
    sa.column("visitor", sa.String),
    sa.column("address", sa.String),
    sa.column("counted", sa.Boolean),
)
settings_table = sa.table("sparserank_settings", sa.column("name", sa.String), sa.column("value", sa.Text))


class FileReplaced(SQLAlchemyError):
    """The SQLite file of a connection was removed or replaced; what the connection stores would be lost."""


class Database:
    """An open database, migrated to a revision; `create` creates a missing SQLite file."""

    def __init__(self, url: str, revision: str = REVISION, *, create: bool = True) -> None:
        self.engine = _create_engine(url, OPEN_TIMEOUT_S)
        self.name = self.engine.url.render_as_string(hide_password=True)
        self._sqlite = self.engine.dialect.name == "sqlite"
        if self._sqlite:
            self.name = self.engine.url.database or ""
        try:
            with _one_line_errors(self.name):
                if self._sqlite:
                    _check_file(self.name)
                    if create:
                        with suppress(OSError):  # opening it reports the error
                            Path(self.name).touch(mode=0o644)
                if self._revision() != revision:
                    self._migrate(revision)
        finally:
            self.close()
        self.engine = _create_engine(url, LOCK_TIMEOUT_S)

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Open the only write transaction, in this and all other processes; it is on disk when it ends."""
        with self.engine.connect() as connection:
            if self._sqlite:
                connection.execution_options(sparserank_write=True)
            with connection.begin():
                if not self._sqlite:
                    connection.execute(sa.text(f"SELECT pg_advisory_xact_lock({_LOCK_KEY})"))
                yield connection
                self._require_same_file(connection)

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Open a connection for reading."""
        with self.engine.connect() as connection:
            self._require_same_file(connection)
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def _require_same_file(self, connection: sa.Connection) -> None:
        """Raise FileReplaced if the SQLite file was removed or replaced; the next connection opens the new file."""
        if self._sqlite and connection.info[_FILE_KEY] != _file_identity(self.name):
            connection.invalidate()
            self.engine.dispose()
            raise FileReplaced(f"{self.name} was removed or replaced by another file")

    def _migrate(self, to: str) -> None:
        """Migrate the tables; of several processes one does it and the others wait."""
        from alembic.config import Config  # rarely used, and slow to import
        from alembic.runtime.environment import EnvironmentContext
        from alembic.script import ScriptDirectory
        from alembic.util import CommandError

        config = Config()
        config.set_main_option("script_location", (Path(__file__).parent / "migrations").as_posix())
        script = ScriptDirectory.from_config(config)
        upgrade: Any = lambda revision, context: script._upgrade_revs(to, revision)  # noqa: E731 - as in alembic's docs
        with self.writing() as connection, EnvironmentContext(config, script, fn=upgrade) as environment:
            environment.configure(connection=connection, version_table=_REVISION_TABLE)
            try:
                environment.run_migrations()
            except CommandError:
                raise DataError(f"{self.name}: written by a newer release of SparseRank; use that release") from None

    def _revision(self) -> str | None:
        """Return the last migration of this database, if any."""
        with self.reading() as connection:
            if not sa.inspect(connection).has_table(_REVISION_TABLE):
                return None
            return str(connection.scalar(sa.text(f"SELECT version_num FROM {_REVISION_TABLE}")))


def _check_file(path: str) -> None:
    """Raise DataError for a damaged file or a file of another program; the file is opened read-only."""
    if not Path(path).exists():
        return
    if Path(path).is_dir():
        raise DataError(f"{path}: is a folder; give the path of a file")
    uri = f"{Path(path).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True, timeout=OPEN_TIMEOUT_S)) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if tables and _REVISION_TABLE not in tables:
            raise DataError(f"{path}: a database of another program; choose another file with --database")
        (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if result != "ok":
            raise DataError(f"{path}: damaged: {result}; restore it from a backup, or move it away")


def _file_identity(path: str) -> tuple[int, int] | None:
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def hide_password(url: str) -> str:
    """Return a URL without its password.

    >>> hide_password("postgresql+psycopg://me:secret@localhost/feedback")
    'postgresql+psycopg://me:***@localhost/feedback'
    """
    return sa.make_url(url).render_as_string(hide_password=True)


def _create_engine(url: str, lock_timeout_s: float) -> sa.Engine:
    try:
        parsed = sa.make_url(url)
        backend = parsed.get_backend_name()
        if backend not in ("sqlite", "postgresql"):
            raise ConfigError(f"--database must begin with sqlite:/// or postgresql+psycopg://; got {backend}://")
        return (_sqlite_engine if backend == "sqlite" else _postgres_engine)(parsed, lock_timeout_s)
    except (ArgumentError, NoSuchModuleError, ValueError) as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            "--database must be a URL such as sqlite:///feedback.sqlite or postgresql+psycopg://…"
        ) from None
    except ModuleNotFoundError:
        raise NotInstalled("PostgreSQL needs psycopg; install it with: pip install 'sparserank[postgres]'") from None


def _postgres_engine(url: sa.URL, lock_timeout_s: float) -> sa.Engine:
    url = url.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(url, pool_pre_ping=True, connect_args=_KEEPALIVE)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        connection.execute(f"SET lock_timeout = '{lock_timeout_s:.0f}s'")
        # a server may be configured to acknowledge commits before they are on disk; this session is not
        durable = (
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.execute(durable)
        connection.commit()

    return engine


def _sqlite_engine(url: sa.URL, lock_timeout_s: float) -> sa.Engine:
    if not url.database or url.database == ":memory:" or "uri" in url.query:
        raise ConfigError("--database must name a file: a database in memory would be lost")
    engine = sa.create_engine(url, connect_args={"timeout": lock_timeout_s, "check_same_thread": False})

    @event.listens_for(engine, "do_connect")
    def connect(dialect: Any, record: Any, args: Any, options: Any) -> Any:
        # never creates a file: one that disappears is an error, not an empty database
        return dialect.connect(f"{Path(args[0]).as_uri()}?mode=rw", uri=True, **options)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        record.info[_FILE_KEY] = _file_identity(url.database or "")
        connection.isolation_level = None  # `begin` below starts transactions, not the driver
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        # a writer takes the lock at once: a transaction that reads before it writes may fail without waiting
        if connection.get_execution_options().get("sparserank_write", False):
            _begin_write(connection, lock_timeout_s)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def _begin_write(connection: sa.Connection, timeout_s: float) -> None:
    """Wait for other writers at short, equal intervals; those of SQLite grow, so new writers would overtake."""
    deadline = time.monotonic() + timeout_s
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except OperationalError as error:
                busy = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() > deadline:
                    raise
            time.sleep(LOCK_RETRY_S)
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {1000 * timeout_s:.0f}")


@contextmanager
def _one_line_errors(name: str) -> Iterator[None]:
    """Turn database errors into one-line DataErrors that name the database."""
    try:
        yield
    except (DatabaseError, sqlite3.DatabaseError) as error:
        message = " ".join(str(getattr(error, "orig", error)).split())
        if "not a database" in message or "malformed" in message:
            message = f"damaged, or not a database: {message}; restore it from a backup, or move it away"
        raise DataError(f"{name}: {message}") from None
    except SQLAlchemyError as error:
        raise DataError(f"{name}: {error}") from None
