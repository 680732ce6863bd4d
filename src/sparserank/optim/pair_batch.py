"""Batches of triples as arrays in slots that are used again; columns are renumbered by falling frequency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import pair_batch as kernel
from ..preferences import Triples
from .scores import Bilinear

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Csr = tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.float32]]
BLOCKS = 4
"""The number of blocks of rows of W. It does not depend on the number of threads, so sums are always the same."""
FRONT = 512
"""The number of the most frequent columns over which right vectors are stored densely."""


@dataclass(frozen=True)
class Sides:
    """The two vectors of a step W += rate · left rightᵀ: left = queries[q], right = items[better] - items[worse].

    transposed : whether the sides are swapped and W is stored transposed, for penalties on the columns of W.
    """

    queries: Csr
    items: Csr
    n_left: int
    n_right: int
    transposed: bool = False

    def entries(self, triples: Triples) -> tuple[int, int]:
        """Upper bounds of the number of entries of the left and of the right vectors of some triples."""
        query = _entries(self.queries, triples.query)
        items = _entries(self.items, triples.better) + _entries(self.items, triples.worse)
        return (items, query) if self.transposed else (query, items)


class Slots:
    """`n` batches of at most `steps` triples: the right vectors, and the left ones by row of W.

    The left vectors by triple are stored only for the batch that was loaded last.
    """

    def __init__(self, sides: Sides, n: int, steps: int, sizes: NDArray[np.int64]) -> None:
        self.sides, self.sizes = sides, sizes
        self.front_level = int(np.searchsorted(sizes, FRONT, side="right")) - 1
        self.steps, self.n_rows = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.left: Csr = np.zeros(steps + 1, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32)
        self.rptr = np.zeros((n, steps + 1), np.int64)
        self.ridx, self.rval = np.empty((n, 0), np.uint32), np.empty((n, 0), np.float32)
        self.front = np.zeros((n, steps, int(sizes[self.front_level])), np.float32)
        self.split = np.zeros((n, steps, len(sizes)), np.int64)
        self.position = np.full((sides.n_left, n), -1, np.int32)
        self.rows, self.row_ptr = (np.empty((n, 0), np.int32) for _ in range(2))
        self.entry_step, self.entry_val = np.empty((n, 0), np.int32), np.empty((n, 0), np.float32)
        self.block = np.zeros((n, BLOCKS + 1), np.int64)
        self.rate, self.threshold = np.zeros((n, steps)), np.zeros(n)
        rank = np.arange(sides.n_right, dtype=np.int32)
        self.rank = np.where(rank < self.front.shape[2], rank, np.int32(-1))
        side = sides.items if sides.transposed else sides.queries
        frequent = np.argsort(-np.bincount(side[1], minlength=sides.n_left), kind="stable")[:FRONT]
        self.left_rank = np.full(sides.n_left, -1, np.int32)
        self.left_rank[frequent] = np.arange(len(frequent), dtype=np.int32)

    def load(self, slot: int, triples: Triples) -> None:
        """Store a batch in a slot whose updates have all been applied."""
        steps = len(triples.query)
        self._reserve(*self.sides.entries(triples))
        self.position[self.rows[slot, : self.n_rows[slot]], slot] = -1
        self.steps[slot], self.rate[slot] = steps, 0.0
        query, difference = self.left, self.right(slot)
        if self.sides.transposed:
            query, difference = difference, query
        kernel.gather(triples.query, *self.sides.queries, *query)
        kernel.subtract(triples.better, triples.worse, *self.sides.items, *difference)
        kernel.split_at(steps, self.rptr[slot], self.ridx[slot], self.sizes, self.split[slot])
        kernel.scatter_front(steps, *self.right(slot), self.rank, self.front[slot])
        self.n_rows[slot] = kernel.group_by_row(
            steps, *self.left, BLOCKS, self.position, slot, self.rows[slot], self.row_ptr[slot],
            self.entry_step[slot], self.entry_val[slot], self.block[slot],
        )  # fmt: skip

    def _reserve(self, left: int, right: int) -> None:
        """Enlarge the arrays to the given entries per slot, by copies: another thread may be reading the old ones."""
        if left >= self.entry_step.shape[1]:
            wide = left + left // 4 + 1
            self.left = self.left[0], np.empty(wide, np.uint32), np.empty(wide, np.float32)
            self.entry_step, self.entry_val = _wider(self.entry_step, wide), _wider(self.entry_val, wide)
            rows = min(wide, self.sides.n_left + 1)
            self.rows, self.row_ptr = _wider(self.rows, rows), _wider(self.row_ptr, rows)
        if right >= self.ridx.shape[1]:
            wide = right + right // 4 + 1
            self.ridx, self.rval = _wider(self.ridx, wide), _wider(self.rval, wide)

    @property
    def lefts(self) -> tuple[NDArray[Any], ...]:
        """The left vectors by row of W, with rates and thresholds, of all slots."""
        return self.position, self.row_ptr, self.entry_step, self.entry_val, self.rate, self.threshold

    @property
    def rights(self) -> tuple[Any, ...]:
        """The right vectors of all slots, and the level of heads that `front` is as long as."""
        return self.split, self.rptr, self.ridx, self.rval, self.front, self.front_level

    def right(self, slot: int) -> Csr:
        """The right vectors of a slot."""
        return self.rptr[slot], self.ridx[slot], self.rval[slot]


class Grams:
    """The Gram matrices of the left and right vectors of a batch, and the exact margins that follow from them."""

    def __init__(self, sides: Sides, steps: int) -> None:
        self.left, self.right = (np.zeros((steps, steps), np.float32) for _ in range(2))
        self.front = np.zeros((steps, min(FRONT, sides.n_left)), np.float32)
        self.head = np.full(max(sides.n_left, sides.n_right), -1, np.int32)
        self.step, self.link, self.value = np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.float32)

    def compute(self, slots: Slots, slot: int) -> None:
        """left[t, s] = left_t · left_s and right[t, s] = right_t · right_s for s ≤ t, of the batch loaded last."""
        steps, items = int(slots.steps[slot]), max(len(slots.left[1]), slots.ridx.shape[1])
        if items > len(self.step):
            self.step, self.link = np.empty(items, np.int32), np.empty(items, np.int32)
            self.value = np.empty(items, np.float32)
        lists = (self.head, self.step, self.value, self.link)
        kernel.scatter_front(steps, *slots.left, slots.left_rank, self.front)
        kernel.gram(steps, *slots.left, slots.left_rank, self.front, *lists, self.left)
        kernel.gram(steps, *slots.right(slot), slots.rank, slots.front[slot], *lists, self.right)

    def find_violations(
        self, slots: Slots, slot: int, margin: NDArray[np.float64], eta: NDArray[np.float64], required: float
    ) -> tuple[int, float, float]:
        """Set the rates of the batch, step by step; returns violations, summed loss and ‖change of W‖²."""
        out: tuple[int, float, float] = kernel.find_violations(
            int(slots.steps[slot]), margin, eta, required, self.left, self.right, slots.rate[slot]
        )
        return out


def _entries(matrix: Csr, rows: NDArray[np.int64]) -> int:
    return int((matrix[0][rows + 1] - matrix[0][rows]).sum())


def _wider(array: NDArray[Any], wide: int) -> NDArray[Any]:
    out = np.empty((len(array), wide), array.dtype)
    out[:, : array.shape[1]] = array
    return out


def sort_by_frequency(matrix: csr_array) -> NDArray[np.int64]:
    """Columns by falling frequency."""
    return np.argsort(-np.bincount(matrix.indices, minlength=matrix.shape[1]), kind="stable").astype(np.int64)


def renumber_columns(matrix: csr_array, place: NDArray[np.int64]) -> csr_array:
    """Column j becomes column place[j]; indices rise."""
    from scipy.sparse import csr_array

    indices = place.astype(matrix.indices.dtype)[matrix.indices]
    # two conversions sort the indices by counting, which is faster than sort_indices
    return csr_array((matrix.data, indices, matrix.indptr), shape=matrix.shape).tocsc().tocsr()


def to_arrays(matrix: csr_array) -> Csr:
    """Row pointers, columns and values of a CSR matrix."""
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint32), matrix.data.astype(np.float32)


def compute_center_margins(
    query_center: csr_array, score: Bilinear, triples: Triples, first: int, count: int
) -> NDArray[np.float64]:
    """qᵀ C (d⁺ − d⁻) of some triples, with query_center = queries · C."""
    q, better, worse = (column[first : first + count] for column in triples)
    difference = score.items[better] - score.items[worse]
    return np.asarray(query_center[q].multiply(difference).sum(axis=1), dtype=np.float64).ravel()
