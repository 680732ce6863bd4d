"""A folder that is written atomically: files go to a temporary folder beside it, which takes its place at the end.

`export.json` lists its content. A folder without this file is never replaced, because something else wrote it.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..data.files import PathLike, atomic_write, write_bytes
from ..errors import ConfigError, DataError
from .vectors import Vectors

MANIFEST = "export.json"
PART_BYTES = 8 << 20
"""Size of a bulk request: engines reject 100 MB and are fastest between 5 and 15 MB."""


class Folder:
    """A folder and the sizes of the files written to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files: dict[str, int] = {}

    def text(self, name: str, content: str) -> None:
        """Write a text file."""
        raw = content.encode()
        write_bytes(self.file(name), raw, compress=False)
        self.files[name] = len(raw)

    def json(self, name: str, content: Any) -> None:
        """Write one JSON value, indented."""
        self.text(name, json.dumps(content, ensure_ascii=False, allow_nan=False, indent=2) + "\n")

    def lines(self, name: str, lines: Iterable[Any]) -> None:
        """Write one JSON value per line."""
        with atomic_write(self.file(name), compress=False) as file:
            for line in lines:
                file.write(json_line(line))
        self.add(name)

    def add(self, name: str) -> None:
        """Record the size of a file that is in the folder already."""
        self.files[name] = self.file(name).stat().st_size

    def requests(self, queries: Mapping[str, str], request: Callable[[str], dict[str, Any]]) -> None:
        """Write `request(text)`, an object with a `body`, for every query, and the first body to query.json."""
        self.json("query.json", request(next(iter(queries.values())))["body"])
        self.lines("queries.jsonl", ({"id": name} | request(text) for name, text in queries.items()))

    def readme(self, name: str, vectors: Vectors, queries: Mapping[str, str], **values: Any) -> None:
        """Write README.md from the template `name`; the first query is its example."""
        example = next(iter(queries.values()))
        values |= {"documents": len(vectors.index), "terms": len(vectors.names)}
        self.text("README.md", template(f"{name}.md").format(example=example, quoted=shlex.quote(example), **values))

    def parts(
        self,
        name: str,
        records: Iterable[bytes],
        max_bytes: int = PART_BYTES,
        delimiters: tuple[bytes, bytes, bytes] = (b"", b"", b""),
    ) -> None:
        """Write records to numbered files (`name` has a {}); only a single record may exceed `max_bytes`.

        delimiters : the start of a file, the separator of two records, the end of a file.
        """
        for number, part in enumerate(_parts(records, max_bytes, *delimiters)):
            numbered = name.format(f"{number:05d}")
            write_bytes(self.file(numbered), part, compress=False)
            self.files[numbered] = len(part)

    def file(self, name: str) -> Path:
        """Return the path of a file; its folder is created."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def template(name: str) -> str:
    """Return a template of this package."""
    return (Path(__file__).parent / "templates" / name).read_text("utf-8")


def _parts(records: Iterable[bytes], max_bytes: int, start: bytes, separator: bytes, end: bytes) -> Iterator[bytes]:
    part = bytearray()
    for record in records:
        if part and len(part) + len(separator) + len(record) + len(end) > max_bytes:
            yield bytes(part + end)
            part = bytearray()
        part += separator + record if part else start + record
    if part:
        yield bytes(part + end)


def json_line(content: Any) -> bytes:
    """Encode one JSON value and a line feed.

    >>> json_line({"a": 1})
    b'{"a":1}\\n'
    """
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return utf8("a line", text) + b"\n"


def utf8(what: str, text: str) -> bytes:
    """Encode a text; a lone surrogate raises DataError, in which `what` names the text."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{what}: half of a surrogate pair cannot be written as UTF-8: {text!r:.80}") from None


def check_free(path: PathLike) -> Path:
    """Raise an error if an export cannot be written to a path.

    Parameters
    ----------
    path : path
        A new folder, an empty one, or an earlier export.

    Returns
    -------
    path : Path

    Examples
    --------
    >>> check_free("exported").name
    'exported'
    """
    path = Path(path)
    if path.exists() and not path.is_dir():
        raise ConfigError(f"{path}: is a file; an export is a folder")
    if path.is_dir() and any(path.iterdir()) and not (path / MANIFEST).is_file():
        raise ConfigError(f"{path}: contains files that are not an export; give a new folder")
    if not path.absolute().parent.is_dir():
        raise DataError(f"{path.absolute().parent}: no such folder")
    return path


@contextmanager
def export_folder(path: PathLike) -> Iterator[Folder]:
    """Yield a folder that appears at `path` when the block succeeds; it replaces an earlier export.

    If `path` is a link, the target of the link is replaced and the link stays.
    """
    path = Path(os.path.realpath(check_free(path)))
    try:
        temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        yield Folder(temporary)
        temporary.chmod(0o755)
        _replace(path, temporary)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _replace(path: Path, new: Path) -> None:
    """Move a folder to `path`; if that fails, restore the folder that was there."""
    old = new.with_name(new.name + ".old")
    exists = path.exists()
    if exists:
        path.replace(old)
    try:
        new.replace(path)
    except OSError:
        if exists:
            old.replace(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
