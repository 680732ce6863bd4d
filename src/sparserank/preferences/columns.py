"""What users hand over, judged: grades, qids, weights and ids become arrays, or a `DataError` that says where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def groups_of(name: str, values: ArrayLike) -> tuple[NDArray[Any], Ints]:
    """The different values, sorted, and the number of each row's own among them."""
    try:
        column = np.asarray(values)
        distinct, code = np.unique(column, return_inverse=True)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be a column of one kind, all numbers or all texts; got {values!r:.100}") from None
    if column.ndim != 1:
        raise DataError(f"{name} must be one column; got an array of shape {column.shape}")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise DataError(f"{name}[{int(np.flatnonzero(~np.isfinite(column))[0])}] is not finite")
    return distinct, code.astype(np.int64, copy=False)


def places(what: str, ids: Sequence[str]) -> dict[str, int]:
    """Where each id stands."""
    place: dict[str, int] = {}
    for number, one in enumerate(ids):
        if place.setdefault(one, number) != number:
            raise DataError(f"{what} id {one!r} occurs more than once, at {place[one]} and {number}")
    return place


def judged(
    qrels: Mapping[str, Mapping[str, float]], row_of: dict[str, int], place: dict[str, int], drop: bool, drop_self: bool
) -> Iterator[tuple[int, int, float]]:
    """(query, document, grade) of every judgment whose ids are known; others are dropped or refused.

    With drop_self a query's own document has grade infinity: it is in the group, so that it never loses as one of the
    rest, and in no window.
    """
    for query, judged in qrels.items():
        if query not in row_of:
            if not drop:
                raise DataError(f"judged query {query!r} is not among the queries; missing='drop' skips it")
            continue
        if drop_self and query in place:
            yield row_of[query], place[query], np.inf
        for doc, grade in judged.items():
            level = _grade(query, doc, grade)
            if doc not in place:
                if not drop:
                    raise DataError(
                        f"document {doc!r}, judged for query {query!r}, is not in the collection; "
                        "missing='drop' skips it"
                    )
            elif not (drop_self and doc == query):
                yield row_of[query], place[doc], level


def _grade(query: str, doc: str, grade: Any) -> float:
    if isinstance(grade, Real | np.bool_):
        with suppress(OverflowError):
            level = float(grade)
            if math.isfinite(level):
                return level
    raise DataError(f"the grade of document {doc!r} for query {query!r} is not a finite number: {grade!r}")


def numbers(name: str, values: ArrayLike) -> Floats:
    """One column of finite numbers."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} must be a column of numbers; got {values!r:.100}") from None
    if column.ndim != 1:
        raise DataError(f"{name} must be one column; got an array of shape {column.shape}")
    if not np.isfinite(column).all():
        raise DataError(f"{name}[{int(np.flatnonzero(~np.isfinite(column))[0])}] is not a finite number")
    return column


def weights(values: ArrayLike, n: int) -> Floats:
    """n weights, none negative and not all zero."""
    weight = numbers("weight", values)
    if len(weight) != n:
        raise DataError(f"{n} items need {n} weights; got {len(weight)}")
    if (weight < 0).any() or not weight.any():
        raise DataError("weights must not be negative, and not all zero")
    return weight


def triples(
    query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike | None
) -> tuple[Ints, Ints, Ints, Floats | None]:
    """Columns of equal length, at least one row, in which nothing is better than itself."""
    q, plus, minus = (whole_numbers(name, a) for name, a in (("query", query), ("better", better), ("worse", worse)))
    n = len(q)
    if not n == len(plus) == len(minus):
        raise DataError(f"triples need three columns of equal length; got {n}, {len(plus)} and {len(minus)}")
    if n == 0:
        raise DataError("no triples")
    if (plus == minus).any():
        at = int(np.flatnonzero(plus == minus)[0])
        raise DataError(f"triple {at}: item {plus[at]} cannot be better than itself")
    return q, plus, minus, None if weight is None else weights(weight, n)


def whole_numbers(name: str, values: ArrayLike) -> Ints:
    """One column of whole numbers from 0 on."""
    column = np.asarray(values)
    if column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
        raise DataError(f"{name} must be one column of whole numbers; got {column.dtype} of shape {column.shape}")
    if column.size and column.min() < 0:
        raise DataError(f"{name}[{int(np.argmin(column))}] is negative; items are numbered from 0")
    return column.astype(np.int64)
