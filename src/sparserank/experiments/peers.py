"""Peers from other libraries: linear classifiers of scikit-learn, one per topic, and LambdaMART of LightGBM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..data.records import Fold, Letor
from ..letor.base import measure_by_query
from ..letor.domination import shared_scale
from ..optim.feature_pruning import prune_features
from .runner import choose

Floats = NDArray[np.float64]
FirstFits = dict[Any, tuple[Floats, float]]
"""Weights of first fits by their settings, and the seconds each took."""


@dataclass
class LinearModelPerTopic:
    """One linear model for every column of Y.

    fit_weights : (X, Y) to weights of topics × features. key : names the first fit in the cache `first_fits`.
    share : as in DominationRanker, fit again on features scaled by the weights of all topics. largest : keep only this
    many weights per topic, the largest. pruned : keep only this many, by `prune_features`. reused_seconds_ : the time
    of the first fit if it was cached.
    """

    fit_weights: Callable[[Any, Any], Floats]
    key: Any
    first_fits: FirstFits = field(default_factory=dict)
    share: float = 0.0
    largest: int | None = None
    pruned: int | None = None

    def fit(self, X: Any, Y: Any) -> Self:
        """Fit one model per topic."""
        from scipy.sparse import csr_array, diags_array

        if self.key in self.first_fits:
            weights, self.reused_seconds_ = self.first_fits[self.key]
        else:
            started, self.reused_seconds_ = perf_counter(), 0.0
            weights = self.fit_weights(X, Y)
            self.first_fits[self.key] = weights, perf_counter() - started
        if self.share > 0.0:
            scale = shared_scale(weights, self.share)
            weights = self.fit_weights(csr_array(X @ diags_array(scale)), Y) * scale
        if self.largest is not None:
            least = -np.partition(-np.abs(weights), self.largest, axis=1)[:, [self.largest]]
            weights = np.where(np.abs(weights) > least, weights, 0.0)
        self.coef_ = csr_array(weights) if self.pruned is None else prune_features(X, weights, self.pruned)
        return self

    def predict(self, X: Any) -> Floats:
        """One column of scores per topic."""
        return np.asarray((X @ self.coef_.T).toarray())


def linear_svc(C: float, **settings: Any) -> LinearModelPerTopic:
    """LinearSVC of scikit-learn (L2, squared hinge), ranked by the decision function."""
    from sklearn.svm import LinearSVC

    return LinearModelPerTopic(partial(_fit_topics, partial(LinearSVC, C=C, random_state=0)), C, **settings)


def l1_logistic(C: float) -> LinearModelPerTopic:
    """L1 logistic regression of scikit-learn by liblinear."""
    from sklearn.linear_model import LogisticRegression

    make = partial(LogisticRegression, l1_ratio=1.0, C=C, solver="liblinear", random_state=0)
    return LinearModelPerTopic(partial(_fit_topics, make), C)


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

    def fit(**settings: Any) -> Any:
        train, vali = (_lightgbm_dataset(part) for part in (fold.train, fold.vali))
        stop = lightgbm.early_stopping(50, verbose=False)
        return lightgbm.train(common | settings, train, 500, valid_sets=[vali], callbacks=[stop])

    def predict(model: Any, part: Letor) -> Any:
        return model.predict(part.X.toarray(), num_iteration=model.best_iteration)

    def validate(model: Any) -> float:
        return measure_by_query(fold.vali.y, predict(model, fold.vali), qid=fold.vali.qid, measure=measure)

    settings, model, _, _ = choose(grid, fit, validate)
    return predict(model, fold.test), settings | {"rounds": model.best_iteration}


def _lightgbm_dataset(part: Letor) -> Any:
    """LightGBM needs the rows of a query to be adjacent."""
    import lightgbm

    order = np.argsort(part.qid, kind="stable")
    group = np.unique(part.qid[order], return_counts=True)[1]
    return lightgbm.Dataset(part.X[order].toarray(), label=part.y[order].astype(int), group=group)
