"""An index in a folder of shards: files that several processes wrote, each an index of some of the documents.

The folder is one index whose segments are those of all shards, so it gives the same answers as one file. A manifest
names the shards; it is written last.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.files import PathLike, read_bytes, write_bytes
from ..data.formats.tensors import map_tensors
from ..errors import DataError, ModelError

if TYPE_CHECKING:
    from .index import Index

MANIFEST = "shards.json"
FORMAT = 1


def shard_name(number: int) -> str:
    """Return the file name of a shard.

    >>> shard_name(3)
    'shard-00003.index'
    """
    return f"shard-{number:05d}.index"


@contextmanager
def write_shards(path: PathLike) -> Iterator[Path]:
    """A folder for shards, each saved as `shard_name(number)`; it replaces `path` when the block ends without an error.

    After an error an existing index is unchanged and no temporary folder remains.
    """
    path = Path(path)
    try:
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None
    try:
        yield folder
        names = sorted(file.name for file in folder.glob("shard-*.index"))
        if not names:
            raise DataError(f"{path}: there are no documents to index")
        digests = {name: map_tensors(folder / name, "index").setting("digest", str) for name in names}
        write_bytes(folder / MANIFEST, json.dumps({"format": FORMAT, "shards": digests}, indent=1).encode())
        folder.chmod(0o755)
        with _set_aside(path):
            folder.rename(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def load_shards(folder: Path, load: Callable[[PathLike], Index]) -> Index:
    """Return the index of a folder; `load` opens each shard. A missing or exchanged shard raises ModelError."""
    from .index import Index

    shards = [load(path) for path in list_shards(folder)]
    if len({(shard.made_for, shard.n_terms) for shard in shards}) > 1:
        raise ModelError(f"{folder}: the shards were built for different models; build the index again")
    return Index(tuple(segment for shard in shards for segment in shard.segments), shards[0].made_for)


def list_shards(folder: Path) -> list[Path]:
    """Return the files of a folder of shards, whose digests are those of its manifest."""
    if not (folder / MANIFEST).exists():
        raise ModelError(f"{folder}: not an index: a folder of shards has a file {MANIFEST!r}")
    try:
        manifest = json.loads(read_bytes(folder / MANIFEST))
        digests = {str(name): str(digest) for name, digest in manifest["shards"].items()}
        known = manifest["format"] == FORMAT
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ModelError(f"{folder / MANIFEST}: damaged; build the index again") from None
    if not known or not digests or any(Path(name).name != name for name in digests):
        raise ModelError(f"{folder / MANIFEST}: not a manifest of this version; build the index again")
    for name, digest in digests.items():
        if map_tensors(folder / name, "index").setting("digest", str) != digest:
            raise ModelError(f"{folder / name}: not the shard that the manifest names; build the index again")
    return [folder / name for name in sorted(digests)]


@contextmanager
def replace_folder(path: PathLike) -> Iterator[None]:
    """Let the block write a file where a folder of shards is; after an error the folder is there again."""
    if not (Path(path) / MANIFEST).exists():
        yield
        return
    with _set_aside(Path(path)):
        yield


@contextmanager
def _set_aside(path: Path) -> Iterator[None]:
    """Move what is at `path` away during the block; it comes back after an error and is deleted otherwise."""
    aside = path.with_name(f".{path.name}.{os.getpid()}.old")
    exists = path.exists()
    if exists:
        path.rename(aside)
    try:
        yield
    except BaseException:
        if exists:
            aside.rename(path)
        raise
    if exists:
        if aside.is_dir():
            shutil.rmtree(aside)
        else:
            aside.unlink()
