"""Bytes in and bytes out: compression by file name on the way in, all or nothing on the way out.

A file that is written here exists whole or not at all: the bytes go to a temporary name in the same folder, are
flushed to the disk, and only then take the wanted name.
"""

from __future__ import annotations

import gzip
import lzma
import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ..errors import DataError

PathLike = str | os.PathLike[str]

PACKINGS = ("", ".gz", ".xz", ".zst")
"""How a file's name may end beyond its own ending: as it is, or packed."""


def read_bytes(path: PathLike) -> bytes:
    """The whole file, unpacked where its name ends in .gz, .xz or .zst."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder; a file is wanted") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return _unpack(raw, path.suffix)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise DataError(f"{path}: not a whole {path.suffix} file: {error}") from None


def _unpack(raw: bytes, suffix: str) -> bytes:
    if suffix in PACKINGS[1:] and not raw:
        raise EOFError("it is empty")
    if suffix == ".gz":
        return gzip.decompress(raw)
    if suffix == ".xz":
        return lzma.decompress(raw)
    if suffix == ".zst":
        return _unpack_zstd(raw)
    return raw


def _unpack_zstd(raw: bytes) -> bytes:
    import zstandard

    whole = bytearray()
    while raw:
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            whole += frame.decompress(raw)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
        if not frame.eof:
            raise EOFError("the stream ends in the middle of a frame")
        raw = frame.unused_data
    return bytes(whole)


def read_text(path: PathLike) -> str:
    """The whole file as UTF-8 text; a byte that is not UTF-8 is named by its line."""
    raw = read_bytes(path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}:{line}: not UTF-8 text (byte 0x{raw[error.start]:02x})") from None


def numbered_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Every line that is not blank, with its number, counted from 1."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.rstrip("\r")
        if line and not line.isspace():
            yield number, line


@contextmanager
def writing(path: PathLike, *, pack: bool = True) -> Iterator[IO[bytes]]:
    """A binary file that appears under `path` when the block ends well, packed where the name asks for it.

    `pack=False` is for formats that are never packed, whatever their name. On an exception the old file, if there was
    one, is untouched and nothing is left behind.
    """
    path = Path(path)
    try:
        _refuse_folder(path)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as raw:
            with _packing(raw, path.suffix if pack else "") as packed:
                yield packed
            raw.flush()
            os.fsync(raw.fileno())
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None
        raise


def refuse_unwritable(path: PathLike) -> None:
    """Refuse a path that `writing` would refuse, before the work whose result is to be written there."""
    path = Path(path)
    _refuse_folder(path)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def _packing(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed:
            yield packed  # type: ignore[misc]
    elif suffix == ".xz":
        with lzma.LZMAFile(raw, "wb") as packed:
            yield packed
    elif suffix == ".zst":
        import zstandard

        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as packed:
            yield packed
    else:
        yield raw


def _refuse_folder(path: Path) -> None:
    if path.is_dir():  # so is "", the name of no file
        raise DataError(f"{path}: cannot be written: it is a folder; give the name of a file")


def stamp(path: PathLike) -> object:
    """Something that differs once another file has this name, or the file has changed; None where there is none."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


@contextmanager
def alone(path: PathLike) -> Iterator[None]:
    """Who asks for the same file waits until the block ends, even where the file is replaced in it.

    The lock is on the file itself: the system frees it when its holder ends, however it ends, and nothing is left.
    """
    import fcntl

    while True:
        try:
            file = Path(path).open("rb")  # noqa: SIM115
        except OSError:  # whoever opens it says what is wrong
            yield
            return
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if Path(path).exists() and os.path.samestat(os.fstat(file.fileno()), Path(path).stat()):
                yield
                return


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Make the new name itself survive a power cut, where the system lets a folder be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_bytes(path: PathLike, content: bytes, *, pack: bool = True) -> None:
    """Write all of `content`, or nothing; packed where the name asks for it, unless `pack` is False."""
    with writing(path, pack=pack) as file:
        file.write(content)
