"""LabelRidge: a sparse W from class labels, by the squared loss on all pairs of items at once.

    min over W with `max_pairs` entries   ½‖XWXᵀ - YYᵀ‖² + ½ ridge (‖XW‖² + ‖WXᵀ‖² + ridge ‖W‖²)

X : the items, each column scaled by its information on the class. Y : one column for each class, less its mean.
Without a limit the solution is W = BBᵀ, with B the ridge regression of Y on X. With a limit:

1. B is pruned to its entries of largest impact, so that BBᵀ has about `wider` times the pairs, and refitted;
2. BBᵀ is pruned to its entries of largest impact, a few rows at a time;
3. these are refitted to the objective above (`LabelRefit`); a small W is first fitted with more entries, then pruned.

Memory grows with the entries of X, with D · classes and with `max_pairs`; never with D² or n². The defaults were chosen
on 20 Newsgroups, on the last third (by date) of each class's training documents: benchmarks/class_defaults.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError
from .linalg import conjugate_gradient
from .penalties import Ridge
from .problems import LabelProblem, Matrix
from .pruning import DEFAULT_MAX_PAIRS, compute_column_rms, prune_by_impact, prune_product
from .solver import Solution, Solver

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

LEAST_DIVERGENCE, SMOOTHING = 0.05, 0.1
"""Added to the divergence of every column; the number of unseen items that each column is assumed to have."""
MAX_GRAM_COLUMNS, MAX_GRAM_WORK = 8192, 25 * 10**9
"""256 MB for XᵀX and as much for its product with W; entries of W times columns, a few seconds a step on two cores."""
MAX_BATCH_FLOATS = 1 << 24
"""Items of a batch times columns in use: 64 MB."""
TASK_ROWS, TASK_COLUMNS, TASK_GRAM_ROWS = 16, 64, 512


RIDGE = Ridge(1.5, 1.5)
"""The penalty that was chosen with the defaults."""


@dataclass(frozen=True)
class LabelRidge(Solver):
    """The solver and its settings.

    max_pairs : the most entries of W.
    kl_power : a column is scaled by (KL divergence of the classes of the items that have it from those of all items
        + .05) to this power.
    wider : the pairs of a sparse B, as a multiple of max_pairs. first_pattern : the pairs that are fitted before the
        last pruning, as a multiple of max_pairs, if that is at most `most_first`.
    """

    max_pairs: int = DEFAULT_MAX_PAIRS
    seed: int = 0
    kl_power: float = 0.25
    wider: float = 20.0
    first_pattern: float = 3.0
    most_first: int = 3_000_000
    n_jobs: int | None = None
    losses: ClassVar[tuple[type, ...]] = (object,)
    penalties: ClassVar[tuple[type, ...]] = (Ridge,)
    takes_init: ClassVar[bool] = False

    def __post_init__(self) -> None:
        validation.number("kl_power", self.kl_power, low=0)
        validation.number("wider", self.wider, low=1)
        validation.number("first_pattern", self.first_pattern, low=1)
        validation.count("most_first", self.most_first)

    def solve(self, problem: LabelProblem, penalty: Ridge = RIDGE, init: None = None) -> Solution:
        """W with at most `max_pairs` entries; both sides of the penalty must be equal."""
        self.check(problem.loss, penalty, init)
        ridge, max_pairs, seed = penalty.query, self.max_pairs, self.seed
        if penalty.document != ridge or not ridge > 0.0:
            raise ConfigError(f"LabelRidge needs a Ridge above 0 with query = document; got {penalty}")
        scale = compute_column_scale(problem.X, problem.labels, self.kl_power)
        items, targets = scale_columns(problem.X, scale), center_labels(problem.labels)
        rms = compute_column_rms(items)
        B, converged = fit_ridge(items, targets, ridge)
        if self.wider * max_pairs < float((B.any(axis=1)).sum()) ** 2:
            support = self._choose_support(B, rms)
            B, converged = fit_ridge(items, targets, ridge, B * support, support)
        refit, steps = LabelRefit(ridge, n_jobs=self.n_jobs), 0
        first = int(self.first_pattern * max_pairs)
        W = prune_product(B, rms, first if first <= self.most_first else max_pairs, self.n_jobs)
        if W.nnz > max_pairs:
            steps = refit.count_steps(W)
            W = prune_by_impact(refit.refit(items, targets, W, seed), rms, max_pairs)
        steps += refit.count_steps(W)
        W = refit.refit(items, targets, W, seed + 1)
        W.data *= np.repeat(scale, np.diff(W.indptr)) * scale[W.indices]
        message = f"the ridge regression {'converged' if converged else 'did not converge'}"
        info = {"steps": steps, "converged": converged, "message": message, "alpha": ridge}
        peak = W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
        return Solution(W, info={**info, "peak_bytes": peak, "peak_nonzeros": W.nnz})

    def _choose_support(self, B: Matrix, rms: Matrix) -> Matrix:
        """1 for the entries of B of largest impact that let BBᵀ have at most wider · max_pairs pairs, else 0."""
        impact = np.abs(B) * rms[:, None]
        place = np.argsort(-impact, axis=None, kind="stable")[: np.count_nonzero(impact)]
        # a class with n words makes n² pairs, its n-th word 2n - 1 of them; pairs of two classes count twice
        nth = np.empty(len(place), np.int64)
        for c in range(B.shape[1]):
            own = np.flatnonzero(place % B.shape[1] == c)
            nth[own] = np.arange(1, len(own) + 1)
        fits = np.cumsum(2 * nth - 1) <= self.wider * self.max_pairs
        support = np.zeros(B.shape, np.float32)
        support.ravel()[place[fits]] = 1.0
        return support


def compute_column_scale(X: csr_array, labels: Ints, power: float) -> Matrix:
    """(KL divergence + .05) ** power of each column, scaled so that rows have a mean squared norm of 1."""
    classes = int(labels.max()) + 1
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    place = X.indices.astype(np.int64) * classes + labels[row]
    count = np.bincount(place, minlength=X.shape[1] * classes).reshape(X.shape[1], classes)
    prior = np.bincount(labels, minlength=classes) / len(labels)
    total = count.sum(axis=1)
    share = (count + SMOOTHING * prior) / (total[:, None] + SMOOTHING)
    divergence = np.maximum((share * np.log(share / prior)).sum(axis=1), 0.0)
    scale = np.where(total > 0, (divergence + LEAST_DIVERGENCE) ** power, 0.0).astype(np.float32)
    norm = np.sqrt(np.sum(np.square(X.data * scale[X.indices], dtype=np.float64)) / X.shape[0])
    return np.asarray(scale / np.float32(norm or 1.0), dtype=np.float32)


def scale_columns(X: csr_array, scale: Matrix) -> csr_array:
    """X with column j times scale[j]."""
    from scipy.sparse import csr_array

    return csr_array((X.data * scale[X.indices], X.indices, X.indptr), shape=X.shape)


def center_labels(labels: Ints) -> Matrix:
    """One column for each class: 1 for its items, less the column's mean."""
    Y = (labels[:, None] == np.arange(labels.max() + 1)).astype(np.float32)
    return np.asarray(Y - Y.mean(axis=0, dtype=np.float64).astype(np.float32))


