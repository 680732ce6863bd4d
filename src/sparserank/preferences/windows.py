"""The windows of `Preferences`, computed from class labels, from grades and from triples.

Each function returns the fields of `Preferences` as a dictionary.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from .columns import Floats, Ints, level_starts

EACH = -1
"""Instead of a query: every item of the row's better window is a query of its own, and does not beat itself."""


def label_windows(classes: NDArray[Any], code: Ints) -> dict[str, Any]:
    """One row for each class with two members or more; item i belongs to classes[code[i]]."""
    if len(classes) < 2:
        raise DataError(f"preferences need at least two classes; got {len(classes)}")
    n = len(code)
    by_class = np.argsort(code, kind="stable").astype(np.int64)
    size = np.bincount(code)
    stop = np.cumsum(size)
    start = stop - size
    has_pairs = size > 1
    if not has_pairs.any():
        raise DataError("every class has one member, so no item has another one to prefer")
    start, stop, size = start[has_pairs], stop[has_pairs], size[has_pairs]
    return {
        "query": np.full(len(size), EACH, np.int64),
        "order": np.concatenate([by_class, by_class]),
        "better": np.stack([start, stop], axis=1),
        "worse": np.stack([stop, start + n], axis=1),
        "group": np.zeros((len(size), 2), np.int64),
        "n_items": n,
        "n_queries": n,
        "chance": size / size.sum(),
        "skipped": int(np.sum(~has_pairs)),
        "query_ids": classes,
    }


def grade_windows(
    code: Ints, order: Ints, grade: Floats, weight: Floats | None,
    *, n_items: int, query_ids: NDArray[Any], rest: bool = False,
) -> dict[str, Any]:  # fmt: skip
    """One row for each grade with a lower one, from items sorted by query and falling grade."""
    n = len(order)
    new_query, new_level = level_starts(code, grade)
    level_end = np.append(new_level, n)[1:]
    of_query = np.searchsorted(new_query, new_level, side="right") - 1
    begin, end = new_query[of_query], np.append(new_query, n)[1:][of_query]
    has_losers = (level_end < end) | (rest & (end - begin < n_items))
    rows = has_losers & np.isfinite(grade[new_level])
    better = np.stack([new_level, level_end], axis=1)[rows].astype(np.int64)
    total = np.concatenate([[0.0], np.cumsum(np.ones(n) if weight is None else weight)])
    mass = total[better[:, 1]] - total[better[:, 0]]
    owner = code[better[:, 0]] if len(better) else np.zeros(0, np.int64)
    per_query = np.bincount(owner, weights=mass, minlength=len(query_ids))
    chance = np.divide(mass, per_query[owner], out=np.zeros_like(mass), where=per_query[owner] > 0)
    n_with_pairs = int(np.count_nonzero(per_query))
    return {
        "query": owner,
        "order": order,
        "better": better,
        "worse": np.stack([level_end, end], axis=1)[rows].astype(np.int64),
        "group": np.stack([begin, end], axis=1)[rows].astype(np.int64),
        "n_items": n_items,
        "n_queries": len(query_ids),
        "chance": chance / max(n_with_pairs, 1),
        "weight": weight,
        "rest": rest,
        "skipped": len(query_ids) - n_with_pairs,
        "query_ids": query_ids,
    }


def triple_windows(query: Ints, better: Ints, worse: Ints, weight: Floats | None) -> dict[str, Any]:
    """One row for each triple, both of its windows with one item."""
    n = len(query)
    at = np.arange(2 * n, dtype=np.int64)
    return {
        "query": query,
        "order": np.stack([better, worse], axis=1).ravel(),
        "better": np.stack([at[::2], at[::2] + 1], axis=1),
        "worse": np.stack([at[1::2], at[1::2] + 1], axis=1),
        "group": np.zeros((n, 2), np.int64),
        "n_items": int(max(better.max(), worse.max())) + 1,
        "n_queries": int(query.max()) + 1,
        "chance": np.full(n, 1.0 / n) if weight is None else weight / weight.sum(),
        "weight": None if weight is None else np.repeat(weight, 2),
    }
