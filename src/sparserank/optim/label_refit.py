"""The squared loss on all pairs of items, for a W that has entries only where it has them now (the pattern P):

    min over W on P   ½‖XWXᵀ - YYᵀ‖² + ½ ridge (‖XW‖² + ‖WXᵀ‖² + ridge ‖W‖²)

that is ((C + ridge) W (C + ridge))_P = (XᵀYYᵀX)_P with C = XᵀX. Where the pattern is small – no more than
`MOST_COLUMNS` columns, `MOST_WORK` – C of these columns is held and the equations are solved by conjugate gradients;
else by Adam on batches of items, all pairs of a batch at once, and what is held beside W is batch × columns. Threads
own rows, so they change no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float32]

MOST_COLUMNS, MOST_WORK = 8192, 25 * 10**9
"""256 MB for C and as much for its product with W; entries of W times columns, a few seconds a step on two cores."""
MOST_IN_BATCH = 1 << 24
"""Items of a batch times columns in use: 64 MB."""
ROWS_A_TASK, COLUMNS_A_TASK, GRAM_ROWS_A_TASK = 16, 64, 512


class Pattern(NamedTuple):
    """A W over the columns in use, as CSR arrays."""

    pointer: NDArray[Any]
    column: NDArray[Any]
    values: Floats


@dataclass(frozen=True)
class ClassRefit:
    """The solver and its settings.

    exact_steps : of conjugate gradients. steps, batch, rate : of Adam; rate is relative to the mean size of W's
        entries, and falls to 0. most_columns, most_work : up to which C is held.
    """

    ridge: float = 1.5
    exact_steps: int = 5
    steps: int = 30
    batch: int = 800
    rate: float = 0.1
    most_columns: int = MOST_COLUMNS
    most_work: int = MOST_WORK
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        validation.number("ridge", self.ridge, low=0, open_low=True)
        validation.number("rate", self.rate, low=0)
        for name in ("exact_steps", "steps", "most_columns", "most_work"):
            validation.count(name, getattr(self, name))
        validation.count("batch", self.batch, low=2)

    def fitted(self, X: csr_array, Y: Floats, W: csr_array, seed: int) -> csr_array:
        """W on its own entries, from the values it has."""
        from scipy.sparse import csr_array

        used = np.flatnonzero(np.bincount(W.indices, minlength=W.shape[0]) + np.diff(W.indptr))
        if len(used) == 0:
            return W
        items = csr_array(X.tocsc()[:, used])
        items.sort_indices()
        number = np.zeros(W.shape[0], np.int32)
        number[used] = np.arange(len(used))
        start = Pattern(np.append(W.indptr[used], W.nnz), number[W.indices], W.data.astype(np.float32))
        with ThreadPoolExecutor(validation.threads(self.n_jobs)) as pool:
            if self._is_small(len(used), W.nnz):
                values = self._exactly(items, Y, start, pool)
            else:
                values = self._in_batches(items, Y, start, seed, pool)
        return csr_array((values, W.indices, W.indptr), shape=W.shape)

    def steps_for(self, W: csr_array) -> int:
        """How many steps `fitted` takes from this W."""
        used = np.count_nonzero(np.bincount(W.indices, minlength=W.shape[0]) + np.diff(W.indptr))
        return self.exact_steps if self._is_small(int(used), W.nnz) else self.steps

    def _is_small(self, columns: int, entries: int) -> bool:
        return columns <= self.most_columns and columns * entries <= self.most_work

    def _exactly(self, X: csr_array, Y: Floats, W: Pattern, pool: Executor) -> Floats:
        """Conjugate gradients on the normal equations, each divided by its diagonal."""
        C = np.ascontiguousarray((X.T @ X).toarray(), dtype=np.float32)
        C[np.diag_indices(len(C))] += np.float32(self.ridge)
        row, ones = np.repeat(np.arange(len(C)), np.diff(W.pointer)), np.diag(C)
        of_class = np.ascontiguousarray(X.T @ Y)
        goal = np.empty_like(W.values)
        _sampled(W, of_class, of_class, goal, pool)
        by = ones[row] * ones[W.column]
        values, product = W.values.copy(), np.empty_like(W.values)

        def times(v: Floats) -> Floats:
            _normal(W._replace(values=v), C, product, pool)
            return product

        rest = goal - times(values)
        nearer = rest / by
        way, left = nearer.copy(), _dot(rest, nearer)
        for _ in range(self.exact_steps):
            if left <= 0.0:
                break
            turn = times(way)
            far = np.float32(left / _dot(way, turn))
            values += far * way
            rest -= far * turn
            nearer = rest / by
            now = _dot(rest, nearer)
            way = nearer + np.float32(now / left) * way
            left = now
        return values

    def _in_batches(self, X: csr_array, Y: Floats, W: Pattern, seed: int, pool: Executor) -> Floats:
        """Adam, every step on all pairs of the next items in a random order."""
        from .._kernels.class_pairs import pattern_step, residual_rows

        (n, used), rng = X.shape, np.random.default_rng(seed)
        size = max(2, min(self.batch, n, MOST_IN_BATCH // used))
        share, order, at = size / n, rng.permutation(n), 0
        H, values = np.empty((size, used), np.float32), W.values.copy()
        mean, square = np.zeros_like(values), np.zeros_like(values)
        unit = self.rate * float(np.abs(values).mean())
        place = (W.pointer, W.column, values)
        for step in range(1, self.steps + 1):
            if at + size > n:
                order, at = rng.permutation(n), 0
            batch = np.sort(order[at : at + size])
            at += size
            rate = unit * min(1.0, 1.5 * (1.0 - step / self.steps) + 0.02)
            x, wanted = X[batch], Y[batch]
            by_row: Any = (x.indptr, x.indices, x.data, *place, wanted, self.ridge, share)
            x = x.T.tocsr()
            how = (self.ridge**2 * share, rate, step)
            by_column: Any = (x.indptr, x.indices, x.data, H, *place, mean, square, *how)
            _share(pool, size, ROWS_A_TASK, lambda a, b, known=by_row: residual_rows(*known, a, b, H))
            _share(pool, used, COLUMNS_A_TASK, lambda a, b, known=by_column: pattern_step(*known, a, b))
        return values


def _normal(W: Pattern, C: Floats, out: Floats, pool: Executor) -> None:
    """out = (C W C)_P"""
    from .._kernels.class_pairs import sparse_times, transpose

    product = np.empty_like(C)
    _share(pool, len(C), GRAM_ROWS_A_TASK, lambda a, b: sparse_times(*W, C, a, b, product))
    transpose(product)
    _sampled(W, C, product, out, pool)


def _sampled(W: Pattern, left: Floats, right: Floats, out: Floats, pool: Executor) -> None:
    from .._kernels.class_pairs import sampled_products

    rows = len(W.pointer) - 1
    _share(pool, rows, GRAM_ROWS_A_TASK, lambda a, b: sampled_products(W.pointer, W.column, left, right, a, b, out))


def _share(pool: Executor, n: int, size: int, work: Callable[..., None]) -> None:
    """work(start, stop) for windows of `size` from 0 to n, by all threads."""
    for _ in pool.map(lambda start: work(start, min(start + size, n)), range(0, n, size)):
        pass


def _dot(a: Floats, b: Floats) -> float:
    """In 64 bits, added pairwise: the same whatever library numpy multiplies with."""
    return float(np.sum(np.multiply(a, b, dtype=np.float64)))
