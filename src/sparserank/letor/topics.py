"""Grades of items × topics, for rankers that learn one w per topic."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError


def is_topic_matrix(y: Any) -> bool:
    """Whether y is a matrix of items × topics; rows of different lengths raise DataError."""
    try:
        return len(getattr(y, "shape", ())) == 2 or np.ndim(y) == 2
    except ValueError:
        raise DataError(
            "y has rows of different lengths; give one grade per row, or one grade per row and topic"
        ) from None


def topic_grades(Y: Any) -> Any:
    """Grades of items × topics as CSC; one that is not a finite number raises DataError with its row and column."""
    from scipy.sparse import csc_array, issparse

    matrix = Y if issparse(Y) else np.asarray(Y)
    if matrix.dtype.kind not in "biuf":
        remedy = f"got {matrix.dtype}; encode labels as numbers, one column per topic, 0 if an item is not relevant"
        raise DataError(f"Y must be a matrix of grades, items × topics; {remedy}")
    grades = csc_array(matrix).astype(np.float64)
    grades.sum_duplicates()
    bad = ~np.isfinite(grades.data)
    if bad.any():
        row, topic, value = _first(grades, bad)
        remedy = "a grade must not be NaN or infinite; use 0 for an item that is not relevant, or leave the row out"
        raise DataError(f"Y[{row}, {topic}] is {value}: {remedy}")
    return grades


def relevant_items(Y: Any, items: int) -> list[NDArray[np.int64]]:
    """The items of each topic with a grade above 0; negative grades and topics without both kinds raise DataError."""
    grades = topic_grades(Y)
    if grades.shape[0] != items:
        raise DataError(f"Y must have a row for each of the {items} rows of X; got {grades.shape[0]}")
    if (grades.data < 0).any():
        row, topic, value = _first(grades, grades.data < 0)
        remedy = "a grade above 0 means relevant and 0 not relevant; replace negative grades by 0"
        raise DataError(f"Y[{row}, {topic}] is {value:g}: {remedy}")
    grades.eliminate_zeros()
    relevant = [grades.indices[a:b].astype(np.int64) for a, b in pairwise(grades.indptr)]
    for topic, rows in enumerate(relevant):
        if not 0 < len(rows) < items:
            lack = "no relevant item" if len(rows) == 0 else "no item that is not relevant"
            raise DataError(f"topic {topic} (column {topic} of Y) has {lack}, so there is nothing to learn")
    return relevant


def _first(grades: Any, bad: NDArray[np.bool_]) -> tuple[int, int, float]:
    """Row, column and value of the first bad stored number of a CSC matrix."""
    at = int(bad.argmax())
    return int(grades.indices[at]), int(np.searchsorted(grades.indptr, at, side="right")) - 1, float(grades.data[at])
