"""Who should beat whom, as windows: O(n) memory, never O(n²) pairs.

Row r says: for `query[r]`, every item of the window `better[r]` of `order` should beat every item of the window
`worse[r]` and, where `rest` is set, every item that is not in the window `group[r]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import validation
from ..errors import DataError
from .columns import Floats, Ints, groups_of, judged, numbers, places, triples, weights

EACH = -1
"""In place of a query: every item of the row's better window is a query of its own, and does not beat itself."""


class Triples(NamedTuple):
    """For query[i], item better[i] should score above item worse[i]."""

    query: Ints
    better: Ints
    worse: Ints


@dataclass(frozen=True)
class Preferences:
    """Preferences over items 0 … n_items - 1; made by one of the `from_…` constructors.

    `chance` is how often a draw takes each row; `weight`, if given, how much each place of `order` counts as a winner.
    `skipped` counts the queries (or classes) that prefer nothing: one grade only, one member only.

    >>> prefs = Preferences.from_grades([2, 0, 1, 0], qid=[7, 7, 7, 8])
    >>> prefs.n_pairs, prefs.skipped
    (3, 1)
    >>> prefs.first(3).better.tolist(), prefs.first(3).worse.tolist()
    ([0, 0, 2], [2, 1, 1])
    """

    query: Ints
    order: Ints
    better: Ints
    worse: Ints
    group: Ints
    n_items: int
    n_queries: int
    chance: Floats
    weight: Floats | None = None
    rest: bool = False
    skipped: int = 0
    query_ids: NDArray[Any] = field(default_factory=lambda: np.empty(0, np.int64))

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                frozen = value.view()
                frozen.setflags(write=False)
                object.__setattr__(self, name, frozen)

    # ---- the four constructors

    @classmethod
    def from_labels(cls, y: ArrayLike) -> Preferences:
        """An item prefers its own class: the triples of paper C.

        A draw takes the query uniformly, d⁺ uniformly from its class (not the query itself) and d⁻ uniformly from the
        other classes. A class with one member never asks (it has no d⁺) and counts as skipped; it still loses.
        """
        classes, code = groups_of("labels", y)
        if len(classes) < 2:
            raise DataError(f"preferences need at least two classes; got {len(classes)}")
        n = len(code)
        by_class = np.argsort(code, kind="stable").astype(np.int64)
        size = np.bincount(code)
        stop = np.cumsum(size)
        start = stop - size
        asks = size > 1
        if not asks.any():
            raise DataError("every class has one member, so no item has another one to prefer")
        start, stop, size = start[asks], stop[asks], size[asks]
        return cls(
            query=np.full(len(size), EACH, np.int64),
            order=np.concatenate([by_class, by_class]),
            better=np.stack([start, stop], axis=1),
            worse=np.stack([stop, start + n], axis=1),
            group=np.zeros((len(size), 2), np.int64),
            n_items=n,
            n_queries=n,
            chance=size / size.sum(),
            skipped=int(np.sum(~asks)),
            query_ids=classes,
        )

    @classmethod
    def from_grades(
        cls, grades: ArrayLike, qid: ArrayLike | None = None, weight: ArrayLike | None = None
    ) -> Preferences:
        """Row i is an item with a grade; within a qid every higher grade beats every lower one.

        Qids may be unsorted and of any type; without them all rows are one query. A draw takes the query uniformly,
        then a winner by weight, then a loser uniformly. A qid with one document or one grade is skipped and counted.
        """
        grade = numbers("grades", grades)
        n = len(grade)
        ids, code = groups_of("qid", np.zeros(n, np.int64) if qid is None else qid)
        if len(code) != n:
            raise DataError(f"{n} grades need {n} qids; got {len(code)}")
        order = np.lexsort((np.arange(n), -grade, code)).astype(np.int64)
        winner = None if weight is None else weights(weight, n)[order]
        return cls._graded(code[order], order, grade[order], winner, n_items=n, query_ids=ids)

    @classmethod
    def from_qrels(
        cls,
        qrels: Mapping[str, Mapping[str, float]],
        query_ids: Sequence[str],
        doc_ids: Sequence[str],
        *,
        unjudged: str = "worse",
        missing: str = "error",
        drop_self: bool = False,
    ) -> Preferences:
        """Judgments {query id: {document id: grade}}; queries and documents are numbered by their place in the lists.

        unjudged : 'worse' – documents not judged for a query count as grade 0 (and so do grades below 0), or 'ignore'.
        missing : 'error' – an id that is not in the lists is a DataError – or 'drop'.
        drop_self : a document that has the query's own id takes no part in that query.
        """
        validation.choice("unjudged", unjudged, ("worse", "ignore"))
        validation.choice("missing", missing, ("error", "drop"))
        row_of, place = places("query", query_ids), places("document", doc_ids)
        rows = list(judged(qrels, row_of, place, missing == "drop", drop_self))
        code, item = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
        level = np.array([grade for _, _, grade in rows], np.float64)
        if unjudged == "worse":
            positive = level > 0
            code, item, level = code[positive], item[positive], level[positive]
        order = np.lexsort((item, -level, code))
        prefs = cls._graded(
            code[order], item[order], level[order], None,
            n_items=len(place), query_ids=np.array(query_ids, dtype=object), rest=unjudged == "worse",
        )  # fmt: skip
        if len(prefs.query) == 0:
            raise DataError("no query prefers any document: no judgment is above another")
        return prefs

    @classmethod
    def from_triples(
        cls, query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike | None = None
    ) -> Preferences:
        """Triple i says that for query[i] item better[i] should beat item worse[i]; drawn in proportion to weight."""
        q, plus, minus, w = triples(query, better, worse, weight)
        n = len(q)
        places = np.arange(2 * n, dtype=np.int64).reshape(n, 2)
        return cls(
            query=q,
            order=np.stack([plus, minus], axis=1).ravel(),
            better=np.stack([places[:, 0], places[:, 0] + 1], axis=1),
            worse=np.stack([places[:, 1], places[:, 1] + 1], axis=1),
            group=np.zeros((n, 2), np.int64),
            n_items=int(max(plus.max(), minus.max())) + 1,
            n_queries=int(q.max()) + 1,
            chance=np.full(n, 1.0 / n) if w is None else w / w.sum(),
            weight=None if w is None else np.repeat(w, 2),
        )

    @classmethod
    def stream(
        cls, batches: Iterable[Any], query_ids: Sequence[str], doc_ids: Sequence[str], missing: str = "error"
    ) -> Iterator[Preferences]:
        """Preferences batch by batch, from records with columns query, better, worse (and weight).

        `batches` is what `sparserank.data.stream_triples(path)` yields, of a log that may be larger than memory; ids
        become places in the two lists. A batch that has nothing to draw – no known id, no positive weight – is skipped.
        """
        validation.choice("missing", missing, ("error", "drop"))
        row_of, place = places("query", query_ids), places("document", doc_ids)
        for batch in batches:
            named = ((batch.query, row_of), (batch.better, place), (batch.worse, place))
            columns = np.array([[place_of.get(i, -1) for i in ids] for ids, place_of in named], np.int64)
            known = (columns >= 0).all(axis=0)
            if missing == "error" and not known.all():
                at = int(np.flatnonzero(~known)[0])
                triple = (batch.query[at], batch.better[at], batch.worse[at])
                raise DataError(f"triple {triple!r} names an id that is not in the collection; missing='drop' skips it")
            weight = None if batch.weight is None else numbers("weight", batch.weight)[known]
            if known.any() and (weight is None or weight.any()):
                query, better, worse = columns[:, known]
                prefs = cls.from_triples(query, better, worse, weight)
                yield replace(prefs, n_items=len(doc_ids), n_queries=len(query_ids))

    @classmethod
    def _graded(
        cls,
        code: Ints,
        order: Ints,
        grade: Floats,
        weight: Floats | None,
        *,
        n_items: int,
        query_ids: NDArray[Any],
        rest: bool = False,
    ) -> Preferences:
        """Rows from items sorted by query, then falling grade: one row for each grade that has something below it."""
        n = len(order)
        new_query = np.flatnonzero(np.diff(code, prepend=-1))
        new_level = np.flatnonzero((np.diff(code, prepend=-1) != 0) | (np.diff(grade, prepend=np.nan) != 0))
        level_end = np.append(new_level, n)[1:]
        of_query = np.searchsorted(new_query, new_level, side="right") - 1
        begin, end = new_query[of_query], np.append(new_query, n)[1:][of_query]
        beats = (level_end < end) | (rest & (end - begin < n_items))
        rows = beats & np.isfinite(grade[new_level])
        better = np.stack([new_level, level_end], axis=1)[rows].astype(np.int64)
        total = np.concatenate([[0.0], np.cumsum(np.ones(n) if weight is None else weight)])
        mass = total[better[:, 1]] - total[better[:, 0]]
        owner = code[better[:, 0]] if len(better) else np.zeros(0, np.int64)
        per_query = np.bincount(owner, weights=mass, minlength=len(query_ids))
        chance = np.divide(mass, per_query[owner], out=np.zeros_like(mass), where=per_query[owner] > 0)
        asking = int(np.count_nonzero(per_query))
        return cls(
            query=owner,
            order=order,
            better=better,
            worse=np.stack([level_end, end], axis=1)[rows].astype(np.int64),
            group=np.stack([begin, end], axis=1)[rows].astype(np.int64),
            n_items=n_items,
            n_queries=len(query_ids),
            chance=chance / max(asking, 1),
            weight=weight,
            rest=rest,
            skipped=len(query_ids) - asking,
            query_ids=query_ids,
        )

    # ---- what solvers ask for

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def losers(self) -> Ints:
        """How many items each winner of a row beats."""
        window = self.worse[:, 1] - self.worse[:, 0]
        return window + (self.n_items - (self.group[:, 1] - self.group[:, 0])) if self.rest else window

    @cached_property
    def pairs(self) -> Ints:
        """How many (query, better, worse) triples each row stands for."""
        winners = self.better[:, 1] - self.better[:, 0]
        asked = np.where(self.query == EACH, winners * (winners - 1), winners)
        return np.asarray(asked * self.losers, np.int64)

    @property
    def n_pairs(self) -> int:
        """How many triples all rows stand for."""
        return int(self.pairs.sum())

    def draw(self, n: int, seed: int, first: int = 0) -> Triples:
        """Draws first … first + n - 1 of the sequence that `seed` names, with replacement.

        >>> prefs = Preferences.from_labels([0, 0, 1, 1, 2])
        >>> one, two = prefs.draw(6, seed=1), prefs.draw(3, seed=1, first=3)
        >>> bool((one.query[3:] == two.query).all())
        True
        """
        from .._kernels.preferences import draw_triples

        if len(self) == 0 or not self.chance.any():
            raise DataError("there is nothing to draw: no query prefers any item")
        out = np.empty((validation.count("n", n), 3), np.int64)
        seed, first = validation.count("seed", seed), validation.count("first", first, high=2**62)
        chance = np.concatenate([[0.0], np.cumsum(self.chance)])
        weight = np.empty(0) if self.weight is None else np.concatenate([[0.0], np.cumsum(self.weight)])
        draw_triples(np.uint64(seed % 2**64), first, out, *self._windows, chance, weight)
        return Triples(*np.ascontiguousarray(out.T))

    def first(self, n: int, skip: int = 0) -> Triples:
        """Triples skip … skip + n - 1 in order: row by row, winner by winner, loser by loser; fewer where they end."""
        from .._kernels.preferences import list_triples

        skip = min(validation.count("skip", skip), self.n_pairs)
        out = np.empty((min(validation.count("n", n), self.n_pairs - skip), 3), np.int64)
        list_triples(skip, out, *self._windows, np.concatenate([[0], np.cumsum(self.pairs)]))
        return Triples(*np.ascontiguousarray(out.T))

    @cached_property
    def _windows(self) -> tuple[Ints, ...]:
        """The arrays the kernels read; `members` is `order` with every group sorted, to count past it."""
        members = self.order
        if self.rest:
            bounds = np.unique(self.group)
            group_of = np.searchsorted(bounds, np.arange(len(self.order)), side="right")
            members = self.order[np.lexsort((self.order, group_of))]
        return self.query, self.order, self.better, self.worse, self.group, members, self.losers
