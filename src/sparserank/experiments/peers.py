"""Peers from other libraries: linear classifiers of scikit-learn, one per topic, and LambdaMART of LightGBM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..data.records import Fold, Letor
from ..letor.base import measure_by_query
from ..letor.domination import shared_worth
from ..optim.feature_pruning import fewer_weights

Floats = NDArray[np.float64]
FirstFits = dict[Any, tuple[Floats, float]]
"""Weights of first fits by their settings, and the seconds each took."""


class LinearSVCPerTopic:
    """LinearSVC (L2, squared hinge) for every column of Y, ranked by the decision function.

    largest : keep only this many weights per topic, the largest. pruned : keep only this many, by `fewer_weights`.
    share : as in DominationRanker, fit again on features scaled by the weights of all topics. first_fits : cache that
    is shared by settings with the same X and Y; `reused_seconds_` is the time of the cached fit.
    """

    coef_: Any
    reused_seconds_: float = 0.0

    def __init__(
        self,
        C: float,
        largest: int | None = None,
        pruned: int | None = None,
        share: float = 0.0,
        first_fits: FirstFits | None = None,
    ) -> None:
        self.C, self.largest, self.pruned, self.share = C, largest, pruned, share
        self.first_fits = {} if first_fits is None else first_fits

    def fit(self, X: Any, Y: Any) -> Self:
        """Fit one classifier per topic."""
        from scipy.sparse import csr_array
        from sklearn.svm import LinearSVC

        def fit_svm(rows: Any) -> Floats:
            return _fit_topics(lambda: LinearSVC(C=self.C, random_state=0), rows, Y)

        weights, self.reused_seconds_ = cached_fit(self.first_fits, self.C, lambda: fit_svm(X))
        if self.share > 0.0:
            scale = shared_worth(weights, self.share)
            weights = fit_svm(scale_columns(X, scale)) * scale
        if self.largest is not None:
            least = -np.partition(-np.abs(weights), self.largest, axis=1)[:, [self.largest]]
            weights = np.where(np.abs(weights) > least, weights, 0.0)
        self.coef_ = csr_array(weights) if self.pruned is None else fewer_weights(X, weights, self.pruned)
        return self

    def predict(self, X: Any) -> Floats:
        """One column of scores per topic."""
        return np.asarray((X @ self.coef_.T).toarray())


class L1LogisticPerTopic(LinearSVCPerTopic):
    """L1 logistic regression by liblinear for every column of Y."""

    def fit(self, X: Any, Y: Any) -> Self:
        """Fit one classifier per topic."""
        from scipy.sparse import csr_array
        from sklearn.linear_model import LogisticRegression

        make = lambda: LogisticRegression(l1_ratio=1.0, C=self.C, solver="liblinear", random_state=0)  # noqa: E731
        self.coef_ = csr_array(_fit_topics(make, X, Y))
        return self


def cached_fit(cache: FirstFits, key: Any, fit: Callable[[], Floats]) -> tuple[Floats, float]:
    """The weights of a fit, and the seconds that an earlier call spent on it (0 if this call runs it)."""
    if key in cache:
        return cache[key]
    started = perf_counter()
    weights = fit()
    cache[key] = weights, perf_counter() - started
    return weights, 0.0


def scale_columns(X: Any, scale: Floats) -> Any:
    """out[i, j] = X[i, j] scale[j], as CSR."""
    from scipy.sparse import csr_array, diags_array

    return csr_array(X @ diags_array(scale))


def _fit_topics(make: Callable[[], Any], X: Any, Y: Any) -> Floats:
    classes = Y.toarray() > 0
    with ThreadPoolExecutor() as pool:
        coefficients = pool.map(lambda topic: make().fit(X, classes[:, topic]).coef_.ravel(), range(classes.shape[1]))
        return np.stack(list(coefficients))


def lambdamart(fold: Fold, seed: int, grid: Sequence[dict[str, Any]], measure: str) -> tuple[Any, dict[str, Any]]:
    """Test scores of LightGBM's LambdaMART, and the settings with the best measure on the validation part.

    Training stops when LightGBM's own NDCG@10 on the validation part has not risen for 50 rounds.
    """
    import lightgbm

    common = {
        "objective": "lambdarank", "metric": "ndcg", "eval_at": [10], "min_data_in_leaf": 50, "verbosity": -1,
        "seed": seed, "deterministic": True, "num_threads": 1,
    }  # fmt: skip
    best: tuple[float, Any, dict[str, Any]] | None = None
    for settings in grid:
        train, vali = (_lightgbm_dataset(part) for part in (fold.train, fold.vali))
        stop = lightgbm.early_stopping(50, verbose=False)
        model = lightgbm.train(common | settings, train, 500, valid_sets=[vali], callbacks=[stop])
        scores = model.predict(fold.vali.X.toarray(), num_iteration=model.best_iteration)
        value = measure_by_query(fold.vali.y, scores, qid=fold.vali.qid, measure=measure)
        if best is None or value > best[0]:
            best = value, model, settings | {"rounds": model.best_iteration}
    assert best is not None
    return best[1].predict(fold.test.X.toarray(), num_iteration=best[1].best_iteration), best[2]


def _lightgbm_dataset(part: Letor) -> Any:
    """LightGBM needs the rows of a query to be adjacent."""
    import lightgbm

    order = np.argsort(part.qid, kind="stable")
    group = np.unique(part.qid[order], return_counts=True)[1]
    return lightgbm.Dataset(part.X[order].toarray(), label=part.y[order].astype(int), group=group)
