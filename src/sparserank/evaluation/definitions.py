"""The formulas. Each takes the items of all queries at once and gives one value a query, NaN where it is undefined.

A new measure of our own is one formula and one line of `KINDS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .items import Items, as_single
from .ndcg import Floats, dcg, letor4_discount, ratio

Formula: TypeAlias = Callable[[Items, int | None, int], Floats]


def _hits(items: Items, rel: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whether each rank holds a relevant item, and how many there are down to it."""
    relevant = items.seen >= rel
    running = np.concatenate(([0], np.cumsum(relevant)))
    return relevant, running[1:] - running[items.start[items.query]]


def _ndcg(items: Items, cutoff: int | None, rel: int) -> Floats:
    got, best = (dcg(np.maximum(grade, 0.0), items.start, cutoff) for grade in (items.seen, items.ideal))
    return ratio(got, best)


def _average_precision(items: Items, cutoff: int | None, rel: int) -> Floats:
    relevant, hits = _hits(items, rel)
    return ratio(items.sum(relevant * hits / items.rank, cutoff), items.sum(items.grade >= rel))


def _precision(items: Items, cutoff: int | None, rel: int) -> Floats:
    return items.sum(items.seen >= rel, cutoff) / (cutoff or 1)  # a Measure "P" always has its cutoff


def _recall(items: Items, cutoff: int | None, rel: int) -> Floats:
    return ratio(items.sum(items.seen >= rel, cutoff), items.sum(items.grade >= rel))


def _reciprocal_rank(items: Items, cutoff: int | None, rel: int) -> Floats:
    relevant, hits = _hits(items, rel)
    return items.sum((relevant & (hits == 1)) / items.rank, cutoff)


def _success(items: Items, cutoff: int | None, rel: int) -> Floats:
    return np.minimum(items.sum(items.seen >= rel, cutoff), 1.0)


def _letor_ndcg(items: Items, cutoff: int | None, rel: int) -> Floats:
    got, best = (np.exp2(np.maximum(grade, 0.0)) - 1.0 for grade in (_modest(items.seen), items.ideal))
    if cutoff is not None:
        at_k = ratio(*(dcg(gains, items.start, cutoff, letor4_discount) for gains in (got, best)))
        return np.where(np.diff(items.start) < cutoff, 0.0, at_k)
    got, best = (gains / letor4_discount(items.rank) for gains in (got, best))
    return np.array([ratio(np.cumsum(got[rows]), np.cumsum(best[rows])).mean() for rows in items.slices()])


def _modest(grades: Floats) -> Floats:
    if grades.max() > 64:
        raise DataError(f"nDCG-letor4 has gains 2^grade - 1; a grade of {grades.max():g} is beyond its scale")
    return grades


def _domination_error(items: Items, cutoff: int | None, rel: int) -> Floats:
    scores = as_single(items.score)
    return np.array([_dominated(scores[rows], items.grade[rows], items.found[rows]) for rows in items.slices()])


def _dominated(score: NDArray[np.float32], grade: Floats, found: NDArray[np.bool_]) -> float:
    """The share of the items above the lowest grade that have an item of a lower grade strictly above them.

    An item that was not retrieved has no score, so it always counts as wrong.
    """
    levels, level = np.unique(grade, return_inverse=True)
    if len(levels) == 1:
        return np.nan
    best = np.full(len(levels), -np.inf, dtype=np.float32)
    np.maximum.at(best, level, score)
    below = np.maximum.accumulate(best)
    winners = level > 0
    return float(np.mean((score[winners] < below[level[winners] - 1]) | ~found[winners]))


def _pair_error(items: Items, cutoff: int | None, rel: int) -> Floats:
    from .._kernels.ranking import wrong_pairs

    wrong, pairs = wrong_pairs(as_single(items.score), items.grade, items.found, items.start)
    share: Floats = np.divide(wrong, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
    return share


def _root_mean_square(items: Items, cutoff: int | None, rel: int) -> Floats:
    bad = items.judged & ~np.isfinite(items.score)
    if bad.any():
        query = items.queries[items.query[bad.argmax()]]
        raise DataError(f"RMSE needs a finite score for every judged document; query {query!r} has one without")
    misses = np.where(items.judged, items.score - items.grade, 0.0)
    return np.asarray(np.sqrt(items.sum(misses**2) / items.sum(items.judged)))


@dataclass(frozen=True)
class Kind:
    """How a measure is computed and spelled.

    `foreign`: ir-measures has it too, perhaps with parameters that are not computed here.
    """

    formula: Formula
    cutoff: Literal["may", "must", "never"] = "never"
    rel: bool = False
    foreign: bool = False
    error: bool = False


KINDS: dict[str, Kind] = {
    "nDCG": Kind(_ndcg, "may", foreign=True),
    "AP": Kind(_average_precision, "may", rel=True, foreign=True),
    "P": Kind(_precision, "must", rel=True, foreign=True),
    "R": Kind(_recall, "must", rel=True, foreign=True),
    "RR": Kind(_reciprocal_rank, "may", rel=True, foreign=True),
    "Success": Kind(_success, "must", rel=True, foreign=True),
    "nDCG-letor4": Kind(_letor_ndcg, "may"),
    "AP-letor4": Kind(_average_precision),
    "DominationError": Kind(_domination_error, error=True),
    "PairError": Kind(_pair_error, error=True),
    "RMSE": Kind(_root_mean_square, error=True),
}
