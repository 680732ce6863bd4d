"""prune_features: a linear model with fewer weights and nearly the same scores.

    min over w with at most `max_features` weights   ‖X w - X w₀‖² + ridge · m · ‖w‖²

m is the mean squared norm of a row. No labels are needed: the scores of the full model w₀ hold what it learned. Each
round removes the third of the features with the least important weights and fits the others again.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import DataError
from .linalg import conjugate_gradient

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]

FIRST_MULTIPLE, KEPT_SHARE = 8, 0.7
"""The first round has this multiple of max_features; each round keeps this share of them."""
MAX_ITER, TOLERANCE = 30, 1e-4
"""Of conjugate gradient in a round; the next round starts from its result."""


def prune_features(
    X: Any, coef: Any, max_features: int, *, ridge: float = 0.7, n_jobs: int | None = None
) -> Floats | csr_array:
    """Find at most `max_features` weights for each model whose scores on X are closest to those of `coef`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The rows on which the scores are compared, such as the training data.
    coef : array-like or sparse matrix of shape (n_features,) or (n_models, n_features)
        The weights of one model, or one row for each model.
    max_features : int
        The most weights of a model, at least 1.
    ridge : float, default=0.7
        The strength of the penalty, as a share of the mean squared norm of a row.
    n_jobs : int or None, default=None
        Threads, one model each. None uses all cores.

    Returns
    -------
    ndarray of shape (n_features,) or csr_array of shape (n_models, n_features)

    Raises
    ------
    DataError
        The shapes of X and coef do not match, or a number is not finite.

    Examples
    --------
    >>> X = [[1.0, 1.0, 0.0], [1.0, 1.0, 0.1], [0.0, 0.0, 1.0]]
    >>> prune_features(X, [1.0, 1.0, 0.0], 1, ridge=0.0).round(2).tolist()
    [2.0, 0.0, 0.0]
    """
    from scipy.sparse import csc_array, csr_array, issparse

    validation.count("max_features", max_features, low=1)
    validation.number("ridge", ridge, low=0)
    columns = csc_array(X, dtype=np.float64)
    models = np.atleast_2d(np.asarray(coef.toarray() if issparse(coef) else coef, dtype=np.float64))
    if models.ndim != 2 or models.shape[1] != columns.shape[1]:
        raise DataError(f"X has {columns.shape[1]} features, coef has {models.shape[-1]} weights")
    if not (np.isfinite(models).all() and np.isfinite(columns.data).all()):
        raise DataError("X and coef must be finite numbers")
    norms = np.sqrt(np.asarray(columns.multiply(columns).sum(axis=0)).ravel())
    strength = ridge * float(norms @ norms) / max(columns.shape[0], 1)
    with ThreadPoolExecutor(validation.threads(n_jobs)) as pool:
        weights = np.stack(list(pool.map(lambda w: _prune(columns, norms, w, max_features, strength), models)))
    return weights[0] if np.ndim(coef) == 1 else csr_array(weights)


def _prune(X: Any, norms: Floats, full: Floats, max_features: int, strength: float) -> Floats:
    scores = X @ full
    features = np.argsort(-np.abs(full) * np.sqrt(norms), kind="stable")[: FIRST_MULTIPLE * max_features]
    features = features[full[features] != 0.0]
    w = full[features]
    while True:
        w = _fit(X[:, features], scores, strength, w)
        if len(features) <= max_features:
            break
        importance = np.abs(w) * (norms[features] ** 2 + strength) ** 0.25
        best = np.argsort(-importance, kind="stable")[: max(max_features, int(KEPT_SHARE * len(features)))]
        features, w = features[best], w[best]
    out = np.zeros_like(full)
    out[features] = w
    return out


def _fit(X: Any, scores: Floats, strength: float, init: Floats) -> Floats:
    """The ridge regression of the scores on the columns of X, from `init`."""
    if X.shape[1] == 0:
        return init
    by_row = X.tocsr()
    diagonal = np.asarray(X.multiply(X).sum(axis=0)).ravel() + strength
    diagonal[diagonal == 0.0] = 1.0
    w: Floats
    w, _ = conjugate_gradient(
        lambda v: X.T @ (by_row @ v) + strength * v, X.T @ scores, init, lambda r: r / diagonal, MAX_ITER, TOLERANCE
    )
    return w
