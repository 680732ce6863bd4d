"""Checksums of content: the compression of a file may differ, its content may not.

A digest is `kind:hex`, the sha256 of
- `file`: the bytes on disk;
- `content`: the bytes after decompressing .gz, .xz or .zst;
- `text`: the same with every "\\r\\n" replaced by "\\n";
- `members`: one line `<sha256 of the bytes>  <name>\\n` per member of a .tar (compressed or not), .zip or .npz, sorted
  by name. The order, dates, owners, folders and compression of the archive do not matter.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

from ...errors import DataError
from ..files import COMPRESSION_SUFFIXES, read_bytes

KINDS = ("file", "content", "text", "members")


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


def verify(path: Path, accepted: Sequence[str]) -> None:
    """Raise DataError if no digest of the file is among the accepted ones; the cheap kind comes first."""
    actual = digest(path, "file")
    if actual in accepted:
        return
    for kind in KINDS[1:]:
        expected = [one for one in accepted if one.startswith(f"{kind}:")]
        if not expected:
            continue
        try:
            actual = digest(path, kind)
        except DataError as error:
            raise DataError(f"{error}; its checksum is {actual}, expected {expected[0]}") from None
        if actual in expected:
            return
    raise DataError(f"{path}: wrong checksum: it is {actual}, expected {accepted[-1]}")
