"""Confidence intervals and significance tests over queries; the same random_state gives the same bits.

*Intervals* are 95 % percentile bootstrap intervals: queries are drawn with replacement, as many as there are, 10,000
times, and the middle 95 % of the means are kept. A mean over queries is nearly unbiased and, from a few dozen queries,
nearly symmetric, so the corrections of BCa would hardly move it. A single query has an interval of zero width; fewer
than about ten have one that is too narrow: read the number of queries beside it. (scipy.stats.bootstrap would load
scipy for every evaluation, and would draw new samples for each measure.)

*Tests* are paired sign-flip tests: if two systems were equal, the sign of each query's difference would be random.
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
EXACT_UP_TO_QUERIES = 14
MAX_T_PERMUTATIONS = 4_000
_DRAWS_PER_BLOCK = 1 << 18
_MAX_T_BLOCK = 500


@dataclass(frozen=True)
class Estimate:
    """A value and its 95 % confidence interval.

    Attributes
    ----------
    value : float
        The value.
    low, high : float
        The ends of the interval.

    Examples
    --------
    >>> Estimate(0.5, 0.4, 0.6).to_dict()
    {'value': 0.5, 'low': 0.4, 'high': 0.6}
    """

    value: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """{"value": …, "low": …, "high": …}."""
        return {"value": self.value, "low": self.low, "high": self.high}


def estimates(columns: Sequence[PerQuery], *, random_state: int = 0) -> list[Estimate]:
    """Each measure's value over all queries, with its interval; columns of equal length share their draws."""
    ends: dict[int, tuple[float, float]] = {}
    for length in {len(column.values) for column in columns}:
        same_length = [i for i, column in enumerate(columns) if len(column.values) == length]
        means = _resampled_means([columns[i] for i in same_length], random_state)
        ends.update(zip(same_length, map(_interval, means), strict=True))
    return [Estimate(column.mean, *ends[i]) for i, column in enumerate(columns)]


def estimate_difference(a: PerQuery, b: PerQuery, *, random_state: int = 0) -> Estimate:
    """The value of b minus that of a; the same queries are drawn for both."""
    if a.queries != b.queries:
        raise DataError("a difference needs the same queries on both sides")
    mean_a, mean_b = _resampled_means([a, b], random_state)
    return Estimate(b.mean - a.mean, *_interval(mean_b - mean_a))


def estimate_ratios(ratios: Sequence[tuple[Floats, Floats]], *, random_state: int = 0) -> list[Estimate]:
    """The sum of a over the sum of b for each (a, b), one number per query, with its interval; all share their draws.

    >>> estimate_ratios([(np.array([1.0, 1.0]), np.array([2.0, 2.0]))])
    [Estimate(value=0.5, low=0.5, high=0.5)]
    """
    sums = resample_sums(np.stack([part for pair in ratios for part in pair]), random_state=random_state)
    pairs = zip(ratios, sums[::2], sums[1::2], strict=True)
    return [Estimate(float(a.sum() / b.sum()), *_interval(above / below)) for (a, b), above, below in pairs]


def _resampled_means(columns: Sequence[PerQuery], random_state: int) -> list[Floats]:
    """The value of each measure over each draw of queries: a ratio of two sums over queries."""
    parts = []
    for column in columns:
        power = column.measure.power
        parts += [column.values] if power == 1 else [column.weights * column.values**power, column.weights]
    sums = iter(resample_sums(np.stack(parts), random_state=random_state))
    means = []
    for column in columns:
        values, power = next(sums), column.measure.power
        weights = len(column.values) if power == 1 else next(sums)
        means.append(np.asarray((values / weights) ** (1 / power)))
    return means


def resample_sums(columns: Floats, *, random_state: int = 0, resamples: int = RESAMPLES) -> Floats:
    """sums[c, r] = the sum of columns[c, i] over the queries i of draw r, in a few megabytes for any number of queries.

    >>> resample_sums(np.ones((1, 5)), resamples=3)
    array([[5., 5., 5.]])
    """
    n = columns.shape[1]
    rng = np.random.default_rng(random_state)
    sums = np.empty((len(columns), resamples))
    step = max(1, _DRAWS_PER_BLOCK // n)
    for first in range(0, resamples, step):
        last = min(first + step, resamples)
        draws = rng.integers(0, n, size=(last - first, n))
        for column, out in zip(columns, sums, strict=True):
            out[first:last] = column[draws].sum(axis=1)
    return sums


def _interval(means: Floats) -> tuple[float, float]:
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return low, high


def sign_flip_p_value(differences: Floats, *, random_state: int = 0, permutations: int = PERMUTATIONS) -> float:
    """Two-sided p-value: the share of sign patterns whose sum is at least as far from 0 as the observed sum.

    With at most 14 queries that differ, all sign patterns are counted. Else 20,000 are drawn, and the observed one is
    counted with them, so that p is never 0.

    >>> sign_flip_p_value(np.array([1.0, 1.0, 1.0]))
    0.25
    """
    nonzero = differences[differences != 0]
    # Sums of the same numbers in another order must not count as different.
    observed = abs(nonzero.sum()) - 1e-12 * np.abs(nonzero).sum()
    if len(nonzero) <= EXACT_UP_TO_QUERIES:
        sums = np.zeros(1)
        for difference in nonzero:
            sums = np.concatenate([sums + difference, sums - difference])
        return float(np.mean(np.abs(sums) >= observed))
    rng = np.random.default_rng(random_state)
    step = max(1, _DRAWS_PER_BLOCK // len(nonzero))
    extreme = 0
    for first in range(0, permutations, step):
        heads = rng.integers(0, 2, size=(min(step, permutations - first), len(nonzero)), dtype=np.int8)
        extreme += int(np.sum(np.abs(np.where(heads, nonzero, -nonzero).sum(axis=1)) >= observed))
    return (1 + extreme) / (1 + permutations)


def max_t_p_value(gains: Floats, groups: NDArray[np.int64]) -> float:
    """One-sided p-value of "at least one alternative has a positive gain", corrected for their number.

    gains[a, q] is the gain of alternative a on query q. Gains are averaged over the queries of a group, since those are
    not independent: a group counts once, however many queries it has. The statistic is the largest studentized gain of
    all alternatives. If no alternative had a gain, each group's gains could as well have the opposite sign, for all
    alternatives at once: the p-value is the share of random sign patterns whose statistic is as large as the observed
    one (Westfall and Young's max-T).

    >>> max_t_p_value(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]), np.array([0, 1, 2])) < 0.2
    True
    """
    _, group = np.unique(groups, return_inverse=True)
    n_groups = int(group.max(initial=-1)) + 1
    if n_groups < 2:
        return 1.0
    by_group = np.stack([np.bincount(group, row, n_groups) for row in gains]) / np.bincount(group)
    length = np.sqrt(np.sum(by_group**2, axis=1, keepdims=True))
    unit = (by_group / np.where(length > 0.0, length, 1.0)).astype(np.float32)
    observed = float(unit.sum(axis=1).max())
    if observed <= 0.0:
        return 1.0
    rng, extreme = np.random.default_rng(0), 1
    for _ in range(MAX_T_PERMUTATIONS // _MAX_T_BLOCK):
        signs = rng.integers(0, 2, (n_groups, _MAX_T_BLOCK), dtype=np.int8).astype(np.float32) * 2.0 - 1.0
        extreme += int(np.sum((unit @ signs).max(axis=0) >= observed - 1e-5))
    return extreme / (1 + MAX_T_PERMUTATIONS)
