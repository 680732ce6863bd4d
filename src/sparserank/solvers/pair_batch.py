"""A batch of triples as arrays, reused from batch to batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..kernels import pair_batch as kernel
from ..preferences import Triples
from .columns import Csr

BLOCKS = 4
"""Rows of W are shared out over this many blocks, whatever the number of threads, so that sums are always the same."""


@dataclass(frozen=True)
class Sides:
    """What a step multiplies: W += rate · left rightᵀ, left = queries[q] and right = items[better] - items[worse].

    `turned` swaps the two sides, for penalties on the columns of W: then W is kept transposed.
    """

    queries: Csr
    items: Csr
    n_left: int
    n_right: int
    turned: bool = False

    @property
    def longest(self) -> tuple[int, int]:
        """The most entries a left and a right vector can have."""
        query, item = (int(np.diff(side[0]).max(initial=0)) for side in (self.queries, self.items))
        return (2 * item, query) if self.turned else (query, 2 * item)


class Batch:
    """Left vectors, right vectors and the rows of W they meet, for at most `steps` triples."""

    def __init__(self, sides: Sides, steps: int, sizes: NDArray[np.int64]) -> None:
        left, right = (steps * longest for longest in sides.longest)
        self.sides, self.sizes, self.steps, self.n_rows = sides, sizes, 0, 0
        self.lptr, self.lidx, self.lval = _vectors(steps, left)
        self.rptr, self.ridx, self.rval = _vectors(steps, right)
        self.split = np.zeros((steps, len(sizes)), np.int64)
        self.place = np.full(sides.n_left, -1, np.int64)
        self.rows = np.empty(min(sides.n_left, left), np.int64)
        self.row_ptr = np.zeros(len(self.rows) + 1, np.int64)
        self.entry_step, self.entry_val = np.empty(left, np.int32), np.empty(left, np.float32)
        self.block = np.zeros(BLOCKS + 1, np.int64)
        self.rate = np.zeros(steps, np.float64)

    def clear(self) -> None:
        """No triples."""
        self.place[self.rows[: self.n_rows]] = -1
        self.block[:] = 0
        self.steps = self.n_rows = 0

    def take(self, triples: Triples) -> None:
        """Make these triples ready."""
        self.clear()
        self.steps = len(triples.query)
        self.rate[:] = 0.0
        query, difference = (self.lptr, self.lidx, self.lval), (self.rptr, self.ridx, self.rval)
        if self.sides.turned:
            query, difference = difference, query
        kernel.gather(triples.query, *self.sides.queries, *query)
        kernel.subtract(triples.better, triples.worse, *self.sides.items, *difference)
        kernel.split_at(self.steps, self.rptr, self.ridx, self.sizes, self.split)
        self.n_rows = kernel.group_by_row(
            self.steps, self.lptr, self.lidx, self.lval, BLOCKS,
            self.place, self.rows, self.row_ptr, self.entry_step, self.entry_val, self.block,
        )  # fmt: skip


class Plan:
    """Which rows to visit for an old batch (to be added) and a new one (to be multiplied)."""

    def __init__(self, n_left: int) -> None:
        self.row, self.old, self.new = (np.empty(2 * n_left, np.int64) for _ in range(3))
        self.block = np.zeros(BLOCKS + 1, np.int64)

    def make(self, old: Batch, new: Batch) -> None:
        """Rows of both batches, by block."""
        kernel.plan(
            BLOCKS, old.rows, old.block, old.place, new.rows, new.block, new.place,
            self.row, self.old, self.new, self.block,
        )  # fmt: skip


class Grams:
    """The two Gram matrices of a batch, and the decisions they allow."""

    def __init__(self, sides: Sides, steps: int) -> None:
        items = steps * max(sides.longest)
        self.left, self.right = (np.zeros((steps, steps), np.float32) for _ in range(2))
        self.head = np.full(max(sides.n_left, sides.n_right), -1, np.int32)
        self.step, self.value, self.link = (
            np.empty(items, np.int32),
            np.empty(items, np.float32),
            np.empty(items, np.int32),
        )

    def make(self, batch: Batch) -> None:
        """left[t, s] = left_t · left_s and right[t, s] = right_t · right_s for s ≤ t."""
        lists = (self.head, self.step, self.value, self.link)
        kernel.gram(batch.steps, batch.lptr, batch.lidx, batch.lval, *lists, self.left)
        kernel.gram(batch.steps, batch.rptr, batch.ridx, batch.rval, *lists, self.right)

    def decide(
        self, batch: Batch, margin: NDArray[np.float64], eta: NDArray[np.float64], wanted: float
    ) -> tuple[int, float, float]:
        """Set the batch's rates, in order; returns violations, summed loss, squared change of W."""
        out: tuple[int, float, float] = kernel.decide(
            batch.steps, margin, eta, wanted, self.left, self.right, batch.rate
        )
        return out


def _vectors(steps: int, entries: int) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]:
    return np.zeros(steps + 1, np.int64), np.empty(entries, np.uint32), np.empty(entries, np.float32)
