"""W during training: rows with a packed head and a sparse tail, in blocks that threads work on.

`_kernels.pair_rows` describes the format and updates rows, `_kernels.pair_shrinkage` has the passes over all rows. This
module allocates the arrays, decides when to enlarge or compact them, and measures their memory. The number of threads
does not change the result.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import pair_rows as updates
from .._kernels import pair_segments as segments
from .._kernels import pair_shrinkage as passes
from .._kernels.instructions import PACKS_BY_VECTOR
from .pair_batch import BLOCKS, Slots

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MIN_FILL = 0.1 if PACKS_BY_VECTOR else 0.4
"""A head grows to the columns that the tail fills to at least this share: there bits are faster than a list."""
MIN_USED_SHARE = 0.85
"""Segments are compacted if less than this share of their memory is in use."""
RESERVED_WORDS = 1 << 28
"""The words reserved for a block. Memory is taken only when it is written; more is reserved when it is needed."""


def head_sizes(n_columns: int) -> NDArray[np.int64]:
    """The lengths of heads: 0, 256, 512, 1024, 1536, 2048, 3072, … (2ᵏ and 1.5 · 2ᵏ), and all columns."""
    lengths = [256, 512] + [k << p for p in range(9, 40) for k in (2, 3)]
    return np.array([0, *(n for n in lengths if n < n_columns), n_columns], np.int64)


def segment_sizes(n_columns: int) -> NDArray[np.int64]:
    """The lengths of segments: 8, 10, 12, 14, 16, 20, … (four from a power of two to the next)."""
    lengths = [k << p for p in range(1, 40) for k in (4, 5, 6, 7)]
    return np.array([n for n in lengths if n <= 4 * n_columns + 64], np.int64)


class Pool:
    """Runs a function for every block, on one thread or several."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(min(threads, BLOCKS)) if threads > 1 else None

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        """[work(0), work(1), …], one for each block."""
        return list((map if self._threads is None else self._threads.map)(work, range(BLOCKS)))

    def submit(self, work: Callable[[], Any]) -> Callable[[], Any]:
        """Start other work in parallel to the blocks; the returned function waits for its result."""
        return work if self._threads is None else self._threads.submit(work).result

    def close(self) -> None:
        """Stop the threads."""
        if self._threads is not None:
            self._threads.shutdown()


