"""Judgments from a click log: what was shown where, and taken or not.

A click says less the lower a document stood: few look there. Where position p is looked at with *propensity* e_p, a
click there counts 1 / e_p, and its mean over the times a document was shown is, whatever the positions, the share of
those who would take it if they looked: a grade (inverse propensity weighting). Propensities are p^-eta or given, and
are clipped from below: one click far down must not outweigh everything else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import validation
from ..errors import ConfigError, DataError
from .columns import Floats, Ints, groups_of, numbers


@dataclass(frozen=True)
class Propensity:
    """How likely a position is looked at, relative to the first.

    eta : position p has p^-eta. given : instead, those of positions 1, 2, …; beyond the last, the last. least : none
    counts as less than this.

    >>> Propensity(eta=1.0, least=0.3).of([1, 2, 10]).tolist()
    [1.0, 0.5, 0.3]
    """

    eta: float = 1.0
    given: tuple[float, ...] | None = None
    least: float = 0.05

    def __post_init__(self) -> None:
        validation.number("eta", self.eta, low=0.0)
        validation.number("least", self.least, low=0.0, high=1.0, open_low=True)
        if self.given is not None and not self.given:
            raise ConfigError("propensities must be given for one position at least; got none")
        for one in self.given or ():
            validation.number("propensity", one, low=0.0, high=1.0)

    def of(self, position: ArrayLike) -> Floats:
        """By position, counted from 1."""
        place = np.asarray(position, dtype=np.int64)
        if self.given is None:
            looked = place.astype(np.float64) ** -self.eta
        else:
            looked = np.asarray(self.given, np.float64)[np.minimum(place, len(self.given)) - 1]
        return np.maximum(looked, self.least)


BY_RANK = Propensity()
"""Position p is looked at p times less than the first."""


@dataclass(frozen=True)
class Preferred:
    """For query[i], better[i] was taken and worse[i], shown above it, was not: weight[i] times. Sorted, each once."""

    query: NDArray[Any]
    better: NDArray[Any]
    worse: NDArray[Any]
    weight: Ints


@dataclass(frozen=True)
class ClickLog:
    """Rows of a click log, as `sparserank.data` reads them: one for each document that was shown in a session.

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
    document_ids: NDArray[Any]

    @classmethod
    def of(
        cls, session: ArrayLike, query: ArrayLike, document: ArrayLike, position: ArrayLike, clicked: ArrayLike
    ) -> ClickLog:
        """From columns: ids of one kind each, positions from 1 on, and whether it was clicked (true, false, 0, 1)."""
        queries, query_code = groups_of("query", query)
        documents, document_code = groups_of("document", document)
        place, taken = numbers("position", position), numbers("clicked", clicked)
        codes = groups_of("session", session)[1], query_code, document_code
        if len({len(column) for column in (*codes, place, taken)}) > 1:
            raise DataError(f"the columns of a click log differ in length: {[len(c) for c in (*codes, place, taken)]}")
        for name, wrong, wanted in (
            ("position", (place < 1) | (place != np.floor(place)), "a whole number, counted from 1"),
            ("clicked", (taken != 0) & (taken != 1), "0 or 1"),
        ):
            if wrong.any():
                raise DataError(f"{name}[{int(wrong.argmax())}] must be {wanted}")
        return cls(*codes, place.astype(np.int64), taken == 1, queries, documents)

    def grades(self, propensity: Propensity = BY_RANK) -> dict[Any, dict[Any, float]]:
        """query → document → clicks / propensity over the times it was shown; documents never clicked are left out.

        A grade can exceed 1 by chance; its expectation is the share of those who would take the document.
        """
        pair, row = np.unique(self.query * np.int64(len(self.document_ids)) + self.document, return_inverse=True)
        taken = np.bincount(row, np.where(self.clicked, 1.0 / propensity.of(self.position), 0.0), len(pair))
        share = taken / np.maximum(np.bincount(row, minlength=len(pair)), 1)
        queries, documents = self.query_ids.tolist(), self.document_ids.tolist()
        out: dict[Any, dict[Any, float]] = {}
        for p in np.flatnonzero(taken > 0.0):
            query, document = divmod(int(pair[p]), len(self.document_ids))
            out.setdefault(queries[query], {})[documents[document]] = float(share[p])
        return out

    def shown(self, query_ids: list[Any]) -> Floats:
        """In how many sessions each query was asked, 0 where it was not: what it may weigh among judged lists."""
        sessions = np.int64(self.session.max(initial=0) + 1)
        count = np.bincount(np.unique(self.query * sessions + self.session) // sessions, minlength=len(self.query_ids))
        known = dict(zip(self.query_ids.tolist(), count.tolist(), strict=True))
        return np.array([known.get(one, 0) for one in query_ids], dtype=np.float64)

    def skip_above(self) -> Preferred:
        """What was clicked is preferred to what the same session showed above it and nobody took (Joachims, 2002)."""
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
        kept = ~clicked[above] & (position[above] < position[below]) & (document[above] != document[below])
        rows = np.stack([query[below[kept]], document[below[kept]], document[above[kept]]], axis=1)
        distinct, weight = np.unique(rows, axis=0, return_counts=True)
        q, b, w = distinct.T
        return Preferred(self.query_ids[q], self.document_ids[b], self.document_ids[w], weight.astype(np.int64))
