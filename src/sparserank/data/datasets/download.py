"""Find or download the files of a named data set; only verified files are returned or cached.

The folders are `$SPARSERANK_DATA/<name>` (and `$SPARSERANK_DATA/<folder>`, if the catalog names one), then
`<cache>/data/<name>`, into which files are downloaded. The cache is `$SPARSERANK_CACHE` or the system's cache folder.
"""

from __future__ import annotations

import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import TypeAlias

from ...errors import DataError
from ..files import COMPRESSION_SUFFIXES, read_bytes
from .catalog import DataSet, Edition, import_function
from .checksum import BEGINS, RECORD, digest, is_archive, members, verify, verify_record, write_record

TIMEOUT_S = 30.0
_CHUNK_BYTES = 1 << 18

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with the name of the file, the bytes so far, and the total bytes if the server states them."""


@dataclass(frozen=True)
class LocalFiles:
    """The files of a data set on this machine: its folder and the path of each part."""

    folder: Path
    paths: Mapping[str, Path]

    def contents(self) -> dict[str, bytes]:
        """Read all parts, decompressed, by name; the members of an archive replace it."""
        contents: dict[str, bytes] = {}
        for name, path in self.paths.items():
            contents.update(members(path) if is_archive(name) else {name: read_bytes(path)})
        return contents


def cache_folder() -> Path:
    """Return `$SPARSERANK_CACHE`, or else the system's cache folder for SparseRank."""
    override = os.environ.get("SPARSERANK_CACHE")
    if override:
        return Path(override)
    import platformdirs

    return Path(platformdirs.user_cache_dir("sparserank"))


def candidate_folders(data_set: DataSet) -> tuple[Path, ...]:
    """Return the folders in which to look for a data set, in order."""
    root = os.environ.get("SPARSERANK_DATA")
    own = [Path(root) / name for name in (data_set.name, data_set.folder) if name] if root else []
    return (*own, cache_folder() / "data" / data_set.name)


def locate(data_set: DataSet) -> tuple[LocalFiles, Edition] | None:
    """Return the first folder with all parts of an edition; reads and verifies nothing."""
    for folder in candidate_folders(data_set):
        for edition in data_set.editions:
            paths = _part_paths(folder, edition)
            if len(paths) == len(edition.parts):
                return LocalFiles(folder, paths), edition
    return None


def _part_paths(folder: Path, edition: Edition) -> dict[str, Path]:
    paths = {}
    for name in edition.parts:
        candidates = (folder / f"{name}{suffix}" for suffix in COMPRESSION_SUFFIXES)
        path = next((path for path in candidates if path.is_file()), None)
        if path is not None:
            paths[name] = path
    return paths


def obtain(data_set: DataSet, *, download: bool = True, progress: Progress | None = None) -> LocalFiles:
    """Return the verified files of a data set; download them if they are missing and `download` is True."""
    found = locate(data_set)
    if found is not None:
        files, edition = found
        _verify_record(data_set, files.folder, edition)
        for name, digests in edition.parts.items():
            try:
                verify(files.paths[name], digests)
            except DataError as error:
                raise DataError(f"{error}. Remove or replace that file. {data_set.how}") from None
        return files
    edition_to_download = next((edition for edition in data_set.editions if edition.sources), None)
    if edition_to_download is None or not download:
        raise DataError(f"{_not_found(data_set)}. {data_set.how}")
    try:
        return _download_edition(data_set, edition_to_download, progress)
    except DataError as error:
        raise DataError(f"{_not_found(data_set)}, and the download failed: {error}. {data_set.how}") from None


def _is_recorded(edition: Edition) -> bool:
    """Whether the catalog knows no digests of the files, so that they are recorded at the first download."""
    return all(digest.startswith(BEGINS) for digests in edition.parts.values() for digest in digests)


