"""Where a named set's files are, and how they get there: nothing unverified is handed on or enters the cache.

A set is looked for in `$SPARSERANK_DATA/<name>` (and in `<folder>` there, where its row names one), then in
`<cache>/data/<name>`, and is then fetched into the latter.
The cache is `$SPARSERANK_CACHE` where that is set, else the folder that the system keeps for caches.
"""

from __future__ import annotations

import importlib
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, TypeAlias

from ...errors import DataError
from ..files import PACKINGS, read_bytes
from .checksum import digest, is_archive, members, verify

TIMEOUT = 30.0
_CHUNK = 1 << 18

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with a file's name, the bytes that have come so far, and how many are to come where the server says so."""


@dataclass(frozen=True)
class Part:
    """One file of a set: its name without .gz, .xz or .zst, and the digests that are right (see `checksum`)."""

    name: str
    digests: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """One file to fetch: the name it is kept under and its public addresses, tried in this order."""

    name: str
    urls: tuple[str, ...]


@dataclass(frozen=True)
class Edition:
    """One form in which a set may lie in a folder: all of its parts.

    `sources` are the files to fetch; where there are none, this edition is not fetched. They are the parts themselves
    unless `assemble` names a "module:function" that makes the parts: `function(folder of sources, empty folder)`.
    """

    parts: tuple[Part, ...]
    sources: tuple[Source, ...] = ()
    assemble: str = ""


@dataclass(frozen=True)
class DataSet:
    """One row of the registry. `loader` is a "module:function" that takes what was found and the set's options.

    A set without editions is part of an installed package or made from one: its loader takes the options alone, and
    `here` is a "module:function" that says where it is, or None.
    """

    name: str
    what: str
    size: str
    terms: str
    how: str
    loader: str
    folder: str = ""
    editions: tuple[Edition, ...] = ()
    here: str = ""


@dataclass(frozen=True)
class Found:
    """A set on this machine: its folder and the path of each part."""

    folder: Path
    paths: Mapping[str, Path]

    def contents(self) -> dict[str, bytes]:
        """All files of the set by name, unpacked; the members of an archive stand for it."""
        whole: dict[str, bytes] = {}
        for name, path in self.paths.items():
            whole.update(members(path) if is_archive(name) else {name: read_bytes(path)})
        return whole


def cache_folder() -> Path:
    """Where SparseRank keeps what it can make or fetch again: `$SPARSERANK_CACHE`, else the system's cache folder."""
    override = os.environ.get("SPARSERANK_CACHE")
    if override:
        return Path(override)
    import platformdirs

    return Path(platformdirs.user_cache_dir("sparserank"))


def places(row: DataSet) -> tuple[Path, ...]:
    """The folders in which a set is looked for, in this order."""
    root = os.environ.get("SPARSERANK_DATA")
    own = [Path(root) / name for name in (row.name, row.folder) if name] if root else []
    return (*own, cache_folder() / "data" / row.name)


def named(reference: str) -> Any:
    """The function behind "module:function", imported on demand."""
    module, _, function = reference.partition(":")
    return getattr(importlib.import_module(module), function)


def locate(row: DataSet) -> tuple[Found, Edition] | None:
    """The first place that holds an edition of the set whole; nothing is read or verified yet."""
    for folder in places(row):
        for edition in row.editions:
            paths = _paths(folder, edition)
            if len(paths) == len(edition.parts):
                return Found(folder, paths), edition
    return None


def _paths(folder: Path, edition: Edition) -> dict[str, Path]:
    there = {}
    for part in edition.parts:
        candidates = (folder / f"{part.name}{packing}" for packing in PACKINGS)
        path = next((path for path in candidates if path.is_file()), None)
        if path is not None:
            there[part.name] = path
    return there


def obtain(row: DataSet, *, download: bool = True, progress: Progress | None = None) -> Found:
    """The set's files, verified: from where they are, or else fetched."""
    here = locate(row)
    if here is not None:
        found, edition = here
        for part in edition.parts:
            try:
                verify(found.paths[part.name], part.digests)
            except DataError as error:
                raise DataError(f"{error}. Remove or replace that file. {row.how}") from None
        return found
    edition_to_fetch = next((edition for edition in row.editions if edition.sources), None)
    if edition_to_fetch is None or not download:
        raise DataError(f"{_not_found(row)}. {row.how}")
    try:
        return fetch(row, edition_to_fetch, progress)
    except DataError as error:
        raise DataError(f"{_not_found(row)}, and it could not be fetched: {error}. {row.how}") from None


