"""The items of many queries as one table, each query's in ranked order: all that any measure needs to know.

`ranked` is the tie rule itself: float32 scores falling, equal scores by id in falling string order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..errors import DataError

Floats: TypeAlias = NDArray[np.float64]
Nested: TypeAlias = Mapping[str, Mapping[str, float]]
"""{query id: {document id: score or grade}}"""


def as_single(scores: ArrayLike) -> NDArray[np.float32]:
    """Scores as the tie rule sees them: float32, and infinite where they are beyond its range."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(scores).astype(np.float32)


def ranked(scores: ArrayLike, ids: Sequence[str]) -> NDArray[np.intp]:
    """The positions of the documents, best first, by the tie rule.

    >>> ranked([1.0, 2.0, 1.0], ["a", "b", "c"]).tolist()
    [1, 2, 0]
    """
    single = as_single(scores)
    if len(single) != len(ids):
        raise DataError(f"every document needs one score; got {len(single)} scores and {len(ids)} documents")
    if np.isnan(single).any():
        raise DataError(f"the score of document {ids[int(np.isnan(single).argmax())]!r} is not a number")
    falling = np.argsort(-single, kind="stable")
    in_order = single[falling]
    if not np.any(in_order[1:] == in_order[:-1]):
        return falling
    names = [str(name) for name in ids]
    by_id = np.array(sorted(range(len(names)), key=names.__getitem__, reverse=True), dtype=np.intp)
    return by_id[np.argsort(-single[by_id], kind="stable")]


