"""W during training: rows with a dense head and a sparse tail, in blocks that threads work on.

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
from .._kernels import pair_shrinkage as passes
from .pair_batch import BLOCKS, Slots

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SCAN_COST, MEMORY_COST = 0.1, 0.2
"""The cost of reading one number of a head, and of storing four bytes, relative to decoding one entry of a tail."""
MIN_USED_SHARE = 0.85
"""Tails are compacted if less than this share of their memory is in use."""
MAX_HEAD_FLOATS = 1 << 29
"""The most numbers in the heads of a block. The memory is reserved, and taken only when it is written."""
RESERVED_ENTRIES = 1 << 27
"""The entries reserved for the tails of a block in the same way; more are allocated when they are needed."""


def head_sizes(n_columns: int) -> NDArray[np.int64]:
    """The lengths of heads: 0, 256, 512, 1024, 1536, 2048, 3072, … (2ᵏ and 1.5 · 2ᵏ), and all columns."""
    lengths = [256, 512] + [k << p for p in range(9, 40) for k in (2, 3)]
    return np.array([0, *(n for n in lengths if n < n_columns), n_columns], np.int64)


def segment_sizes(n_columns: int) -> NDArray[np.int64]:
    """The lengths of the segments of tails: 8, 10, 12, 14, 16, 20, … (four from a power of two to the next)."""
    lengths = [k << p for p in range(1, 40) for k in (4, 5, 6, 7)]
    return np.array([n for n in lengths if n <= 4 * n_columns + 16], np.int64)


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
    """The memory of rows b, b + BLOCKS, b + 2 BLOCKS, …"""

    def __init__(
        self, rows: NDArray[np.int64], n_columns: int, sizes: NDArray[np.int64], classes: int, entries: int
    ) -> None:
        self.rows = rows
        capacity = max(entries, min(len(rows) * n_columns, RESERVED_ENTRIES))
        self.idx, self.val = np.empty(capacity, np.uint32), np.empty(capacity, np.float32)
        self.heads = np.zeros(min(len(rows) * n_columns, MAX_HEAD_FLOATS), np.float32)
        self.free_heads = np.full(len(sizes), -1, np.int64)
        self.next_free = np.full(len(self.heads) // int(sizes[1]) + 1, -1, np.int64)
        self.free_segments = np.full(classes, -1, np.int64)
        self.state = np.zeros(2, np.int64)
        self.scratch = np.zeros(n_columns, np.float32)
        self.added = np.empty(n_columns + 1, np.uint32)
        self.buffer = np.zeros(n_columns, np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes that have been written to, scratch included."""
        always = (self.scratch, self.added, self.buffer)
        return 8 * int(self.state[0]) + 4 * int(self.state[1]) + sum(array.nbytes for array in always)

    def enlarge(self) -> None:
        """Allocate half as many entries again, in place: a copy would hold both for a moment."""
        capacity = len(self.idx) + len(self.idx) // 2
        self.idx.resize(capacity, refcheck=False)  # nobody else refers to these arrays
        self.val.resize(capacity, refcheck=False)


