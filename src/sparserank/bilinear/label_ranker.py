"""LabelRanker: W of s(x, z) = xᵀ W z from class labels, by solvers that use all pairs of items at once."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import validation
from ..data.formats.tensors import Tensors
from ..errors import ConfigError, DataError
from ..optim.penalties import NoPenalty
from ..optim.problems import LabelProblem
from ..optim.pruning import PairBudget
from ..optim.scores import Bilinear, rows
from ..preferences import Preferences, classes_of
from .persistence import PairMatrixRanker
from .word_pairs import EmptyRows, column_words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..optim.solver import Solution

DEFAULT_RANK = 40
METHODS_OF_0_1 = {"closed-form": "ridge", "low-rank": "low-rank"}
"""`solver` of BilinearRanker in 0.1, and the method that replaces it."""
SAME_ROWS = "items are compared with each other, so Q and D must be the same rows; "


@dataclass(eq=False, repr=False)
class LabelRanker(PairMatrixRanker):
    """Learn W of s(x, z) = xᵀ W z so that items of one class score higher for each other than other items.

    Parameters
    ----------
    method : {'ridge', 'low-rank'}, default='ridge'
        'ridge' solves ridge regression in closed form, for words. 'low-rank' learns a low-rank W with a softmax loss,
        for dense features such as pixels. Both prune W to its most important entries and refit them.
    density : float or None, default=None
        The share of the entries of W to keep. Give either `density` or `max_pairs`.
    max_pairs : int or None, default=None
        The number of entries of W to keep.
    rank : int or None, default=None
        The rank for 'low-rank', 40 by default; 'ridge' has none.
    random_state : int or None, default=None
        Seed of the solver.
    n_jobs : int or None, default=None
        Number of threads; None uses every core. It does not change the result.

    Attributes
    ----------
    W_ : csr_array of shape (n_features, n_features)
        The learned matrix.
    solution_ : Solution
        W and information about the solver.

    Examples
    --------
    >>> X = [[1.0, 0.0, 0.5], [0.9, 0.1, 0.5], [0.0, 1.0, 0.5], [0.1, 0.9, 0.5]]
    >>> ranker = LabelRanker(max_pairs=4, random_state=0).fit(X, ["cat", "cat", "dog", "dog"])
    >>> ranker.scores(X[:1], X)[0].argsort()[::-1][:2].tolist()
    [0, 1]
    """

    method: str = "ridge"
    density: float | None = None
    max_pairs: int | None = None
    rank: int | None = None
    random_state: int | None = None
    n_jobs: int | None = None

    def fit(self, X: Any, y: Any, *, words: Sequence[str] | None = None) -> Self:
        """Learn W from labelled items.

        Parameters
        ----------
        X : sparse or dense array of shape (n_items, n_features)
            Item vectors, used as they are; unit length is best.
        y : array-like of shape (n_items,)
            Class labels, numbers or texts.
        words : sequence of str or None, default=None
            Names of the columns of X, for `related`, `explain` and the model file.
        """
        X, preferences = rows("X", X), Preferences.from_labels(y)
        if X.shape[0] != preferences.n_queries:
            raise DataError(
                f"X has {X.shape[0]} rows, and y has {preferences.n_queries} labels; give each row one label"
            )
        return self._fit_preferences(X, X, preferences, query_words=words, document_words=words)

    def _fit_preferences(
        self, Q: Any, D: Any, preferences: Preferences, *,
        query_words: Sequence[str] | None = None, document_words: Sequence[str] | None = None,
    ) -> Self:  # fmt: skip
        """Fit from `Preferences.from_labels`; rows of Q and D behind the labelled ones are ignored."""
        self._validate()
        score, classes = _labelled_items(Q, D, preferences)
        n_pairs = self._n_pairs(score.shape)
        words = column_words(query_words, document_words, score.shape)
        X = score.items[: len(classes)]
        if X.nnz == 0:
            raise DataError("no item has an entry, so there is nothing to learn from")
        seed = secrets.randbits(63) if self.random_state is None else int(self.random_state)
        solution = self._solve(LabelProblem(X, classes), n_pairs, seed)
        if not np.isfinite(solution.weights.data).all():
            raise DataError("W has grown beyond what float32 holds; scale the rows to unit length")
        empty = EmptyRows.of(score)
        empty.report(logging.INFO, score)
        self.query_words_, self.document_words_ = words
        self.W_, self.seed_ = solution.weights, seed
        counts = {"empty_queries": len(empty.queries), "empty_documents": len(empty.documents)}
        self.solution_ = replace(solution, info={**solution.info, **counts})
        return self

    def _validate(self) -> None:
        validation.choice("method", self.method, tuple(METHODS_OF_0_1.values()))
        if self.random_state is not None:
            validation.count("random_state", self.random_state)
        validation.threads(self.n_jobs)
        if self.rank is not None:
            if self.method == "ridge":
                raise ConfigError("The 'rank' parameter needs method='low-rank'; 'ridge' has the rank of the classes.")
            validation.count("rank", self.rank, low=1)

    def _solve(self, problem: LabelProblem, max_pairs: int, seed: int) -> Solution:
        if self.method == "ridge":
            from ..optim.label_ridge import RIDGE, LabelRidge

            return LabelRidge(max_pairs, seed, n_jobs=self.n_jobs).solve(problem, RIDGE)
        from ..optim.label_contrast import LabelContrast

        rank = DEFAULT_RANK if self.rank is None else self.rank
        return LabelContrast(max_pairs, seed, rank, n_jobs=self.n_jobs).solve(problem, NoPenalty())

    def _n_pairs(self, shape: tuple[int, int]) -> int:
        if (self.density is None) == (self.max_pairs is None):
            raise ConfigError("LabelRanker needs a limit for the size of W: give either 'density' or 'max_pairs'")
        return PairBudget(max_pairs=self.max_pairs, density=self.density).for_shape(shape).pairs

    @classmethod
    def _file_params(cls, file: Tensors) -> dict[str, Any]:
        params = super()._file_params(file)
        if "solver" in params:  # BilinearRanker of 0.1
            params["method"] = METHODS_OF_0_1[params["solver"]]
        return {name: value for name, value in params.items() if name in cls._names()}


def _labelled_items(Q: Any, D: Any, preferences: Preferences) -> tuple[Bilinear, Any]:
    """The rows, and the class of each."""
    if not isinstance(preferences, Preferences):
        raise DataError(f"preferences must be those of Preferences.from_labels; got {type(preferences).__name__}")
    classes = classes_of(preferences)
    if classes is None:
        raise DataError(
            "these preferences are not from class labels; use BilinearRanker, or TextRanker for judged queries"
        )
    score = Bilinear.of(Q, D)
    if score.shape[0] != score.shape[1]:
        raise DataError(f"{SAME_ROWS}they have {score.shape[0]} and {score.shape[1]} columns; see BilinearRanker")
    if score.queries is not score.items and not _equal(score.queries, score.items):
        raise DataError(f"{SAME_ROWS}BilinearRanker learns from two different sides")
    if score.items.shape[0] < len(classes):
        raise DataError(f"the preferences refer to {len(classes)} rows of D; it has {score.items.shape[0]}")
    return score, classes


def _equal(one: csr_array, other: csr_array) -> bool:
    return one.shape == other.shape and all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data")
    )
