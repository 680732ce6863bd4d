"""W while it is learned: rows with a dense head and a sparse tail, in blocks that threads share out.

The arithmetic is in `_kernels.pair_rows`; here is the storage: where rows live, when lists are compacted or enlarged,
what it costs. The same numbers come out whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import pair_rows as kernel
from .pair_batch import BLOCKS, Slots

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PASSING, MEMORY = 0.1, 0.2
"""What it costs to pass over one number of a head, and to keep four bytes, if to unpack one entry of a list costs 1."""
VACANT = 0.85
"""Lists are moved together where less than this share of their place is in use."""
HEAD_FLOATS = 1 << 29
"""The most room for heads in a block; it is only reserved, and costs nothing until it is written."""
LIST_ENTRIES = 1 << 27
"""The room reserved for the lists of a block in the same way; it is enlarged where that is not enough."""


def head_sizes(n_columns: int) -> NDArray[np.int64]:
    """Lengths a head can have: 0, 256, 512, 1024, 1536, 2048, 3072, … (powers of two and half again), all columns."""
    lengths = [256, 512] + [k << p for p in range(9, 40) for k in (2, 3)]
    return np.array([0, *(n for n in lengths if n < n_columns), n_columns], np.int64)


def room_sizes(n_columns: int) -> NDArray[np.int64]:
    """Lengths of the rooms that lists live in: 8, 10, 12, 14, 16, 20, … (four between a power of two and the next)."""
    lengths = [k << p for p in range(1, 40) for k in (4, 5, 6, 7)]
    return np.array([n for n in lengths if n <= 4 * n_columns + 16], np.int64)


class Pool:
    """Runs a function for every block, on one thread or several."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(min(threads, BLOCKS)) if threads > 1 else None

    def each(self, work: Callable[[int], Any]) -> list[Any]:
        """[work(0), work(1), …], one a block."""
        return list((map if self._threads is None else self._threads.map)(work, range(BLOCKS)))

    def beside(self, work: Callable[[], Any]) -> Callable[[], Any]:
        """Start other work beside the blocks'; call what is returned to have it done."""
        return work if self._threads is None else self._threads.submit(work).result

    def close(self) -> None:
        """Let the threads go."""
        if self._threads is not None:
            self._threads.shutdown()


