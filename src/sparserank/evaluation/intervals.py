"""How sure a figure is. Queries are what is sampled, every draw is seeded, and the same seed gives the same bits.

*Intervals* are 95 % percentile bootstrap intervals: queries are drawn with replacement, as many as there are, 10,000
times, and the middle 95 % of the means are kept. (A mean over queries is nearly unbiased and, from a few dozen queries,
nearly symmetric, so the corrections of BCa would hardly move it.) A single query gives an interval of no width, and
fewer than about ten give one that is too narrow: read the number of queries beside it.

*Tests* are two-sided paired randomisation tests: if two systems were alike, the sign of each query's difference would
be a coin's. With at most 14 queries that differ, all sign patterns are counted; else 20,000 are drawn, the observed one
counted with them, so that p is never 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .measures import PerQuery

Floats: TypeAlias = NDArray[np.float64]

LEVEL = 0.95
RESAMPLES = 10_000
PERMUTATIONS = 20_000
EXACT_UP_TO = 14
_DRAWS_AT_ONCE = 1 << 18


@dataclass(frozen=True)
class Estimate:
    """A value and the ends of its 95 % interval."""

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """{"value": …, "low": …, "high": …}."""
        return {"value": self.value, "low": self.low, "high": self.high}


def estimates(columns: Sequence[PerQuery], *, seed: int = 0) -> list[Estimate]:
    """Each measure's value over all queries, with its interval; columns of equal length share their draws."""
    ends: dict[int, tuple[float, float]] = {}
    for length in {len(column.values) for column in columns}:
        alike = [i for i, column in enumerate(columns) if len(column.values) == length]
        means = resampled_means([columns[i] for i in alike], seed=seed)
        ends.update(zip(alike, map(_ends, means), strict=True))
    return [Estimate(column.mean, *ends[i]) for i, column in enumerate(columns)]


def estimate_difference(a: PerQuery, b: PerQuery, *, seed: int = 0) -> Estimate:
    """The value of b less that of a, the same queries being drawn for both."""
    if a.queries != b.queries:
        raise DataError("a difference needs the same queries on both sides")
    mean_a, mean_b = resampled_means([a, b], seed=seed)
    return Estimate(b.mean - a.mean, *_ends(mean_b - mean_a))


def ratio_estimates(ratios: Sequence[tuple[Floats, Floats]], *, seed: int = 0) -> list[Estimate]:
    """The sum of a over the sum of b for each (a, b), one number per query, with its interval; all share their draws.

    >>> ratio_estimates([(np.array([1.0, 1.0]), np.array([2.0, 2.0]))])
    [Estimate(value=0.5, low=0.5, high=0.5)]
    """
    sums = resampled_sums(np.stack([part for ratio in ratios for part in ratio]), seed=seed)
    pairs = zip(ratios, sums[::2], sums[1::2], strict=True)
    return [Estimate(float(a.sum() / b.sum()), *_ends(above / below)) for (a, b), above, below in pairs]


def resampled_means(columns: Sequence[PerQuery], *, seed: int = 0) -> list[Floats]:
    """The value of each measure over each draw of queries; a mean is a ratio of two sums over queries."""
    n = len(columns[0].values)
    sums = iter(resampled_sums(np.stack([part for column in columns for part in _parts(column)]), seed=seed))
    means = []
    for column in columns:
        values = next(sums)
        weights = next(sums) if column.measure.power > 1 else n
        means.append(np.asarray((values / weights) ** (1 / column.measure.power)))
    return means


def resampled_sums(columns: Floats, *, seed: int = 0, resamples: int = RESAMPLES) -> Floats:
    """sums[c, r] = the sum of columns[c, i] over the queries i of draw r; a few megabytes, however many queries.

    >>> resampled_sums(np.ones((1, 5)), resamples=3)
    array([[5., 5., 5.]])
    """
    n = columns.shape[1]
    random = np.random.default_rng(seed)
    sums = np.empty((len(columns), resamples))
    step = max(1, _DRAWS_AT_ONCE // n)
    for first in range(0, resamples, step):
        last = min(first + step, resamples)
        drawn = random.integers(0, n, size=(last - first, n))
        for column, out in zip(columns, sums, strict=True):
            out[first:last] = column[drawn].sum(axis=1)
    return sums


def randomisation_p(differences: Floats, *, seed: int = 0, permutations: int = PERMUTATIONS) -> float:
    """The share of sign patterns whose sum is at least as far from 0 as the observed one.

    >>> randomisation_p(np.array([1.0, 1.0, 1.0]))
    0.25
    """
    moved = differences[differences != 0]
    # Sums of the same numbers in another order must not count as different.
    least = abs(moved.sum()) - 1e-12 * np.abs(moved).sum()
    if len(moved) <= EXACT_UP_TO:
        sums = np.zeros(1)
        for difference in moved:
            sums = np.concatenate([sums + difference, sums - difference])
        return float(np.mean(np.abs(sums) >= least))
    random = np.random.default_rng(seed)
    step = max(1, _DRAWS_AT_ONCE // len(moved))
    extreme = 0
    for first in range(0, permutations, step):
        heads = random.integers(0, 2, size=(min(step, permutations - first), len(moved)), dtype=np.int8)
        extreme += int(np.sum(np.abs(np.where(heads, moved, -moved).sum(axis=1)) >= least))
    return (1 + extreme) / (1 + permutations)


def _parts(column: PerQuery) -> list[Floats]:
    """What is summed: the values; or their powers by weight, and the weights."""
    power = column.measure.power
    return [column.values] if power == 1 else [column.weights * column.values**power, column.weights]


def _ends(means: Floats) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return low, high
