"""BilinearRanker: s(q, d) = qᵀ W d with a sparse W learned from preferences (Chen et al., 2010).

The constructor stores, `fit` judges and delegates, names that end in `_` are what was learned.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from .. import check
from ..data.files import PathLike
from ..data.tensors import Tensors
from ..errors import ConfigError, DataError
from ..losses import Hinge
from ..penalties import L1, GroupL1, NoPenalty, Penalty
from ..preferences import Preferences, Triples
from ..scores import Bilinear, rows
from ..solvers.density import cut
from ..solvers.pattern_sgd import PatternTraining
from ..solvers.solution import Solution
from ..solvers.sparse_sgd import SparseSGD, Training
from .checkpoint import Checkpoint
from .word_pairs import WordPairs

if TYPE_CHECKING:
    from scipy.sparse import csr_array

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "Identity": {"max_iter": 0, "penalty": "none"},
    "Diagonal": {"diagonal": True, "penalty": "none"},
    "SGD (fixed rate)": {"rate": "fixed", "eta0": 0.01, "penalty": "none"},
    "SGD (decaying rate)": {"penalty": "none"},
    "Sparse": {},
    "Sparse-R": {"refit": True},
}
"""The methods of the paper's Table II, as settings of `BilinearRanker`; its defaults are the paper's."""

HELD_OUT = 200
"""Triples that the learning curve's objective is measured on."""


