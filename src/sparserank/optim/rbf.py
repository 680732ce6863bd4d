"""Regression on Gaussian basis functions: w·φ(x), φ_0 = 1, φ_j(x) = exp(-½ (x - μ_j)ᵀ Σ⁻¹ (x - μ_j)).

μ_j are the centers of k-means. Σ is diagonal: the variances of the features in training, times `width`. Features with a
single value are left out. The exponent is computed as ‖x‖² - 2x·μ + ‖μ‖², which loses digits if features are large
compared with their variance, so such features are centered first. The basis functions are computed in blocks of rows,
and the closed form updates the R of a QR factorization with each block: neither Φ nor ΦᵀΦ is ever in memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError
from .losses import Squared
from .penalties import L2
from .solver import Solution, Solver

Floats = NDArray[np.float64]
BLOCK = 4096
"""Rows whose basis functions are computed at a time."""
MAX_CLUSTERED_ROWS = 100_000
"""k-means gets at most this many rows, a random sample of more."""
MAX_DENSE_NUMBERS = 1 << 26
"""k-means gets a dense array of at most this many numbers, or else a sparse one."""
MAX_RELATIVE_MEAN = 30.0
"""Features whose mean exceeds this many standard deviations are centered. Such a feature has hardly any zeros, so
centering it costs no sparsity."""


@dataclass(frozen=True)
class Basis:
    """columns : the features that vary. spread : the square roots of Σ's diagonal. centres : one μ_j in each row.

    middle : subtracted from the features, and from the centers, before anything is squared.
    """

    columns: NDArray[np.int64]
    spread: Floats
    centres: Floats
    middle: Floats

    def __len__(self) -> int:
        return len(self.centres) + 1

    @classmethod
    def of(cls, X: Any, weight: Floats, functions: int, width: float, seed: int) -> Basis:
        """Choose a basis of `functions` functions, φ_0 included, for rows X; fewer if there are fewer distinct rows."""
        columns = _varying(X)
        mean, deviation = _moments(X, columns, weight)
        middle = np.where(np.abs(mean) > MAX_RELATIVE_MEAN * deviation, mean, 0.0)
        spread = np.sqrt(width) * deviation
        if len(columns) == 0 or functions == 1:
            return cls(columns, spread, np.empty((0, len(columns))), middle)
        return cls(columns, spread, _centres(X[:, columns], middle, weight, functions - 1, seed), middle)

    def widened(self, width: float) -> Basis:
        """The same basis with Σ times `width`."""
        return replace(self, spread=self.spread * np.sqrt(width))

    def blocks(self, X: Any, rows: NDArray[np.int64] | None = None) -> Iterator[tuple[slice, Floats]]:
        """Yield (slice, Φ of these rows) for all rows, or for the given ones in their order."""
        total = X.shape[0] if rows is None else len(rows)
        centres = (self.centres - self.middle) / self.spread
        lengths = (centres**2).sum(axis=1)
        for first in range(0, total, BLOCK):
            where = slice(first, min(first + BLOCK, total))
            yield where, self._phi(X[where] if rows is None else X[rows[where]], centres, lengths)

    def _phi(self, X: Any, centres: Floats, lengths: Floats) -> Floats:
        if isinstance(X, np.ndarray):
            scaled = _centred(X[:, self.columns], self.middle) / self.spread
            square, cross = (scaled**2).sum(axis=1), scaled @ centres.T
        else:
            from scipy.sparse import diags_array

            scaled = _centred(X.tocsr()[:, self.columns], self.middle) @ diags_array(1.0 / self.spread)
            square, cross = np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel(), scaled @ centres.T
        distance = np.maximum(square[:, None] - 2.0 * cross + lengths, 0.0)
        out = np.ones((X.shape[0], len(self)))
        np.exp(-0.5 * distance, out=out[:, 1:])
        return out


def _varying(X: Any) -> NDArray[np.int64]:
    """The features that have more than one value."""
    low, high = X.min(axis=0), X.max(axis=0)
    if not isinstance(X, np.ndarray):
        low, high = low.toarray().ravel(), high.toarray().ravel()
    return np.flatnonzero(low < high).astype(np.int64)


def _centred(X: Any, middle: Floats) -> Any:
    """X - middle in float64; of a sparse X only the columns with a middle become dense."""
    X = X.astype(np.float64)
    if isinstance(X, np.ndarray):
        return X - middle
    columns = np.flatnonzero(middle)
    if len(columns) == 0:
        return X
    from scipy.sparse import csr_array

    rows = X.shape[0]
    pointer = np.arange(rows + 1) * len(columns)
    return X - csr_array((np.tile(middle[columns], rows), np.tile(columns, rows), pointer), shape=X.shape)


def _moments(X: Any, columns: NDArray[np.int64], weight: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of these features, relative to their largest number so that no square underflows."""
    share = weight / weight.sum()
    means, out = np.empty(len(columns)), np.empty(len(columns))
    by_column: Any = X if isinstance(X, np.ndarray) else X.tocsc()
    for k, column in enumerate(columns.tolist()):
        if isinstance(X, np.ndarray):
            values = X[:, column].astype(np.float64)
        else:
            stored = slice(by_column.indptr[column], by_column.indptr[column + 1])
            values = np.zeros(X.shape[0])
            values[by_column.indices[stored]] = by_column.data[stored]
        size = np.abs(values).max()
        values = values / size
        mean = share @ values
        means[k], out[k] = size * mean, size * np.sqrt(share @ (values - mean) ** 2)
    # if only rows of weight 0 differ, any spread will do: no center is near them
    return means, np.where(out > 0, out, 1.0)


