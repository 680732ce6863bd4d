"""Grades from feedback: query → document → grade; positive is good, negative is bad.

Clicks are weighted by inverse propensity, because few users look far down. A document that was shown above a click and
skipped gets a negative grade (skip-above). A judgment overrides clicks and earlier judgments. A fixed share of the
queries, chosen by a hash, is held out: candidates are checked on them and never learn from them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import NamedTuple

from ...evaluation.ndcg import dcg
from ...preferences.clicks import BY_RANK, ClickLog
from ..feedback import Feedback, normalize_query

HELD_OUT_ONE_IN, HELD_OUT_ONE_IN_ALONE = 20, 5
"""One query of this many is held out: with held-out judgments, and without them."""
SKIP_GRADE = 0.3
"""Largest negative grade of a skipped document, where a click counts 1."""
VISIT_GAP = timedelta(minutes=30)
"""Clicks on the same list of results within this time belong to one visit."""
BAD_DEPTH = 10
"""Bad documents count within this rank; pushing them further down would teach more than the feedback says."""

Grades = Mapping[str, float]


def is_held_out(query: str, one_in: int = HELD_OUT_ONE_IN) -> bool:
    """Return whether a query is held out; case and spaces do not matter.

    >>> is_held_out("red apples") == is_held_out(" Red  Apples")
    True
    """
    digest = sha256(normalize_query(query).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8]) % one_in == 0


@dataclass(frozen=True)
class GradedQueries:
    """The last spelling of each query and the grades of its documents, by normalized query."""

    texts: Mapping[str, str] = field(default_factory=dict)
    grades: Mapping[str, Grades] = field(default_factory=dict)

    @classmethod
    def from_feedback(cls, feedback: Iterable[Feedback]) -> GradedQueries:
        """Grade the feedback that counts, oldest first; queries without a nonzero grade are left out.

        >>> feedback = [Feedback("1", "click", "apple", "d2", shown=("d1", "d2"))]
        >>> feedback += [Feedback("2", "judgment", "Apple", "d3", grade=-1.0)]
        >>> GradedQueries.from_feedback(feedback).grades
        {'apple': {'d2': 0.5, 'd1': -0.15, 'd3': -1.0}}
        """
        feedback = [one for one in feedback if one.counted]
        grades = _click_grades([one for one in feedback if one.kind == "click"])
        for one in feedback:
            if one.kind == "judgment":
                grades.setdefault(normalize_query(one.query), {})[one.document] = float(one.grade)
        return cls({normalize_query(one.query): one.query for one in feedback}, grades)._keep(lambda d, grade: grade)

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def select(self, queries: Iterable[str]) -> GradedQueries:
        """Return some of the queries."""
        known = [query for query in queries if query in self.texts]
        return GradedQueries({q: self.texts[q] for q in known}, {q: self.grades[q] for q in known})

    def split(self, one_in: int = HELD_OUT_ONE_IN) -> tuple[GradedQueries, GradedQueries]:
        """Return the queries to learn from, and the held-out ones."""
        held_out = {query for query in self if is_held_out(query, one_in)}
        return self.select(q for q in self if q not in held_out), self.select(q for q in self if q in held_out)

    def restrict_to(self, documents: Container[str]) -> GradedQueries:
        """Return the grades of these documents."""
        return self._keep(lambda document, grade: document in documents)

    def _keep(self, keep: Callable[[str, float], object]) -> GradedQueries:
        """Filter the grades, and drop queries without any."""
        grades = {q: {d: g for d, g in graded.items() if keep(d, g)} for q, graded in self.grades.items()}
        grades = {q: graded for q, graded in grades.items() if graded}
        return GradedQueries({q: self.texts[q] for q in grades}, grades)


class Visit(NamedTuple):
    """A list of results that was shown for a query, and the documents that were clicked, in order."""

    query: str
    shown: tuple[str, ...]
    clicked: list[str]


def group_visits(clicks: Iterable[Feedback]) -> list[Visit]:
    """Group clicks by visit; a second click on a document begins another visit."""
    visits: list[Visit] = []
    latest: dict[tuple[str, tuple[str, ...]], tuple[Visit, Feedback]] = {}
    for click in clicks:
        shown = tuple(dict.fromkeys(click.shown))
        if click.document not in shown:  # its rank is unknown, so the click says nothing about other documents
            shown = (click.document,)
        key = (normalize_query(click.query), shown)
        visit, before = latest.get(key, (None, click))
        if visit is None or click.document in visit.clicked or _is_later_visit(before, click):
            visit = Visit(*key, [])
            visits.append(visit)
        visit.clicked.append(click.document)
        latest[key] = (visit, click)
    return visits


def _is_later_visit(before: Feedback, after: Feedback) -> bool:
    return before.received is not None and after.received is not None and after.received - before.received > VISIT_GAP


def _click_grades(clicks: Sequence[Feedback]) -> dict[str, dict[str, float]]:
    """Return grades in (0, 1) for clicked documents and in (-SKIP_GRADE, 0) for documents that were only skipped.

    n observations count n / (n + 1), so a single one counts half.
    """
    visits = group_visits(clicks)
    if not visits:
        return {}
    rows = [(n, v.query, d, p, d in v.clicked) for n, v in enumerate(visits) for p, d in enumerate(v.shown, start=1)]
    log = ClickLog.of(*zip(*rows, strict=True))
    clicked = Counter((visit.query, document) for visit in visits for document in visit.clicked)
    shown = Counter((visit.query, document) for visit in visits for document in visit.shown)
    grades: dict[str, dict[str, float]] = {}
    for query, shares in log.grades(BY_RANK).items():
        for document, share in shares.items():
            n = clicked[query, document]
            grades.setdefault(query, {})[document] = min(share, 1.0) * n / (n + 1)
    above, skipped = log.skip_above(), Counter[tuple[str, str]]()
    for query, document, times in zip(above.query.tolist(), above.worse.tolist(), above.weight.tolist(), strict=True):
        skipped[query, document] += times
    for (query, document), times in skipped.items():
        share = min(times / shown[query, document], 1.0)
        grades[query].setdefault(document, -SKIP_GRADE * share * times / (times + 1))
    return grades


def agreement(grades: Grades, ranking: Sequence[str]) -> float:
    """Return how well a ranking agrees with grades, from 0 to 1; without negative grades this is nDCG.

    DCG is scaled from the worst to the best possible value. Negative grades count within BAD_DEPTH.

    >>> agreement({"a": 1.0}, ["a", "b"]), agreement({"a": -1.0}, ["a", "b"]), agreement({"a": -1.0}, ["b", "c"])
    (1.0, 0.0, 1.0)
    """
    ranked = [grades.get(document, 0.0) for document in ranking]
    value = _dcg([grade if grade > 0 or rank < BAD_DEPTH else 0.0 for rank, grade in enumerate(ranked)])
    best = _dcg(sorted((grade for grade in grades.values() if grade > 0), reverse=True))
    worst = _dcg(sorted(grade for grade in grades.values() if grade < 0)[:BAD_DEPTH])
    return (value - worst) / (best - worst) if best > worst else 1.0


def _dcg(grades: list[float]) -> float:
    return float(dcg(grades)[0])
