"""The methods of Table II, trained in pieces so that W can be looked at on the way.

A method taken in pieces ends at the same bits as one `fit`: pieces end at multiples of `shrink_every`. The refit of
Sparse-R goes over the triples that Sparse has learned from, on the entries that Sparse has left. Sparse-R+ is the same
model with our settings: PLUS_SETTINGS.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ..bilinear.progress import Follow
from ..bilinear.ranker import BilinearRanker
from ..optim.density import cut
from ..optim.losses import Hinge
from ..optim.penalties import L1, NoPenalty
from ..optim.scores import Bilinear
from ..optim.sparse_sgd import SparseSGD
from ..preferences import Preferences, Triples
from .problems import Problem

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SHRINK_EVERY = 100
PLUS = "Sparse-R+"
DENSE = ("SGD (fixed rate)", "SGD (decaying rate)")
MANY_COLUMNS = 2_000
POINTS = tuple(i / 10 for i in range(1, 11))
FEW_POINTS = (0.1, 0.3, 0.6, 1.0)
"""Where a dense W of many columns is looked at: reading out its 10⁸ numbers takes longer than the steps between."""


class PlusSettings(NamedTuple):
    """The settings of Sparse-R+.

    It takes `passes` times the steps of the other methods, at a rate that falls linearly from `rate` to 0. While it
    learns, W holds `slack` times the entries that it keeps. The refit takes the first `steps` triples again, at a rate
    that falls linearly from `refit_scale * rate` to 0.
    """

    passes: int
    rate: float
    slack: float
    refit_scale: float


PLUS_SETTINGS = PlusSettings(passes=3, rate=4.0, slack=3.0, refit_scale=0.0625)
"""One setting for all data sets; `python -m benchmarks.tune_word_pairs` chose it on held-out training items."""


class Stage(NamedTuple):
    """W after so many steps: its error on the sample of test items, and its share of nonzeros.

    `held` is the share held in training: before the cut to the density asked for, and with entries that have become 0
    since the last settling.
    """

    steps: int
    error: float
    density: float
    held: float


@dataclass(frozen=True)
class Learned:
    """What a method ends with; `steps` counts the triples of every pass, and `seconds` are spent on training alone."""

    W: csr_array
    steps: int
    seconds: float
    curve: tuple[Stage, ...]


Look: TypeAlias = Callable[[int, "csr_array"], Stage]
"""look(steps, W): what there is to see of W after so many steps."""


def learn(method: str, problem: Problem, steps: int, seed: int, look: Look, follow: Follow | None = None) -> Learned:
    """Train one method of the paper, other than Sparse-R, with the paper's settings."""
    changes = {"density": problem.density} if method == "Sparse" else {}
    ranker = BilinearRanker.named(method, random_state=seed, shrink_every=SHRINK_EVERY, watch=1, **changes)
    preferences = Preferences.from_labels(problem.train_classes)
    if method == "Identity":
        ranker.fit(problem.train, problem.train, preferences)
        return Learned(ranker.W_, 0, 0.0, (look(0, ranker.W_),))
    few = method in DENSE and problem.columns > MANY_COLUMNS
    curve = []
    for piece in pieces(steps, FEW_POINTS if few else POINTS):
        ranker.set_params(max_iter=piece).partial_fit(problem.train, problem.train, preferences, follow=follow)
        held = ranker.solution_.curve[-1].nonzeros / problem.columns**2
        curve.append(look(ranker.n_iter_, ranker.W_)._replace(held=held))
    return Learned(ranker.W_, ranker.n_iter_, ranker.solution_.curve[-1].seconds, tuple(curve))


def refit(
    problem: Problem, sparse: Learned, steps: int, seed: int, look: Look, follow: Follow | None = None
) -> Learned:
    """Sparse-R: Sparse's triples once more, without penalty, on the entries it has left."""
    score = Bilinear.of(problem.train, problem.train)
    training = SparseSGD(shrink_every=SHRINK_EVERY).training(score, Hinge(), NoPenalty(), sparse.W, pattern=True)
    triples = Preferences.from_labels(problem.train_classes).draw(steps, seed)
    curve, done = [], 0
    for piece in pieces(steps, POINTS):
        training.advance(Triples(*(column[done : done + piece] for column in triples)), on_settle=follow)
        done += piece
        curve.append(look(done, training.weights()))
    return Learned(training.weights(), sparse.steps + steps, sparse.seconds + training.seconds, tuple(curve))


def learn_plus(
    problem: Problem, steps: int, seed: int, follow: Follow | None = None, settings: PlusSettings = PLUS_SETTINGS
) -> Learned:
    """Sparse-R+: Algorithm 1 and its refit, with our settings; W is measured at the end only, so there is no curve."""
    first = learn_plus_pattern(problem, steps, seed, settings, follow)
    second = refit_plus(problem, first.W, steps, seed, settings, follow)
    return Learned(second.W, first.steps + second.steps, first.seconds + second.seconds, ())


def learn_plus_pattern(
    problem: Problem, steps: int, seed: int, settings: PlusSettings, follow: Follow | None = None
) -> Learned:
    """The first phase of Sparse-R+: W before its refit, cut to the density of the problem."""
    from scipy.sparse import csr_array, eye_array

    places, n = problem.columns**2, settings.passes * steps
    wanted = round(problem.density * places)
    identity = csr_array(eye_array(problem.columns, dtype="float32", format="csr"))
    training = SparseSGD(settings.rate, "linear", SHRINK_EVERY, horizon=n).training(
        Bilinear.of(problem.train, problem.train), Hinge(), L1(BilinearRanker().alpha), identity,
        wanted=wanted, slack=min(settings.slack, places / wanted),
    )  # fmt: skip
    training.advance(Preferences.from_labels(problem.train_classes).draw(n, seed), on_settle=follow)
    return Learned(cut(training.weights(), wanted), n, training.seconds, ())


def refit_plus(
    problem: Problem, W: csr_array, steps: int, seed: int, settings: PlusSettings, follow: Follow | None = None
) -> Learned:
    """The second phase of Sparse-R+: the first `steps` triples again, without penalty, on the entries of W."""
    solver = SparseSGD(settings.refit_scale * settings.rate, "linear", SHRINK_EVERY, horizon=steps)
    score = Bilinear.of(problem.train, problem.train)
    training = solver.training(score, Hinge(), NoPenalty(), W, pattern=True)
    triples = Preferences.from_labels(problem.train_classes).draw(settings.passes * steps, seed)
    training.advance(Triples(*(column[:steps] for column in triples)), on_settle=follow)
    return Learned(training.weights(), steps, training.seconds, ())


def pieces(steps: int, points: Sequence[float]) -> list[int]:
    """Steps cut in pieces that end near these shares of them, and at multiples of `SHRINK_EVERY`.

    >>> pieces(1050, (0.1, 0.5, 1.0))
    [100, 400, 550]
    """
    ends = {round(steps * point / SHRINK_EVERY) * SHRINK_EVERY for point in points if point < 1}
    marks = {0, steps} | {end for end in ends if end < steps}
    return [after - before for before, after in pairwise(sorted(marks))]
