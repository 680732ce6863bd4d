"""The file of an index: its segments, what they are expanded to, and a digest of all of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors
from ..errors import ModelError
from .expansion import Expansion
from .segment import Segment

MOST_SEGMENTS = 64


def state(
    segments: Sequence[Segment], made_for: str, expansion: Expansion | None
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Settings and arrays."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, one in enumerate(segments):
        arrays |= one.arrays(f"{number}.")
    settings: dict[str, Any] = {"made_for": made_for, "segments": len(segments)}
    if expansion is not None:
        settings["expansion"] = expansion.settings()
        arrays |= expansion.arrays()
    return settings | {"digest": digest_of(arrays)}, arrays


def from_file(file: Tensors) -> tuple[tuple[Segment, ...], str, Expansion | None]:
    """What `state` described, looked at no further than lengths tell."""
    if "segments" not in file.settings:
        raise ModelError(f"{file.path}: written by an earlier version; make it again with `sparserank index`")
    count = file.setting("segments", int)
    if not 1 <= count <= MOST_SEGMENTS:
        raise ModelError(f"{file.path}: an index has 1 to {MOST_SEGMENTS} segments; got {count}")
    segments = tuple(Segment.from_file(file, f"{number}.") for number in range(count))
    if len({one.n_terms for one in segments}) > 1:
        raise ModelError(f"{file.path}: its segments do not know the same terms")
    expansion = Expansion.from_file(file, segments) if "expansion" in file.settings else None
    return segments, file.setting("made_for", str), expansion


def check_all(file: Tensors, segments: Sequence[Segment], expansion: Expansion | None) -> None:
    """Read everything, and refuse by name what cannot be, or is not what was written."""
    for number, one in enumerate(segments):
        one.check(file, f"{number}.")
    if expansion is not None:
        expansion.check(file, segments)
    if digest_of(file.arrays) != file.setting("digest", str):
        raise ModelError(f"{file.path}: damaged: its content is not what was written; make it again")


def digest_of(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Of names and bytes."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(name.encode())
        for piece in _pieces(arrays[name]):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(array: NDArray[Any], size: int = 1 << 24) -> Iterator[bytes]:
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return (raw[at : at + size].tobytes() for at in range(0, len(raw), size))
