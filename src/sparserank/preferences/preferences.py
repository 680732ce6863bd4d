"""Preferences between items, stored as windows: O(n) memory, never O(n²) pairs.

Row r means: for `query[r]`, every item of the window `better[r]` of `order` should beat every item of the window
`worse[r]` and, if `rest` is set, every item outside the window `group[r]`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import validation
from ..deprecated import renamed_parameters
from ..errors import DataError
from ..parameters import Summary
from .columns import Floats, Ints, factorize, freeze_arrays, judgments, numbers, positions, triples, weights
from .windows import EACH, grade_windows, label_windows, triple_windows

__all__ = ["EACH", "Preferences", "Triples", "classes_of"]


class Triples(NamedTuple):
    """Triples: for query[i], item better[i] should score above item worse[i].

    Attributes
    ----------
    query, better, worse : ndarray of int
        Row numbers.
    """

    query: Ints
    better: Ints
    worse: Ints


@dataclass(frozen=True, repr=False)
class Preferences(Summary):
    """Preferences over items 0 … n_items - 1; made by one of the `from_…` constructors.

    Attributes
    ----------
    query : ndarray of int
        The query of each row, or `EACH`.
    order : ndarray of int
        Items; the windows are slices of it.
    better, worse, group : ndarray of shape (n_rows, 2)
        Start and end of each row's windows in `order`.
    n_items, n_queries : int
        Number of items and queries.
    chance : ndarray
        The probability that a draw takes each row.
    weight : ndarray or None
        The weight of each position of `order` as a winner.
    rest : bool
        Whether items outside the group lose too.
    skipped : int
        Queries (or classes) without a preference: only one grade, or only one member.
    query_ids : ndarray
        The queries' ids.

    Examples
    --------
    >>> preferences = Preferences.from_grades([2, 0, 1, 0], qid=[7, 7, 7, 8])
    >>> preferences.n_pairs, preferences.skipped
    (3, 1)
    >>> preferences.first(3).better.tolist(), preferences.first(3).worse.tolist()
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
        freeze_arrays(self)

    def _summary(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_pairs", "n_items", "n_queries", "skipped")}

    @classmethod
    def from_labels(cls, y: ArrayLike) -> Preferences:
        """Prefer items of the same class (the triples of Chen et al., 2010).

        A draw takes the query uniformly, d⁺ uniformly from its class without the query, and d⁻ uniformly from the other
        classes. A class with one member has no d⁺: it is counted in `skipped`, and its item only loses.

        Parameters
        ----------
        y : array-like of shape (n_items,)
            Class labels.

        Examples
        --------
        >>> Preferences.from_labels([0, 0, 1]).n_pairs
        2
        """
        return cls(**label_windows(*factorize("labels", y)))

    @classmethod
    def from_grades(
        cls, grades: ArrayLike, qid: ArrayLike | None = None, weight: ArrayLike | None = None
    ) -> Preferences:
        """Prefer higher grades to lower ones within each query; row i is item i.

        A draw takes the query uniformly, then a winner by weight, then a loser uniformly. A query with one document or
        one grade is counted in `skipped`.

        Parameters
        ----------
        grades : array-like of shape (n_rows,)
            Grades.
        qid : array-like of shape (n_rows,), default=None
            Query ids, in any order. None means that all rows are one query.
        weight : array-like of shape (n_rows,), default=None
            Weights of the rows as winners.

        Examples
        --------
        >>> Preferences.from_grades([2, 0, 1], qid=["a", "a", "b"]).n_pairs
        1
        """
        grade = numbers("grades", grades)
        n = len(grade)
        ids, code = factorize("qid", np.zeros(n, np.int64) if qid is None else qid)
        if len(code) != n:
            raise DataError(f"{n} grades need {n} qids; got {len(code)}")
        order = np.lexsort((np.arange(n), -grade, code)).astype(np.int64)
        winner = None if weight is None else weights("weight", weight, n)[order]
        return cls(**grade_windows(code[order], order, grade[order], winner, n_items=n, query_ids=ids))

    @classmethod
    @renamed_parameters({"drop_self": "exclude_self"})
    def from_qrels(
        cls,
        qrels: Mapping[str, Mapping[str, float]],
        query_ids: Sequence[str],
        doc_ids: Sequence[str],
        *,
        unjudged: str = "worse",
        missing: str = "error",
        exclude_self: bool = False,
    ) -> Preferences:
        """Prefer documents with higher grades; queries and documents are numbered by their position in the lists.

        Parameters
        ----------
        qrels : {query id: {document id: grade}}
            Judgments.
        query_ids, doc_ids : sequence of str
            All queries and all documents.
        unjudged : {'worse', 'ignore'}, default='worse'
            'worse': documents without a judgment count as grade 0, and so do grades below 0.
        missing : {'error', 'drop'}, default='error'
            Whether an id that is not in the lists raises DataError or is dropped.
        exclude_self : bool, default=False
            Leave the document that has the query's own id out of that query.

        Examples
        --------
        >>> Preferences.from_qrels({"q": {"a": 1}}, ["q"], ["a", "b", "c"]).n_pairs
        2
        """
        validation.choice("unjudged", unjudged, ("worse", "ignore"))
        validation.choice("missing", missing, ("error", "drop"))
        query_position, doc_position = positions("query", query_ids), positions("document", doc_ids)
        rows = list(judgments(qrels, query_position, doc_position, missing == "drop", exclude_self))
        code, item = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
        level = np.array([grade for _, _, grade in rows], np.float64)
        if unjudged == "worse":
            positive = level > 0
            code, item, level = code[positive], item[positive], level[positive]
        order = np.lexsort((item, -level, code))
        windows = grade_windows(
            code[order], item[order], level[order], None,
            n_items=len(doc_position), query_ids=np.array(query_ids, dtype=object), rest=unjudged == "worse",
        )  # fmt: skip
        preferences = cls(**windows)
        if len(preferences) == 0:
            raise DataError("no query prefers any document: no judgment is above another")
        return preferences

    @classmethod
    def from_triples(
        cls, query: ArrayLike, better: ArrayLike, worse: ArrayLike, weight: ArrayLike | None = None
    ) -> Preferences:
        """For query[i], prefer item better[i] to item worse[i].

        Parameters
        ----------
        query, better, worse : array-like of shape (n_triples,)
            Row numbers, from 0.
        weight : array-like of shape (n_triples,), default=None
            Draws are proportional to it.

        Examples
        --------
        >>> Preferences.from_triples([0, 0], better=[1, 2], worse=[2, 3]).n_pairs
        2
        """
        return cls(**triple_windows(*triples(query, better, worse, weight)))

    @classmethod
    def stream(
        cls, batches: Iterable[Any], query_ids: Sequence[str], doc_ids: Sequence[str], missing: str = "error"
    ) -> Iterator[Preferences]:
        """Yield the preferences of each batch of triples, for a log that may be larger than memory.

        Parameters
        ----------
        batches : iterable
            Records with columns query, better, worse and weight, as `sparserank.data.stream_triples(path)` yields them.
        query_ids, doc_ids : sequence of str
            All queries and all documents.
        missing : {'error', 'drop'}, default='error'
            Whether an id that is not in the lists raises DataError or is dropped.

        Yields
        ------
        Preferences
            A batch without a known id or a positive weight is skipped.
        """
        validation.choice("missing", missing, ("error", "drop"))
        query_position, doc_position = positions("query", query_ids), positions("document", doc_ids)
        for batch in batches:
            named = (batch.query, query_position), (batch.better, doc_position), (batch.worse, doc_position)
            columns = np.array([[position.get(i, -1) for i in ids] for ids, position in named], np.int64)
            known = (columns >= 0).all(axis=0)
            if missing == "error" and not known.all():
                at = int(np.flatnonzero(~known)[0])
                triple = (batch.query[at], batch.better[at], batch.worse[at])
                raise DataError(f"triple {triple!r} names an id that is not in the collection; missing='drop' skips it")
            weight = None if batch.weight is None else numbers("weight", batch.weight)[known]
            if known.any() and (weight is None or weight.any()):
                query, better, worse = columns[:, known]
                preferences = cls.from_triples(query, better, worse, weight)
                yield replace(preferences, n_items=len(doc_ids), n_queries=len(query_ids))

    def __len__(self) -> int:
        return len(self.query)

    @cached_property
    def losers(self) -> Ints:
        """The number of items that each winner of a row beats."""
        window = self.worse[:, 1] - self.worse[:, 0]
        return window + (self.n_items - (self.group[:, 1] - self.group[:, 0])) if self.rest else window

    @cached_property
    def pairs(self) -> Ints:
        """The number of (query, better, worse) triples of each row."""
        winners = self.better[:, 1] - self.better[:, 0]
        query_winner_pairs = np.where(self.query == EACH, winners * (winners - 1), winners)
        return np.asarray(query_winner_pairs * self.losers, np.int64)

    @property
    def n_pairs(self) -> int:
        """The number of triples of all rows."""
        return int(self.pairs.sum())

    @renamed_parameters({"seed": "random_state"})
    def draw(self, n: int, random_state: int, first: int = 0) -> Triples:
        """Draw triples with replacement.

        Parameters
        ----------
        n : int
            Number of triples.
        random_state : int
            Seed: it fixes an endless sequence of draws.
        first : int, default=0
            The first draw of that sequence to return.

        Examples
        --------
        >>> preferences = Preferences.from_labels([0, 0, 1, 1, 2])
        >>> one, two = preferences.draw(6, random_state=1), preferences.draw(3, random_state=1, first=3)
        >>> bool((one.query[3:] == two.query).all())
        True
        """
        from .._kernels.preferences import draw_triples

        if len(self) == 0 or not self.chance.any():
            raise DataError("there is nothing to draw: no query prefers any item")
        out = np.empty((validation.count("n", n), 3), np.int64)
        seed, first = validation.count("random_state", random_state), validation.count("first", first, high=2**62)
        chance = np.concatenate([[0.0], np.cumsum(self.chance)])
        weight = np.empty(0) if self.weight is None else np.concatenate([[0.0], np.cumsum(self.weight)])
        draw_triples(np.uint64(seed % 2**64), first, out, *self._windows, chance, weight)
        return Triples(*np.ascontiguousarray(out.T))

    def first(self, n: int, skip: int = 0) -> Triples:
        """List triples in order: row by row, winner by winner, loser by loser.

        Parameters
        ----------
        n : int
            The most triples.
        skip : int, default=0
            Triples to skip first.

        Examples
        --------
        >>> Preferences.from_triples([0, 0], [1, 2], [2, 3]).first(5).worse.tolist()
        [2, 3]
        """
        from .._kernels.preferences import list_triples

        skip = min(validation.count("skip", skip), self.n_pairs)
        out = np.empty((min(validation.count("n", n), self.n_pairs - skip), 3), np.int64)
        list_triples(skip, out, *self._windows, np.concatenate([[0], np.cumsum(self.pairs)]))
        return Triples(*np.ascontiguousarray(out.T))

    @cached_property
    def _windows(self) -> tuple[Ints, ...]:
        """The arrays that the kernels read; `members` is `order` with every group sorted."""
        members = self.order
        if self.rest:
            bounds = np.unique(self.group)
            group_of = np.searchsorted(bounds, np.arange(len(self.order)), side="right")
            members = self.order[np.lexsort((self.order, group_of))]
        return self.query, self.order, self.better, self.worse, self.group, members, self.losers


def classes_of(preferences: Preferences) -> Ints | None:
    """Return the number of each item's class; None if the preferences are not from `Preferences.from_labels`.

    Parameters
    ----------
    preferences : Preferences
        Preferences.

    Examples
    --------
    >>> classes_of(Preferences.from_labels(["b", "a", "c", "b", "a"])).tolist()
    [1, 0, 2, 1, 0]
    """
    n = preferences.n_items
    if len(preferences) == 0 or (preferences.query != EACH).any() or len(preferences.order) != 2 * n:
        return None
    is_first = np.ones(n, bool)  # the items are sorted by class; an item in no window is alone in its class
    for start, stop in preferences.better:
        is_first[start + 1 : stop] = False
    out = np.empty(n, np.int64)
    out[preferences.order[:n]] = np.cumsum(is_first) - 1
    return out