def _not_found(row: DataSet) -> str:
    looked = [_what_is_missing(folder, row) for folder in places(row)]
    if len(looked) == 1:
        looked.insert(0, "$SPARSERANK_DATA (not set)")
    return f"the data set {row.name!r} is not here; looked in {' and in '.join(looked)}"


def _what_is_missing(folder: Path, row: DataSet) -> str:
    if not folder.is_dir():
        return f"{folder} (no such folder)"
    missing = [
        [part.name for part in edition.parts if part.name not in _paths(folder, edition)] for edition in row.editions
    ]
    fewest = min(missing, key=lambda names: len(names))
    return f"{folder} (no {', no '.join(fewest)})"


def fetch(row: DataSet, edition: Edition, progress: Progress | None = None) -> Found:
    """Download, assemble and verify in a folder of its own; only then do the parts move into the cache."""
    home = cache_folder() / "data" / row.name
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{row.name}-", dir=home.parent) as work:
            return _fetch_into(home, edition, Path(work), progress)
    except OSError as error:
        raise DataError(f"{home}: cannot be written: {error.strerror or error}") from None


def _fetch_into(home: Path, edition: Edition, work: Path, progress: Progress | None) -> Found:
    raw, ready = work / "raw", work / "ready"
    raw.mkdir()
    for source in edition.sources:
        _download_any(source, raw / source.name, edition, progress)
    if not edition.assemble:
        return _move(raw, home, edition)
    ready.mkdir()
    named(edition.assemble)(raw, ready)
    return _move(ready, home, edition)


def _move(ready: Path, home: Path, edition: Edition) -> Found:
    paths = _paths(ready, edition)
    for part in edition.parts:
        if part.name not in paths:
            raise DataError(f"what was fetched holds no {part.name}")
        _verify_as(f"{part.name}, as fetched", paths[part.name], part)
    kept = {}
    for name, path in paths.items():
        kept[name] = home / path.relative_to(ready)
        kept[name].parent.mkdir(parents=True, exist_ok=True)
        path.replace(kept[name])
    return Found(home, kept)


def _verify_as(name: str, path: Path, part: Part) -> None:
    """`verify`, with a name in its error that still means something when the path is gone."""
    try:
        verify(path, part.digests)
    except DataError as error:
        raise DataError(str(error).replace(str(path), name)) from None


def _download_any(source: Source, target: Path, edition: Edition, progress: Progress | None) -> None:
    """The first address that gives the right bytes; where none does, an error with the reason of each."""
    # A source that is a part can be judged at once; one that parts are made of only when they are made.
    own = next((part for part in edition.parts for end in PACKINGS if source.name == f"{part.name}{end}"), None)
    part = own or edition.parts[0]
    reasons = []
    for url in source.urls:
        try:
            download(url, target, progress, expected=f"{part.digests[-1]} of {part.name}")
            if own is not None:
                _verify_as(url, target, own)
            return
        except DataError as error:
            reasons.append(str(error))
    raise DataError("; ".join(reasons))


def download(url: str, target: Path, progress: Progress | None = None, *, expected: str = "a whole file") -> None:
    """Everything behind one address, on the disk under `target`; fewer bytes than were announced are an error."""
    request = urllib.request.Request(url, headers={"User-Agent": "sparserank"})
    done = 0
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, target.open("wb") as file:
            length = answer.headers.get("Content-Length")
            total = int(length) if length and length.isdecimal() else None
            while chunk := answer.read(_CHUNK):
                file.write(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(target.name, done, total)
            file.flush()
            os.fsync(file.fileno())
    except urllib.error.HTTPError as error:
        with error:
            raise DataError(f"{url}: the server answers {error.code} {error.reason}") from None
    except (OSError, HTTPException) as error:
        raise DataError(f"{url}: {getattr(error, 'reason', None) or error}") from None
    if total is not None and done != total:
        raise DataError(
            f"{url}: only {done:,} of {total:,} bytes came; their checksum is {digest(target, 'file')}, "
            f"expected {expected}"
        )
