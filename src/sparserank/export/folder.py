"""A folder that is there whole or not at all: files are written beside it and take its place at the end.

`export.json` in it tells what it holds. A folder without one is never replaced: it is somebody else's.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..data.files import PathLike, atomic_write, write_bytes
from ..errors import ConfigError, DataError

MANIFEST = "export.json"
PART_BYTES = 8 << 20
"""Of one bulk request: engines refuse 100 MB and are quickest between 5 and 15."""


class Folder:
    """Where an export is written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, int] = {}

    def text(self, name: str, content: str) -> None:
        """A text file."""
        raw = content.encode()
        write_bytes(self._place(name), raw, compress=False)
        self.files[name] = len(raw)

    def json(self, name: str, content: Any) -> None:
        """One JSON value, to be read by people as well."""
        self.text(name, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n")

    def lines(self, name: str, lines: Iterable[Any]) -> None:
        """One JSON value a line."""
        with atomic_write(self._place(name), compress=False) as file:
            for line in lines:
                file.write(json_line(line))
        self.files[name] = self._place(name).stat().st_size

    def parts(
        self,
        name: str,
        records: Iterable[bytes],
        most: int = PART_BYTES,
        between: tuple[bytes, bytes, bytes] = (b"", b"", b""),
    ) -> None:
        """Records in numbered files (`name` has a {}), none of more than `most` bytes unless one record alone is.

        between : what a file begins with, what parts two records, what it ends with.
        """
        for number, part in enumerate(_parts(records, most, *between)):
            numbered = name.format(f"{number:05d}")
            write_bytes(self._place(numbered), part, compress=False)
            self.files[numbered] = len(part)

    def _place(self, name: str) -> Path:
        place = self.path / name
        place.parent.mkdir(parents=True, exist_ok=True)
        return place


def _parts(records: Iterable[bytes], most: int, begin: bytes, comma: bytes, end: bytes) -> Iterator[bytes]:
    part = bytearray()
    for record in records:
        if part and len(part) + len(comma) + len(record) + len(end) > most:
            yield bytes(part + end)
            part = bytearray()
        part += comma + record if part else begin + record
    if part:
        yield bytes(part + end)


def json_line(content: Any) -> bytes:
    """One JSON value and a line feed.

    >>> json_line({"a": 1})
    b'{"a":1}\\n'
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return utf8("a line", text) + b"\n"


def utf8(what: str, text: str) -> bytes:
    """A text's bytes; one that has none, `what` names it, is refused."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{what}: half of a surrogate pair cannot be written as UTF-8: {text!r:.80}") from None


def check_free(path: PathLike) -> Path:
    """Refuse a place that an export may not take."""
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{path}: is a file; an export is a folder")
    if path.is_dir() and any(path.iterdir()) and not (path / MANIFEST).is_file():
        raise ConfigError(f"{path}: has files in it that are no export; give a new folder")
    if not path.absolute().parent.is_dir():
        raise DataError(f"{path.absolute().parent}: no such folder")
    return path


@contextmanager
def exporting(path: PathLike) -> Iterator[Folder]:
    """A folder that appears under `path` when the block ends well; an earlier export there is replaced.

    Where `path` is a link, the folder it leads to is replaced and the link stays.
    """
    path = Path(os.path.realpath(check_free(path)))
    try:
        made = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        yield Folder(made)
        made.chmod(0o755)
        _take_place(made, path)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _take_place(made: Path, path: Path) -> None:
    """Put a folder where another may be; where that fails, the other one is there again."""
    old = made.with_name(made.name + ".old")
    there = path.exists()
    if there:
        path.replace(old)
    try:
        made.replace(path)
    except OSError:
        if there:
            old.replace(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
