"""Fewer weights, nearly the same scores: a linear model cut to the features that its own scores can best do with.

    min over w with no more than `max_features` weights   ‖X w - X w₀‖² + ridge · m · ‖w‖²

where m is the mean squared length of a row. It asks for no labels: what the full model learned from them is in its
scores. Features go a third at a time, those whose weights matter least, and the rest is fitted again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]

FIRST, KEPT = 8, 0.7
"""So many times the wanted features are looked at first; the share of them that stays in each round."""
STEPS, TOLERANCE = 30, 1e-4
"""Of conjugate gradients in a round; the next starts from where it ended."""


def fewer_weights(
    X: Any, coef: Any, max_features: int, *, ridge: float = 0.7, n_jobs: int | None = None
) -> Floats | csr_array:
    """No more than `max_features` weights a model, whose scores on X are nearest to those of `coef`.

    X : the rows the scores are compared on, as the model was learned from. coef : one weight a feature, or a row of
        them a model, dense or sparse; the answer has its shape, rows come back sparse. ridge : how far weights are
        held back, as a share of the mean squared length of a row. n_jobs : threads, one model each.

    >>> X = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.1], [0.0, 0.0, 1.0]]
    >>> fewer_weights(X, [1.0, 1.0, 0.0], 1, ridge=0.0).round(2).tolist()
    [2.0, 0.0, 0.0]
    """
    from scipy.sparse import csc_array, csr_array, issparse

    validation.count("max_features", max_features, low=1)
    validation.number("ridge", ridge, low=0)
    rows = csc_array(X, dtype=np.float64)
    models = np.atleast_2d(np.asarray(coef.toarray() if issparse(coef) else coef, dtype=np.float64))
    if models.ndim != 2 or models.shape[1] != rows.shape[1]:
        raise DataError(f"X has {rows.shape[1]} features, coef has {models.shape[-1]} weights")
    if not (np.isfinite(models).all() and np.isfinite(rows.data).all()):
        raise DataError("X and coef must be finite numbers")
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=0)).ravel())
    held = ridge * float(lengths @ lengths) / max(rows.shape[0], 1)

    def cut(w: Floats) -> Floats:
        return _cut(rows, lengths, w, max_features, held)

    with ThreadPoolExecutor(validation.threads(n_jobs)) as pool:
        found = np.stack(list(pool.map(cut, models)))
    return found[0] if np.ndim(coef) == 1 else csr_array(found)


def _cut(X: Any, lengths: Floats, full: Floats, most: int, held: float) -> Floats:
    wanted = X @ full
    kept = np.argsort(-np.abs(full) * np.sqrt(lengths), kind="stable")[: FIRST * most]
    kept = kept[full[kept] != 0.0]
    w = full[kept]
    while True:
        w = _fitted(X[:, kept], wanted, held, w)
        if len(kept) <= most:
            break
        worth = np.abs(w) * (lengths[kept] ** 2 + held) ** 0.25
        best = np.argsort(-worth, kind="stable")[: max(most, int(KEPT * len(kept)))]
        kept, w = kept[best], w[best]
    out = np.zeros_like(full)
    out[kept] = w
    return out


def _fitted(X: Any, wanted: Floats, held: float, start: Floats) -> Floats:
    """The ridge regression of `wanted` on the columns of X, by conjugate gradients from `start`."""
    from scipy.sparse.linalg import LinearOperator, cg

    n = X.shape[1]
    if n == 0:
        return start
    by_row = X.tocsr()
    scale = np.asarray(X.multiply(X).sum(axis=0)).ravel() + held
    scale[scale == 0.0] = 1.0
    normal = LinearOperator((n, n), matvec=lambda v: X.T @ (by_row @ v) + held * v, dtype=np.float64)
    by_scale = LinearOperator((n, n), matvec=lambda v: v / scale, dtype=np.float64)
    found, _ = cg(normal, X.T @ wanted, x0=start, maxiter=STEPS, rtol=TOLERANCE, M=by_scale)
    return np.asarray(found)
