"""What users told us, as judgments: query → document → grade, above 0 good, below 0 bad.

A click counts by inverse propensity, since few look far down; what was shown above a click and not taken gets a grade
below 0 (skip-above). What was said outright – a judgment – stands above both, the latest above earlier ones. A fixed
share of queries, chosen by a hash of their words, is never learned from: what is learned is checked on them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import NamedTuple

from ...evaluation.ndcg import dcg
from ...preferences.clicks import BY_RANK, ClickLog
from ..records import Feedback

ONE_OF, ONE_OF_ALONE = 20, 5
"""One query of so many is held out: beside held-out judgments, and where there are none (then those too)."""
SKIPPED = 0.3
"""How much what was skipped is worse than what nobody judged, where a click is worth 1."""
SITTING = timedelta(minutes=30)
"""Clicks on the same list of results within this time are one visit to it."""

LOOKED_AT = 10
"""A bad document below this rank is out of the way; to push it further down would only teach more than was said."""

Grades = Mapping[str, float]


def plain(query: str) -> str:
    """A query without what makes no difference to its words.

    >>> plain("  Red   APPLES ")
    'red apples'
    """
    return " ".join(query.casefold().split())


def is_held_out(query: str, one_of: int = ONE_OF) -> bool:
    """Whether this query is one that is checked on and never learned from; for good, whatever its case and blanks.

    >>> is_held_out("red apples") == is_held_out(" Red  Apples")
    True
    """
    return int.from_bytes(sha256(plain(query).encode("utf-8", "surrogatepass")).digest()[:8]) % one_of == 0


@dataclass(frozen=True)
class Lessons:
    """Queries, each by its `plain` form: how it was last spelled, and the grades of its documents."""

    texts: Mapping[str, str] = field(default_factory=dict)
    grades: Mapping[str, Grades] = field(default_factory=dict)

    @classmethod
    def of(cls, feedback: Iterable[Feedback]) -> Lessons:
        """From feedback, oldest first; queries about which nothing is left to say are left out.

        >>> said = [Feedback("1", "click", "apple", "d2", shown=("d1", "d2"))]
        >>> said += [Feedback("2", "judgment", "Apple", "d3", grade=-1.0)]
        >>> Lessons.of(said).grades
        {'apple': {'d2': 0.5, 'd1': -0.15, 'd3': -1.0}}
        """
        said = list(feedback)
        grades = _clicked([one for one in said if one.kind == "click"])
        for one in said:
            if one.kind == "judgment":
                grades.setdefault(plain(one.query), {})[one.document] = float(one.grade)
        kept = {query: {d: grade for d, grade in judged.items() if grade} for query, judged in grades.items()}
        texts = {plain(one.query): one.query for one in said}
        return cls({q: texts[q] for q, judged in kept.items() if judged}, {q: g for q, g in kept.items() if g})

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def some(self, queries: Iterable[str]) -> Lessons:
        """Those of some queries."""
        wanted = [query for query in queries if query in self.texts]
        return Lessons({q: self.texts[q] for q in wanted}, {q: self.grades[q] for q in wanted})

    def parted(self, one_of: int = ONE_OF) -> tuple[Lessons, Lessons]:
        """What may be learned from, and what is held out."""
        held = {query for query in self if is_held_out(query, one_of)}
        return self.some(query for query in self if query not in held), self.some(
            query for query in self if query in held
        )

    def among(self, known: Container[str]) -> Lessons:
        """Those about documents that are known."""
        kept = {q: {d: g for d, g in judged.items() if d in known} for q, judged in self.grades.items()}
        return Lessons({q: self.texts[q] for q, g in kept.items() if g}, {q: g for q, g in kept.items() if g})


class _Visit(NamedTuple):
    """A list of results that was shown for a query, and what was taken from it, one after another."""

    query: str
    shown: tuple[str, ...]
    taken: list[str]


def visits(clicks: Iterable[Feedback]) -> list[_Visit]:
    """Clicks gathered by the list they were made on; a document that is taken again begins another visit."""
    made: list[_Visit] = []
    latest: dict[tuple[str, tuple[str, ...]], tuple[_Visit, Feedback]] = {}
    for one in clicks:
        shown = tuple(dict.fromkeys(one.shown))
        if one.document not in shown:  # where it stood is not known: nothing is said about any other
            shown = (one.document,)
        key = (plain(one.query), shown)
        visit, before = latest.get(key, (None, one))
        if visit is None or one.document in visit.taken or _apart(before, one):
            visit = _Visit(*key, [])
            made.append(visit)
        visit.taken.append(one.document)
        latest[key] = (visit, one)
    return made


def _apart(before: Feedback, after: Feedback) -> bool:
    return before.received is not None and after.received is not None and after.received - before.received > SITTING


def _clicked(clicks: Sequence[Feedback]) -> dict[str, dict[str, float]]:
    """Grades by clicks: in (0, 1) for what was taken, in (-SKIPPED, 0) for what was only skipped.

    What happened once counts half of what happens always: n times, n / (n + 1).
    """
    made = visits(clicks)
    if not made:
        return {}
    rows = [(n, v.query, d, p, d in v.taken) for n, v in enumerate(made) for p, d in enumerate(v.shown, start=1)]
    log = ClickLog.of(*zip(*rows, strict=True))
    taken = Counter((visit.query, document) for visit in made for document in visit.taken)
    seen = Counter((visit.query, document) for visit in made for document in visit.shown)
    grades: dict[str, dict[str, float]] = {}
    for query, shares in log.grades(BY_RANK).items():
        for document, share in shares.items():
            n = taken[query, document]
            grades.setdefault(query, {})[document] = min(share, 1.0) * n / (n + 1)
    above, skipped = log.skip_above(), Counter[tuple[str, str]]()
    for query, document, times in zip(above.query.tolist(), above.worse.tolist(), above.weight.tolist(), strict=True):
        skipped[query, document] += times
    for (query, document), times in skipped.items():
        share = min(times / seen[query, document], 1.0)
        grades[query].setdefault(document, -SKIPPED * share * times / (times + 1))
    return grades


def agreement(grades: Grades, ranked: Sequence[str]) -> float:
    """How far a ranking does what it was told, from 0 (bad documents first, good ones nowhere) to 1.

    Σ grade / log2(1 + rank), on the scale from the worst to the best that it could be; without grades below 0, nDCG.
    Grades below 0 count among the first `LOOKED_AT`.

    >>> agreement({"a": 1.0}, ["a", "b"]), agreement({"a": -1.0}, ["a", "b"]), agreement({"a": -1.0}, ["b", "c"])
    (1.0, 0.0, 1.0)
    """
    gained = _gained(_counted(grades.get(document, 0.0), rank) for rank, document in enumerate(ranked, start=1))
    best = _gained(sorted((grade for grade in grades.values() if grade > 0), reverse=True))
    bad = sorted(grade for grade in grades.values() if grade < 0)
    worst = _gained(bad[:LOOKED_AT])
    return (gained - worst) / (best - worst) if best > worst else 1.0


def _counted(grade: float, rank: int) -> float:
    return grade if grade > 0 or rank <= LOOKED_AT else 0.0


def _gained(grades: Iterable[float]) -> float:
    return float(dcg(list(grades))[0])
