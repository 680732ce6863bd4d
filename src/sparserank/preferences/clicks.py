"""Judgments from a click log: which documents were shown at which position, and which were clicked.

Users look at lower positions less often. If they look at position p with *propensity* e_p, a click there counts 1/e_p.
The mean of this over the times a document was shown estimates the share of users who would click it if they looked,
for any positions (inverse propensity weighting). Propensities are p^-eta or given, and are clipped from below, so
that one click far down does not outweigh everything else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import validation
from ..data.files import PathLike
from ..data.formats.text_tables import scan_clicks
from ..data.formats.ubi import Search
from ..data.records import Qrels
from ..deprecated import renamed_attribute, renamed_parameters
from ..errors import ConfigError, DataError
from .columns import Floats, Ints, factorize, numbers


@dataclass(frozen=True)
class Propensity:
    """The probability that users look at a position, relative to the first one.

    Parameters
    ----------
    eta : float, default=1.0
        Position p has propensity p^-eta.
    by_position : tuple of float, default=None
        Instead, the propensities of positions 1, 2, …; positions beyond the last have that of the last.
    minimum : float, default=0.05
        Smaller propensities are raised to this value.

    Examples
    --------
    >>> Propensity(eta=1.0, minimum=0.3).of([1, 2, 10]).tolist()
    [1.0, 0.5, 0.3]
    """

    eta: float = 1.0
    by_position: tuple[float, ...] | None = None
    minimum: float = 0.05
    given = renamed_attribute("given", "by_position")
    least = renamed_attribute("least", "minimum")

    def __post_init__(self) -> None:
        validation.number("eta", self.eta, low=0.0)
        validation.number("minimum", self.minimum, low=0.0, high=1.0, open_low=True)
        if self.by_position is not None and not self.by_position:
            raise ConfigError("propensities must be given for at least one position; got none")
        for one in self.by_position or ():
            validation.number("propensity", one, low=0.0, high=1.0)

    def of(self, position: ArrayLike) -> Floats:
        """Return the propensity of each position.

        Parameters
        ----------
        position : array-like of int
            Positions, counted from 1.
        """
        positions = np.asarray(position, dtype=np.int64)
        if self.by_position is None:
            propensity = positions.astype(np.float64) ** -self.eta
        else:
            known = np.asarray(self.by_position, np.float64)
            propensity = known[np.minimum(positions, len(known)) - 1]
        return np.maximum(propensity, self.minimum)


Propensity.__init__ = renamed_parameters({"given": "by_position", "least": "minimum"})(Propensity.__init__)  # type: ignore[method-assign]
BY_RANK = Propensity()
"""Users look at position p with 1/p of the probability of the first one."""


@dataclass(frozen=True)
class ClickPreferences:
    """Preferences of clicked documents to those shown above them without a click; sorted, each once.

    Attributes
    ----------
    query, better, worse : ndarray
        For query[i], better[i] was clicked and worse[i], shown above it, was not.
    weight : ndarray of int
        How often.
    """

    query: NDArray[Any]
    better: NDArray[Any]
    worse: NDArray[Any]
    weight: Ints


@dataclass(frozen=True)
class ClickLog:
    """A click log: one row for each document that was shown in a session; made by `ClickLog.of`.

    Attributes
    ----------
    session, query, document : ndarray of int
        Numbers of the session, the query and the document of each row.
    position : ndarray of int
        The position at which the document was shown, from 1.
    clicked : ndarray of bool
        Whether it was clicked.
    query_ids, doc_ids : ndarray
        The ids, by number.

    Examples
    --------
    >>> log = ClickLog.of(["s", "s", "t"], ["q", "q", "q"], ["a", "b", "b"], [1, 2, 1], [0, 1, 1])
    >>> log.grades(Propensity(eta=1.0))
    {'q': {'b': 1.5}}
    >>> above = log.skip_above()
    >>> above.better.tolist(), above.worse.tolist(), above.weight.tolist()
    (['b'], ['a'], [1])
    >>> log.shown(["q", "r"]).tolist()
    [2.0, 0.0]
    """

    session: Ints
    query: Ints
    document: Ints
    position: Ints
    clicked: NDArray[np.bool_]
    query_ids: NDArray[Any]
    doc_ids: NDArray[Any]
    document_ids = renamed_attribute("document_ids", "doc_ids")

    @classmethod
    def of(
        cls, session: ArrayLike, query: ArrayLike, document: ArrayLike, position: ArrayLike, clicked: ArrayLike
    ) -> ClickLog:
        """Make a click log from columns.

        Parameters
        ----------
        session, query, document : array-like of shape (n_rows,)
            Ids, all numbers or all strings in each column.
        position : array-like of shape (n_rows,)
            Positions, counted from 1.
        clicked : array-like of shape (n_rows,)
            True, False, 0 or 1.
        """
        query_ids, queries = factorize("query", query)
        doc_ids, documents = factorize("document", document)
        positions, clicks = numbers("position", position), numbers("clicked", clicked)
        columns = factorize("session", session)[1], queries, documents, positions, clicks
        lengths = [len(column) for column in columns]
        if len(set(lengths)) > 1:
            raise DataError(f"the columns of a click log differ in length: {lengths}")
        for name, wrong, expected in (
            ("position", (positions < 1) | (positions != np.floor(positions)), "a whole number, counted from 1"),
            ("clicked", (clicks != 0) & (clicks != 1), "0 or 1"),
        ):
            if wrong.any():
                raise DataError(f"{name}[{int(wrong.argmax())}] must be {expected}")
        return cls(*columns[:3], positions.astype(np.int64), clicks == 1, query_ids, doc_ids)

    def grades(self, propensity: Propensity = BY_RANK) -> dict[Any, dict[Any, float]]:
        """Estimate grades by inverse propensity weighting.

        Parameters
        ----------
        propensity : Propensity, default=Propensity()
            The propensities of the positions.

        Returns
        -------
        dict
            {query: {document: clicks / propensity, averaged over the times it was shown}}, without documents that were
            never clicked. A grade can exceed 1 by chance; its expectation is the share of users who would click.
        """
        pair, row = np.unique(self.query * np.int64(len(self.doc_ids)) + self.document, return_inverse=True)
        clicks = np.bincount(row, np.where(self.clicked, 1.0 / propensity.of(self.position), 0.0), len(pair))
        grade = clicks / np.maximum(np.bincount(row, minlength=len(pair)), 1)
        query_ids, doc_ids = self.query_ids.tolist(), self.doc_ids.tolist()
        out: dict[Any, dict[Any, float]] = {}
        for p in np.flatnonzero(clicks > 0.0):
            query, document = divmod(int(pair[p]), len(doc_ids))
            out.setdefault(query_ids[query], {})[doc_ids[document]] = float(grade[p])
        return out

    def shown(self, query_ids: list[Any]) -> Floats:
        """Count the sessions of each query, to weight queries by them.

        Parameters
        ----------
        query_ids : list
            Query ids.

        Returns
        -------
        ndarray
            Sessions of each query, 0 for unknown ids.
        """
        sessions = np.int64(self.session.max(initial=0) + 1)
        count = np.bincount(np.unique(self.query * sessions + self.session) // sessions, minlength=len(self.query_ids))
        by_id = dict(zip(self.query_ids.tolist(), count.tolist(), strict=True))
        return np.array([by_id.get(one, 0) for one in query_ids], dtype=np.float64)

    def skip_above(self) -> ClickPreferences:
        """Prefer each clicked document to those that its session showed above it without a click (Joachims, 2002)."""
        order = np.lexsort((self.position, self.query, self.session))
        session, query, document, position, clicked = (
            column[order] for column in (self.session, self.query, self.document, self.position, self.clicked)
        )
        first = np.flatnonzero(np.diff(session, prepend=-1).astype(np.bool_) | (np.diff(query, prepend=-1) != 0))
        start = first[np.searchsorted(first, np.arange(len(order)), side="right") - 1]
        better = np.flatnonzero(clicked)
        count = better - start[better]
        below = np.repeat(better, count)
        above = np.arange(len(below)) - np.repeat(np.cumsum(count) - count, count) + start[below]
        valid = ~clicked[above] & (position[above] < position[below]) & (document[above] != document[below])
        rows = np.stack([query[below[valid]], document[below[valid]], document[above[valid]]], axis=1)
        distinct, weight = np.unique(rows, axis=0, return_counts=True)
        q, b, w = distinct.T
        return ClickPreferences(self.query_ids[q], self.doc_ids[b], self.doc_ids[w], weight.astype(np.int64))


def search_grades(searches: Iterable[Search], propensity: Propensity = BY_RANK) -> dict[str, dict[str, float]]:
    """Estimate grades from the searches of a UBI log.

    A query whose searches list the shown documents gets the grades of `ClickLog.grades`. If only clicks are known, a
    grade is the sum of clicks / propensity over the number of searches with these words.

    Parameters
    ----------
    searches : iterable of Search
        What `data.read_ubi` returned.
    propensity : Propensity, default=Propensity()
        The propensities of the positions; a click without a position counts 1.

    Returns
    -------
    dict
        {text of the query: {document: grade}}, without documents that were never clicked.

    Examples
    --------
    >>> from sparserank.data.formats.ubi import Search
    >>> shown = [Search("tv", ("a", "b"), {"b": 2}), Search("tv", ("b", "a"), {})]
    >>> search_grades(shown), search_grades([Search("pc", (), {"c": 1}), Search("pc", (), {})])
    ({'tv': {'b': 1.0}}, {'pc': {'c': 0.5}})
    """
    by_text: dict[str, list[Search]] = {}
    for search in searches:
        by_text.setdefault(search.text, []).append(search)
    rows: list[tuple[int, str, str, int, bool]] = []
    grades: dict[str, dict[str, float]] = {}
    for text, group in by_text.items():
        if shown := [search for search in group if search.shown]:
            for search in shown:
                session = len(rows)
                for position, document in enumerate(search.shown, start=1):
                    rows.append((session, text, document, position, document in search.clicks))
            continue
        for document, position in (click for search in group for click in search.clicks.items()):
            added = float(1.0 / propensity.of([position])[0] if position else 1.0) / len(group)
            of = grades.setdefault(text, {})
            of[document] = of.get(document, 0.0) + added
    return (ClickLog.of(*zip(*rows, strict=True)).grades(propensity) if rows else {}) | grades


def read_click_grades(path: PathLike) -> Qrels:
    """Read a click log from a table and estimate grades: `{query id: {document id: grade}}`."""
    log = scan_clicks(path).collect()
    columns = (log[name].to_numpy() for name in ("session", "query", "document", "position", "clicked"))
    grades = ClickLog.of(*columns).grades()
    return {str(query): {str(doc): grade for doc, grade in of.items()} for query, of in grades.items()}
