"""Block maxima of a segment: the largest weight of each term among neighbouring documents, for pruned search."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors
from ..errors import ModelError

MIN_DOCUMENTS = 1 << 15
"""A smaller segment has no block maxima: reading all postings of a query is as fast."""
MAX_DOCUMENTS = 1 << 26
"""A larger segment has none either: entries have 23 bits for the number of a block."""
GROUP = 64
_TYPES = {
    "starts": "int64", "entries": "int32", "masks": "uint8", "rows": "int32", "levels": "uint8",
    "dense_masks": "uint8", "groups": "int32", "peaks": "float32",
}  # fmt: skip


@dataclass(frozen=True)
class BlockMaxima:
    """The arrays of `_kernels.block_max`, which describes them.

    entries and masks from starts[t] on are the blocks of term t; rows[t] ≥ 0 is its row in the dense arrays.
    """

    starts: NDArray[np.int64]
    entries: NDArray[np.int32]
    masks: NDArray[np.uint8]
    rows: NDArray[np.int32]
    levels: NDArray[np.uint8]
    dense_masks: NDArray[np.uint8]
    groups: NDArray[np.int32]
    peaks: NDArray[np.float32]

    def __post_init__(self) -> None:
        for name in _TYPES:
            array = getattr(self, name).view()
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def build(
        cls, starts: NDArray[np.int64], docs: NDArray[np.int32], weights: NDArray[np.float32], n_docs: int
    ) -> BlockMaxima | None:
        """Return the maxima of postings; None if there are too few or too many documents."""
        from .._kernels.block_max import count_blocks, fill_blocks

        if not MIN_DOCUMENTS <= n_docs <= MAX_DOCUMENTS:
            return None
        counts, rows = count_blocks(starts, docs, n_docs)
        b_starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        n_entries, n_rows, n_groups = int(b_starts[-1]), int(rows.max(initial=-1)) + 1, -(-n_docs // GROUP)
        entries, masks = np.zeros(n_entries, np.int32), np.zeros(n_entries, np.uint8)
        levels, dense_masks = (np.zeros((n_rows, 8 * n_groups), np.uint8) for _ in range(2))
        groups, peaks = np.zeros((n_rows, n_groups), np.int32), np.zeros(len(rows), np.float32)
        fill_blocks(starts, docs, weights, b_starts, rows, entries, masks, levels, dense_masks, groups, peaks)
        return cls(b_starts, entries, masks, rows, levels, dense_masks, groups, peaks)

    @cached_property
    def kernel_arrays(self) -> list[NDArray[Any]]:
        """The arrays in the order and the types of the kernels."""
        arrays = [getattr(self, name) for name in _TYPES]
        arrays[1] = self.entries.view(np.uint32)
        return arrays

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the arrays for a file."""
        return {f"{prefix}blocks.{name}": getattr(self, name).reshape(-1) for name in _TYPES}

    @classmethod
    def from_file(cls, file: Tensors, prefix: str, n_docs: int, n_terms: int) -> BlockMaxima | None:
        """Map what `arrays` wrote and check the lengths; None if the file has no block maxima."""
        prefix = f"{prefix}blocks."
        if f"{prefix}starts" not in file.arrays:
            return None
        arrays = {name: file.raw(f"{prefix}{name}", dtype) for name, dtype in _TYPES.items()}
        file.offsets(f"{prefix}starts", len(arrays["entries"]), n_terms)
        n_rows, n_groups = int(arrays["rows"].max(initial=-1)) + 1, -(-n_docs // GROUP)
        lengths = {"masks": len(arrays["entries"]), "rows": n_terms, "peaks": n_terms, "groups": n_rows * n_groups}
        lengths |= dict.fromkeys(("levels", "dense_masks"), 8 * n_rows * n_groups)
        for name, length in lengths.items():
            if len(arrays[name]) != length:
                raise ModelError(f"{file.path}: '{prefix}{name}' must have {length} entries; got {len(arrays[name])}")
        for name in ("levels", "dense_masks", "groups"):
            arrays[name] = arrays[name].reshape(n_rows, -1) if n_rows else np.zeros((0, 0), arrays[name].dtype)
        return cls(**arrays)