def fit_ridge(
    X: csr_array, Y: Matrix, ridge: float, init: Matrix | None = None, support: Matrix | None = None,
    max_iter: int = 60, tol: float = 1e-3,
) -> tuple[Matrix, bool]:  # fmt: skip
    """B = (XᵀX + ridge)⁻¹XᵀY where `support` is 1, and whether conjugate gradient converged."""
    transposed = X.T.tocsr()

    def project(G: Any) -> Matrix:
        return np.asarray(G if support is None else G * support)

    init = np.zeros((X.shape[1], Y.shape[1]), np.float32) if init is None else init
    return conjugate_gradient(
        lambda B: project(transposed @ (X @ B) + np.float32(ridge) * B),
        project(transposed @ Y),
        init,
        max_iter=max_iter,
        tol=tol,
    )


class Pattern(NamedTuple):
    """A W over the columns in use, as CSR arrays."""

    pointer: NDArray[Any]
    column: NDArray[Any]
    values: Matrix


@dataclass(frozen=True)
class LabelRefit:
    """The objective of `LabelRidge` on the entries that W has, ((C + ridge) W (C + ridge))_P = (XᵀYYᵀX)_P, C = XᵀX.

    A small pattern is solved by conjugate gradient with C in memory, a large one by Adam on batches of items.
    Each thread writes its own rows, so the number of threads does not change the result.

    exact_steps : of conjugate gradient. steps, batch, rate : of Adam; the rate is relative to the mean |entry| of W and
        falls to 0. most_columns, most_work : the largest pattern for conjugate gradient.
    """

    ridge: float = 1.5
    exact_steps: int = 5
    steps: int = 30
    batch: int = 800
    rate: float = 0.1
    most_columns: int = MAX_GRAM_COLUMNS
    most_work: int = MAX_GRAM_WORK
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        validation.number("ridge", self.ridge, low=0, open_low=True)
        validation.number("rate", self.rate, low=0)
        for name in ("exact_steps", "steps", "most_columns", "most_work"):
            validation.count(name, getattr(self, name))
        validation.count("batch", self.batch, low=2)

    def refit(self, X: csr_array, Y: Matrix, W: csr_array, seed: int) -> csr_array:
        """Fit the values of W's entries, starting from the present ones."""
        from scipy.sparse import csr_array

        used = _used_columns(W)
        if len(used) == 0:
            return W
        items = csr_array(X.tocsc()[:, used])
        items.sort_indices()
        number = np.zeros(W.shape[0], np.int32)
        number[used] = np.arange(len(used))
        start = Pattern(np.append(W.indptr[used], W.nnz), number[W.indices], W.data.astype(np.float32))
        with ThreadPoolExecutor(validation.threads(self.n_jobs)) as pool:
            if self._is_small(W):
                values = self._solve_exactly(items, Y, start, pool)
            else:
                values = self._solve_in_batches(items, Y, start, seed, pool)
        return csr_array((values, W.indices, W.indptr), shape=W.shape)

    def count_steps(self, W: csr_array) -> int:
        """The number of steps that `refit` takes for this W."""
        return self.exact_steps if self._is_small(W) else self.steps

    def _is_small(self, W: csr_array) -> bool:
        columns = len(_used_columns(W))
        return columns <= self.most_columns and columns * W.nnz <= self.most_work

    def _solve_exactly(self, X: csr_array, Y: Matrix, W: Pattern, pool: Executor) -> Matrix:
        """Conjugate gradient, preconditioned by the diagonal."""
        C = np.ascontiguousarray((X.T @ X).toarray(), dtype=np.float32)
        C[np.diag_indices(len(C))] += np.float32(self.ridge)
        row = np.repeat(np.arange(len(C)), np.diff(W.pointer))
        diagonal = np.diag(C)[row] * np.diag(C)[W.column]
        class_sums = np.ascontiguousarray(X.T @ Y)
        right_side = _sample_product(W, class_sums, class_sums, pool)
        solution, _ = conjugate_gradient(
            lambda v: _multiply(W._replace(values=v), C, pool),
            right_side,
            W.values,
            lambda r: r / diagonal,
            self.exact_steps,
        )
        return solution

    def _solve_in_batches(self, X: csr_array, Y: Matrix, W: Pattern, seed: int, pool: Executor) -> Matrix:
        """Adam; each step takes all pairs of the next batch of items, in random order."""
        from .._kernels.class_pairs import pattern_step, residual_rows

        (n, used), rng = X.shape, np.random.default_rng(seed)
        size = max(2, min(self.batch, n, MAX_BATCH_FLOATS // used))
        share = size / n
        H, values = np.empty((size, used), np.float32), W.values.copy()
        mean, square = np.zeros_like(values), np.zeros_like(values)
        unit = self.rate * float(np.abs(values).mean())
        entries = (W.pointer, W.column, values)
        for step, drawn in zip(range(1, self.steps + 1), iterate_batches(rng, n, size), strict=False):
            batch = np.sort(drawn)
            rate = unit * min(1.0, 1.5 * (1.0 - step / self.steps) + 0.02)
            x = X[batch]
            by_row: Any = (x.indptr, x.indices, x.data, *entries, Y[batch], self.ridge, share)
            x = x.T.tocsr()
            adam = (self.ridge**2 * share, rate, step)
            by_column: Any = (x.indptr, x.indices, x.data, H, *entries, mean, square, *adam)
            share_work(pool, size, TASK_ROWS, lambda a, b, known=by_row: residual_rows(*known, a, b, H))
            share_work(pool, used, TASK_COLUMNS, lambda a, b, known=by_column: pattern_step(*known, a, b))
        return values


def _used_columns(W: csr_array) -> NDArray[np.intp]:
    return np.flatnonzero(np.bincount(W.indices, minlength=W.shape[0]) + np.diff(W.indptr))


def _multiply(W: Pattern, C: Matrix, pool: Executor) -> Matrix:
    """(C W C)_P"""
    from .._kernels.class_pairs import sparse_times, transpose

    product = np.empty_like(C)
    share_work(pool, len(C), TASK_GRAM_ROWS, lambda a, b: sparse_times(*W, C, a, b, product))
    transpose(product)
    return _sample_product(W, C, product, pool)


def _sample_product(W: Pattern, left: Matrix, right: Matrix, pool: Executor) -> Matrix:
    """(left rightᵀ)_P"""
    from .._kernels.class_pairs import sampled_products

    rows, out = len(W.pointer) - 1, np.empty_like(W.values)
    share_work(pool, rows, TASK_GRAM_ROWS, lambda a, b: sampled_products(W.pointer, W.column, left, right, a, b, out))
    return out


def iterate_batches(rng: np.random.Generator, n: int, size: int) -> Iterator[NDArray[np.intp]]:
    """Endless batches of `size` of n items, shuffled again whenever fewer are left."""
    while True:
        order = rng.permutation(n)
        yield from (order[at : at + size] for at in range(0, n - size + 1, size))


def share_work(pool: Executor, n: int, size: int, work: Callable[..., None]) -> None:
    """work(start, stop) for windows of `size` from 0 to n, by all threads."""
    for _ in pool.map(lambda start: work(start, min(start + size, n)), range(0, n, size)):
        pass
