"""The folder where workers keep their figures, so that each can tell those of all; it is locked as long as it is used.

The lock is the system's (`flock`): a folder of a service that was killed is nobody's, and the next service removes it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""Names that folder; must be set before `metrics` is imported, or not at all: the library looks at it then."""
PREFIX = "sparserank-figures-"


@contextmanager
def shared_figures() -> Iterator[Path]:
    """A folder for the workers that are started meanwhile; those that nobody uses any more are removed."""
    _remove_left()
    folder, lock = _made()
    os.environ[SHARED] = str(folder)
    try:
        yield folder
    finally:
        del os.environ[SHARED]
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _made() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = _locked(folder)
        if lock is not None and folder.exists():
            return folder, lock
        if lock is not None:  # somebody else removed it before it was locked
            os.close(lock)


def _locked(folder: Path) -> int | None:
    """The folder, locked; None where somebody else has it, or it is gone."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened


def _remove_left() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(FileNotFoundError):  # somebody else removes them too
            if folder.lstat().st_uid == os.getuid() and (lock := _locked(folder)) is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
