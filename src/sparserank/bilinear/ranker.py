"""BilinearRanker: s(q, d) = qᵀ W d with a sparse W learned from preferences (Chen et al., 2010).

The constructor stores, `fit` judges and delegates, names that end in `_` are what was learned.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import validation
from ..base.ranker import Ranker, State
from ..data.files import PathLike
from ..data.formats.tensors import Tensors
from ..errors import ConfigError, DataError
from ..optim.pattern_sgd import PatternTraining
from ..optim.penalties import NoPenalty
from ..optim.pruning import keep_largest
from ..optim.scores import Bilinear
from ..optim.solver import Solution
from ..optim.sparse_sgd import Training
from ..preferences import Preferences, Triples
from . import config as settings
from . import label_solvers as from_labels
from .checkpoint import Checkpoint
from .empty_rows import EmptyRows
from .progress import Follow
from .training import Run, store_solution
from .word_pairs import WordPairs, named

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

FREE = ("max_iter", "shuffle", "n_jobs", "watch", "verbose")
"""Settings that may change from one `partial_fit` to the next."""


class BilinearRanker(WordPairs, Ranker):
    """Learns W of s(q, d) = qᵀ W d so that preferred items score higher, and keeps it sparse.

    loss : 'hinge' (margin 1), or a `Hinge`; 'squared' and 'softmax' for the solvers from class labels.
    solver : 'sparse-sgd' is Algorithm 1, for preferences of any kind. From class labels (`Preferences.from_labels`, Q
        and D the same rows, `density` or `max_pairs` given): 'closed-form' with loss='squared', for words; 'low-rank'
        with loss='softmax', for dense features such as pixels. They have no use for the other settings but `rank`
        (of 'low-rank'; 40 by itself), `random_state` and `n_jobs`.
    penalty : 'l1', 'group-rows', 'group-columns', 'none', or an object of `sparserank.optim.penalties`.
    alpha : the paper's λ. density, max_pairs : instead of alpha, how many entries of W should be left.
    refit : once more over the same triples, without penalty, on the entries that are left.
    start : 'identity', 'zero' or a matrix. centre : None, 'identity' or a matrix that W is shrunk towards.
    rate, eta0 : 'decay' is eta0 / √t, 'fixed' is eta0, 'linear' falls from eta0 to 0 over max_iter steps.
    shrink_every : the paper's T. diagonal : only W_ii is learned.
    slack : where a density is asked for, W holds so many times as much while it is learned, and is cut in the end;
        by itself, as much as makes W 20 % dense, and at most ten times as much.
    max_iter, shuffle : so many triples, drawn with replacement; or the first max_iter of them in order.
    watch : points on the learning curve. verbose : on a terminal, a bar with steps, density, violations and memory.

    After `fit`: W_, solution_ (with the learning curve), alpha_, n_iter_, converged_, density_, megabytes_, and
    n_empty_queries_ and n_empty_documents_, the rows of Q and D that have no entry and score 0.

    >>> X = [[1.0, 0.0, 0.5], [0.9, 0.1, 0.5], [0.0, 1.0, 0.5], [0.1, 0.9, 0.5]]
    >>> prefs = Preferences.from_labels([0, 0, 1, 1])
    >>> ranker = BilinearRanker(eta0=1.0, max_iter=200, random_state=0).fit(X, X, prefs)
    >>> ranker.scores(X[:1], X)[0].argsort()[::-1].tolist()
    [0, 1, 3, 2]
    """

    _file_kind = "bilinear"

    solution_: Solution
    n_iter_: int
    alpha_: float
    converged_: bool
    n_empty_queries_: int
    n_empty_documents_: int

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
        slack: float | None = None,
        verbose: bool = False,
        rank: int | None = None,
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
        self.slack = slack
        self.verbose = verbose
        self.rank = rank

    @classmethod
    def named(cls, name: str, **changes: Any) -> BilinearRanker:
        """One of the paper's methods, by its name in Table II, with changes.

        >>> BilinearRanker.named("Sparse-R", max_iter=10).refit
        True
        """
        return cls(**CONFIGURATIONS[validation.choice("name", name, tuple(CONFIGURATIONS))] | changes)

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
        follow: Follow | None = None,
    ) -> Self:
        """Learn from preferences between rows of D for rows of Q, taken as they are (tf-idf, unit length, …).

        query_words, document_words : names of the columns, for `related`, `explain` and the model file.
        checkpoint : a file that is written every `checkpoint_every` steps (rounded up to a multiple of shrink_every).
            Where it is there already, from the same settings and data, fit goes on from it. Needs a random_state.
        follow : called with the training every few batches; it may look, and must change nothing.
        """
        if self.solver in from_labels.LOSSES:
            from_labels.fit(self, Q, D, prefs, (query_words, document_words), checkpoint)
            return self
        score = self._checked(Q, D, prefs)
        words = named(query_words, document_words, score.shape)
        seed = self._seed()
        training = settings.new_training(self, score)
        keeper = None if checkpoint is None else self._keeper(checkpoint, checkpoint_every, score, prefs)
        run = self._run(prefs, seed, 0, keeper, follow)
        # all is judged: what was learned before goes only now
        self._begin(seed, training, words)
        W = self._learned(training, run)
        if self.refit and len(run):
            W = self._refitted(score, W, run)
        self._keep(W, training, score)
        if keeper is not None:
            keeper.done()
        return self

    def _learned(self, training: Training | PatternTraining, run: Run) -> csr_array:
        """W after all triples; where a checkpoint is further on than that, only what is told of the learning."""
        if run.found is not None and run.found_in("refit"):
            training.restore(run.found.setting("learned", dict))
            return settings.matrix("start", "zero", training.shape)
        run.take(training)
        return _handed_over(training)

    def _refitted(self, score: Bilinear, W: csr_array, run: Run) -> csr_array:
        """Algorithm 1 on W's entries only, without penalty, over the same triples from step 1 on."""
        training = settings.make_solver(self).training(score, settings.hinge(self.loss), NoPenalty(), W, pattern=True)
        run.take(training, "refit", {} if run.keeper is None else {"learned": self._training.summary()})
        self.refit_curve_ = tuple(training.curve.points)
        return training.weights()

    def partial_fit(self, Q: Any, D: Any, prefs: Preferences, *, follow: Follow | None = None) -> Self:
        """Go on with more preferences; steps, rates, thresholds and draws are carried on from where they are."""
        if self.solver in from_labels.LOSSES:
            from_labels.refuse(self, "partial_fit")
        if self.refit:
            raise ConfigError("refit=True goes over all triples once more, which partial_fit does not have; use fit")
        if self.rate == "linear":
            raise ConfigError("rate='linear' ends after max_iter steps, so there is nothing to go on with; use 'decay'")
        score = self._checked(Q, D, prefs)
        if not hasattr(self, "W_"):
            seed, training = self._seed(), settings.new_training(self, score)
            run = self._run(prefs, seed, 0, follow=follow)
            self._begin(seed, training, (None, None))
        else:
            if score.shape != self.W_.shape:
                raise DataError(f"W is {self.W_.shape}, but Q has {score.shape[0]} columns and D {score.shape[1]}")
            self._same_settings()
            training = self._gone_on(score)
            run = self._run(prefs, self.seed_, training.steps, follow=follow)
            training.bind(score)
        run.take(training)
        self._keep(_handed_over(training), training, score)
        return self

    def _gone_on(self, score: Bilinear) -> Training | PatternTraining:
        """The training of the last call; where W comes from a file, one that starts from it."""
        if not hasattr(self, "_training"):
            self._training = settings.new_training(self, score, self.W_)
            self._training.steps = self.n_iter_
            self._began = self._lasting()
        return self._training

    def _begin(self, seed: int, training: Training | PatternTraining, words: tuple[Any, Any]) -> None:
        self.seed_, self._training, self._began = seed, training, self._lasting()
        self.query_words_, self.document_words_ = words
        vars(self).pop("refit_curve_", None)  # of the previous fit

    def _lasting(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name not in FREE}

    def _same_settings(self) -> None:
        """A setting that was changed between two calls would have no effect: say so instead."""
        for name, began in getattr(self, "_began", {}).items():
            now = getattr(self, name)
            if now is not began and not (isinstance(now, str | int | float) and now == began):
                raise ConfigError(
                    f"partial_fit goes on with the settings it began with: {name}={began!r} cannot become {now!r} on "
                    "the way; set it back, or call fit"
                )

    def _seed(self) -> int:
        return secrets.randbits(63) if self.random_state is None else int(self.random_state)

    def validate(self) -> None:
        """Check all parameters that can be checked without data, as `fit` does; raises ConfigError."""
        validation.choice("solver", self.solver, ("sparse-sgd", *from_labels.LOSSES))
        if self.rank is not None:
            raise ConfigError("rank is a setting of solver='low-rank'; 'sparse-sgd' has none")
        validation.count("max_iter", self.max_iter)
        validation.count("watch", self.watch)
        for name in ("refit", "shuffle", "diagonal", "verbose"):
            validation.flag(name, getattr(self, name))
        if self.random_state is not None:
            validation.count("random_state", self.random_state)
        settings.make_solver(self)
        settings.penalty(self.penalty, self.alpha)

    def _checked(self, Q: Any, D: Any, prefs: Preferences) -> Bilinear:
        self.validate()
        if not isinstance(prefs, Preferences):
            raise DataError(f"preferences are wanted (Preferences.from_labels, …); got {type(prefs).__name__}")
        score = Bilinear.of(Q, D)
        for name, side, needed in (("Q", score.queries, prefs.n_queries), ("D", score.items, prefs.n_items)):
            if side.shape[0] < needed:
                raise DataError(f"the preferences speak of {needed} rows of {name}; it has {side.shape[0]}")
        return score

    def _run(
        self, prefs: Preferences, seed: int, steps: int,
        keeper: Checkpoint | None = None, follow: Follow | None = None,
    ) -> Run:  # fmt: skip
        """The triples of this call – those drawn after so many steps, or the first in order – and how to take them."""
        none = np.zeros(0, np.int64)
        triples = Triples(none, none, none)
        if self.max_iter and self.shuffle:
            triples = prefs.draw(self.max_iter, seed, first=steps)
        elif self.max_iter:
            triples = prefs.first(min(self.max_iter, prefs.n_pairs))
        held_out = prefs.draw(HELD_OUT, seed + 1) if self.watch and len(triples.query) else None
        found = None if keeper is None else keeper.read()
        return Run(triples, held_out, self.watch, keeper, found, self.verbose, follow)

    def _keeper(self, path: PathLike, every: int, score: Bilinear, prefs: Preferences) -> Checkpoint:
        if self.random_state is None:
            raise ConfigError("a checkpoint can only be gone on from with a fixed random_state; give one")
        every = validation.count("checkpoint_every", every, low=1)
        whole = -(-every // self.shrink_every) * self.shrink_every
        # threads and bars change no bit
        deciding = {
            name: value for name, value in self.get_params(deep=False).items() if name not in ("n_jobs", "verbose")
        }
        return Checkpoint(path, whole, deciding, score, prefs)

    def _keep(self, W: csr_array, told: Training | PatternTraining, score: Bilinear) -> None:
        empty = EmptyRows.of(score)
        empty.report(logging.INFO, score)
        store_solution(self, W, told, (len(empty.queries), len(empty.documents)))

    def _state(self) -> State:
        from .persistence import state

        self._fitted()
        return state(self)

    def _restore(self, file: Tensors) -> None:
        from .persistence import restore

        restore(self, file)

    @classmethod
    def _file_params(cls, file: Tensors) -> dict[str, Any]:
        from .persistence import read_0_1

        return read_0_1(super()._file_params(file), file)


def _handed_over(training: Training | PatternTraining) -> csr_array:
    """W, cut to the pairs that were asked for."""
    W = training.weights()
    return W if training.wanted is None else keep_largest(W, training.wanted)