class PairRows:
    """The rows of W, columns numbered by falling frequency; the caller restores their order."""

    def __init__(
        self, start: csr_array, batch_share: NDArray[np.float64], head_level: NDArray[np.int64] | None = None
    ) -> None:
        """batch_share[i] = the share of batches that row i occurs in; head_level : of a stored state."""
        n_rows, n_columns = start.shape
        self._min_fill = (SCAN_COST * batch_share + MEMORY_COST) / (batch_share + 2 * MEMORY_COST)
        self.shape = (n_rows, n_columns)
        self.head_sizes = head_sizes(n_columns)
        self.segment_sizes = segment_sizes(n_columns)
        self.head_level, self.head_start, self.head_nonzeros = (np.zeros(n_rows, np.int64) for _ in range(3))
        self.tail_start, self.tail_size, self.tail_capacity = (np.zeros(n_rows, np.int64) for _ in range(3))
        self.pending_threshold = 0.0
        self.blocks = []
        for b in range(BLOCKS):
            rows = np.arange(b, n_rows, BLOCKS)
            entries = np.diff(start.indptr)[rows]
            capacity = self.segment_sizes[np.searchsorted(self.segment_sizes, entries + entries // 8, side="right")]
            self.tail_capacity[rows] = capacity
            self.tail_start[rows] = np.cumsum(capacity) - capacity
            total = int(capacity.sum())
            block = _Block(rows, n_columns, self.head_sizes, len(self.segment_sizes), total + 2 * n_columns)
            block.state[0] = total
            self.blocks.append(block)
            self._load(block, start, head_level)

    def _load(self, block: _Block, start: csr_array, head_level: NDArray[np.int64] | None) -> None:
        """Store the rows of `start`; with `head_level`, heads are as long as they were, to resume exactly."""
        row = np.repeat(block.rows, np.diff(start.indptr)[block.rows])
        first = np.repeat(start.indptr[block.rows], np.diff(start.indptr)[block.rows]).astype(np.int64)
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        idx, val = start.indices[first + rank], start.data[first + rank]
        if head_level is not None:
            level = head_level[block.rows]
            lengths = self.head_sizes[level]
            self.head_level[block.rows], self.head_start[block.rows] = level, np.cumsum(lengths) - lengths
            block.state[1] = lengths.sum()
            inside = idx < self.head_sizes[head_level[row]]
            block.heads[self.head_start[row[inside]] + idx[inside]] = val[inside]
            self.head_nonzeros[block.rows] = np.bincount(row[inside], minlength=self.shape[0])[block.rows]
            row, idx, val = row[~inside], idx[~inside], val[~inside]
            rank = np.arange(len(row)) - np.searchsorted(row, row)
        place = self.tail_start[row] + rank
        block.idx[place], block.val[place] = idx, val
        self.tail_size[block.rows] = np.bincount(row, minlength=self.shape[0])[block.rows]

    @property
    def _heads(self) -> tuple[NDArray[np.int64], ...]:
        return self.head_level, self.head_start, self.head_sizes

    @property
    def _tails(self) -> tuple[NDArray[np.int64], ...]:
        return self.tail_start, self.tail_size

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
                at, end, slots.rows[batch], pending, new, self.pending_threshold,
                slots.position, slots.row_ptr, slots.entry_step, slots.entry_val, slots.rate, slots.threshold,
                slots.split, slots.rptr, slots.ridx, slots.rval, slots.front,
                self.head_level, self.head_start, self.tail_start, self.tail_size, self.tail_capacity,
                self.head_sizes, slots.front_level, block.heads, block.state, self.segment_sizes,
                block.free_segments, block.idx, block.val, block.scratch, block.added, block.buffer, out,
            )  # fmt: skip
            if at < end:
                block.enlarge()

    def apply_threshold(self, pool: Pool) -> None:
        """Apply the pending threshold to every entry: W does not change, but zeros are removed and heads enlarged."""

        def work(b: int) -> None:
            block, tails = self.blocks[b], (*self._tails, self.tail_capacity)
            passes.apply_threshold(
                b, BLOCKS, self.pending_threshold, self._min_fill, *self._heads, block.heads, block.state,
                block.free_heads, block.next_free, *self._tails, block.idx, block.val, self.head_nonzeros,
            )  # fmt: skip
            segments = (self.segment_sizes, block.free_segments, block.idx, block.val)
            updates.shorten_segments(b, BLOCKS, *tails, block.state, *segments)
            if MIN_USED_SHARE * block.state[0] > self.tail_capacity[block.rows].sum():
                order = block.rows[np.argsort(self.tail_start[block.rows], kind="stable")]
                block.state[0] = updates.compact(order, *tails, self.segment_sizes, block.idx, block.val)
                block.free_segments[:] = -1

        pool.each(work)
        self.pending_threshold = 0.0

    def scale(self, pool: Pool, factor: NDArray[np.float64]) -> None:
        """W[i] *= factor[i]; call `apply_threshold` before."""

        def work(b: int) -> None:
            block = self.blocks[b]
            passes.scale(b, BLOCKS, factor, *self._heads, block.heads, *self._tails, block.val)

        pool.each(work)

    def squared_norms(self, pool: Pool) -> NDArray[np.float64]:
        """‖W[i]‖² of every row; call `apply_threshold` before."""
        out = np.zeros(self.shape[0])

        def work(b: int) -> None:
            block = self.blocks[b]
            passes.squared_norms(b, BLOCKS, *self._heads, block.heads, *self._tails, block.val, out)

        pool.each(work)
        return out

    @property
    def nonzeros(self) -> int:
        """Nonzeros at the last `apply_threshold`, with the changes of the tails since."""
        return int(self.head_nonzeros.sum() + self.tail_size.sum())

    @property
    def nbytes(self) -> int:
        """Bytes of W, its row arrays and scratch memory."""
        rows = (
            self.head_level, self.head_start, self.head_nonzeros, self.tail_start, self.tail_size, self.tail_capacity
        )  # fmt: skip
        return sum(block.nbytes for block in self.blocks) + sum(array.nbytes for array in rows)

    def to_csr(self, pool: Pool | None = None) -> csr_array:
        """W, with the pending threshold applied."""
        from scipy.sparse import csr_array

        ptr, pool = np.zeros(self.shape[0] + 1, np.int64), pool or Pool(1)

        def copy(b: int) -> NDArray[np.int64]:
            block = self.blocks[b]
            counts: NDArray[np.int64] = passes.copy_rows(
                b, BLOCKS, self.pending_threshold, *self._heads, block.heads, *self._tails, block.idx, block.val,
                ptr, indices, values,
            )  # fmt: skip
            return counts

        indices, values = np.empty(0, np.uint32), np.empty(0, np.float32)
        ptr[1:] = np.cumsum(sum(pool.each(copy)))
        indices, values = np.empty(int(ptr[-1]), np.uint32), np.empty(int(ptr[-1]), np.float32)
        if len(values):
            pool.each(copy)
        if ptr[-1] < 2**31:
            return csr_array((values, indices.view(np.int32), ptr.astype(np.int32)), shape=self.shape)
        return csr_array((values, indices.astype(np.int64), ptr), shape=self.shape)
