"""W while it is learned: rows with a dense head and a sparse tail, in blocks that threads share out.

The arithmetic is in `kernels.pair_rows`; here is the storage: where rows live, when lists are compacted or enlarged,
what it costs. The same numbers come out whatever the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..kernels import pair_rows as kernel
from .pair_batch import BLOCKS, Batch, Plan

if TYPE_CHECKING:
    from scipy.sparse import csr_array

FILL = 0.3
"""A head is made longer where its new columns are filled at least this much: at most 4 / 0.3 bytes a nonzero."""
HEAD_FLOATS = 1 << 29
"""The most room for heads in a block; it is only reserved, and costs nothing until it is written."""


def head_sizes(n_columns: int) -> NDArray[np.int64]:
    """Lengths a head can have: 0, then powers of two from 256 on, then all columns."""
    powers = [2**p for p in range(8, 40) if 2**p < n_columns]
    return np.array([0, *powers, n_columns], np.int64)


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

    def __init__(self, rows: NDArray[np.int64], n_columns: int, sizes: NDArray[np.int64], entries: int) -> None:
        self.rows = rows
        self.idx, self.val = np.empty(entries, np.uint32), np.empty(entries, np.float32)
        self.heads = np.zeros(min(len(rows) * n_columns, HEAD_FLOATS), np.float32)
        self.free = np.full(len(sizes), -1, np.int64)
        self.links = np.full(len(self.heads) // int(sizes[1]) + 1, -1, np.int64)
        self.state = np.zeros(2, np.int64)
        self.scratch = np.zeros(n_columns, np.float32)
        self.fresh = np.empty(n_columns + 1, np.uint32)

    @property
    def nbytes(self) -> int:
        """Bytes that have been written to, scratch included."""
        return self.idx.nbytes + self.val.nbytes + 4 * int(self.state[1]) + self.scratch.nbytes + self.fresh.nbytes


class PairRows:
    """The rows of W, columns numbered by falling frequency (the caller turns them back)."""

    def __init__(self, start: csr_array, level: NDArray[np.int64] | None = None) -> None:
        n_rows, n_columns = start.shape
        self.shape = (n_rows, n_columns)
        self.sizes = head_sizes(n_columns)
        self.level, self.place, self.start, self.size, self.cap, self.filled = (
            np.zeros(n_rows, np.int64) for _ in range(6)
        )
        self.debt = 0.0
        self.blocks = []
        for b in range(BLOCKS):
            rows = np.arange(b, n_rows, BLOCKS)
            counts = np.diff(start.indptr)[rows]
            block = _Block(rows, n_columns, self.sizes, int(counts.sum()) + 4 * n_columns + 64)
            self.blocks.append(block)
            self._load(block, start, level)

    def _load(self, block: _Block, start: csr_array, level: NDArray[np.int64] | None) -> None:
        """Put the start's rows into the block; with `level`, heads are as long as they were, to resume exactly."""
        for i in block.rows:
            a, b = start.indptr[i], start.indptr[i + 1]
            idx, val = start.indices[a:b], start.data[a:b]
            if level is not None and level[i] > 0:
                length = int(self.sizes[level[i]])
                self.level[i], self.place[i] = level[i], block.state[1]
                block.state[1] += length
                inside = idx < length
                block.heads[self.place[i] + idx[inside]] = val[inside]
                self.filled[i] = int(inside.sum())
                idx, val = idx[~inside], val[~inside]
            end = block.state[0] + len(idx)
            block.idx[block.state[0] : end], block.val[block.state[0] : end] = idx, val
            self.start[i], self.size[i], self.cap[i] = block.state[0], len(idx), len(idx)
            block.state[0] = end

    def visit(self, pool: Pool, plan: Plan, old: Batch, new: Batch, tau: float) -> NDArray[np.float64]:
        """Add the old batch, shrink by tau, and give the new batch's left_tᵀ W right_t."""
        outs = np.zeros((BLOCKS, max(new.steps, 1)))

        def work(b: int) -> None:
            block, at, end = self.blocks[b], int(plan.block[b]), int(plan.block[b + 1])
            while True:
                at = kernel.visit(
                    at, end, plan.row, plan.old, plan.new,
                    old.row_ptr, old.entry_step, old.entry_val, old.rate, old.split, old.rptr, old.ridx, old.rval,
                    new.row_ptr, new.entry_step, new.entry_val, new.split, new.rptr, new.ridx, new.rval,
                    self.level, self.place, self.start, self.size, self.cap, self.debt, tau,
                    self.sizes, block.heads, block.state, block.idx, block.val, block.scratch, block.fresh, outs[b],
                )  # fmt: skip
                if at == end:
                    return
                self._make_room(block)

        pool.each(work)
        self.debt += tau
        return np.asarray(outs.sum(axis=0))

    def _make_room(self, block: _Block) -> None:
        """Move the lists together in place, enlarge their room where it is short, and spread them out again."""
        order = block.rows[np.argsort(self.start[block.rows], kind="stable")]
        end = kernel.compact(order, self.start, self.size, self.cap, block.idx, block.val)
        wanted = end + end // 4 + 8 * len(order) + 2 * self.shape[1]
        if wanted > len(block.idx):
            # in place: a copy would hold both for a moment, and nobody else refers to these arrays
            block.idx.resize(wanted, refcheck=False)
            block.val.resize(wanted, refcheck=False)
        block.state[0] = kernel.spread(order, self.start, self.size, self.cap, block.idx, block.val)

    def settle(self, pool: Pool) -> None:
        """Let every entry pay what it owes: W stays what it is, dead entries go, heads grow where that saves room."""

        def work(b: int) -> None:
            block = self.blocks[b]
            kernel.settle(
                b, BLOCKS, self.debt, FILL, self.level, self.place, self.sizes, block.heads, block.state,
                block.free, block.links, self.start, self.size, block.idx, block.val, self.filled,
            )  # fmt: skip

        pool.each(work)
        self.debt = 0.0

    def scale(self, pool: Pool, factor: NDArray[np.float64]) -> None:
        """Row i times factor[i]; call `settle` before."""

        def work(b: int) -> None:
            block = self.blocks[b]
            kernel.scale(
                b, BLOCKS, factor, self.level, self.place, self.sizes, block.heads, self.start, self.size, block.val
            )

        pool.each(work)

    def squared_lengths(self, pool: Pool) -> NDArray[np.float64]:
        """The squared length of every row; call `settle` before."""
        out = np.zeros(self.shape[0])

        def work(b: int) -> None:
            block = self.blocks[b]
            kernel.squared_lengths(
                b, BLOCKS, self.level, self.place, self.sizes, block.heads, self.start, self.size, block.val, out
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
        rows = (self.level, self.place, self.start, self.size, self.cap, self.filled)
        return sum(block.nbytes for block in self.blocks) + sum(array.nbytes for array in rows)

    def to_csr(self) -> csr_array:
        """W as it stands, all debts paid."""
        from scipy.sparse import csr_array

        ptr = np.zeros(self.shape[0] + 1, np.int64)
        for final in (False, True):
            n = int(ptr[-1]) if final else 0
            indices, values = np.empty(n, np.uint32), np.empty(n, np.float32)
            if not final or n:
                counts = sum(
                    kernel.unload(
                        b, BLOCKS, self.debt, self.level, self.place, self.sizes, block.heads,
                        self.start, self.size, block.idx, block.val, ptr, indices, values,
                    )
                    for b, block in enumerate(self.blocks)
                )  # fmt: skip
            if not final:
                ptr[1:] = np.cumsum(counts)
        narrow = np.int32 if ptr[-1] < 2**31 else np.int64
        return csr_array((values, indices.astype(narrow), ptr.astype(narrow)), shape=self.shape)
