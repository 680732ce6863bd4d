"""A PostgreSQL server of its own, reached by a socket file and thrown away afterwards."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import sqlalchemy as sa

START_S = 30.0


def missing() -> str:
    """Return what has to be installed first, or nothing if a server can start."""
    if _programs() is None:
        return "no PostgreSQL server is here: install one (Debian: apt-get install postgresql)"
    if find_spec("psycopg") is None:
        return "the PostgreSQL driver is an extra: pip install 'sparserank[postgres]'"
    if _is_root() and not _has_user():
        return "PostgreSQL does not run as root: make a user: useradd --system postgres"
    return ""


def _is_root() -> bool:
    return os.getuid() == 0


def _has_user() -> bool:
    try:
        pwd.getpwnam("postgres")
    except KeyError:
        return False
    return True


def _programs() -> Path | None:
    places = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "initdb").exists() and (place / "postgres").exists()), None)


@contextmanager
def postgresql(*options: str) -> Iterator[str]:
    """Start a server with these settings; yield the URL of its first database."""
    programs, folder = _programs(), Path(tempfile.mkdtemp(prefix="sparserank-pg-"))
    assert programs is not None, missing()
    as_user: dict[str, Any] = {"cwd": folder}
    if _is_root():
        shutil.chown(folder, "postgres")
        as_user["user"] = "postgres"
    data = folder / "data"
    words = ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
    made = subprocess.run([programs / "initdb", *words], capture_output=True, text=True, **as_user)
    assert made.returncode == 0, made.stderr
    settings = [word for option in ("listen_addresses=", *options) for word in ("-c", option)]
    with (folder / "log").open("w") as log:
        command = [programs / "postgres", "-D", data, "-k", folder, *settings]
        server = subprocess.Popen(command, stdout=log, stderr=log, **as_user)
    url = f"postgresql+psycopg://postgres@/postgres?host={folder}"
    try:
        end = time.monotonic() + START_S
        while not ((folder / ".s.PGSQL.5432").exists() and _answers(url)):
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.05)
        yield url
    finally:
        server.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _answers(url: str) -> bool:
    engine = sa.create_engine(url)
    try:
        with engine.connect():
            return True
    except sa.exc.OperationalError:
        return False
    finally:
        engine.dispose()


def new_database(url: str, name: str) -> str:
    """Make an empty database on the server; return its URL."""
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return url.replace("/postgres?", f"/{name}?")