def _centres(X: Any, middle: Floats, weight: Floats, clusters: int, seed: int) -> Floats:
    """The distinct centers of k-means, on centered numbers that are scaled so that no square overflows."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rows = np.flatnonzero(weight > 0)
    random = np.random.default_rng(seed)
    if len(rows) > MAX_CLUSTERED_ROWS:
        rows = np.sort(random.choice(rows, MAX_CLUSTERED_ROWS, replace=False))
    X = _centred(X[rows], middle)
    if not isinstance(X, np.ndarray):
        if X.shape[0] * X.shape[1] <= MAX_DENSE_NUMBERS:
            X = X.toarray()
        else:  # k-means takes indices of 32 bits only
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    size = float(abs(X).max()) or 1.0
    means = KMeans(min(clusters, len(rows)), n_init=1, random_state=int(random.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # with fewer distinct rows than centers, some coincide
        means.fit(X / size, sample_weight=weight[rows])
    return np.asarray(np.unique(means.cluster_centers_, axis=0) * size + middle)


@dataclass(frozen=True)
class BasisProblem:
    """The squared error of w·φ(x), with a target and a weight for each row."""

    basis: Basis
    X: Any
    target: Floats
    weight: Floats
    loss: ClassVar[Squared] = Squared()


class BasisRidge(Solver):
    """The closed form."""

    losses: ClassVar[tuple[type, ...]] = (Squared,)
    penalties: ClassVar[tuple[type, ...]] = (L2,)
    takes_init: ClassVar[bool] = False

    def solve(self, problem: BasisProblem, penalty: L2, init: None = None) -> Solution:
        """w = (alpha I + ΦᵀCΦ)⁻¹ ΦᵀCt, C = diag(weight), by QR of (√C Φ, √C t) and then the SVD of R.

        If alpha is 0, w has no part in directions that Φ does not have, as with the pseudo-inverse.
        """
        self.check(problem.loss, penalty, init)
        m = len(problem.basis)
        R = np.zeros((0, m + 1))
        for where, phi in problem.basis.blocks(problem.X):
            root = np.sqrt(problem.weight[where])[:, None]
            rows = root * np.column_stack([phi, problem.target[where]])
            R = np.asarray(np.linalg.qr(np.vstack([R, rows]), mode="r"))
        u, s, vt = np.linalg.svd(R[:, :m], full_matrices=False)
        nonzero = s > s[0] * m * np.finfo(np.float64).eps
        scale = np.zeros_like(s)
        scale[nonzero] = s[nonzero] / (s[nonzero] ** 2 + penalty.alpha)
        return Solution(np.asarray(vt.T @ (scale * (u.T @ R[:, m]))))


@dataclass(frozen=True)
class BasisSGD(Solver):
    """`max_iter` steps of SGD, each on a row drawn with replacement; alpha counts at each step."""

    rate: float | str = "decay"
    max_iter: int = 10_000
    seed: int = 0
    losses: ClassVar[tuple[type, ...]] = (Squared,)
    penalties: ClassVar[tuple[type, ...]] = (L2,)

    def solve(self, problem: BasisProblem, penalty: L2, init: Floats | None = None) -> Solution:
        """w after all steps, from `init` or from zero."""
        self.check(problem.loss, penalty)
        descent = Descent(problem, penalty.alpha, self.rate, self.seed, init)
        return Solution(descent.advance(self.max_iter), info={"n_iter": self.max_iter})


def draw_weights(basis: Basis, seed: int) -> Floats:
    """Standard normal weights to start from. The report starts at random and does not say how it draws."""
    return np.random.default_rng([seed, 2]).standard_normal(len(basis))


class Descent:
    """SGD in any number of pieces; the rows drawn depend on the seed alone."""

    def __init__(
        self, problem: BasisProblem, alpha: float, rate: float | str, seed: int, init: Floats | None = None
    ) -> None:
        self._problem, self._alpha, self._rate = problem, alpha, rate
        self._random = np.random.default_rng([seed, 1])
        self.w = np.zeros(len(problem.basis)) if init is None else init.copy()
        self.steps = 0

    def advance(self, steps: int) -> Floats:
        """Take more steps, and return w."""
        from .._kernels.descent import squared_steps

        problem, decays = self._problem, self._rate == "decay"
        rows = self._random.integers(problem.X.shape[0], size=steps)
        for where, phi in problem.basis.blocks(problem.X, rows):
            chosen = rows[where]
            failed = squared_steps(
                phi, problem.target[chosen], problem.weight[chosen], self._alpha,
                0.0 if decays else float(self._rate), decays, self.steps, self.w,
            )  # fmt: skip
            if failed >= 0:
                remedy = f"lower the rate (now {self._rate}) or alpha (now {self._alpha:g})"
                raise ConfigError(f"SGD diverged at step {failed + 1}: {remedy}")
            self.steps += len(chosen)
        return self.w