class _Block:
    """The storage of rows b, b + BLOCKS, b + 2 BLOCKS, …"""

    def __init__(
        self, rows: NDArray[np.int64], n_columns: int, sizes: NDArray[np.int64], kinds: int, entries: int
    ) -> None:
        self.rows = rows
        room = max(entries, min(len(rows) * n_columns, LIST_ENTRIES))
        self.idx, self.val = np.empty(room, np.uint32), np.empty(room, np.float32)
        self.heads = np.zeros(min(len(rows) * n_columns, HEAD_FLOATS), np.float32)
        self.free = np.full(len(sizes), -1, np.int64)
        self.links = np.full(len(self.heads) // int(sizes[1]) + 1, -1, np.int64)
        self.vacant = np.full(kinds, -1, np.int64)
        self.state = np.zeros(2, np.int64)
        self.scratch = np.zeros(n_columns, np.float32)
        self.fresh = np.empty(n_columns + 1, np.uint32)
        self.buffer = np.zeros(n_columns, np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes that have been written to, scratch included."""
        always = (self.scratch, self.fresh, self.buffer)
        return 8 * int(self.state[0]) + 4 * int(self.state[1]) + sum(array.nbytes for array in always)


class PairRows:
    """The rows of W, columns numbered by falling frequency (the caller turns them back)."""

    def __init__(self, start: csr_array, often: NDArray[np.float64], level: NDArray[np.int64] | None = None) -> None:
        """often[i] = the share of batches that row i occurs in; with `level`, heads are as long as they were."""
        n_rows, n_columns = start.shape
        self._fill = (PASSING * often + MEMORY) / (often + 2 * MEMORY)
        self.shape = (n_rows, n_columns)
        self.sizes = head_sizes(n_columns)
        self.rooms = room_sizes(n_columns)
        self.level, self.home, self.start, self.size, self.cap, self.filled = (
            np.zeros(n_rows, np.int64) for _ in range(6)
        )
        self.debt = 0.0
        self.blocks = []
        for b in range(BLOCKS):
            rows = np.arange(b, n_rows, BLOCKS)
            entries = np.diff(start.indptr)[rows]
            rooms = self.rooms[np.searchsorted(self.rooms, entries + entries // 8, side="right")]
            self.cap[rows] = rooms
            self.start[rows] = np.cumsum(rooms) - rooms
            block = _Block(rows, n_columns, self.sizes, len(self.rooms), int(rooms.sum()) + 2 * n_columns)
            block.state[0] = rooms.sum()
            self.blocks.append(block)
            self._load(block, start, level)

    def _load(self, block: _Block, start: csr_array, level: NDArray[np.int64] | None) -> None:
        """Put the start's rows into the block; with `level`, heads are as long as they were, to resume exactly."""
        row = np.repeat(block.rows, np.diff(start.indptr)[block.rows])
        first = np.repeat(start.indptr[block.rows], np.diff(start.indptr)[block.rows]).astype(np.int64)
        rank = np.arange(len(row)) - np.searchsorted(row, row)
        idx, val = start.indices[first + rank], start.data[first + rank]
        if level is not None:
            lengths = self.sizes[level[block.rows]]
            self.level[block.rows], self.home[block.rows] = level[block.rows], np.cumsum(lengths) - lengths
            block.state[1] = lengths.sum()
            inside = idx < self.sizes[level[row]]
            block.heads[self.home[row[inside]] + idx[inside]] = val[inside]
            self.filled[block.rows] = np.bincount(row[inside], minlength=self.shape[0])[block.rows]
            row, idx, val = row[~inside], idx[~inside], val[~inside]
            rank = np.arange(len(row)) - np.searchsorted(row, row)
        here = self.start[row] + rank
        block.idx[here], block.val[here] = idx, val
        self.size[block.rows] = np.bincount(row, minlength=self.shape[0])[block.rows]

    def visit(self, pool: Pool, slots: Slots, waiting: list[int], new: int) -> NDArray[np.float64]:
        """Bring the rows of batch `new` up to date with the batches in waiting; gives its left_tᵀ W right_t."""
        outs = np.zeros((BLOCKS, int(slots.steps[new])))
        order = np.array(waiting, np.int64)
        pool.each(lambda b: self._visit_block(b, slots, order, new, new, outs[b]))
        return np.asarray(outs.sum(axis=0))

    def flush(self, pool: Pool, slots: Slots, waiting: list[int]) -> None:
        """Add all that is waiting."""
        order, nothing = np.array(waiting, np.int64), np.zeros(1)

        def work(b: int) -> None:
            for slot in waiting:
                self._visit_block(b, slots, order, slot, -1, nothing)

        pool.each(work)

    def _visit_block(
        self, b: int, slots: Slots, waiting: NDArray[np.int64], whose: int, new: int, out: NDArray[np.float64]
    ) -> None:
        """Visit the rows of one block that batch `whose` has."""
        block, at, end = self.blocks[b], int(slots.block[whose, b]), int(slots.block[whose, b + 1])
        while at < end:
            at = kernel.visit(
                at, end, slots.rows[whose], waiting, new, self.debt,
                slots.place, slots.row_ptr, slots.entry_step, slots.entry_val, slots.rate, slots.owed,
                slots.split, slots.rptr, slots.ridx, slots.rval, slots.front,
                self.level, self.home, self.start, self.size, self.cap, self.sizes, slots.front_level,
                block.heads, block.state, self.rooms, block.vacant, block.idx, block.val,
                block.scratch, block.fresh, block.buffer, out,
            )  # fmt: skip
            if at < end:
                self._make_room(block)

    def _make_room(self, block: _Block) -> None:
        """Enlarge the place for lists, in place: a copy would hold both for a moment, and nobody else refers to it."""
        size = len(block.idx) + len(block.idx) // 2
        block.idx.resize(size, refcheck=False)
        block.val.resize(size, refcheck=False)

    def settle(self, pool: Pool) -> None:
        """Let every entry pay what it owes: W stays what it is, dead entries go, heads grow where that saves room."""

        def work(b: int) -> None:
            block = self.blocks[b]
            kernel.settle(
                b, BLOCKS, self.debt, self._fill, self.level, self.home, self.sizes, block.heads, block.state,
                block.free, block.links, self.start, self.size, self.cap, self.rooms, block.vacant,
                block.idx, block.val, self.filled,
            )  # fmt: skip
            if VACANT * block.state[0] > self.cap[block.rows].sum():
                order = block.rows[np.argsort(self.start[block.rows], kind="stable")]
                where = (self.start, self.size, self.cap, self.rooms, block.idx, block.val)
                block.state[0] = kernel.compact(order, *where)
                block.vacant[:] = -1

        pool.each(work)
        self.debt = 0.0

    def scale(self, pool: Pool, factor: NDArray[np.float64]) -> None:
        """Row i times factor[i]; call `settle` before."""

        def work(b: int) -> None:
            block = self.blocks[b]
            kernel.scale(
                b, BLOCKS, factor, self.level, self.home, self.sizes, block.heads, self.start, self.size, block.val
            )

        pool.each(work)

    def squared_lengths(self, pool: Pool) -> NDArray[np.float64]:
        """The squared length of every row; call `settle` before."""
        out = np.zeros(self.shape[0])

        def work(b: int) -> None:
            block = self.blocks[b]
            kernel.squared_lengths(
                b, BLOCKS, self.level, self.home, self.sizes, block.heads, self.start, self.size, block.val, out
            )

        pool.each(work)
        return out

    @property
    def nonzeros(self) -> int:
        """Entries that are not zero, as of the last settling (with those of the tails that came or died since)."""
        return int(self.filled.sum() + self.size.sum())

    @property
    def nbytes(self) -> int:
        """Bytes that hold W now, with all that is kept beside it."""
        rows = (self.level, self.home, self.start, self.size, self.cap, self.filled)
        return sum(block.nbytes for block in self.blocks) + sum(array.nbytes for array in rows)

    def to_csr(self, pool: Pool | None = None) -> csr_array:
        """W as it stands, all debts paid."""
        from scipy.sparse import csr_array

        ptr, pool = np.zeros(self.shape[0] + 1, np.int64), pool or Pool(1)

        def unload(b: int) -> NDArray[np.int64]:
            block = self.blocks[b]
            found: NDArray[np.int64] = kernel.unload(
                b, BLOCKS, self.debt, self.level, self.home, self.sizes, block.heads,
                self.start, self.size, block.idx, block.val, ptr, indices, values,
            )  # fmt: skip
            return found

        indices, values = np.empty(0, np.uint32), np.empty(0, np.float32)
        ptr[1:] = np.cumsum(sum(pool.each(unload)))
        indices, values = np.empty(int(ptr[-1]), np.uint32), np.empty(int(ptr[-1]), np.float32)
        if len(values):
            pool.each(unload)
        if ptr[-1] < 2**31:
            return csr_array((values, indices.view(np.int32), ptr.astype(np.int32)), shape=self.shape)
        return csr_array((values, indices.astype(np.int64), ptr), shape=self.shape)
