"""scikit-learn's linear classifiers, one a topic, to stand beside ours."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..letor.domination import shared_worth
from ..optim.feature_pruning import fewer_weights

Floats = NDArray[np.float64]


class OneSVMATopic:
    """LinearSVC (L2, squared hinge) for every column of Y, ranked by its distance from the plane.

    largest : only so many weights stay, the largest. fewer : only so many stay, by `fewer_weights`.
    share : as in DominationRanker: topics learn twice, the second time on features scaled by all topics' weights.
    known : planes of the first fit by C, and the seconds it took, to be used again for the same X and Y.
        `reused_seconds_` is what another fit has spent on them.
    """

    coef_: Any
    reused_seconds_: float = 0.0

    def __init__(
        self,
        C: float,
        largest: int | None = None,
        fewer: int | None = None,
        share: float = 0.0,
        known: dict[float, tuple[Floats, float]] | None = None,
    ) -> None:
        self.C, self.largest, self.fewer, self.share = C, largest, fewer, share
        self.known = {} if known is None else known

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn a plane a topic."""
        from scipy.sparse import csr_array
        from sklearn.svm import LinearSVC

        def svm(rows: Any) -> Floats:
            return _each_topic(lambda: LinearSVC(C=self.C, random_state=0), rows, Y)

        weights, self.reused_seconds_ = first_fit(self.known, self.C, lambda: svm(X))
        if self.share > 0.0:
            scale = shared_worth(weights, self.share)
            weights = svm(scaled_columns(X, scale)) * scale
        if self.largest is not None:
            least = -np.partition(-np.abs(weights), self.largest, axis=1)[:, [self.largest]]
            weights = np.where(np.abs(weights) > least, weights, 0.0)
        self.coef_ = csr_array(weights) if self.fewer is None else fewer_weights(X, weights, self.fewer)
        return self

    def predict(self, X: Any) -> Floats:
        """A column of scores a topic."""
        return np.asarray((X @ self.coef_.T).toarray())


class OneLogisticATopic(OneSVMATopic):
    """L1 logistic regression by liblinear for every column of Y."""

    def fit(self, X: Any, Y: Any) -> Self:
        """Learn a plane a topic."""
        from scipy.sparse import csr_array
        from sklearn.linear_model import LogisticRegression

        make = lambda: LogisticRegression(l1_ratio=1.0, C=self.C, solver="liblinear", random_state=0)  # noqa: E731
        self.coef_ = csr_array(_each_topic(make, X, Y))
        return self


def first_fit(known: dict[Any, tuple[Floats, float]], key: Any, fit: Callable[[], Floats]) -> tuple[Floats, float]:
    """The weights of a fit that several settings start from, and the seconds that an earlier call spent on them."""
    if key in known:
        return known[key]
    started = perf_counter()
    weights = fit()
    known[key] = weights, perf_counter() - started
    return weights, 0.0


def scaled_columns(X: Any, scale: Floats) -> Any:
    """out[i, j] = X[i, j] scale[j], as CSR."""
    from scipy.sparse import csr_array, diags_array

    return csr_array(X @ diags_array(scale))


def _each_topic(make: Callable[[], Any], X: Any, Y: Any) -> Floats:
    classes = Y.toarray() > 0
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda topic: make().fit(X, classes[:, topic]).coef_.ravel(), range(classes.shape[1]))
        return np.stack(list(found))