def _verify_record(data_set: DataSet, folder: Path, edition: Edition) -> None:
    if _is_recorded(edition):
        try:
            verify_record(folder)
        except DataError as error:
            raise DataError(f"{error}. Remove the folder to download it again. {data_set.how}") from None


def _not_found(data_set: DataSet) -> str:
    places = [_missing_parts(folder, data_set) for folder in candidate_folders(data_set)]
    if len(places) == 1:
        places.insert(0, "$SPARSERANK_DATA (not set)")
    return f"the data set {data_set.name!r} is not on this machine; looked in {' and in '.join(places)}"


def _missing_parts(folder: Path, data_set: DataSet) -> str:
    if not folder.is_dir():
        return f"{folder} (no such folder)"
    missing = [set(edition.parts) - set(_part_paths(folder, edition)) for edition in data_set.editions]
    return f"{folder} (no {', no '.join(min((len(names), sorted(names)) for names in missing)[1])})"


def _download_edition(data_set: DataSet, edition: Edition, progress: Progress | None) -> LocalFiles:
    """Download, assemble and verify in a temporary folder, then move the parts into the cache."""
    home = cache_folder() / "data" / data_set.name
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{data_set.name}-", dir=home.parent) as work:
            raw = ready = Path(work, "raw")
            raw.mkdir()
            for name, urls in edition.sources.items():
                _download_source(urls, raw / name, edition, progress)
            if edition.assemble:
                ready = Path(work, "ready")
                ready.mkdir()
                import_function(edition.assemble)(raw, ready)
            return _move(ready, home, edition)
    except OSError as error:
        raise DataError(f"{home}: cannot be written: {error.strerror or error}") from None


def _move(ready: Path, home: Path, edition: Edition) -> LocalFiles:
    paths = _part_paths(ready, edition)
    for name, digests in edition.parts.items():
        if name not in paths:
            raise DataError(f"the download contains no {name}")
        _verify_as(f"{name}, as downloaded", paths[name], digests)
    home.mkdir(parents=True, exist_ok=True)
    if _is_recorded(edition):
        write_record(ready, paths).replace(home / RECORD)
    moved = {}
    for name, path in paths.items():
        moved[name] = home / path.relative_to(ready)
        moved[name].parent.mkdir(parents=True, exist_ok=True)
        path.replace(moved[name])
    return LocalFiles(home, moved)


def _verify_as(name: str, path: Path, digests: tuple[str, ...]) -> None:
    """Verify a temporary file; the error contains `name` instead of its path."""
    try:
        verify(path, digests)
    except DataError as error:
        raise DataError(str(error).replace(str(path), name)) from None


def _download_source(urls: tuple[str, ...], target: Path, edition: Edition, progress: Progress | None) -> None:
    """Download from the first address that returns the right bytes; else raise DataError with the error of each."""
    # A source that is itself a part is verified at once, other sources only after assembly.
    names = (name for name in edition.parts for suffix in COMPRESSION_SUFFIXES if target.name == f"{name}{suffix}")
    own = next(names, None)
    part = own or next(iter(edition.parts))
    errors = []
    for url in urls:
        try:
            download(url, target, progress, expected=f"{edition.parts[part][-1]} of {part}")
            if own is not None:
                _verify_as(url, target, edition.parts[own])
            return
        except DataError as error:
            errors.append(str(error))
    raise DataError("; ".join(errors))


def download(url: str, target: Path, progress: Progress | None = None, *, expected: str = "a complete file") -> None:
    """Download an address to `target`; fewer bytes than the server announced raise DataError."""
    request = urllib.request.Request(url, headers={"User-Agent": "sparserank"})
    done = 0
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as response, target.open("wb") as file:
            length = response.headers.get("Content-Length")
            total = int(length) if length and length.isdecimal() else None
            while chunk := response.read(_CHUNK_BYTES):
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
            f"{url}: received only {done:,} of {total:,} bytes; their checksum is {digest(target, 'file')}, "
            f"expected {expected}"
        )
