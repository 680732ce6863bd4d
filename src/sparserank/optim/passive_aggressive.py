"""PAMIR (Grangier, Bengio, 2008): passive-aggressive steps on triples that are drawn, linear or bilinear.

A triple that is not won by 1 moves the weights as little as mends it, and by at most C (the *aggressiveness*):
τ = min(C, loss / (‖q‖² ‖Δ‖²)), with ‖q‖ = 1 where there is no query vector.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..preferences import Preferences, Triples
from .scores import Bilinear

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
BATCH = 1 << 16
"""Triples drawn at a time."""
Draw = Callable[[int, int], tuple[NDArray[np.int64], NDArray[np.int64]]]
"""draw(n, first) -> the better and the worse rows of draws first … first + n - 1."""


def _batches(steps: int) -> Iterator[tuple[int, int]]:
    return ((first, min(BATCH, steps - first)) for first in range(0, steps, BATCH))


def linear(X: Any, draw: Draw, C: float, steps: int, average: bool) -> tuple[Floats, float]:
    """Weights after so many steps from 0 (or their mean over the steps), and the share of triples that were off."""
    from .._kernels.passive import dense_steps, linear_steps

    w, drift, off = np.zeros(X.shape[1]), np.zeros(X.shape[1]), 0
    for first, n in _batches(steps):
        better, worse = draw(n, first)
        if isinstance(X, np.ndarray):
            off += dense_steps(X, better, worse, C, first, w, drift)
        else:
            off += linear_steps(X.indptr, X.indices, X.data, better, worse, C, first, w, drift)
    return w - drift / steps if average else w, off / steps


def from_preferences(preferences: Preferences, seed: int) -> Draw:
    """Triples as preferences draw them: a query, a winner by its weight, one of its losers."""

    def draw(n: int, first: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        drawn = preferences.draw(n, seed, first)
        return drawn.better, drawn.worse

    return draw


def of_topic(relevant: NDArray[np.int64], items: int, seed: int, topic: int) -> Draw:
    """A relevant item and any other one, each drawn uniformly."""
    other = np.setdiff1d(np.arange(items), relevant)
    random = np.random.default_rng([seed, topic])

    def draw(n: int, first: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return random.choice(relevant, n), random.choice(other, n)

    return draw


def bilinear(
    score: Bilinear, preferences: Preferences, C: float, steps: int, average: bool, seed: int
) -> tuple[csr_array, float]:
    """W after so many steps from 0; only words of queries and features of items that occur take any room."""
    from scipy.sparse import csr_array

    from .._kernels.passive import bilinear_steps

    words, Q = _used(score.queries)
    features, D = _used(score.items)
    W = np.zeros((len(words), len(features)))
    drift = np.zeros(W.shape if average else (1, 1))
    off = 0
    for first, n in _batches(steps):
        drawn: Triples = preferences.draw(n, seed, first)
        off += bilinear_steps(
            Q.indptr, Q.indices, Q.data, D.indptr, D.indices, D.data, *drawn, C, first, W, drift, average
        )
    if average:
        W -= drift / steps
    row, column = np.nonzero(W)
    return csr_array((W[row, column], (words[row], features[column])), shape=score.shape), off / steps


def _used(matrix: csr_array) -> tuple[NDArray[np.int64], csr_array]:
    """The columns that occur, and the matrix of them alone."""
    from scipy.sparse import csr_array

    columns, place = np.unique(matrix.indices, return_inverse=True)
    small = csr_array((matrix.data, place.astype(np.int64), matrix.indptr), shape=(matrix.shape[0], len(columns)))
    return columns.astype(np.int64), small
