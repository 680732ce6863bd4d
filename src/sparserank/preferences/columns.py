"""Validation of user columns: grades, query ids, weights and ids become arrays, or a `DataError` names the row."""

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


def factorize(name: str, values: ArrayLike) -> tuple[NDArray[Any], Ints]:
    """The distinct values, sorted, and the position of each row's value among them."""
    try:
        column = np.asarray(values)
        distinct, code = np.unique(column, return_inverse=True)
    except (TypeError, ValueError):
        raise DataError(
            f"{name} must be a column of one type, all numbers or all strings; got {values!r:.100}"
        ) from None
    _check_column(name, column)
    return distinct, code.astype(np.int64, copy=False)


def numbers(name: str, values: ArrayLike, n: int | None = None) -> Floats:
    """A column of finite numbers, n of them if n is given."""
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError(f"{name} must be a column of numbers; got {values!r:.100}") from None
    _check_column(name, column)
    if n is not None and len(column) != n:
        raise DataError(f"{n} rows need {n} values in {name}; got {len(column)}")
    return column


def _check_column(name: str, column: NDArray[Any]) -> None:
    if column.ndim != 1:
        raise DataError(f"{name} must be one column; got an array of shape {column.shape}")
    if column.dtype.kind == "f" and not np.isfinite(column).all():
        raise DataError(f"{name}[{int((~np.isfinite(column)).argmax())}] is not a finite number")


def weights(name: str, values: ArrayLike, n: int) -> Floats:
    """n weights, none negative and not all zero."""
    weight = numbers(name, values, n)
    if (weight < 0).any():
        raise DataError(f"{name}[{int((weight < 0).argmax())}] is negative")
    if not weight.any():
        raise DataError(f"{name} must not be zero for every row")
    return weight


def positions(what: str, ids: Sequence[str]) -> dict[str, int]:
    """The position of each id; an id that occurs twice raises DataError."""
    position: dict[str, int] = {}
    for number, one in enumerate(ids):
        if position.setdefault(one, number) != number:
            raise DataError(f"{what} id {one!r} occurs more than once, at {position[one]} and {number}")
    return position


def judgments(
    qrels: Mapping[str, Mapping[str, float]],
    query_position: dict[str, int],
    doc_position: dict[str, int],
    drop: bool,
    exclude_self: bool,
) -> Iterator[tuple[int, int, float]]:
    """(query, document, grade) of every judgment whose ids are known; unknown ids are dropped or raise DataError.

    With exclude_self, a query's own document has grade infinity. So it belongs to the group and does not lose as an
    unjudged document, but it belongs to no window.
    """
    for query, documents in qrels.items():
        if query not in query_position:
            if not drop:
                raise DataError(f"judged query {query!r} is not among the queries; missing='drop' skips it")
            continue
        if exclude_self and query in doc_position:
            yield query_position[query], doc_position[query], np.inf
        for doc, grade in documents.items():
            level = _grade(query, doc, grade)
            if doc not in doc_position:
                if not drop:
                    raise DataError(
                        f"document {doc!r}, judged for query {query!r}, is not in the collection; "
                        "missing='drop' skips it"
                    )
            elif not (exclude_self and doc == query):
                yield query_position[query], doc_position[doc], level


def _grade(query: str, doc: str, grade: Any) -> float:
    if isinstance(grade, Real | np.bool_):
        with suppress(OverflowError):
            level = float(grade)
            if math.isfinite(level):
                return level
    raise DataError(f"the grade of document {doc!r} for query {query!r} is not a finite number: {grade!r}")


def freeze_arrays(record: Any) -> None:
    """Make the arrays of a frozen dataclass read-only."""
    for name, value in vars(record).items():
        if isinstance(value, np.ndarray):
            frozen = value.view()
            frozen.setflags(write=False)
            object.__setattr__(record, name, frozen)


def level_starts(code: Ints, grade: Floats) -> tuple[Ints, Ints]:
    """Where each query starts, and where each grade of a query starts, of rows sorted by query and falling grade."""
    new_query = np.diff(code, prepend=-1) != 0
    return np.flatnonzero(new_query), np.flatnonzero(new_query | (np.diff(grade, prepend=np.nan) != 0))


def triples(
    query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike | None
) -> tuple[Ints, Ints, Ints, Floats | None]:
    """Columns of equal length, at least one row, in which no item is better than itself."""
    q, plus, minus = (row_numbers(name, a) for name, a in (("query", query), ("better", better), ("worse", worse)))
    n = len(q)
    if not n == len(plus) == len(minus):
        raise DataError(f"triples need three columns of equal length; got {n}, {len(plus)} and {len(minus)}")
    if n == 0:
        raise DataError("no triples")
    if (plus == minus).any():
        at = int((plus == minus).argmax())
        raise DataError(f"triple {at}: item {plus[at]} cannot be better than itself")
    return q, plus, minus, None if weight is None else weights("weight", weight, n)


def row_numbers(name: str, values: ArrayLike) -> Ints:
    """A column of whole numbers from 0."""
    column = np.asarray(values)
    if column.ndim != 1 or (column.size and column.dtype.kind not in "iu"):
        raise DataError(f"{name} must be one column of whole numbers; got {column.dtype} of shape {column.shape}")
    if column.size and column.min() < 0:
        raise DataError(f"{name}[{int(np.argmin(column))}] is negative; items are numbered from 0")
    return column.astype(np.int64)
