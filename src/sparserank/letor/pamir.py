"""PAMIR: passive-aggressive learning from triples, w·x for rows, one w per topic, or qᵀWd for text and images."""

from __future__ import annotations

import secrets
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.formats.tensors import Tensors, pack_csr
from ..errors import ConfigError, DataError
from ..optim import passive_aggressive as passive
from ..optim.scores import Bilinear
from ..preferences import Preferences
from ..preferences.queries import Queries
from .base import LinearRanker, Unfitted, by_topic, relevant_items

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class PAMIR(LinearRanker):
    """Learns from triples one by one: the smallest change that makes the better item win by 1 (Grangier, Bengio, 2008).

    C : the most that one triple may change, τ = min(C, loss / (‖q‖² ‖Δ‖²)).
    max_iter : triples drawn with replacement (a query, one of its winners by sample_weight, one of its losers), of each
        topic where there are topics. `violations_` is the share of them that were not won by 1 as they came.
    average : the mean of the weights over all steps instead of the last ones: steadier, less sparse.

    `fit(X, y, qid)` learns one w; `fit(X, Y)` with a matrix Y of items × topics, dense or sparse, learns one w a topic
    (a grade above 0 means relevant, 0 not, and a negative one raises DataError; `coef_` is topics × features, and
    `predict` gives a column a topic); `fit_bilinear(Q, D, prefs)` learns W of qᵀWd, from queries to item features.

    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    >>> PAMIR(max_iter=100, random_state=0).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).predict(X).argsort().tolist()[-2:]
    [0, 2]
    >>> PAMIR(max_iter=100, random_state=0).fit(X, [[1, 0], [0, 1], [1, 1], [0, 0]]).coef_.argmax(axis=1).tolist()
    [0, 1]
    """

    _told: ClassVar[tuple[str, ...]] = (*LinearRanker._told, "violations_", "seed_")
    W_: csr_array

    def __init__(
        self,
        C: float = 1.0,
        max_iter: int = 100_000,
        average: bool = False,
        random_state: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.C = C
        self.max_iter = max_iter
        self.average = average
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any, qid: Any = None, **weights: Any) -> Self:
        """Learn one w from grades by query, or one w a topic from a matrix of items × topics."""
        if not by_topic(y):
            return super().fit(X, y, qid, **weights)
        if qid is not None or weights:
            raise ConfigError("with one w a topic every item stands in every topic: neither qid nor sample_weight fits")
        with self._refitting():
            self._fit_topics(X, y)
        return self

    def _fit_topics(self, X: Any, y: Any) -> None:
        self._judge()
        X = _by_row(self._rows(X, reset=True))
        relevant = relevant_items(y, X.shape[0])

        def learn(topic: int) -> tuple[NDArray[np.float64], float]:
            draw = passive.of_topic(relevant[topic], X.shape[0], self.seed_, topic)
            return passive.linear(X, draw, self.C, self.max_iter, self.average)

        with ThreadPoolExecutor(validation.threads(self.n_jobs)) as pool:
            learned = list(pool.map(learn, range(len(relevant))))
        self.coef_ = np.stack([w for w, _ in learned])
        self.violations_, self.n_iter_ = float(np.mean([off for _, off in learned])), self.max_iter

    def _judge(self) -> None:
        validation.number("C", self.C, low=0, open_low=True)
        validation.count("max_iter", self.max_iter, low=1)
        validation.flag("average", self.average)
        self.seed_ = secrets.randbits(63) if self.random_state is None else validation.count("seed", self.random_state)

    def _learn(self, X: Any, queries: Queries) -> None:
        self._judge()
        grade, weight = queries.by_row(queries.grade), queries.by_row(queries.weight)
        preferences = Preferences.from_grades(grade, queries.by_row(queries.query), weight)
        draw = passive.from_preferences(preferences, self.seed_)
        self.coef_, self.violations_ = passive.linear(_by_row(X), draw, self.C, self.max_iter, self.average)
        self.n_iter_ = self.max_iter

    def fit_bilinear(self, Q: Any, D: Any, prefs: Preferences) -> Self:
        """Learn W of qᵀWd from preferences between rows of D for rows of Q; then ask `scores(Q, D)`.

        >>> Q, D = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0, 0.2], [0.0, 1.0, 0.2]]
        >>> prefs = Preferences.from_triples([0, 1], better=[0, 1], worse=[1, 0])
        >>> PAMIR(max_iter=50, random_state=0).fit_bilinear(Q, D, prefs).scores(Q, D).round(2).tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
        """
        with self._refitting():
            self._fit_bilinear(Q, D, prefs)
        return self

    def _fit_bilinear(self, Q: Any, D: Any, prefs: Preferences) -> None:
        self._judge()
        score = Bilinear.of(Q, D)
        for name, side, needed in (("Q", score.queries, prefs.n_queries), ("D", score.items, prefs.n_items)):
            if side.shape[0] < needed:
                raise DataError(f"the preferences speak of {needed} rows of {name}; it has {side.shape[0]}")
        self.W_, self.violations_ = passive.bilinear(score, prefs, self.C, self.max_iter, self.average, self.seed_)
        self.n_features_in_, self.n_iter_ = score.shape[1], self.max_iter

    def scores(self, Q: Any, D: Any) -> NDArray[np.float32]:
        """out[i, j] = Q[i]ᵀ W D[j], after `fit_bilinear`."""
        if not hasattr(self, "W_"):
            raise Unfitted("this PAMIR has learned no W yet; call fit_bilinear first")
        score = Bilinear.of(Q, D)
        if score.shape != self.W_.shape:
            raise DataError(f"W is {self.W_.shape}, but Q has {score.shape[0]} columns and D {score.shape[1]}")
        return score.scores(self.W_)

    def _scores(self, X: Any) -> Any:
        if not hasattr(self, "coef_"):
            raise Unfitted("this PAMIR has learned W of qᵀWd; ask it scores(Q, D)")
        return super()._scores(X) if self.coef_.ndim == 1 else X @ self.coef_.T

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return pack_csr("W", self.W_) if hasattr(self, "W_") else {"coef": self.coef_.ravel()}

    def _restore_arrays(self, file: Tensors) -> None:
        if "W.data" in file.arrays:
            self.W_ = file.csr("W", (None, self.n_features_in_), "float64")
            return
        flat = file.array("coef", "float64")
        if len(flat) == 0 or len(flat) % self.n_features_in_:
            raise ValueError(f"{len(flat)} weights for {self.n_features_in_} features")
        self.coef_ = flat if len(flat) == self.n_features_in_ else flat.reshape(-1, self.n_features_in_)


def _by_row(X: Any) -> Any:
    return X if isinstance(X, np.ndarray) else X.tocsr()
