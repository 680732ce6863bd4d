"""The methods of Chen's Table II, trained in chunks so that W can be measured during training.

Chunks end at multiples of `shrink_every`, so they give the same bits as one `fit`. Sparse-R trains again on the triples
of Sparse, on the entries that Sparse keeps. Sparse-R+ is the same model with settings of our own, PLUS_SETTINGS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..bilinear.config import make_matrix
from ..bilinear.progress import Callback
from ..bilinear.ranker import BilinearRanker
from ..optim.losses import Hinge
from ..optim.penalties import L1, NoPenalty
from ..optim.pruning import keep_largest
from ..optim.scores import Bilinear
from ..optim.sparse_sgd import SparseSGD
from ..preferences import Preferences, Triples
from .datasets import LabeledDataset

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHRINK_EVERY = 100
PLUS = "Sparse-R+"
DENSE_METHODS = ("SGD (fixed rate)", "SGD (decaying rate)")
MANY_COLUMNS = 2_000
CURVE_POINTS = tuple(i / 10 for i in range(1, 11))
FEW_CURVE_POINTS = (0.1, 0.3, 0.6, 1.0)
"""Shares of the steps at which a dense W of many columns is measured: reading its 10⁸ numbers is slow."""


class PlusSettings(NamedTuple):
    """Settings of Sparse-R+.

    It takes `passes` times the steps of the other methods, at a rate that falls linearly from `rate` to 0. During
    training W holds `slack` times the entries that it keeps. The refit takes the first `steps` triples again, at a rate
    that falls linearly from `refit_scale * rate` to 0.
    """

    passes: int
    rate: float
    slack: float
    refit_scale: float


PLUS_SETTINGS = PlusSettings(passes=3, rate=4.0, slack=3.0, refit_scale=0.0625)
"""The same for all data sets; `python -m benchmarks.tune_word_pairs` chose them on held-out training items."""


class CurvePoint(NamedTuple):
    """Error on the sample of test items and density of W after some steps.

    training_density : before W is pruned to its final density, including entries that became 0 since the last shrink.
    """

    steps: int
    error: float
    density: float
    training_density: float


@dataclass(frozen=True)
class TrainedMethod:
    """W, the triples of all passes, the seconds of training alone, and the learning curve."""

    W: csr_array
    steps: int
    seconds: float
    curve: tuple[CurvePoint, ...] = ()


Measure: TypeAlias = Callable[[int, "csr_array"], CurvePoint]


@dataclass(frozen=True)
class MethodTrainer:
    """Train the methods on one data set, each with the same triples; `callback` sees every training."""

    data: LabeledDataset
    steps: int
    seed: int
    callback: Callback | None = None

    @cached_property
    def preferences(self) -> Preferences:
        """The preferences of the training items."""
        return Preferences.from_labels(self.data.train_classes)

    @cached_property
    def score(self) -> Bilinear:
        """The training items, as queries and as documents."""
        return Bilinear.of(self.data.train, self.data.train)

    def train(self, method: str, measure: Measure) -> TrainedMethod:
        """Train a method of the paper, other than Sparse-R, with the paper's settings."""
        X, settings = self.data.train, {"density": self.data.density} if method == "Sparse" else {}
        settings |= {"random_state": self.seed, "shrink_every": SHRINK_EVERY, "curve_points": 1}
        ranker = BilinearRanker.from_paper(method, **settings)
        if method == "Identity":
            ranker.fit(X, X, self.preferences)
            return TrainedMethod(ranker.W_, 0, 0.0, (measure(0, ranker.W_),))
        few = method in DENSE_METHODS and self.data.columns > MANY_COLUMNS
        curve = []
        for chunk in step_chunks(self.steps, FEW_CURVE_POINTS if few else CURVE_POINTS):
            ranker.set_params(max_iter=chunk).partial_fit(X, X, self.preferences, callback=self.callback)
            training_density = ranker.solution_.history[-1].nonzeros / self.data.columns**2
            curve.append(measure(ranker.n_iter_, ranker.W_)._replace(training_density=training_density))
        return TrainedMethod(ranker.W_, ranker.n_iter_, ranker.solution_.history[-1].seconds, tuple(curve))

    def refit(self, sparse: TrainedMethod, measure: Measure) -> TrainedMethod:
        """Sparse-R: train on the triples of Sparse again, without penalty, on the entries that Sparse keeps."""
        triples = self.preferences.draw(self.steps, self.seed)
        second = self._refit(sparse.W, SparseSGD(shrink_every=SHRINK_EVERY), triples, measure)
        return TrainedMethod(second.W, sparse.steps + self.steps, sparse.seconds + second.seconds, second.curve)

    def train_plus(self, settings: PlusSettings = PLUS_SETTINGS) -> TrainedMethod:
        """Sparse-R+: Algorithm 1 and its refit with our settings; there is no learning curve."""
        first = self.train_plus_pattern(settings)
        second = self.refit_plus(first.W, settings)
        return TrainedMethod(second.W, first.steps + second.steps, first.seconds + second.seconds)

    def train_plus_pattern(self, settings: PlusSettings) -> TrainedMethod:
        """The first phase of Sparse-R+: W before its refit, pruned to the density of the data set."""
        places, n = self.data.columns**2, settings.passes * self.steps
        n_pairs = round(self.data.density * places)
        identity = make_matrix("init", "identity", self.score.shape)
        training = SparseSGD(settings.rate, "linear", SHRINK_EVERY, horizon=n).training(
            self.score, Hinge(), L1(BilinearRanker().alpha), identity,
            max_pairs=n_pairs, slack=min(settings.slack, places / n_pairs),
        )  # fmt: skip
        training.advance(self.preferences.draw(n, self.seed), on_settle=self.callback)
        return TrainedMethod(keep_largest(training.weights(), n_pairs), n, training.seconds)

    def refit_plus(self, W: csr_array, settings: PlusSettings) -> TrainedMethod:
        """The second phase of Sparse-R+: the first `steps` triples again, without penalty, on the entries of W."""
        solver = SparseSGD(settings.refit_scale * settings.rate, "linear", SHRINK_EVERY, horizon=self.steps)
        triples = self.preferences.draw(settings.passes * self.steps, self.seed)
        return self._refit(W, solver, Triples(*(column[: self.steps] for column in triples)))

    def _refit(
        self, W: csr_array, solver: SparseSGD, triples: Triples, measure: Measure | None = None
    ) -> TrainedMethod:
        """Train on triples, without penalty, on the entries of W."""
        training = solver.training(self.score, Hinge(), NoPenalty(), W, pattern=True)
        curve, done = [], 0
        for chunk in step_chunks(len(triples.query), CURVE_POINTS if measure else ()):
            training.advance(Triples(*(column[done : done + chunk] for column in triples)), on_settle=self.callback)
            done += chunk
            if measure:
                curve.append(measure(done, training.weights()))
        return TrainedMethod(training.weights(), done, training.seconds, tuple(curve))


def step_chunks(steps: int, points: Sequence[float]) -> list[int]:
    """Sizes of chunks that end near these shares of the steps, at multiples of `SHRINK_EVERY`.

    >>> step_chunks(1050, (0.1, 0.5, 1.0))
    [100, 400, 550]
    """
    ends = {round(steps * point / SHRINK_EVERY) * SHRINK_EVERY for point in points if point < 1}
    marks = {0, steps} | {end for end in ends if end < steps}
    return [after - before for before, after in pairwise(sorted(marks))]
