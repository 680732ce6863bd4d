"""The ranked items of many queries in one table: the input of every measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    """Scores as float32, infinite where they are beyond its range."""
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(scores).astype(np.float32)


def ranking_order(scores: ArrayLike, doc_ids: Sequence[str]) -> NDArray[np.intp]:
    """Order documents by the tie rule, best first: descending float32 score, then descending id.

    Parameters
    ----------
    scores : array-like of shape (n_documents,)
        One score per document.
    doc_ids : sequence of str
        One id per document.

    Examples
    --------
    >>> ranking_order([1.0, 2.0, 1.0], ["a", "b", "c"]).tolist()
    [1, 2, 0]
    """
    single = as_single(scores)
    if len(single) != len(doc_ids):
        raise DataError(f"every document needs one score; got {len(single)} scores and {len(doc_ids)} documents")
    if np.isnan(single).any():
        raise DataError(f"the score of document {doc_ids[int(np.isnan(single).argmax())]!r} is not a number")
    order = np.argsort(-single, kind="stable")
    if not np.any(single[order[1:]] == single[order[:-1]]):
        return order
    names = [str(name) for name in doc_ids]
    by_id = np.array(sorted(range(len(names)), key=names.__getitem__, reverse=True), dtype=np.intp)
    return by_id[np.argsort(-single[by_id], kind="stable")]


@dataclass(frozen=True)
class Items:
    """Judged and retrieved documents of each query: retrieved ones in ranked order, then the others.

    The items of query q are rows start[q] to start[q + 1] - 1. An item that was not retrieved has score minus infinity,
    one that was not judged has grade 0.
    """

    queries: tuple[str, ...]
    start: NDArray[np.int64]
    score: Floats
    grade: Floats
    is_judged: NDArray[np.bool_]
    is_retrieved: NDArray[np.bool_]

    @cached_property
    def query(self) -> NDArray[np.int64]:
        """The query number of each row."""
        return np.repeat(np.arange(len(self.queries)), np.diff(self.start))

    @cached_property
    def rank(self) -> NDArray[np.int64]:
        """The rank of each row within its query, from 1."""
        return np.arange(1, len(self.score) + 1) - self.start[self.query]

    @cached_property
    def ranked_grade(self) -> Floats:
        """The grade at each rank, 0 for an item that was not retrieved."""
        return np.where(self.is_retrieved, self.grade, 0.0)

    @cached_property
    def ideal_grade(self) -> Floats:
        """The grade at each rank of the best possible ranking."""
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
    def from_run(cls, run: Nested, qrels: Nested) -> Items:
        """The items of every judged query, in the order of the judgments."""
        queries = _judged_queries(run, qrels)
        scores, grades, is_judged, is_retrieved, start = [], [], [], [], [0]
        for query in queries:
            retrieved, judgments = run.get(query, {}), qrels[query]
            score, grade = (_by_document(of, what, query) for of, what in ((retrieved, "score"), (judgments, "grade")))
            graded, ids = dict(zip(judgments, grade.tolist(), strict=True)), list(retrieved)
            order = ranking_order(score, ids)
            ids = [ids[i] for i in order] + [d for d in graded if d not in retrieved]
            scores += [score[order], np.full(len(ids) - len(order), -np.inf)]
            grades += [graded.get(d, 0.0) for d in ids]
            is_judged += [d in graded for d in ids]
            is_retrieved.append(np.arange(len(ids)) < len(order))
            start.append(start[-1] + len(ids))
        columns = np.concatenate(scores), np.array(grades), np.array(is_judged), np.concatenate(is_retrieved)
        return cls(tuple(queries), np.array(start), *columns)

    @classmethod
    def from_rows(
        cls, scores: ArrayLike, grades: ArrayLike, qid: ArrayLike, *, ids: Sequence[str] | None = None
    ) -> Items:
        """The items of LETOR rows, all judged and all retrieved; queries in the order of their first rows."""
        groups = np.asarray(qid)
        score, grade = _numbers(scores, "score"), _numbers(grades, "grade")
        if not score.shape == grade.shape == groups.shape == (score.size,):
            raise DataError(
                f"every row needs a score, a grade and a query; got {score.shape}, {grade.shape} and {groups.shape}"
            )
        if len(score) == 0:
            raise DataError("there are no rows to measure")
        for values, what in ((score, "score"), (grade, "grade")):
            _check_finite(values, what, lambda row: f"row {row} (query {groups[row].item()!r})")
        names, first, query = np.unique(groups, return_index=True, return_inverse=True)
        query = np.argsort(np.argsort(first))[query]
        order = np.lexsort((-tie_ranks(len(score), ids, query), -as_single(score), query))
        start = np.concatenate(([0], np.cumsum(np.bincount(query))))
        all_rows = np.ones(len(score), dtype=np.bool_)
        queries = tuple(str(name) for name in names[np.argsort(first)].tolist())
        return cls(queries, start, score[order], grade[order], all_rows, all_rows)

    @classmethod
    def from_ranking(cls, ranking: Sequence[float], missed: Sequence[float] = ()) -> Items:
        """One query, from the grades of the retrieved documents, best first, and of those that were missed."""
        grade = np.array([*ranking, *missed], dtype=np.float64)
        if not np.isfinite(grade).all() or len(grade) == 0:
            raise DataError(f"a ranking is a list of at least one finite grade; got {[*ranking, *missed]}")
        is_retrieved = np.arange(len(grade)) < len(ranking)
        score = np.where(is_retrieved, -np.arange(len(grade), dtype=np.float64), -np.inf)
        return cls(("",), np.array([0, len(grade)]), score, grade, np.ones_like(is_retrieved), is_retrieved)


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


def _by_document(values: Mapping[str, float], what: str, query: str) -> Floats:
    numbers = _numbers(list(values.values()), what, f"query {query!r}: ")
    _check_finite(numbers, what, lambda at: f"query {query!r}, document {list(values)[at]!r}")
    return numbers


def _numbers(values: ArrayLike, what: str, place: str = "") -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{place}every {what} must be a number; got {values!r:.100}") from None


def _check_finite(values: Floats, what: str, place: Callable[[int], str]) -> None:
    """Raise DataError for NaN, and for grades that are infinite."""
    bad = np.isnan(values) if what == "score" else ~np.isfinite(values)
    if bad.any():
        at = int(bad.argmax())
        raise DataError(f"{place(at)}: the {what} is {values[at]}, not a number")


def tie_ranks(n: int, ids: Sequence[str] | None, query: NDArray[np.int64] | int = 0) -> NDArray[np.int64]:
    """tie[i] = the position of ids[i] in ascending string order; without ids, that of the row number as text.

    An id may occur once in each query; without `query`, once.

    >>> tie_ranks(3, ["b", "c", "a"]).tolist()
    [1, 2, 0]
    """
    names = np.arange(n).astype(np.str_) if ids is None else np.array([str(name) for name in ids], dtype=np.object_)
    if len(names) != n:
        raise DataError(f"every row needs one id; got {len(names)} ids for {n} rows")
    unique, tie = np.unique(names, return_inverse=True)
    if ids is not None and len(unique) < n:
        _, first = np.unique(query * len(unique) + tie, return_index=True)
        if len(first) < n:
            repeated = int(np.setdiff1d(np.arange(n), first)[0])
            raise DataError(f"row {repeated}: id {ids[repeated]!r} occurs more than once for its query")
    return tie.astype(np.int64)