class _Block:
    """The memory of rows b, b + BLOCKS, b + 2 BLOCKS, …: their segments, and one row that is read."""

    def __init__(self, rows: NDArray[np.int64], n_columns: int, used: int, segment_sizes: NDArray[np.int64]) -> None:
        self.rows = rows
        words = max(used + 4 * n_columns + segments.SPARE, min(2 * len(rows) * n_columns, RESERVED_WORDS))
        self._reserve(np.empty(words, np.float32))
        self.state, self._free_segments = np.array([used]), np.full(len(segment_sizes), -1, np.int64)
        self._segment_sizes = segment_sizes
        padded = n_columns + 2 * segments.SPARE
        self._scratch, self._packed = np.zeros(padded, np.float32), np.empty(padded, np.float32)
        self._columns, self._bits = np.empty(n_columns + 1, np.uint32), np.empty(padded // 16 + 1, np.uint16)

    def _reserve(self, values: NDArray[np.float32]) -> None:
        self.values, self.words, self.chunks = values, values.view(np.uint32), values.view(np.uint16)

    @property
    def free(self) -> tuple[NDArray[Any], ...]:
        """The end of the segments in use, the lengths of segments, and the free ones."""
        return self.state, self._segment_sizes, self._free_segments

    def compact(self, rows: NDArray[Any], head_sizes: NDArray[np.int64]) -> None:
        """Move the segments together if too little of their memory is in use."""
        if MIN_USED_SHARE * self.state[0] > rows["capacity"][self.rows].sum():
            order = self.rows[np.argsort(rows["start"][self.rows], kind="stable")]
            self.state[0] = segments.compact(order, rows, head_sizes, self._segment_sizes, self.words)
            self._free_segments[:] = -1

    @property
    def memory(self) -> tuple[NDArray[Any], ...]:
        """The segments: as integers of 32 and of 16 bits, and as numbers."""
        return self.words, self.chunks, self.values

    @property
    def buffers(self) -> tuple[NDArray[Any], ...]:
        """The row that is read: its numbers, the columns of its tail, and its head packed again."""
        return self._scratch, self._columns, self._bits, self._packed

    @property
    def nbytes(self) -> int:
        """Bytes that have been written to."""
        return 4 * int(self.state[0]) + sum(array.nbytes for array in self.buffers)

    def enlarge(self) -> None:
        """Reserve half as many words again, in place: a copy would hold both for a moment."""
        values = self.values
        del self.words, self.chunks, self.values
        values.resize(len(values) + len(values) // 2, refcheck=False)  # nobody else refers to it
        self._reserve(values)


class PairRows:
    """The rows of W, columns numbered by falling frequency; the caller restores their order."""

    def __init__(self, start: csr_array, levels: NDArray[np.int64] | None = None) -> None:
        """levels : the levels of the rows of a stored state, to resume exactly."""
        n_rows, n_columns = start.shape
        self.shape = (n_rows, n_columns)
        self.head_sizes, self.segment_sizes = head_sizes(n_columns), segment_sizes(n_columns)
        self.rows = np.zeros(n_rows, segments.ROW)
        self.rows["level"] = 0 if levels is None else levels
        self.pending_threshold = 0.0
        length = self.head_sizes[self.rows["level"]]
        row = np.repeat(np.arange(n_rows), np.diff(start.indptr))
        heads = np.bincount(row[start.indices < length[row]], minlength=n_rows)
        stored = heads if PACKS_BY_VECTOR else np.minimum(16 * heads, length + 15)
        need = (length + 31) // 32 + stored + 2 * (np.diff(start.indptr) - heads) + 2
        capacity = self.segment_sizes[np.searchsorted(self.segment_sizes, need + need // 8, side="right")]
        self.rows["capacity"] = capacity
        self.blocks, csr = [], (start.indptr, start.indices, start.data)
        for b in range(BLOCKS):
            rows, total = np.arange(b, n_rows, BLOCKS), int(capacity[b::BLOCKS].sum())
            self.rows["start"][rows] = np.cumsum(capacity[rows]) - capacity[rows]
            block = _Block(rows, n_columns, total, self.segment_sizes)
            self.blocks.append(block)
            segments.load_rows(b, BLOCKS, *csr, self.rows, self.head_sizes, *block.memory, *block.buffers)

    def products(self, pool: Pool, slots: Slots, pending: list[int], new: int) -> NDArray[np.float64]:
        """left_tᵀ W right_t of the batch in slot `new`, with the pending updates applied to the rows that it reads."""
        outs = np.zeros((BLOCKS, int(slots.steps[new])))
        order = np.array(pending, np.int64)
        pool.each(lambda b: self._update_block(b, slots, order, new, new, outs[b]))
        return np.asarray(outs.sum(axis=0))

    def apply_updates(self, pool: Pool, slots: Slots, pending: list[int]) -> None:
        """Apply all pending updates."""
        order, nothing = np.array(pending, np.int64), np.zeros(1)

        def work(b: int) -> None:
            for slot in pending:
                self._update_block(b, slots, order, slot, -1, nothing)

        pool.each(work)

    def _update_block(
        self, b: int, slots: Slots, pending: NDArray[np.int64], batch: int, new: int, out: NDArray[np.float64]
    ) -> None:
        """Update the rows of one block that occur in the batch in slot `batch`."""
        block, at, end = self.blocks[b], int(slots.block[batch, b]), int(slots.block[batch, b + 1])
        while at < end:
            at = updates.update_rows(
                at, end, slots.rows[batch], pending, new, self.pending_threshold, *slots.lefts, *slots.rights,
                self.rows, self.head_sizes, *block.free, *block.memory, *block.buffers, out,
            )  # fmt: skip
            if at < end:
                block.enlarge()

    def apply_threshold(self, pool: Pool, slots: Slots, pending: list[int]) -> None:
        """Apply the pending updates and the pending threshold to every entry, remove zeros, and enlarge heads."""
        order = np.array(pending, np.int64)

        def work(b: int) -> None:
            block, rows, i = self.blocks[b], (self.rows, self.head_sizes), b
            while True:
                i = passes.apply_threshold(
                    i, BLOCKS, order, self.pending_threshold, MIN_FILL, *slots.lefts, *slots.rights,
                    *rows, *block.free, *block.memory, *block.buffers,
                )  # fmt: skip
                if i >= len(self.rows):
                    break
                block.enlarge()
            segments.shorten_segments(b, BLOCKS, *rows, *block.free, block.words)
            block.compact(*rows)

        pool.each(work)
        self.pending_threshold = 0.0

    def scale(self, pool: Pool, factor: NDArray[np.float64]) -> None:
        """W[i] *= factor[i]; call `apply_threshold` before."""
        pool.each(lambda b: passes.scale(b, BLOCKS, factor, self.rows, self.head_sizes, self.blocks[b].values))

    def squared_norms(self, pool: Pool) -> NDArray[np.float64]:
        """‖W[i]‖² of every row; call `apply_threshold` before."""
        out = np.zeros(self.shape[0])
        pool.each(lambda b: passes.squared_norms(b, BLOCKS, self.rows, self.head_sizes, self.blocks[b].values, out))
        return out

    @property
    def nonzeros(self) -> int:
        """Nonzeros at the last `apply_threshold`, with the changes since of the rows that were updated."""
        return int(self.rows["nonzeros"].sum() + self.rows["tail"].sum())

    @property
    def nbytes(self) -> int:
        """Bytes of W, its row arrays and scratch memory."""
        return sum(block.nbytes for block in self.blocks) + self.rows.nbytes

    def to_csr(self, pool: Pool | None = None, order: NDArray[np.int64] | None = None) -> csr_array:
        """W, with the pending threshold applied; column j becomes order[j]."""
        from scipy.sparse import csr_array

        ptr, pool, s = np.zeros(self.shape[0] + 1, np.int64), pool or Pool(1), np.float32(self.pending_threshold)
        order = np.arange(self.shape[1]) if order is None else order

        def count(b: int) -> None:
            segments.count_entries(b, BLOCKS, s, self.rows, self.head_sizes, self.blocks[b].values, ptr[1:])

        def copy(b: int) -> None:
            scratch, packed = np.zeros(self.shape[1] + segments.SPARE, np.float32), np.empty(16, np.float32)
            segments.copy_rows(
                b, BLOCKS, s, order, self.rows, self.head_sizes, *self.blocks[b].memory, scratch, packed,
                ptr, indices, values,
            )  # fmt: skip

        pool.each(count)
        ptr = np.cumsum(ptr)
        indices, values = np.empty(int(ptr[-1]), np.uint32), np.empty(int(ptr[-1]), np.float32)
        pool.each(copy)
        if ptr[-1] < 2**31:
            return csr_array((values, indices.view(np.int32), ptr.astype(np.int32)), shape=self.shape)
        return csr_array((values, indices.astype(np.int64), ptr), shape=self.shape)
