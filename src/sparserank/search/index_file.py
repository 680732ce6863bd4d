"""The file of an index: segments, their expansion, and a SHA-256 digest of all arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import FileArray, Tensors
from ..errors import ModelError
from .expansion import Expansion
from .segment import Segment

MAX_SEGMENTS = 64


def index_state(
    segments: Sequence[Segment], made_for: str, expansion: Expansion | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the settings and arrays of a file."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, segment in enumerate(segments):
        arrays |= segment.arrays(f"{number}.")
    settings: dict[str, Any] = {"made_for": made_for, "segments": len(segments)}
    if expansion is not None:
        settings["expansion"] = expansion.settings()
        arrays |= expansion.arrays()
    return settings | {"digest": arrays_digest(arrays)}, arrays


def read_index(file: Tensors) -> tuple[tuple[Segment, ...], str, Expansion | None]:
    """Map what `index_state` described and check the lengths only."""
    if "segments" not in file.settings:
        raise ModelError(f"{file.path}: an earlier version wrote this index; rebuild it with `sparserank index`")
    count = file.setting("segments", int)
    if not 1 <= count <= MAX_SEGMENTS:
        raise ModelError(f"{file.path}: an index has 1 to {MAX_SEGMENTS} segments; got {count}")
    segments = tuple(Segment.from_file(file, f"{number}.") for number in range(count))
    if len({segment.n_terms for segment in segments}) > 1:
        raise ModelError(f"{file.path}: the segments differ in their number of terms")
    expansion = Expansion.from_file(file, segments) if "expansion" in file.settings else None
    return segments, file.setting("made_for", str), expansion


def check_index(file: Tensors, segments: Sequence[Segment], expansion: Expansion | None) -> None:
    """Read everything and raise ModelError if a value is invalid or the digest differs."""
    for number, segment in enumerate(segments):
        segment.check(file, f"{number}.")
    if expansion is not None:
        expansion.check(file, segments)
    if arrays_digest(file.arrays) != file.setting("digest", str):
        raise ModelError(f"{file.path}: damaged: the content does not match its digest; rebuild the index")


def arrays_digest(arrays: Mapping[str, NDArray[Any] | FileArray]) -> str:
    """Hash the names and bytes of arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode())
        array = arrays[name]
        whole = array.pieces() if isinstance(array, FileArray) else [np.ascontiguousarray(array)]
        for piece in whole:
            digest.update(piece.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
