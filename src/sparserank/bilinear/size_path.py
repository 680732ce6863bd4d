"""Accuracy against size: W is learned once, pruned to smaller and smaller sizes, refitted and measured.

Pruning keeps the entries with the largest absolute values. That is better than learning every size with a stronger
penalty: on 20 Newsgroups a million pairs pruned from 9.5 million reach a MAP of .40, a million learned as such .30, in
a fraction of the time (docs/explanation/word-pairs.md). The models are nested: a smaller one has pairs of a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from .. import deprecated, validation
from ..data.files import PathLike, write_bytes
from ..errors import ConfigError, DataError
from ..optim.pruning import keep_largest
from ..optim.scores import Bilinear
from ..parameters import html_table
from ..preferences import Preferences, Triples
from . import config
from .label_ranker import LabelRanker
from .ranker import BilinearRanker

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Measure: TypeAlias = Callable[[Any], "float | Mapping[str, float]"]
"""measure(ranker): one number, or several by name; sizes are compared by the first."""

HELD_OUT_TRIPLES = 10_000
DEFAULT_SIZES, SIZE_RATIO = 7, 3
CHUNK_TRIPLES = 500


@dataclass(frozen=True)
class SizePoint:
    """One size of a `SizePath`: its pairs, density, megabytes and alpha, its measures, and the ranker."""

    pairs: int
    density: float
    megabytes: float
    alpha: float
    measures: Mapping[str, float]
    ranker: Any

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, without the ranker."""
        names = ("pairs", "density", "megabytes", "alpha")
        return {name: getattr(self, name) for name in names} | {"measures": dict(self.measures)}


class ModelPath:
    """Models from the smallest to the largest, compared by the measure `by`; a subclass defines `_values`."""

    points: tuple[Any, ...]
    by: str
    tolerance: ClassVar[float] = 0.01
    lower_is_better: bool = False

    def _values(self) -> list[float]:
        """The value of `by` of each model."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.points)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.points)

    def __getitem__(self, place: int) -> Any:
        return self.points[place]

    def best(self, within: float | None = None) -> Any:
        """Return the smallest model whose value is within a tolerance of the best one.

        Parameters
        ----------
        within : float or None, default=None
            The tolerance; None is 0.01, and 0.005 for the nDCG of a text ranker.
        """
        within = validation.number("within", self.tolerance if within is None else within, low=0)
        sign = -1.0 if self.lower_is_better else 1.0
        values = [sign * value for value in self._values()]
        return next(p for p, value in zip(self.points, values, strict=True) if value >= max(values) - within)

    def plot(self, path: PathLike, within: float | None = None) -> None:
        """Write a PNG of the values against the number of pairs, with `best(within)` marked; it needs the extra `plot`.

        Parameters
        ----------
        path : path-like
            The PNG file.
        within : float or None, default=None
            The tolerance of `best`.
        """
        from ..base.plots import size_curve

        within = self.tolerance if within is None else within
        values = list(zip((point.pairs for point in self.points), self._values(), strict=True))
        write_bytes(path, size_curve(values, self.by, self.points.index(self.best(within)), within), compress=False)


@dataclass(frozen=True)
class SizePath(ModelPath):
    """Models of one W, from the smallest to the largest; `size_path` returns it.

    Parameters
    ----------
    points : tuple of SizePoint
        The models.
    by : str
        The measure that sizes are compared by.
    lower_is_better : bool, default=False
        Whether `by` is an error.
    """

    points: tuple[SizePoint, ...]
    by: str
    lower_is_better: bool = False

    def _values(self) -> list[float]:
        return [point.measures[self.by] for point in self.points]

    def _repr_html_(self) -> str:
        rows = [(f"{p.pairs:,}", f"{p.megabytes:.2f}", f"{p.measures[self.by]:.4f}") for p in self.points]
        return html_table(("pairs", "MB", self.by), rows, "SizePath")

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, for JSON."""
        points = [point.to_dict() for point in self.points]
        return {"by": self.by, "lower_is_better": self.lower_is_better, "points": points}


