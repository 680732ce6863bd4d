"""PAMIR: passive-aggressive learning from triples, w·x for rows, one w per topic, or qᵀWd for text and images."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.formats.tensors import Tensors, pack_csr
from ..deprecated import renamed_parameters
from ..errors import ConfigError, DataError
from ..optim import passive_aggressive as passive
from ..optim.penalties import NoPenalty
from ..optim.scores import Bilinear
from ..optim.solver import Solution
from ..preferences import Preferences
from ..preferences.queries import Queries
from .base import LinearRanker, Unfitted, as_rows, draw_seed
from .topics import is_topic_matrix, relevant_items

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(eq=False, repr=False)
class PAMIR(LinearRanker):
    """Learns from triples one by one: the smallest change that makes the better item win by 1 (Grangier, Bengio, 2008).

    `fit(X, y, qid)` trains one w. `fit(X, Y)` with a matrix Y of items × topics, dense or sparse, and neither `qid` nor
    `sample_weight`, trains one w per topic: a grade above 0 means relevant, 0 not relevant, and `predict` returns one
    column per topic. `fit_bilinear` trains W of qᵀWd, from query features to item features.

    Parameters
    ----------
    C : float, default=1.0
        The aggressiveness of PAMIR: the most that one triple may change, τ = min(C, loss / (‖q‖² ‖Δ‖²)).
    max_iter : int, default=100000
        Triples drawn with replacement, per topic: a query, one of its winners by `sample_weight`, one of its losers.
    average : bool, default=False
        Use the mean of the weights over all steps instead of the last ones: more stable, less sparse.
    random_state : int, default=None
        Seed of the draws.
    n_jobs : int, default=None
        Threads, one topic each. None means all cores.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_topics, n_features)
        Weights of the features.
    W_ : csr_array
        Weights of `fit_bilinear`.
    violations_ : float
        The share of triples that were not won by 1 when they were drawn.

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.0, 0.0]]
    >>> PAMIR(max_iter=100, random_state=0).fit(X, [1, 0, 1, 0], qid=[1, 1, 2, 2]).predict(X).argsort().tolist()[-2:]
    [0, 2]
    >>> PAMIR(max_iter=100, random_state=0).fit(X, [[1, 0], [0, 1], [1, 1], [0, 0]]).coef_.argmax(axis=1).tolist()
    [0, 1]
    """

    _saved_attributes: ClassVar[tuple[str, ...]] = (*LinearRanker._saved_attributes, "violations_", "seed_")
    W_: csr_array = field(init=False)

    C: float = 1.0
    max_iter: int = 100_000
    average: bool = False
    random_state: int | None = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, qid: Any = None, **weights: Any) -> Self:  # noqa: D102 - that of LetorRanker
        if not is_topic_matrix(y):
            return super().fit(X, y, qid, **weights)
        if qid is not None or weights:
            raise ConfigError(
                "with one w per topic every item belongs to every topic: give neither qid nor sample_weight"
            )
        with self._refitting():
            self._fit_topics(X, y)
        return self

    def _fit_topics(self, X: Any, y: Any) -> None:
        self._validate_parameters()
        X = as_rows(self._rows(X, reset=True))
        relevant = relevant_items(y, X.shape[0])

        def train(topic: int) -> Solution:
            draw = passive.draw_topic(relevant[topic], X.shape[0], self.seed_, topic)
            return self._solve(X, draw)

        with ThreadPoolExecutor(validation.threads(self.n_jobs)) as pool:
            solutions = list(pool.map(train, range(len(relevant))))
        self.coef_ = np.stack([solution.weights for solution in solutions])
        self.violations_ = float(np.mean([solution.info["violations"] for solution in solutions]))
        self.n_iter_ = self.max_iter

    def _solve(self, score: Any, draw: Any) -> Solution:
        solver = passive.PassiveAggressive(self.C, self.max_iter, self.average)
        return solver.solve(passive.TripleProblem(score, draw), NoPenalty())

    def _validate_parameters(self) -> None:
        validation.number("C", self.C, low=0, open_low=True)
        validation.count("max_iter", self.max_iter, low=1)
        validation.flag("average", self.average)
        self.seed_ = draw_seed(self.random_state)

    def _train(self, X: Any, queries: Queries) -> None:
        self._validate_parameters()
        grade, weight = queries.by_row(queries.grade), queries.by_row(queries.weight)
        preferences = Preferences.from_grades(grade, queries.by_row(queries.query), weight)
        solution = self._solve(as_rows(X), lambda n, first: preferences.draw(n, self.seed_, first))
        self.coef_, self.violations_, self.n_iter_ = solution.weights, solution.info["violations"], self.max_iter

    @renamed_parameters({"prefs": "preferences"})
    def fit_bilinear(self, Q: Any, D: Any, preferences: Preferences) -> Self:
        """Train W of qᵀWd from preferences between rows of D for rows of Q.

        Parameters
        ----------
        Q : array or sparse matrix of shape (n_queries, n_query_features)
            Query vectors.
        D : array or sparse matrix of shape (n_items, n_features)
            Item vectors.
        preferences : Preferences
            Preferences between items.

        Returns
        -------
        self

        Examples
        --------
        >>> Q, D = [[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0, 0.2], [0.0, 1.0, 0.2]]
        >>> preferences = Preferences.from_triples([0, 1], better=[0, 1], worse=[1, 0])
        >>> PAMIR(max_iter=50, random_state=0).fit_bilinear(Q, D, preferences).scores(Q, D).round(2).tolist()
        [[0.5, -0.5], [-0.5, 0.5]]
        """
        with self._refitting():
            self._fit_bilinear(Q, D, preferences)
        return self

    def _fit_bilinear(self, Q: Any, D: Any, preferences: Preferences) -> None:
        self._validate_parameters()
        score = Bilinear.of(Q, D)
        sides = ("Q", score.queries, preferences.n_queries), ("D", score.items, preferences.n_items)
        for name, side, needed in sides:
            if side.shape[0] < needed:
                raise DataError(f"the preferences refer to {needed} rows of {name}; it has {side.shape[0]}")
        solution = self._solve(score, lambda n, first: preferences.draw(n, self.seed_, first))
        self.W_, self.violations_, self.n_iter_ = solution.weights, solution.info["violations"], self.max_iter
        self.n_features_in_ = score.shape[1]

    def scores(self, Q: Any, D: Any) -> NDArray[np.float32]:
        """Score items after `fit_bilinear`: out[i, j] = Q[i]ᵀ W D[j].

        Parameters
        ----------
        Q : array or sparse matrix of shape (n_queries, n_query_features)
            Query vectors.
        D : array or sparse matrix of shape (n_items, n_features)
            Item vectors.

        Returns
        -------
        ndarray of shape (n_queries, n_items)
        """
        if not hasattr(self, "W_"):
            raise Unfitted("this PAMIR has no W; call fit_bilinear first")
        score = Bilinear.of(Q, D)
        if score.shape != self.W_.shape:
            raise DataError(f"W is {self.W_.shape}, but Q has {score.shape[0]} columns and D {score.shape[1]}")
        return score.scores(self.W_)

    def _scores(self, X: Any) -> Any:
        if not hasattr(self, "coef_"):
            raise Unfitted("this PAMIR was trained by fit_bilinear; call scores(Q, D)")
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
