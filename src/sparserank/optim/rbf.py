"""Regression on Gaussian basis functions: w·φ(x), φ_0 = 1, φ_j(x) = exp(-½ (x - μ_j)ᵀ Σ⁻¹ (x - μ_j)).

μ_j are centres of k-means, Σ is diagonal: the features' variances in training, times `width`. Features with one value
only are left out. (x - μ)ᵀΣ⁻¹(x - μ) is computed as ‖x‖² - 2x·μ + ‖μ‖², which loses its digits where features are large
compared with how much they vary; so features are centred first. The basis is worked out block by block, and the closed
form takes the R of a QR factorisation that grows with the blocks: Φ is never whole in memory, ΦᵀΦ is never formed.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError

Floats = NDArray[np.float64]
BLOCK = 4096
"""Rows whose basis functions are worked out at a time."""
CLUSTERED = 100_000
"""k-means sees no more rows than this, drawn at random where there are more."""
FULL = 1 << 26
"""It sees them as a full array where that has no more numbers than this, and as a sparse one else."""
FAR = 30.0
"""Features whose mean is beyond so many standard deviations are centred; sparse ones stay sparse, since below it there
may be many zeros, and above it hardly any."""


@dataclass(frozen=True)
class Basis:
    """`columns` are the features that vary, `spread` the roots of Σ's diagonal, `centres` the μ_j, row by row.

    `middle` is what is taken off a feature, and off the centres, before anything is squared.
    """

    columns: NDArray[np.int64]
    spread: Floats
    centres: Floats
    middle: Floats

    def __len__(self) -> int:
        return len(self.centres) + 1

    @classmethod
    def of(cls, X: Any, weight: Floats, functions: int, width: float, seed: int) -> Basis:
        """Choose the basis for rows X: `functions` of them, φ_0 among them; fewer where rows are fewer than centres."""
        columns = _varying(X)
        mean, deviation = _moments(X, columns, weight)
        middle = np.where(np.abs(mean) > FAR * deviation, mean, 0.0)
        spread = np.sqrt(width) * deviation
        if len(columns) == 0 or functions == 1:
            return cls(columns, spread, np.empty((0, len(columns))), middle)
        return cls(columns, spread, _centres(X[:, columns], middle, weight, functions - 1, seed), middle)

    def widened(self, width: float) -> Basis:
        """The same with Σ times `width`."""
        return replace(self, spread=self.spread * np.sqrt(width))

    def blocks(self, X: Any, rows: NDArray[np.int64] | None = None) -> Iterator[tuple[slice, Floats]]:
        """(where, Φ of those rows), block by block; of all rows, or of those named, in their order."""
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
    """X - middle in 64 bits; of a sparse X only the columns that have a middle become full."""
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
    """Mean and standard deviation of these features, each first divided by its largest size, lest squares vanish."""
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
    # rows of weight 0 may be the only ones that differ: then any spread will do, and no centre is near them
    return means, np.where(out > 0, out, 1.0)


def _centres(X: Any, middle: Floats, weight: Floats, clusters: int, seed: int) -> Floats:
    """Centres of k-means, each once, on centred numbers brought to a common size that squares can hold."""
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    rows = np.flatnonzero(weight > 0)
    random = np.random.default_rng(seed)
    if len(rows) > CLUSTERED:
        rows = np.sort(random.choice(rows, CLUSTERED, replace=False))
    X = _centred(X[rows], middle)
    if not isinstance(X, np.ndarray):
        X = X.toarray() if X.shape[0] * X.shape[1] <= FULL else _narrow(X)
    size = float(abs(X).max()) or 1.0
    means = KMeans(min(clusters, len(rows)), n_init=1, random_state=int(random.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than centres: some come twice
        means.fit(X / size, sample_weight=weight[rows])
    return np.asarray(np.unique(means.cluster_centers_, axis=0) * size + middle)


def _narrow(X: Any) -> Any:
    """With indices of 32 bits, which is all that k-means takes."""
    from scipy.sparse import csr_array

    return csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)


def closed_form(basis: Basis, X: Any, target: Floats, weight: Floats, alpha: float) -> Floats:
    """w = (alpha I + ΦᵀCΦ)⁻¹ ΦᵀCt, C = diag(weight), by QR of (√C Φ, √C t) and then the SVD of R.

    Directions that Φ does not have at all get 0, as the pseudo-inverse has it, where alpha is 0.
    """
    m = len(basis)
    R = np.zeros((0, m + 1))
    for where, phi in basis.blocks(X):
        root = np.sqrt(weight[where])[:, None]
        R = np.asarray(np.linalg.qr(np.vstack([R, root * np.column_stack([phi, target[where]])]), mode="r"))
    u, s, vt = np.linalg.svd(R[:, :m], full_matrices=False)
    kept = s > s[0] * m * np.finfo(np.float64).eps
    scale = np.zeros_like(s)
    scale[kept] = s[kept] / (s[kept] ** 2 + alpha)
    return np.asarray(vt.T @ (scale * (u.T @ R[:, m])))


class Descent:
    """SGD in as many pieces as one likes; the rows drawn depend on the seed alone.

    init : 'zeros', w = 0, or 'random', w drawn from a standard normal distribution by the seed. (The report starts at
        random and does not say how it draws.)
    """

    def __init__(self, basis: Basis, alpha: float, rate: float | str, seed: int, init: str = "zeros") -> None:
        self._basis, self._alpha, self._rate = basis, alpha, rate
        self._random = np.random.default_rng([seed, 1])
        self.w = np.zeros(len(basis))
        if init == "random":
            self.w = np.random.default_rng([seed, 2]).standard_normal(len(basis))
        self.steps = 0

    def go(self, X: Any, target: Floats, weight: Floats, steps: int) -> Floats:
        """So many steps more, each on a row drawn with replacement."""
        from .._kernels.descent import squared_steps

        rows = self._random.integers(X.shape[0], size=steps)
        decays = self._rate == "decay"
        for where, phi in self._basis.blocks(X, rows):
            chosen = rows[where]
            failed = squared_steps(
                phi, target[chosen], weight[chosen], self._alpha, 0.0 if decays else float(self._rate), decays,
                self.steps, self.w,
            )  # fmt: skip
            if failed >= 0:
                remedy = f"lower the rate (now {self._rate}) or alpha (now {self._alpha:g})"
                raise ConfigError(f"SGD diverged at step {failed + 1}: {remedy}")
            self.steps += len(chosen)
        return self.w