@deprecated.renamed_parameters({"prefs": "preferences"})
def size_path(
    ranker: BilinearRanker | LabelRanker,
    Q: Any,
    D: Any,
    preferences: Preferences,
    sizes: Sequence[int | float] | None = None,
    *,
    held_out: tuple[Any, Any, Preferences] | None = None,
    measure: Measure | None = None,
    lower_is_better: bool = False,
    query_words: Sequence[str] | None = None,
    document_words: Sequence[str] | None = None,
) -> SizePath:
    """Learn W once, prune it to every size, refit each if refit=True, and measure it.

    Parameters
    ----------
    ranker : BilinearRanker or LabelRanker
        The parameters; the ranker itself is not fitted.
    Q, D : sparse or dense array
        Query and document vectors.
    preferences : Preferences
        Preferences to learn from; `Preferences.from_labels` for a `LabelRanker`.
    sizes : sequence of int or float, default=None
        Numbers of pairs, or shares of the entries of W such as 0.01; none may exceed the learned size. None takes the
        learned size and six more, each a third of the one before.
    held_out : tuple (Q, D, Preferences) or None, default=None
        Other rows and preferences; "accuracy" is the share of 10,000 of their triples in the right order.
    measure : callable or None, default=None
        A function of a fitted ranker that returns a number or a mapping of names to numbers. Give `held_out`,
        `measure` or both.
    lower_is_better : bool, default=False
        Whether the first number that is measured is an error.
    query_words, document_words : sequence of str or None, default=None
        Names of the columns of Q and D.

    Examples
    --------
    >>> X = np.eye(4)[[0, 0, 1, 1, 2, 2]] + 0.1
    >>> preferences = Preferences.from_labels([0, 0, 1, 1, 2, 2])
    >>> path = size_path(BilinearRanker(max_iter=200, eta0=1.0, random_state=0), X, X, preferences, [2, 4, 8],
    ...                  held_out=(X, X, preferences))
    >>> [point.pairs for point in path], path.best().pairs
    ([2, 4, 8], 4)
    """
    counts = _validated_sizes(ranker, Q, D, sizes, held_out, measure)
    refit = isinstance(ranker, BilinearRanker) and ranker.refit
    largest = type(ranker)(**ranker.get_params(deep=False) | ({"refit": False} if refit else {}))
    largest._fit_preferences(Q, D, preferences, query_words=query_words, document_words=document_words)
    score, most = Bilinear.of(Q, D), largest.W_.nnz
    counts = counts or [max(1, most // SIZE_RATIO**k) for k in range(DEFAULT_SIZES)]
    run = largest._run(preferences, largest.seed_, 0) if isinstance(largest, BilinearRanker) and refit else None
    triples = None if held_out is None else _HeldOut.of(held_out, largest)
    points = []
    for size in sorted({min(count, most) for count in counts}):
        one = _pruned(largest, size)
        if run is not None and len(run):
            one.W_ = one.set_params(refit=True)._refit(score, one.W_, run)
            one.solution_ = replace(one.solution_, weights=one.W_)
        measures = ({} if triples is None else {"accuracy": triples.accuracy(one.W_)}) | _call(measure, one)
        points.append(SizePoint(one.W_.nnz, one.density_, one.megabytes_, one.alpha_, measures, one))
    return SizePath(tuple(points), next(iter(points[0].measures)), validation.flag("lower_is_better", lower_is_better))


def _validated_sizes(
    ranker: Any, Q: Any, D: Any, sizes: Sequence[int | float] | None, held_out: Any, measure: Any
) -> list[int]:
    """The sizes in pairs; every error is raised before W is learned."""
    if not isinstance(ranker, BilinearRanker | LabelRanker):
        raise ConfigError(f"The 'ranker' parameter must be a BilinearRanker. Got {type(ranker).__name__} instead.")
    if held_out is None and measure is None:
        raise ConfigError("sizes are compared on held-out data: give held_out=(Q, D, preferences) or measure=")
    score = Bilinear.of(Q, D)
    entries = score.shape[0] * score.shape[1]
    if held_out is not None:
        _HeldOut.of(held_out, ranker, score.shape)
    counts = [_pairs(size, entries) for size in ([] if sizes is None else sizes)]
    if sizes is not None and not counts:
        raise ConfigError("sizes must name at least one size")
    if isinstance(ranker, BilinearRanker):
        penalty = config.make_penalty(ranker.penalty, ranker.alpha)
        limit = config.n_pairs(ranker.density, ranker.max_pairs, score.shape, penalty)
    else:
        limit = ranker._n_pairs(score.shape)
    if limit is not None and counts and max(counts) > limit:
        raise ConfigError(f"W is learned with {limit} pairs, so it cannot be pruned to {max(counts)}")
    return counts


def _pairs(size: Any, entries: int) -> int:
    """A size in pairs: a whole number as it is, a fraction as a share of all entries."""
    if isinstance(size, Integral):
        return validation.count("sizes", size, low=1)
    return max(1, round(validation.number("sizes", size, low=0, high=1, open_low=True) * entries))


def _pruned(largest: Any, size: int) -> Any:
    """A copy of the ranker with its largest pairs only; `partial_fit` continues from there."""
    one = copy(largest).set_params(density=None, max_pairs=size)
    for name in ("_training", "_first_params"):
        vars(one).pop(name, None)
    one.W_ = keep_largest(largest.W_, size)
    one.solution_ = replace(largest.solution_, weights=one.W_)
    return one


@dataclass(frozen=True)
class _HeldOut:
    """Held-out triples and their rows."""

    score: Bilinear
    triples: Triples

    @classmethod
    def of(cls, held_out: Any, ranker: Any, shape: tuple[int, int] | None = None) -> _HeldOut:
        if not isinstance(held_out, tuple) or len(held_out) != 3 or not isinstance(held_out[2], Preferences):
            raise DataError("held_out must be a tuple (Q, D, Preferences)")
        score, preferences = Bilinear.of(*held_out[:2]), held_out[2]
        if shape is not None and score.shape != shape:
            raise DataError(f"held_out has {score.shape} columns for queries and documents; W is {shape}")
        n_queries, n_items = preferences.n_queries, preferences.n_items
        if score.queries.shape[0] < n_queries or score.items.shape[0] < n_items:
            raise DataError(f"the preferences of held_out refer to {n_queries} rows of Q and {n_items} of D")
        seed = getattr(ranker, "seed_", 0) + 2  # neither the training's triples nor those of its curve
        return cls(score, preferences.draw(HELD_OUT_TRIPLES, seed))

    def accuracy(self, W: csr_array) -> float:
        """Share of the triples with qᵀWd⁺ > qᵀWd⁻."""
        right = 0
        for first in range(0, HELD_OUT_TRIPLES, CHUNK_TRIPLES):
            query, better, worse = (column[first : first + CHUNK_TRIPLES] for column in self.triples)
            difference = self.score.items[better] - self.score.items[worse]
            margin = (self.score.queries[query] @ W).multiply(difference).sum(axis=1)
            right += int((np.asarray(margin) > 0).sum())
        return right / HELD_OUT_TRIPLES


def _call(measure: Measure | None, ranker: Any) -> dict[str, float]:
    """The numbers that a measure returns, by name."""
    if measure is None:
        return {}
    value, name = measure(ranker), getattr(measure, "__name__", "<lambda>")
    values = dict(value) if isinstance(value, Mapping) else {"measure" if name == "<lambda>" else name: value}
    for name, number in values.items():
        if not np.isfinite(number):
            raise DataError(f"the measure {name!r} of {ranker.W_.nnz} pairs is {number}")
    if not values:
        raise DataError("the measure returned no number")
    return {name: float(number) for name, number in values.items()}