class BilinearRanker(WordPairs, BaseEstimator):  # type: ignore[misc]
    """Learns W of s(q, d) = qᵀ W d so that preferred items score higher, and keeps it sparse.

    loss : 'hinge' (margin 1), or a `Hinge`.
    penalty : 'l1', 'group-rows', 'group-columns', 'none', or an object of `sparserank.penalties`.
    alpha : the paper's λ. density, max_pairs : instead of alpha, how many entries of W should be left.
    refit : once more over the same triples, without penalty, on the entries that are left.
    start : 'identity', 'zero' or a matrix. centre : None, 'identity' or a matrix that W is shrunk towards.
    rate, eta0 : 'decay' is eta0 / √t, 'fixed' is eta0. shrink_every : the paper's T. diagonal : only W_ii is learned.
    max_iter, shuffle : so many triples, drawn with replacement; or the first max_iter of them in order.
    watch : points on the learning curve.

    >>> X = [[1.0, 0.0, 0.5], [0.9, 0.1, 0.5], [0.0, 1.0, 0.5], [0.1, 0.9, 0.5]]
    >>> prefs = Preferences.from_labels([0, 0, 1, 1])
    >>> ranker = BilinearRanker(eta0=1.0, max_iter=200, random_state=0).fit(X, X, prefs)
    >>> ranker.scores(X[:1], X)[0].argsort()[::-1].tolist()
    [0, 1, 3, 2]
    """

    def __init__(
        self,
        loss: Any = "hinge",
        penalty: Any = "l1",
        solver: str = "sparse-sgd",
        alpha: float = 1e-5,
        density: float | None = None,
        max_pairs: int | None = None,
        refit: bool = False,
        shrink_every: int = 100,
        eta0: float = 200.0,
        max_iter: int = 100_000,
        shuffle: bool = True,
        random_state: int | None = None,
        n_jobs: int | None = None,
        start: Any = "identity",
        rate: str = "decay",
        diagonal: bool = False,
        centre: Any = None,
        watch: int = 20,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.alpha = alpha
        self.density = density
        self.max_pairs = max_pairs
        self.refit = refit
        self.shrink_every = shrink_every
        self.eta0 = eta0
        self.max_iter = max_iter
        self.shuffle = shuffle
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.start = start
        self.rate = rate
        self.diagonal = diagonal
        self.centre = centre
        self.watch = watch

    @classmethod
    def named(cls, name: str, **changes: Any) -> BilinearRanker:
        """One of the paper's methods, by its name in Table II, with changes.

        >>> BilinearRanker.named("Sparse-R", max_iter=10).refit
        True
        """
        return cls(**CONFIGURATIONS[check.choice("name", name, tuple(CONFIGURATIONS))] | changes)

    # ---- learning

    def fit(
        self,
        Q: Any,
        D: Any,
        prefs: Preferences,
        *,
        query_words: Sequence[str] | None = None,
        document_words: Sequence[str] | None = None,
        checkpoint: PathLike | None = None,
        checkpoint_every: int = 10_000,
    ) -> Self:
        """Learn from preferences between rows of D for rows of Q, taken as they are (tf-idf, unit length, …).

        query_words, document_words : names of the columns, for `related`, `explain` and the model file.
        checkpoint : a file that is written every `checkpoint_every` steps (rounded up to a multiple of shrink_every).
            Where it is there already, from the same settings and data, fit goes on from it. Needs a random_state.
        """
        score = self._begin(Q, D, prefs)
        self._name(query_words, document_words, score)
        keeper = None if checkpoint is None else self._keeper(checkpoint, checkpoint_every, score, prefs)
        file = None if keeper is None else keeper.read()
        triples = self._triples(prefs)
        W = self._learned(triples, prefs, keeper, file)
        if self.refit and len(triples.query):
            W = self._refitted(score, W, triples, prefs, keeper, file)
        self._keep(W, self._training)
        if keeper is not None:
            keeper.done()
        return self

    def _learned(
        self, triples: Triples, prefs: Preferences, keeper: Checkpoint | None, file: Tensors | None
    ) -> csr_array:
        """W after all triples; where a checkpoint is further on than that, only what is told of the learning."""
        training = self._training
        if file is not None and file.settings["phase"] == "refit":
            training.recall(file.setting("learned", dict))
            return self._matrix("start", "zero", training.shape)
        if file is not None:
            training.resume(file.setting("told", dict), file.arrays)
        self._advance(training, triples, prefs, keeper, "learn")
        W = training.weights()
        return W if training.thermostat is None else cut(W, training.thermostat.wanted)

    def _refitted(
        self, score: Bilinear, W: csr_array, triples: Triples, prefs: Preferences,
        keeper: Checkpoint | None, file: Tensors | None,
    ) -> csr_array:  # fmt: skip
        """Algorithm 1 on W's entries only, without penalty, over the same triples from step 1 on."""
        solver = SparseSGD(self.eta0, self.rate, self.shrink_every, self.n_jobs)
        training = solver.training(score, self._loss(), NoPenalty(), W, pattern=True)
        if file is not None and file.settings["phase"] == "refit":
            training.resume(file.setting("told", dict), file.arrays)
        learned = {} if keeper is None else {"learned": self._training.summary()}
        self._advance(training, triples, prefs, keeper, "refit", learned)
        self.refit_curve_ = tuple(training.curve.points)
        return training.weights()

    def partial_fit(self, Q: Any, D: Any, prefs: Preferences) -> Self:
        """Go on with more preferences; steps, rates, thresholds and draws are carried on from where they are."""
        if self.refit:
            raise ConfigError("refit=True goes over all triples once more, which partial_fit does not have; use fit")
        if not hasattr(self, "W_"):
            score = self._begin(Q, D, prefs)
            self._name(None, None, score)
        else:
            score = self._checked(Q, D, prefs)
            if score.shape != self.W_.shape:
                raise DataError(f"W is {self.W_.shape}, but Q has {score.shape[0]} columns and D {score.shape[1]}")
            if not hasattr(self, "_training"):
                self._training = self._new_training(score, start=self.W_)
                self._training.steps = self.n_iter_
            self._training.bind(score)
        self._advance(self._training, self._triples(prefs), prefs)
        W, told = self._training.weights(), self._training
        self._keep(cut(W, told.thermostat.wanted) if told.thermostat is not None else W, told)
        return self

    def _begin(self, Q: Any, D: Any, prefs: Preferences) -> Bilinear:
        score = self._checked(Q, D, prefs)
        self.seed_ = secrets.randbits(63) if self.random_state is None else int(self.random_state)
        self._training = self._new_training(score, start=None)
        return score

    def _checked(self, Q: Any, D: Any, prefs: Preferences) -> Bilinear:
        check.choice("solver", self.solver, ("sparse-sgd",))
        check.count("max_iter", self.max_iter)
        check.count("watch", self.watch)
        if not isinstance(prefs, Preferences):
            raise DataError(f"preferences are wanted (Preferences.from_labels, …); got {type(prefs).__name__}")
        score = Bilinear.of(Q, D)
        for name, side, needed in (("Q", score.queries, prefs.n_queries), ("D", score.items, prefs.n_items)):
            if side.shape[0] < needed:
                raise DataError(f"the preferences speak of {needed} rows of {name}; it has {side.shape[0]}")
        return score

    def _new_training(self, score: Bilinear, start: csr_array | None) -> Training | PatternTraining:
        solver = SparseSGD(self.eta0, self.rate, self.shrink_every, self.n_jobs)
        begin = self._matrix("start", self.start, score.shape) if start is None else start
        centre = None if self.centre is None else self._matrix("centre", self.centre, score.shape)
        if self.diagonal:
            if score.shape[0] != score.shape[1]:
                raise ConfigError(
                    f"a diagonal W must be square; Q and D have {score.shape[0]} and {score.shape[1]} columns"
                )
            begin = _diagonal_pattern(begin)
        return solver.training(
            score, self._loss(), self._penalty(), begin, centre, pattern=self.diagonal, wanted=self._wanted(score.shape)
        )

    def _loss(self) -> Hinge:
        if isinstance(self.loss, Hinge):
            return self.loss
        check.choice("loss", self.loss, ("hinge",))
        return Hinge()

    def _penalty(self) -> Penalty:
        if isinstance(self.penalty, NoPenalty | L1 | GroupL1):
            return self.penalty
        kind = check.choice("penalty", self.penalty, ("l1", "group-rows", "group-columns", "none"))
        check.number("alpha", self.alpha, low=0)
        if kind == "none":
            return NoPenalty()
        return L1(self.alpha) if kind == "l1" else GroupL1(self.alpha, over=kind.removeprefix("group-"))

    def _wanted(self, shape: tuple[int, int]) -> int | None:
        if self.density is None and self.max_pairs is None:
            return None
        if self.density is not None and self.max_pairs is not None:
            raise ConfigError("'density' and 'max_pairs' both say how large W should be; give one of them")
        if isinstance(self._penalty(), NoPenalty):
            raise ConfigError("a wanted density needs penalty='l1'; without a penalty W does not become sparse")
        if self.max_pairs is not None:
            return check.count("max_pairs", self.max_pairs, low=1)
        density = check.number("density", self.density, low=0, high=1, open_low=True)
        return max(1, round(density * shape[0] * shape[1]))

    @staticmethod
    def _matrix(name: str, given: Any, shape: tuple[int, int]) -> csr_array:
        from scipy.sparse import csr_array, eye_array

        if isinstance(given, str):
            check.choice(name, given, ("identity", "zero"))
            if given == "zero":
                return csr_array(shape, dtype=np.float32)
            if shape[0] != shape[1]:
                raise ConfigError(
                    f"{name}='identity' needs as many query as document columns; W is {shape}: use 'zero'"
                )
            return csr_array(eye_array(shape[0], dtype=np.float32, format="csr"))
        matrix = rows(name, given)
        if matrix.shape != shape:
            raise ConfigError(f"{name} must be a matrix of shape {shape}; got {matrix.shape}")
        return matrix

    def _triples(self, prefs: Preferences) -> Triples:
        if self.max_iter == 0:
            none = np.zeros(0, np.int64)
            return Triples(none, none, none)
        if self.shuffle:
            return prefs.draw(self.max_iter, self.seed_, first=self._training.steps)
        return prefs.first(min(self.max_iter, prefs.n_pairs))

    def _keeper(self, path: PathLike, every: int, score: Bilinear, prefs: Preferences) -> Checkpoint:
        if self.random_state is None:
            raise ConfigError("a checkpoint can only be gone on from with a fixed random_state; give one")
        every = check.count("checkpoint_every", every, low=1)
        whole = -(-every // self.shrink_every) * self.shrink_every
        return Checkpoint(path, whole, self.get_params(), score, prefs)

    def _advance(
        self,
        training: Training | PatternTraining,
        triples: Triples,
        prefs: Preferences,
        keeper: Checkpoint | None = None,
        phase: str = "learn",
        more: dict[str, Any] | None = None,
    ) -> None:
        """Take the triples that the training has not taken yet, with checkpoints in between."""
        n = len(triples.query)
        every = max(1, n // self.watch) if self.watch and n else None
        held_out = None if every is None else prefs.draw(HELD_OUT, self.seed_ + 1)
        done = training.steps if keeper is not None else 0
        while done < n:
            count = n - done if keeper is None else min(keeper.every, n - done)
            part = Triples(*(column[done : done + count] for column in triples))
            training.advance(part, held_out=held_out, every=every)
            done += count
            if keeper is not None and done < n:
                training.settle()
                keeper.write(phase, training, more or {})

    def _keep(self, W: csr_array, told: Training | PatternTraining) -> None:
        curve = tuple(told.curve.points)
        values = [point.objective for point in curve if point.objective is not None]
        settled = len(values) >= 4 and abs(values[-1] - values[-4]) <= 0.01 * max(abs(values[-4]), 1e-12)
        message = "the held-out objective has come to rest" if settled else "the held-out objective was still moving"
        self.W_ = W
        self.n_iter_ = told.steps
        self.alpha_ = told.alpha
        self.converged_ = settled
        self.solution_ = Solution(
            W, told.steps, settled, message, told.alpha, curve, told.peak_bytes, told.peak_nonzeros
        )

    def _name(self, query_words: Sequence[str] | None, document_words: Sequence[str] | None, score: Bilinear) -> None:
        for side, words, width in (
            ("query", query_words, score.shape[0]),
            ("document", document_words, score.shape[1]),
        ):
            if words is not None and len(words) != width:
                raise DataError(f"{width} {side} columns need {width} words; got {len(words)}")
        self.query_words_ = None if query_words is None else tuple(query_words)
        self.document_words_ = None if document_words is None else tuple(document_words)

    def save(self, path: PathLike) -> None:
        """Write W, its words, the settings and the curve as one file; `sparserank.load` reads it."""
        from .bilinear_file import save

        self._fitted()
        save(self, path)


def _diagonal_pattern(start: csr_array) -> csr_array:
    """Every place of the diagonal, with the start's values there."""
    from scipy.sparse import csr_array

    n = start.shape[0]
    return csr_array((start.diagonal().astype(np.float32), np.arange(n), np.arange(n + 1)), shape=(n, n))
