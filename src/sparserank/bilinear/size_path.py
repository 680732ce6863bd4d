"""Accuracy against size: one W, learned once and cut to smaller and smaller sizes, each refitted and measured.

The entries of largest size are kept. That is better than to learn every size anew under a stronger penalty: on
20 Newsgroups a million pairs cut from 9.5 million have a MAP of .40, a million learned as such .30, for a fraction of
the time (docs/explanation/word-pairs.md has the comparison). And the models are nested: a smaller one's pairs are a
larger one's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import validation
from ..data.files import PathLike, write_bytes
from ..errors import ConfigError, DataError
from ..optim.pruning import keep_largest
from ..optim.scores import Bilinear
from ..preferences import Preferences, Triples
from . import config as settings
from .label_solvers import LOSSES
from .ranker import BilinearRanker

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Measure: TypeAlias = Callable[[BilinearRanker], "float | Mapping[str, float]"]
"""measure(ranker): one number, or several by name; the first is what sizes are compared by."""

HELD_OUT = 10_000
"""Held-out triples that are drawn to measure a size."""
STEPS_DOWN, FACTOR = 6, 3
CHUNK = 500


@dataclass(frozen=True)
class SizePoint:
    """One size: what it takes, what was measured, and the ranker itself."""

    pairs: int
    density: float
    megabytes: float
    alpha: float
    measures: Mapping[str, float]
    ranker: BilinearRanker

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, without the ranker."""
        told = ("pairs", "density", "megabytes", "alpha")
        return {name: getattr(self, name) for name in told} | {"measures": dict(self.measures)}


@dataclass(frozen=True)
class SizePath:
    """Models of one W from the smallest to the largest; made by `size_path`."""

    points: tuple[SizePoint, ...]
    by: str
    lower_is_better: bool = False

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[SizePoint]:
        return iter(self.points)

    def __getitem__(self, place: int) -> SizePoint:
        return self.points[place]

    def best(self, within: float = 0.01) -> SizePoint:
        """The smallest model that comes within a tolerance of the best one, in what `by` is measured in."""
        validation.number("within", within, low=0)
        sign = -1.0 if self.lower_is_better else 1.0
        values = [sign * point.measures[self.by] for point in self.points]
        return next(p for p, value in zip(self.points, values, strict=True) if value >= max(values) - within)

    def plot(self, path: PathLike, within: float = 0.01) -> None:
        """Write `by` against the pairs as a PNG, with the model that `best(within)` takes. Needs the extra `plot`."""
        from ..base.plots import against_size

        values = [(point.pairs, point.measures[self.by]) for point in self.points]
        write_bytes(path, against_size(values, self.by, self.points.index(self.best(within)), within), pack=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "by": self.by,
            "lower_is_better": self.lower_is_better,
            "points": [point.to_dict() for point in self.points],
        }


