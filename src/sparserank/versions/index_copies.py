"""Private copies of index files.

A service maps its index into memory. If someone writes into a mapped file or truncates it, the system ends every
process that reads the lost part (SIGBUS). A service therefore maps a copy that only it knows. On file systems that can
do it, the copy shares the blocks of the original until one of the two changes (a *reflink*): no time and no space.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import platformdirs

from ..data.files import atomic_write, read_bytes
from ..errors import DataError, ModelError
from ..search.index import Index
from ..search.shards import MANIFEST, list_shards, write_shards
from ..text_ranker.ranker import TextRanker

log = logging.getLogger(__name__)

FICLONE = 0x40049409
"""The Linux ioctl that makes a reflink."""


def copy_file(source: Path, target: Path) -> None:
    """Copy a file atomically, as a reflink if the file system can make one."""
    with atomic_write(target, compress=False) as file, source.open("rb") as content:
        if not _reflink(content.fileno(), file.fileno()):
            shutil.copyfileobj(content, file, 1 << 20)


def _reflink(source: int, target: int) -> bool:
    try:
        import fcntl

        fcntl.ioctl(target, FICLONE, source)
    except (ImportError, OSError):
        return False
    return True


def copy_index(source: Path, target: Path, ranker: TextRanker) -> bool:
    """Copy an index file or folder if all of it is intact and built for a ranker; return whether it is built for it.

    The copy is complete before it appears as `target`. A damaged index raises ModelError with the path of the source.
    """
    if source.is_dir():
        if not _is_built_for(Index.load(source), ranker):
            return False
        with write_shards(target) as folder:
            for shard in list_shards(source):
                copy_file(shard, folder / shard.name)
        return True
    status = source.stat()
    copy = target.with_name(f".{target.name}.{os.getpid()}.copy")
    try:
        copy_file(source, copy)
        try:
            if not _is_built_for(Index.check(copy), ranker):
                return False
        except ModelError as error:
            raise ModelError(str(error).replace(str(copy), str(source))) from None
        os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))  # `is_copy` compares the times
        copy.replace(target)
    finally:
        copy.unlink(missing_ok=True)
    return True


def _is_built_for(index: Index, ranker: TextRanker) -> bool:
    return index.made_for == ranker.fingerprint() and index.n_terms == ranker.model_.n_terms


def is_copy(source: Path, target: Path) -> bool:
    """Return whether `target` is a copy of what `source` is now; costs no reading of the files."""
    if not _exists(target) or source.is_dir() != target.is_dir():
        return False
    if source.is_dir():
        return read_bytes(source / MANIFEST) == read_bytes(target / MANIFEST)
    was, is_now = target.stat(), source.stat()
    return (was.st_mtime_ns, was.st_size) == (is_now.st_mtime_ns, is_now.st_size)


def up_to_date_copy(source: Path, copy: Path, ranker: Callable[[], TextRanker], is_named: bool) -> Path | None:
    """Return the copy of an index after it was brought up to date; None if there is no index.

    If the source is damaged, of another model or missing, the last copy stays, unless the user named the source. If
    there is no copy, the result is the source, and loading it reports what is wrong.
    """
    last = copy if _exists(copy) and not is_named else None
    if not source.exists():
        return source if is_named else last
    if is_copy(source, copy):
        return copy
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        return copy if copy_index(source, copy, ranker()) else last or source
    except ModelError as error:
        if last is not None:
            log.error("%s; the last intact copy of the index stays", error)
        return last or source
    except (OSError, DataError) as error:
        log.warning("%s: is served from this file, which nobody must overwrite: %s", source, error)
        return source


def _exists(path: Path) -> bool:
    """Return whether there is a file that can be read; a folder of another user has none."""
    try:
        return path.exists()
    except OSError:
        return False


def cache_folder(model: Path) -> Path:
    """Return a folder in the user's cache for the copies of a model whose own folder cannot be written."""
    name = hashlib.sha256(os.fsencode(model.absolute())).hexdigest()[:16]
    return Path(platformdirs.user_cache_dir("sparserank")) / "served" / name
