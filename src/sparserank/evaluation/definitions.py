"""The formula of each measure: items of all queries in, one value per query out, NaN where it is undefined.

A new measure is one formula and one line of `DEFINITIONS`.
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
LARGEST_LETOR4_GRADE = 64


def _relevant_so_far(items: Items, rel: int) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Whether each rank holds a relevant item, and how many relevant items there are down to it."""
    relevant = items.ranked_grade >= rel
    running = np.concatenate(([0], np.cumsum(relevant)))
    return relevant, running[1:] - running[items.start[items.query]]


def _ndcg(items: Items, cutoff: int | None, rel: int) -> Floats:
    grades = items.ranked_grade, items.ideal_grade
    return ratio(*(dcg(np.maximum(grade, 0.0), items.start, cutoff) for grade in grades))


def _average_precision(items: Items, cutoff: int | None, rel: int) -> Floats:
    relevant, so_far = _relevant_so_far(items, rel)
    return ratio(items.sum(relevant * so_far / items.rank, cutoff), items.sum(items.grade >= rel))


def _precision(items: Items, cutoff: int | None, rel: int) -> Floats:
    return items.sum(items.ranked_grade >= rel, cutoff) / (cutoff or 1)  # a Measure "P" always has its cutoff


def _recall(items: Items, cutoff: int | None, rel: int) -> Floats:
    return ratio(items.sum(items.ranked_grade >= rel, cutoff), items.sum(items.grade >= rel))


def _reciprocal_rank(items: Items, cutoff: int | None, rel: int) -> Floats:
    relevant, so_far = _relevant_so_far(items, rel)
    return items.sum((relevant & (so_far == 1)) / items.rank, cutoff)


def _success(items: Items, cutoff: int | None, rel: int) -> Floats:
    return np.minimum(items.sum(items.ranked_grade >= rel, cutoff), 1.0)


def _letor4_ndcg(items: Items, cutoff: int | None, rel: int) -> Floats:
    if items.ranked_grade.max() > LARGEST_LETOR4_GRADE:
        largest = items.ranked_grade.max()
        raise DataError(f"nDCG-letor4 has gains 2^grade - 1; a grade of {largest:g} is beyond its scale")
    gains, ideal = (np.exp2(np.maximum(grade, 0.0)) - 1.0 for grade in (items.ranked_grade, items.ideal_grade))
    if cutoff is not None:
        at_k = ratio(*(dcg(each, items.start, cutoff, letor4_discount) for each in (gains, ideal)))
        return np.where(np.diff(items.start) < cutoff, 0.0, at_k)
    gains, ideal = (each / letor4_discount(items.rank) for each in (gains, ideal))
    return np.array([ratio(np.cumsum(gains[rows]), np.cumsum(ideal[rows])).mean() for rows in items.slices()])


def _domination_error(items: Items, cutoff: int | None, rel: int) -> Floats:
    scores = as_single(items.score)
    by_query = ((scores[rows], items.grade[rows], items.is_retrieved[rows]) for rows in items.slices())
    return np.array([_dominated_share(*columns) for columns in by_query])


def _dominated_share(score: NDArray[np.float32], grade: Floats, is_retrieved: NDArray[np.bool_]) -> float:
    """The share of items above the lowest grade with an item of a lower grade strictly above them.

    An item that was not retrieved has no score, so it always counts as wrong.
    """
    levels, level = np.unique(grade, return_inverse=True)
    if len(levels) == 1:
        return np.nan
    best = np.full(len(levels), -np.inf, dtype=np.float32)
    np.maximum.at(best, level, score)
    best_below = np.maximum.accumulate(best)
    winners = level > 0
    return float(np.mean((score[winners] < best_below[level[winners] - 1]) | ~is_retrieved[winners]))


def _pair_error(items: Items, cutoff: int | None, rel: int) -> Floats:
    from .._kernels.ranking import wrong_pairs

    wrong, pairs = wrong_pairs(as_single(items.score), items.grade, items.is_retrieved, items.start)
    share: Floats = np.divide(wrong, pairs, out=np.full(len(pairs), np.nan), where=pairs > 0)
    return share


def _root_mean_squared_error(items: Items, cutoff: int | None, rel: int) -> Floats:
    bad = items.is_judged & ~np.isfinite(items.score)
    if bad.any():
        query = items.queries[items.query[bad.argmax()]]
        raise DataError(f"RMSE needs a finite score for every judged document; query {query!r} has one without")
    errors = np.where(items.is_judged, items.score - items.grade, 0.0)
    return np.asarray(np.sqrt(items.sum(errors**2) / items.sum(items.is_judged)))


@dataclass(frozen=True)
class Definition:
    """How a measure is computed and spelled; `rel`: it takes a least relevant grade.

    `in_ir_measures`: ir-measures has it too, perhaps with parameters that are not computed here.
    """

    formula: Formula
    cutoff: Literal["optional", "required", "none"] = "none"
    rel: bool = False
    in_ir_measures: bool = False
    lower_is_better: bool = False


DEFINITIONS: dict[str, Definition] = {
    "nDCG": Definition(_ndcg, "optional", in_ir_measures=True),
    "AP": Definition(_average_precision, "optional", rel=True, in_ir_measures=True),
    "P": Definition(_precision, "required", rel=True, in_ir_measures=True),
    "R": Definition(_recall, "required", rel=True, in_ir_measures=True),
    "RR": Definition(_reciprocal_rank, "optional", rel=True, in_ir_measures=True),
    "Success": Definition(_success, "required", rel=True, in_ir_measures=True),
    "nDCG-letor4": Definition(_letor4_ndcg, "optional"),
    "AP-letor4": Definition(_average_precision),
    "DominationError": Definition(_domination_error, lower_is_better=True),
    "PairError": Definition(_pair_error, lower_is_better=True),
    "RMSE": Definition(_root_mean_squared_error, lower_is_better=True),
}
