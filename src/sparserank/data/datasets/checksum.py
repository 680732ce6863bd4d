"""Checksums of content: the compression of a file may differ, its content may not.

A digest is `kind:hex`, the sha256 of
- `file`: the bytes on disk;
- `content`: the bytes after decompressing .gz, .xz or .zst;
- `text`: the same with every "\\r\\n" replaced by "\\n";
- `members`: one line `<sha256 of the bytes>  <name>\\n` per member of a .tar (compressed or not), .zip or .npz, sorted
  by name. The order, dates, owners, folders and compression of the archive do not matter.

A file whose digest the catalog does not know has `begins:` with its first characters instead, which an error page of a
server does not have. The digests of such files are recorded in RECORD when they are downloaded, and verified from then
on.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ...errors import DataError
from ..files import COMPRESSION_SUFFIXES, read_bytes

KINDS = ("file", "content", "text", "members")
BEGINS = "begins:"
RECORD = "SHA256SUMS"


def is_archive(name: str) -> bool:
    """Return whether a file name, without its compression suffix, is that of an archive."""
    return _uncompressed(name).endswith((".tar", ".zip", ".npz"))


def _uncompressed(name: str) -> str:
    return next((name.removesuffix(suffix) for suffix in COMPRESSION_SUFFIXES[1:] if name.endswith(suffix)), name)


def members(path: Path) -> dict[str, bytes]:
    """Read every file of an archive into memory, by name."""
    raw = read_bytes(path)
    try:
        if _uncompressed(path.name).endswith(".tar"):
            return _tar_members(raw)
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return {entry.filename: archive.read(entry) for entry in archive.infolist() if not entry.is_dir()}
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path}: not a complete archive: {error}") from None


def _tar_members(raw: bytes) -> dict[str, bytes]:
    contents = {}
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
        for entry in archive:
            file = archive.extractfile(entry) if entry.isreg() else None
            if file is not None:
                contents[entry.name.removeprefix("./")] = file.read()
    return contents


def digest(path: Path, kind: str) -> str:
    """Compute the digest of a file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder, "empty")
    ...     _ = file.write_bytes(b"")
    ...     digest(file, "content")[:20]
    'content:e3b0c44298fc'
    """
    if kind == "file":
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    elif kind == "members":
        lines = (f"{hashlib.sha256(raw).hexdigest()}  {name}\n" for name, raw in sorted(members(path).items()))
        raw = "".join(lines).encode()
    else:
        raw = read_bytes(path)
        if kind == "text":
            raw = raw.replace(b"\r\n", b"\n")
    return f"{kind}:{hashlib.sha256(raw).hexdigest()}"


def write_record(folder: Path, paths: Mapping[str, Path]) -> Path:
    """Write the digest of each file, by its name in the folder, in the format of sha256sum."""
    lines = [f"{_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in paths.values()]
    record = folder / RECORD
    record.write_text("".join(lines))
    return record


def verify_record(folder: Path) -> None:
    """Raise DataError if a file of the folder is not the one that was recorded; without a record, nothing happens."""
    record = folder / RECORD
    if not record.is_file():
        return
    for line in record.read_text("utf-8").splitlines():
        expected, _, name = line.partition("  ")
        if (folder / name).is_file() and (actual := _sha256(folder / name)) != expected:
            raise DataError(f"{folder / name}: changed since its download: it is {actual}, recorded was {expected}")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _verify_beginning(path: Path, accepted: Sequence[str]) -> None:
    expected = [one.removeprefix(BEGINS).encode() for one in accepted]
    with path.open("rb") as file:
        found = file.read(max(map(len, expected)))
    if not any(found.startswith(one) for one in expected):
        raise DataError(f"{path}: begins with {found!r}, expected {expected[0]!r}")


def verify(path: Path, accepted: Sequence[str]) -> None:
    """Raise DataError if no digest of the file is among the accepted ones; the cheap kind comes first."""
    if all(one.startswith(BEGINS) for one in accepted):
        return _verify_beginning(path, accepted)
    actual = digest(path, "file")
    if actual in accepted:
        return None
    for kind in KINDS[1:]:
        expected = [one for one in accepted if one.startswith(f"{kind}:")]
        if not expected:
            continue
        try:
            actual = digest(path, kind)
        except DataError as error:
            raise DataError(f"{error}; its checksum is {actual}, expected {expected[0]}") from None
        if actual in expected:
            return None
    raise DataError(f"{path}: wrong checksum: it is {actual}, expected {accepted[-1]}")