@dataclass(frozen=True)
class Items:
    """The items of query q are rows start[q] to start[q + 1]: retrieved ones by the tie rule, then the missed ones.

    `score` is minus infinity for an item that was not `found`; `grade` is 0 for one that was not `judged`.
    """

    queries: tuple[str, ...]
    start: NDArray[np.int64]
    score: Floats
    grade: Floats
    judged: NDArray[np.bool_]
    found: NDArray[np.bool_]

    @cached_property
    def query(self) -> NDArray[np.int64]:
        """The query of each row, by number."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.start))

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """The place of each row in its query, from 1."""
        return np.arange(1, len(self.score) + 1) - self.start[self.query]

    @cached_property
    def seen(self) -> Floats:
        """What a reader of the ranking gets at each rank: the grade, or 0 where the item was not retrieved."""
        return np.where(self.found, self.grade, 0.0)

    @cached_property
    def ideal(self) -> Floats:
        """What a reader of the best possible ranking gets at each rank."""
        return self.grade[np.lexsort((-self.grade, self.query))]

    def sum(self, values: NDArray[Any], cutoff: int | None = None) -> Floats:
        """sum[q] = the sum of values over the rows of query q, or over its first `cutoff` ranks."""
        query = self.query
        if cutoff is not None:
            top = self.rank <= cutoff
            query, values = query[top], values[top]
        return np.bincount(query, values.astype(np.float64), len(self.queries)).astype(np.float64, copy=False)

    def slices(self) -> Iterable[slice]:
        """The rows of each query."""
        return (slice(a, b) for a, b in zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True))

    @classmethod
    def of_run(cls, run: Nested, qrels: Nested) -> Items:
        """The items of every judged query, in the order of the judgments."""
        queries = _judged_queries(run, qrels)
        scores, grades, judged, sizes = [], [], [], []
        for query in queries:
            retrieved, judgments = run.get(query, {}), qrels[query]
            ids = list(retrieved)
            score = _numbers(retrieved, "score", query)
            graded = dict(zip(judgments, _numbers(judgments, "grade", query).tolist(), strict=True))
            order = ranked(score, ids)
            ids = [ids[i] for i in order] + [d for d in graded if d not in retrieved]
            scores += [score[order], np.full(len(ids) - len(order), -np.inf)]
            grades += [graded.get(d, 0.0) for d in ids]
            judged += [d in graded for d in ids]
            sizes.append((len(order), len(ids)))
        found = np.concatenate([np.arange(size) < retrieved for retrieved, size in sizes])
        start = np.cumsum([0, *(size for _, size in sizes)])
        return cls(tuple(queries), start, np.concatenate(scores), np.array(grades), np.array(judged), found)

    @classmethod
    def of_rows(
        cls, scores: ArrayLike, grades: ArrayLike, qid: ArrayLike, *, ids: Sequence[str] | None = None
    ) -> Items:
        """The items of LETOR-like rows, all judged and all retrieved; queries in the order of their first rows."""
        score, grade, groups = _column(scores, "score"), _column(grades, "grade"), np.asarray(qid)
        if not score.shape == grade.shape == groups.shape == (score.size,):
            raise DataError(
                f"every row needs a score, a grade and a query; got {score.shape}, {grade.shape} and {groups.shape}"
            )
        if len(score) == 0:
            raise DataError("there are no rows to measure")
        _refuse_rows(score, np.isnan(score), "score", groups)
        _refuse_rows(grade, ~np.isfinite(grade), "grade", groups)
        names, first, query = np.unique(groups, return_index=True, return_inverse=True)
        appearance = np.argsort(np.argsort(first))
        query = appearance[query]
        tie = tie_ranks(len(score), ids, query)
        order = np.lexsort((-tie, -as_single(score), query))
        start = np.concatenate(([0], np.cumsum(np.bincount(query))))
        yes = np.ones(len(score), dtype=np.bool_)
        queries = tuple(str(name) for name in names[np.argsort(first)].tolist())
        return cls(queries, start, score[order], grade[order], yes, yes)

    @classmethod
    def of_ranking(cls, ranking: Sequence[float], missed: Sequence[float] = ()) -> Items:
        """One query, from the grades of the retrieved documents, best first, and of those that were missed."""
        grade = np.array([*ranking, *missed], dtype=np.float64)
        if not np.isfinite(grade).all() or len(grade) == 0:
            raise DataError(f"a ranking is a list of at least one finite grade; got {[*ranking, *missed]}")
        found = np.arange(len(grade)) < len(ranking)
        score = np.where(found, -np.arange(len(grade), dtype=np.float64), -np.inf)
        return cls(("",), np.array([0, len(grade)]), score, grade, np.ones_like(found), found)


def _judged_queries(run: Nested, qrels: Nested) -> list[str]:
    for name, nested in (("run", run), ("judgments", qrels)):
        if not isinstance(nested, Mapping):
            raise DataError(f"the {name} must map query ids to documents; got {type(nested).__name__}")
        if not nested:
            raise DataError(f"the {name} must not be empty")
    queries = [query for query, judgments in qrels.items() if judgments]
    if not queries:
        raise DataError("no query has a judgment")
    if not any(query in run for query in queries):
        raise DataError(
            f"the run answers no judged query: it has {next(iter(run))!r}, …; judged are {queries[0]!r}, … "
            "Do both use the same ids?"
        )
    return queries


def _numbers(values: Mapping[str, float], what: str, query: str) -> Floats:
    try:
        numbers = np.array(list(values.values()), dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"query {query!r}: every {what} must be a number; got {list(values.values())!r:.100}") from None
    bad = np.isnan(numbers) if what == "score" else ~np.isfinite(numbers)
    if bad.any():
        at = int(bad.argmax())
        raise DataError(f"query {query!r}, document {list(values)[at]!r}: the {what} is {numbers[at]}, not a number")
    return numbers


def _column(values: ArrayLike, what: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"every {what} must be a number; got {values!r:.100}") from None


def _refuse_rows(values: Floats, bad: NDArray[np.bool_], what: str, groups: NDArray[Any]) -> None:
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"row {row} (query {groups[row].item()!r}): the {what} is {values[row]}, not a number")


def tie_ranks(n: int, ids: Sequence[str] | None, query: NDArray[np.int64] | int = 0) -> NDArray[np.int64]:
    """tie[i] = the place of ids[i] in rising string order; without ids, of the row number written as text.

    An id may occur once in each query; without `query`, once.

    >>> tie_ranks(3, ["b", "c", "a"]).tolist()
    [1, 2, 0]
    """
    names = np.arange(n).astype(np.str_) if ids is None else np.array([str(name) for name in ids], dtype=np.object_)
    if len(names) != n:
        raise DataError(f"every row needs one id; got {len(names)} ids for {n} rows")
    unique, tie = np.unique(names, return_inverse=True)
    if ids is not None and len(unique) < n:
        pairs = query * len(unique) + tie
        kept, first = np.unique(pairs, return_index=True)
        if len(kept) < n:
            twice = int(np.setdiff1d(np.arange(n), first)[0])
            raise DataError(f"row {twice}: id {ids[twice]!r} occurs more than once for its query")
    return tie.astype(np.int64)
