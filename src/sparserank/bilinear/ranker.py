"""BilinearRanker: s(q, d) = qᵀ W d with a sparse W learned from preferences (Chen et al., 2010, Algorithm 1)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .. import deprecated, validation
from ..data.files import PathLike
from ..data.formats.tensors import Tensors
from ..errors import ConfigError, DataError
from ..optim.penalties import NoPenalty
from ..optim.pruning import keep_largest
from ..optim.scores import Bilinear
from ..optim.sparse_sgd import AnyTraining
from ..preferences import Preferences, Triples
from . import config
from .checkpoint import Checkpoint
from .label_ranker import METHODS_OF_0_1, LabelRanker
from .persistence import PairMatrixRanker
from .progress import Callback
from .training import Run, store_solution
from .version_0_1 import LabelRankerOf01, accept_old_parameters, convert_file_params, holds_label_ranker
from .word_pairs import EmptyRows, column_words

if TYPE_CHECKING:
    from scipy.sparse import csr_array

METHODS_OF_PAPER: dict[str, dict[str, Any]] = {
    "Identity": {"max_iter": 0, "penalty": "none"},
    "Diagonal": {"diagonal": True, "penalty": "none"},
    "SGD (fixed rate)": {"schedule": "fixed", "eta0": 0.01, "penalty": "none"},
    "SGD (decaying rate)": {"penalty": "none"},
    "Sparse": {},
    "Sparse-R": {"refit": True},
}
"""The methods of Table II of Chen et al. (2010), as parameters of `BilinearRanker`; its defaults are the paper's."""

HELD_OUT_TRIPLES = 200
"""Triples for the objective of the learning curve."""
CHANGEABLE = ("max_iter", "shuffle", "n_jobs", "curve_points", "verbose")
"""Parameters that may change from one `partial_fit` to the next."""


