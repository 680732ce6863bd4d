"""Read and write whole files: decompress by file name, write atomically.

An atomic write goes to a temporary file in the same folder, is flushed to disk, and is then renamed. The file exists
either completely or not at all.
"""

from __future__ import annotations

import codecs
import gzip
import lzma
import os
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from ..errors import DataError

PathLike = str | os.PathLike[str]

COMPRESSION_SUFFIXES = ("", ".gz", ".xz", ".zst")
"""What a file's name may end in after its own suffix: nothing, or a compression format."""


UNPACKED_BYTES = {"": 1, ".gz": 2, ".xz": 4, ".zst": 2}
"""Bytes of text in a byte of a file, at least, for each compression format: texts of real collections have 3 to 11."""


def unpacked_size(path: PathLike) -> int:
    """Return about how many bytes a file has after decompression, at least; reads nothing."""
    path = Path(path)
    return path.stat().st_size * UNPACKED_BYTES.get(path.suffix, 1)


def read_bytes(path: PathLike) -> bytes:
    """Read a whole file; decompress it if its name ends in .gz, .xz or .zst."""
    path = Path(path)
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a folder, not a file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        return _decompress(raw, path.suffix)
    except (OSError, EOFError, lzma.LZMAError, zlib.error, ValueError) as error:
        raise DataError(f"{path}: not a complete {path.suffix} file: {error}") from None


def _decompress(raw: bytes, suffix: str) -> bytes:
    if suffix in COMPRESSION_SUFFIXES[1:] and not raw:
        raise EOFError("it is empty")
    if suffix == ".gz":
        return gzip.decompress(raw)
    if suffix == ".xz":
        return lzma.decompress(raw)
    if suffix == ".zst":
        return _decompress_zstd(raw)
    return raw


def _decompress_zstd(raw: bytes) -> bytes:
    import zstandard

    content = bytearray()
    while raw:
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            content += frame.decompress(raw)
        except zstandard.ZstdError as error:
            raise ValueError(str(error)) from None
        if not frame.eof:
            raise EOFError("the stream ends in the middle of a frame")
        raw = frame.unused_data
    return bytes(content)


def read_text(path: PathLike) -> str:
    """Read a whole file as UTF-8; a byte that is not UTF-8 raises DataError with its line."""
    return decode_utf8(read_bytes(path), path)


def decode_utf8(raw: bytes, path: PathLike, first_line: int = 1) -> str:
    """Decode UTF-8; another byte raises DataError with its line, if `raw` begins at line `first_line` of the file."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + first_line
        raise DataError(f"{path}:{line}: not UTF-8 text (byte 0x{raw[error.start]:02x})") from None


def numbered_lines(path: PathLike, *, skip_blank: bool = True) -> Iterator[tuple[int, str]]:
    """Yield (line number, line), counted from 1; blank lines count, but are skipped by default."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        line = line.rstrip("\r")
        if not (skip_blank and (not line or line.isspace())):
            yield number, line


def stream_lines(path: PathLike) -> Iterator[tuple[int, str]]:
    """Yield what `numbered_lines` yields without holding the whole file in memory, unless it is a .zst file."""
    path = Path(path)
    openers: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open}
    if path.suffix == ".zst":  # its reader does not notice the end of an incomplete file
        yield from numbered_lines(path)
        return
    try:
        with openers.get(path.suffix, partial(Path.open, mode="rb"))(path) as file:
            for number, raw in enumerate(file, start=1):
                mark = "\ufeff" if number > 1 and raw.startswith(codecs.BOM_UTF8) else ""
                line = (mark + decode_utf8(raw, path, number)).removesuffix("\n").rstrip("\r")
                if line and not line.isspace():
                    yield number, line
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read, or not complete: {error}") from None


@contextmanager
def atomic_write(path: PathLike, *, compress: bool = True, mode: int = 0o666) -> Iterator[IO[bytes]]:
    """Open a binary file that replaces `path` when the block ends without an error.

    The file is compressed if its name ends in .gz, .xz or .zst, unless `compress` is False. After an error an existing
    file is unchanged and no temporary file remains. `mode` has the permissions, from which the umask takes some.
    """
    path = Path(path)
    try:
        _check_not_a_folder(path)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as raw:
            with _compressor(raw, path.suffix if compress else "") as file:
                yield file
            raw.flush()
            os.fsync(raw.fileno())
        Path(temporary).chmod(mode & ~_umask())
        Path(temporary).replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None
        raise


def write_bytes(path: PathLike, content: bytes, *, compress: bool = True) -> None:
    """Write `content` atomically; compress it by the file's name unless `compress` is False."""
    with atomic_write(path, compress=compress) as file:
        file.write(content)


def check_writable(path: PathLike) -> None:
    """Raise DataError if `path` cannot be written, before the work whose result goes there."""
    path = Path(path)
    _check_not_a_folder(path)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None


@contextmanager
def _compressor(raw: IO[bytes], suffix: str) -> Iterator[IO[bytes]]:
    if suffix == ".gz":
        with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as file:
            yield file  # type: ignore[misc]
    elif suffix == ".xz":
        with lzma.LZMAFile(raw, "wb") as file:
            yield file
    elif suffix == ".zst":
        import zstandard

        with zstandard.ZstdCompressor().stream_writer(raw, closefd=False) as file:
            yield file
    else:
        yield raw


def _check_not_a_folder(path: Path) -> None:
    if path.is_dir():  # Path("") is the current folder
        raise DataError(f"{path}: cannot be written: it is a folder; give the name of a file")


def file_id(path: PathLike) -> object:
    """Return a value that changes when the file is replaced or modified; None if there is no file."""
    try:
        stat = Path(path).stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns, stat.st_size


@contextmanager
def file_lock(path: PathLike) -> Iterator[None]:
    """Hold an exclusive lock on an existing file, even if the block replaces that file.

    The operating system releases the lock when its holder ends. There is no lock file.
    """
    import fcntl

    while True:
        try:
            file = Path(path).open("rb")  # noqa: SIM115
        except OSError:  # whoever opens the file reports the error
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
    """Make the new name survive a power failure, on systems that can open a folder."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
