"""What a checksum is taken of, so that the packing of a file may differ while its content may not.

A digest is written `kind:hex`, always sha256, over
- `file`: the bytes of the file as it lies on the disk;
- `content`: the bytes after unpacking .gz, .xz or .zst;
- `text`: the same with every "\\r\\n" turned into "\\n";
- `members`: the members of a .tar (itself packed or not), .zip or .npz: of one line `<sha256 of the bytes>  <name>\\n`
  each, sorted by name. Order, dates, owners, folders and compression of the archive do not count.
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
from ..files import PACKINGS, read_bytes

KINDS = ("file", "content", "text", "members")


def is_archive(name: str) -> bool:
    """Whether a name, with its packing taken off, is that of a file with members."""
    return _plain(name).endswith((".tar", ".zip", ".npz"))


def _plain(name: str) -> str:
    return next((name.removesuffix(packing) for packing in PACKINGS[1:] if name.endswith(packing)), name)


def members(path: Path) -> dict[str, bytes]:
    """Every file in an archive by its name, read into memory; nothing is written anywhere."""
    raw = read_bytes(path)
    try:
        if _plain(path.name).endswith(".tar"):
            return _tar_members(raw)
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            return {entry.filename: archive.read(entry) for entry in archive.infolist() if not entry.is_dir()}
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise DataError(f"{path}: not a whole archive: {error}") from None


def _tar_members(raw: bytes) -> dict[str, bytes]:
    found = {}
    with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as archive:
        for entry in archive:
            file = archive.extractfile(entry) if entry.isreg() else None
            if file is not None:
                found[entry.name.removeprefix("./")] = file.read()
    return found


def digest(path: Path, kind: str) -> str:
    """The checksum of one file, of the kind asked for.

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
    """Refuse a file none of whose digests is among the accepted ones; the cheap kind is tried first."""
    found = digest(path, "file")
    if found in accepted:
        return
    for kind in KINDS[1:]:
        wanted = [one for one in accepted if one.startswith(f"{kind}:")]
        if not wanted:
            continue
        try:
            found = digest(path, kind)
        except DataError as error:
            raise DataError(f"{error}; its checksum is {found}, expected {wanted[0]}") from None
        if found in wanted:
            return
    raise DataError(f"{path}: wrong checksum: it is {found}, expected {accepted[-1]}")