def size_path(
    ranker: BilinearRanker,
    Q: Any,
    D: Any,
    prefs: Preferences,
    sizes: Sequence[int | float] | None = None,
    *,
    held_out: tuple[Any, Any, Preferences] | None = None,
    measure: Measure | None = None,
    lower_is_better: bool = False,
    query_words: Sequence[str] | None = None,
    document_words: Sequence[str] | None = None,
) -> SizePath:
    """Learn W once, as the ranker says, cut it to every size, refit each where refit=True, and measure it.

    sizes : whole numbers of pairs, or shares of W as fractions (0.01); none above what is learned. Unless given, the
        learned size and six more, each a third of the one before.
    held_out : other rows and preferences (Q, D, prefs); "accuracy" is the share of 10,000 of their triples in order.
    measure : a function of a fitted ranker, for anything else; give one of the two, or both.
    lower_is_better : of the first number measured.

    >>> X = np.eye(4)[[0, 0, 1, 1, 2, 2]] + 0.1
    >>> prefs = Preferences.from_labels([0, 0, 1, 1, 2, 2])
    >>> path = size_path(BilinearRanker(max_iter=200, eta0=1.0, random_state=0), X, X, prefs, [2, 4, 8],
    ...                  held_out=(X, X, prefs))
    >>> [point.pairs for point in path], path.best().pairs
    ([2, 4, 8], 4)
    """
    wanted = _judged(ranker, Q, D, sizes, held_out, measure)
    learned = BilinearRanker(**ranker.get_params(deep=False) | {"refit": False})
    learned.fit(Q, D, prefs, query_words=query_words, document_words=document_words)
    score, most = Bilinear.of(Q, D), learned.W_.nnz
    counts = wanted or [max(1, most // FACTOR**k) for k in range(STEPS_DOWN + 1)]
    run = learned._run(prefs, learned.seed_, 0) if ranker.refit else None
    asked = None if held_out is None else _Asked.of(held_out, learned)
    points = []
    for size in sorted({min(count, most) for count in counts}):
        one = _of_size(learned, size, {"refit": ranker.refit})
        if run is not None and len(run):
            one.W_ = one._refitted(score, one.W_, run)
            one.solution_ = replace(one.solution_, weights=one.W_)
        measures = ({} if asked is None else {"accuracy": asked.accuracy(one.W_)}) | _measured(measure, one)
        points.append(SizePoint(one.W_.nnz, one.density_, one.megabytes_, one.alpha_, measures, one))
    return SizePath(tuple(points), next(iter(points[0].measures)), validation.flag("lower_is_better", lower_is_better))


def _judged(
    ranker: BilinearRanker, Q: Any, D: Any, sizes: Sequence[int | float] | None, held_out: Any, measure: Any
) -> list[int]:
    """The sizes in pairs; whatever is wrong is said before anything is learned."""
    if not isinstance(ranker, BilinearRanker):
        raise ConfigError(f"a BilinearRanker is wanted; got {type(ranker).__name__}")
    if ranker.refit and ranker.solver in LOSSES:
        raise ConfigError(f"refit is a setting of solver='sparse-sgd' and means nothing to {ranker.solver!r}")
    if held_out is None and measure is None:
        raise ConfigError("a size is judged on data it has not learned from: give held_out=(Q, D, prefs) or measure=")
    score = Bilinear.of(Q, D)
    places = score.shape[0] * score.shape[1]
    if held_out is not None:
        _Asked.of(held_out, ranker, score.shape)
    counts = [_pairs(size, places) for size in ([] if sizes is None else sizes)]
    if sizes is not None and not counts:
        raise ConfigError("sizes must name at least one size")
    penalty = settings.penalty(ranker.penalty, ranker.alpha)
    learns = settings.wanted_pairs(ranker.density, ranker.max_pairs, score.shape, penalty)
    if learns is not None and counts and max(counts) > learns:
        raise ConfigError(f"W is learned with {learns} pairs; a size of {max(counts)} cannot be cut from it")
    return counts


def _pairs(size: Any, places: int) -> int:
    """A size in pairs: a whole number as it is, a fraction as a share of all places."""
    if isinstance(size, Integral):
        return validation.count("sizes", size, low=1)
    return max(1, round(validation.number("sizes", size, low=0, high=1, open_low=True) * places))


def _of_size(learned: BilinearRanker, size: int, params: dict[str, Any]) -> BilinearRanker:
    """The learned ranker with its largest pairs only; it goes on learning from there, if it is asked to."""
    one = copy(learned).set_params(density=None, max_pairs=size, **params)
    for kept in ("_training", "_began"):  # a W from class labels has no training to go on with
        vars(one).pop(kept, None)
    one.W_ = keep_largest(learned.W_, size)
    one.solution_ = replace(learned.solution_, weights=one.W_)
    return one


@dataclass(frozen=True)
class _Asked:
    """Held-out triples and the rows they speak of."""

    score: Bilinear
    triples: Triples

    @classmethod
    def of(cls, held_out: Any, ranker: BilinearRanker, shape: tuple[int, int] | None = None) -> _Asked:
        if not isinstance(held_out, tuple) or len(held_out) != 3 or not isinstance(held_out[2], Preferences):
            raise DataError("held_out must be (Q, D, prefs), prefs being Preferences")
        score, prefs = Bilinear.of(*held_out[:2]), held_out[2]
        if shape is not None and score.shape != shape:
            raise DataError(f"held_out has {score.shape} columns for queries and documents; W is {shape}")
        if score.queries.shape[0] < prefs.n_queries or score.items.shape[0] < prefs.n_items:
            raise DataError(f"held_out's preferences speak of {prefs.n_queries} rows of Q and {prefs.n_items} of D")
        seed = getattr(ranker, "seed_", 0) + 2  # neither the training's triples nor those of its curve
        return cls(score, prefs.draw(HELD_OUT, seed))

    def accuracy(self, W: csr_array) -> float:
        """Share of the triples with qᵀWd⁺ > qᵀWd⁻."""
        right = 0
        for first in range(0, HELD_OUT, CHUNK):
            query, better, worse = (column[first : first + CHUNK] for column in self.triples)
            difference = self.score.items[better] - self.score.items[worse]
            margin = (self.score.queries[query] @ W).multiply(difference).sum(axis=1)
            right += int((np.asarray(margin) > 0).sum())
        return right / HELD_OUT


def _measured(measure: Measure | None, ranker: BilinearRanker) -> dict[str, float]:
    if measure is None:
        return {}
    found = measure(ranker)
    name = getattr(measure, "__name__", "<lambda>")
    named = dict(found) if isinstance(found, Mapping) else {"measure" if name == "<lambda>" else name: found}
    for name, value in named.items():
        if not np.isfinite(value):
            raise DataError(f"the measure {name!r} of {ranker.W_.nnz} pairs is {value}")
    if not named:
        raise DataError("the measure gave no number")
    return {name: float(value) for name, value in named.items()}