@accept_old_parameters
@dataclass(eq=False, repr=False)
class BilinearRanker(PairMatrixRanker):
    """Learn W of s(q, d) = qᵀ W d so that preferred items score higher, and keep it sparse (Chen et al., 2010).

    Parameters
    ----------
    loss : 'hinge' or Hinge, default='hinge'
        The hinge loss with margin 1, or a `sparserank.optim.losses.Hinge` with another margin.
    penalty : {'l1', 'group-rows', 'group-columns', 'none'} or penalty, default='l1'
        The penalty of W with strength `alpha`, or an object of `sparserank.optim.penalties` with its own strength.
    alpha : float, default=1e-5
        Strength of the penalty, the paper's λ.
    density : float or None, default=None
        The share of the entries of W to keep; it replaces `alpha`.
    max_pairs : int or None, default=None
        The number of entries of W to keep; it replaces `alpha`.
    refit : bool, default=False
        Whether to repeat the steps without a penalty on the entries that are left.
    shrink_every : int, default=100
        Steps between two shrinkages of W, the paper's T.
    eta0 : float, default=200.0
        Learning rate, the paper's C.
    max_iter : int, default=100_000
        Number of steps, one triple each.
    shuffle : bool, default=True
        Whether to draw triples with replacement; if False, the first `max_iter` are taken in order.
    random_state : int or None, default=None
        Seed of the draws.
    n_jobs : int or None, default=None
        Number of threads; None uses every core. It does not change the result.
    init : {'identity', 'zero'} or matrix, default='identity'
        W at the first step.
    schedule : {'decay', 'fixed', 'linear'}, default='decay'
        Learning rate at step t: eta0 / √t, eta0, or a line from eta0 to 0 over `max_iter` steps.
    diagonal : bool, default=False
        Whether to learn only the diagonal of W.
    prior : None, 'identity' or matrix, default=None
        W is shrunk towards this matrix instead of zero.
    curve_points : int, default=20
        Number of points of the learning curve; 0 measures none.
    slack : float or None, default=None
        With `density` or `max_pairs`: how many times as many entries W holds during training. None holds 20 % of all
        entries, at most ten times as many as are kept.
    verbose : bool, default=False
        Whether to show a progress bar with steps, density, violations and memory; only on a terminal.

    Attributes
    ----------
    W_ : csr_array of shape (n_query_features, n_document_features)
        The learned matrix.
    solution_ : Solution
        W, the learning curve and information about the training.
    alpha_ : float
        The strength of the penalty at the last step.
    n_iter_ : int
        The number of steps.
    converged_ : bool
        Whether the objective on held-out triples stopped changing.
    n_empty_queries_, n_empty_documents_ : int
        The number of rows of Q and D without an entry; they score 0.

    Examples
    --------
    >>> X = [[1.0, 0.0, 0.5], [0.9, 0.1, 0.5], [0.0, 1.0, 0.5], [0.1, 0.9, 0.5]]
    >>> preferences = Preferences.from_labels([0, 0, 1, 1])
    >>> ranker = BilinearRanker(eta0=1.0, max_iter=200, random_state=0).fit(X, X, preferences)
    >>> ranker.scores(X[:1], X)[0].argsort()[::-1].tolist()
    [0, 1, 3, 2]
    """

    loss: Any = "hinge"
    penalty: Any = "l1"
    alpha: float = 1e-5
    density: float | None = None
    max_pairs: int | None = None
    refit: bool = False
    shrink_every: int = 100
    eta0: float = 200.0
    max_iter: int = 100_000
    shuffle: bool = True
    random_state: int | None = None
    n_jobs: int | None = None
    init: Any = "identity"
    schedule: str = "decay"
    diagonal: bool = False
    prior: Any = None
    curve_points: int = 20
    slack: float | None = None
    verbose: bool = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Return a `LabelRanker` for the solvers of class labels of 0.1."""
        if kwargs.get("solver") in METHODS_OF_0_1:
            return LabelRankerOf01.from_parameters(**kwargs)  # type: ignore[return-value]
        return super().__new__(cls)

    @classmethod
    def from_paper(cls, method: str, **params: Any) -> BilinearRanker:
        """Return a ranker with the parameters of a method of Table II of Chen et al. (2010).

        Parameters
        ----------
        method : {'Identity', 'Diagonal', 'SGD (fixed rate)', 'SGD (decaying rate)', 'Sparse', 'Sparse-R'}
            The method's name in the table.
        **params : dict
            Parameters that replace the method's own.

        Examples
        --------
        >>> BilinearRanker.from_paper("Sparse-R", max_iter=10).refit
        True
        """
        return cls(**METHODS_OF_PAPER[validation.choice("method", method, tuple(METHODS_OF_PAPER))] | params)

    @classmethod
    def named(cls, name: str, **changes: Any) -> BilinearRanker:
        """Deprecated name of `from_paper`.

        Parameters
        ----------
        name, **changes : str and dict
            As in `from_paper`.
        """
        deprecated.warn("BilinearRanker.named", "BilinearRanker.from_paper")
        return cls.from_paper(name, **changes)

    # ---- learning

    @deprecated.renamed_parameters({"prefs": "preferences", "follow": "callback"})
    def fit(
        self,
        Q: Any,
        D: Any,
        preferences: Preferences,
        *,
        query_words: Sequence[str] | None = None,
        document_words: Sequence[str] | None = None,
        checkpoint: PathLike | None = None,
        checkpoint_every: int = 10_000,
        callback: Callback | None = None,
    ) -> Self:
        """Learn W from preferences between rows of D for rows of Q.

        Parameters
        ----------
        Q, D : sparse or dense arrays of shape (n_queries, n_query_features) and (n_documents, n_document_features)
            Query vectors and document vectors, used as they are (tf-idf of unit length, for example).
        preferences : Preferences
            Which rows of D should score higher than which others, for rows of Q.
        query_words, document_words : sequence of str or None, default=None
            Names of the columns of Q and D, for `related`, `explain` and the model file.
        checkpoint : path-like or None, default=None
            A file that stores the state of the training. If it exists and has the same parameters and data, training
            continues from it. It needs a `random_state`. `fit` removes it at the end.
        checkpoint_every : int, default=10_000
            Steps between two checkpoints, rounded up to a multiple of `shrink_every`.
        callback : callable or None, default=None
            Called with the training every few batches. It must not change anything.
        """
        score = self._validated(Q, D, preferences)
        words = column_words(query_words, document_words, score.shape)
        seed = self._seed()
        training = config.new_training(self, score)
        stored = None if checkpoint is None else self._checkpoint(checkpoint, checkpoint_every, score, preferences)
        run = self._run(preferences, seed, 0, stored, callback)
        # everything is validated: forget the previous fit only now
        self._begin(seed, training, words)
        W = self._train(training, run)
        if self.refit and len(run):
            W = self._refit(score, W, run)
        self._finish(W, training, score)
        if stored is not None:
            stored.remove()
        return self

    _fit_preferences = fit

    def _train(self, training: AnyTraining, run: Run) -> csr_array:
        """Return W after all triples; if the checkpoint is from the refit, restore only the state of this phase."""
        if run.resume_from is not None and run.resumes_in("refit"):
            training.restore(run.resume_from.setting("learned", dict))
            return config.make_matrix("init", "zero", training.shape)
        run.take(training)
        return _pruned(training)

    def _refit(self, score: Bilinear, W: csr_array, run: Run) -> csr_array:
        """Algorithm 1 on the entries of W, without penalty, over the same triples from step 1 on."""
        training = config.make_solver(self).training(score, config.make_loss(self.loss), NoPenalty(), W, pattern=True)
        run.take(training, "refit", {} if run.checkpoint is None else {"learned": self._training.summary()})
        self.refit_curve_ = tuple(training.curve.points)
        return training.weights()

    @deprecated.renamed_parameters({"prefs": "preferences", "follow": "callback"})
    def partial_fit(self, Q: Any, D: Any, preferences: Preferences, *, callback: Callback | None = None) -> Self:
        """Continue with more preferences; step count, learning rate, thresholds and draws continue from the last call.

        Parameters
        ----------
        Q, D, preferences, callback : array, array, Preferences and callable
            As in `fit`.
        """
        if self.refit:
            raise ConfigError("refit=True repeats the steps over all triples, which partial_fit does not have; use fit")
        if self.schedule == "linear":
            raise ConfigError("schedule='linear' ends after max_iter steps, so partial_fit cannot continue; use fit")
        score = self._validated(Q, D, preferences)
        if not hasattr(self, "W_"):
            seed, training = self._seed(), config.new_training(self, score)
            run = self._run(preferences, seed, 0, callback=callback)
            self._begin(seed, training, (None, None))
        else:
            if score.shape != self.W_.shape:
                raise DataError(f"W is {self.W_.shape}, but Q has {score.shape[0]} columns and D {score.shape[1]}")
            self._check_unchanged()
            training = self._continued(score)
            run = self._run(preferences, self.seed_, training.steps, callback=callback)
            training.bind(score)
        run.take(training)
        self._finish(_pruned(training), training, score)
        return self

    def _continued(self, score: Bilinear) -> AnyTraining:
        """The training of the last call, or one that starts from a W that was loaded."""
        if not hasattr(self, "_training"):
            self._training = config.new_training(self, score, self.W_)
            self._training.steps = self.n_iter_
            self._first_params = self._fixed_params()
        return self._training

    def _begin(self, seed: int, training: AnyTraining, words: tuple[Any, Any]) -> None:
        self.seed_, self._training, self._first_params = seed, training, self._fixed_params()
        self.query_words_, self.document_words_ = words
        vars(self).pop("refit_curve_", None)  # of the previous fit

    def _fixed_params(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name not in CHANGEABLE}

    def _check_unchanged(self) -> None:
        """Raise ConfigError if a parameter changed between two calls: the change would have no effect."""
        for name, first in getattr(self, "_first_params", {}).items():
            now = getattr(self, name)
            if now is not first and not (isinstance(now, str | int | float) and now == first):
                raise ConfigError(
                    f"partial_fit continues with the parameters of the first call: {name}={first!r} cannot become "
                    f"{now!r}; set it back, or call fit"
                )

    def _seed(self) -> int:
        return secrets.randbits(63) if self.random_state is None else int(self.random_state)

    def validate(self) -> None:
        """Check the parameters that need no data, as `fit` does; raises ConfigError."""
        validation.count("max_iter", self.max_iter)
        validation.count("curve_points", self.curve_points)
        validation.choice("schedule", self.schedule, ("decay", "fixed", "linear"))
        for name in ("refit", "shuffle", "diagonal", "verbose"):
            validation.flag(name, getattr(self, name))
        if self.random_state is not None:
            validation.count("random_state", self.random_state)
        config.make_solver(self)
        config.make_penalty(self.penalty, self.alpha)

    def _validated(self, Q: Any, D: Any, preferences: Preferences) -> Bilinear:
        self.validate()
        if not isinstance(preferences, Preferences):
            raise DataError(f"preferences must be Preferences; got {type(preferences).__name__}")
        score = Bilinear.of(Q, D)
        for name, side, n in (("Q", score.queries, preferences.n_queries), ("D", score.items, preferences.n_items)):
            if side.shape[0] < n:
                raise DataError(f"the preferences refer to {n} rows of {name}; it has {side.shape[0]}")
        return score

    def _run(
        self, preferences: Preferences, seed: int, steps: int,
        checkpoint: Checkpoint | None = None, callback: Callback | None = None,
    ) -> Run:  # fmt: skip
        """The triples of this call: those drawn after `steps` others, or the first ones in order."""
        triples = Triples(*(np.zeros(0, np.int64),) * 3)
        if self.max_iter and self.shuffle:
            triples = preferences.draw(self.max_iter, seed, first=steps)
        elif self.max_iter:
            triples = preferences.first(min(self.max_iter, preferences.n_pairs))
        has_curve = self.curve_points and len(triples.query)
        held_out = preferences.draw(HELD_OUT_TRIPLES, seed + 1) if has_curve else None
        resume_from = None if checkpoint is None else checkpoint.read()
        return Run(triples, held_out, self.curve_points, checkpoint, resume_from, self.verbose, callback)

    def _checkpoint(self, path: PathLike, every: int, score: Bilinear, preferences: Preferences) -> Checkpoint:
        if self.random_state is None:
            raise ConfigError("a checkpoint needs a fixed random_state; give one")
        every = validation.count("checkpoint_every", every, low=1)
        whole_batches = -(-every // self.shrink_every) * self.shrink_every
        # threads and progress bars do not change the result
        params = {k: v for k, v in self.get_params(deep=False).items() if k not in ("n_jobs", "verbose")}
        return Checkpoint(path, whole_batches, params, score, preferences)

    def _finish(self, W: csr_array, training: AnyTraining, score: Bilinear) -> None:
        empty = EmptyRows.of(score)
        empty.report(logging.INFO, score)
        store_solution(self, W, training, (len(empty.queries), len(empty.documents)))

    # ---- files of 0.1

    @classmethod
    def from_file(cls, file: Tensors) -> Any:
        """Return the ranker that a file holds; files of 0.1 with a solver of class labels hold a `LabelRanker`.

        Parameters
        ----------
        file : Tensors
            The content of the file.
        """
        return LabelRanker.from_file(file) if holds_label_ranker(file) else super().from_file(file)

    @classmethod
    def _file_params(cls, file: Tensors) -> dict[str, Any]:
        return convert_file_params(super()._file_params(file), file)


def _pruned(training: AnyTraining) -> csr_array:
    """Return W with its largest entries, at most `max_pairs`."""
    W = training.weights()
    return W if training.max_pairs is None else keep_largest(W, training.max_pairs)
