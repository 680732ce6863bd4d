"""A run against judgments: each measure's value, how sure it is, and whether another run is better."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.records import Qrels, Run
from ..errors import DataError
from ..validation import count
from .intervals import Estimate, estimate_difference, estimates, randomisation_p
from .measures import Items, Measure, Measures, PerQuery, measured

DEFAULT_MEASURES = "nDCG@10 AP R@100"


@dataclass(frozen=True)
class Evaluation:
    """One system's values; `queries` are the judged ones, `columns` hold each measure's value for each of them.

    >>> result = evaluate_run({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, "RR")
    >>> result["RR"].value, result.per_query
    (0.5, {'RR': {'q': 0.5}})
    """

    queries: tuple[str, ...]
    columns: tuple[PerQuery, ...]
    seed: int = 0

    @cached_property
    def estimates(self) -> Mapping[str, Estimate]:
        """Each measure's value and 95 % interval, by its name."""
        return dict(zip(map(str, self.measures), estimates(self.columns, seed=self.seed), strict=True))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """What was measured, in order."""
        return tuple(column.measure for column in self.columns)

    @property
    def per_query(self) -> dict[str, dict[str, float]]:
        """{measure: {query id: value}}; a query for which a measure is undefined is not there."""
        return {str(column.measure): column.as_dict() for column in self.columns}

    def __getitem__(self, measure: str | Measure) -> Estimate:
        if str(measure) not in self.estimates:
            raise DataError(f"{measure} was not measured; there are: {', '.join(self.estimates)}")
        return self.estimates[str(measure)]

    def mean(self, *, without: Container[str] = ()) -> float | None:
        """The mean of the first measure over the queries that are not in `without`; None if there is none."""
        values = [value for query, value in self.columns[0].as_dict().items() if query not in without]
        return sum(values) / len(values) if values else None

    def to_dict(self) -> dict[str, dict[str, float]]:
        """{"nDCG@10": {"value": …, "low": …, "high": …}, …}."""
        return {name: result.to_dict() for name, result in self.estimates.items()}


@dataclass(frozen=True)
class Comparison:
    """System b against baseline a on one measure, over the queries that have a value in both.

    `difference` is b less a; `wins` are queries where b is better, which for an error means lower. `p` is the two-sided
    paired randomisation test's (for RMSE, of the squared errors), not corrected for the number of comparisons made.
    """

    measure: Measure
    baseline: float
    value: float
    difference: Estimate
    p: float
    wins: int
    losses: int
    ties: int
    per_query: Mapping[str, float]

    @property
    def better(self) -> bool | None:
        """Whether b is better than a, or None where chance would do as well (p ≥ 0.05)."""
        if self.p >= 0.05:
            return None
        return (self.difference.value > 0) != self.measure.lower_is_better

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "baseline": self.baseline,
            "value": self.value,
            "difference": self.difference.to_dict(),
            "p": self.p,
            "wins": self.wins,
            "losses": self.losses,
            "ties": self.ties,
        }


def evaluate_run(run: Run, qrels: Qrels, measures: Measures = DEFAULT_MEASURES, *, seed: int = 0) -> Evaluation:
    """Measure a run, {query: {document: score}}, against judgments, {query: {document: grade}}."""
    return _evaluation(Items.of_run(run, qrels), measures, seed)


def evaluate_rows(
    scores: ArrayLike,
    grades: ArrayLike,
    qid: ArrayLike,
    measures: Measures = DEFAULT_MEASURES,
    *,
    ids: Sequence[str] | None = None,
    seed: int = 0,
) -> Evaluation:
    """Measure the scores of LETOR-like rows: row i has scores[i] and grades[i] for query qid[i].

    >>> evaluate_rows([0.1, 0.9], [1, 0], [7, 7], "AP").to_dict()
    {'AP': {'value': 0.5, 'low': 0.5, 'high': 0.5}}
    """
    return _evaluation(Items.of_rows(scores, grades, qid, ids=ids), measures, seed)


def compare(a: Evaluation, b: Evaluation, *, seed: int = 0) -> dict[str, Comparison]:
    """Compare b with the baseline a on every measure that both have; both must have the same queries."""
    count("seed", seed)
    if set(a.queries) != set(b.queries):
        odd = sorted(set(a.queries) ^ set(b.queries))[0]
        raise DataError(f"two systems are compared on the same queries; {odd!r} was judged for one of them only")
    theirs = {column.measure: column for column in b.columns}
    both = [(column, theirs[column.measure]) for column in a.columns if column.measure in theirs]
    if not both:
        raise DataError("the two evaluations have no measure in common")
    return {str(ours.measure): _comparison(*_aligned(ours, other), seed) for ours, other in both}


def _evaluation(items: Items, measures: Measures, seed: int) -> Evaluation:
    return Evaluation(items.queries, measured(items, measures), count("seed", seed))


def _aligned(a: PerQuery, b: PerQuery) -> tuple[PerQuery, PerQuery]:
    """Both on the queries that both have, in a's order."""
    place = {query: i for i, query in enumerate(b.queries)}
    shared = [(i, place[query]) for i, query in enumerate(a.queries) if query in place]
    if not shared:
        raise DataError(f"no query has a value of {a.measure} in both evaluations")
    left, right = np.array(shared).T
    return _picked(a, left), _picked(b, right)


def _picked(column: PerQuery, at: NDArray[np.intp]) -> PerQuery:
    queries = tuple(column.queries[i] for i in at)
    return replace(column, queries=queries, values=column.values[at], weights=column.weights[at])


def _comparison(a: PerQuery, b: PerQuery, seed: int) -> Comparison:
    difference = b.values - a.values
    gain = -difference if a.measure.lower_is_better else difference
    power = a.measure.power
    return Comparison(
        measure=a.measure,
        baseline=a.mean,
        value=b.mean,
        difference=estimate_difference(a, b, seed=seed),
        p=randomisation_p(b.weights * b.values**power - a.weights * a.values**power, seed=seed),
        wins=int(np.sum(gain > 0)),
        losses=int(np.sum(gain < 0)),
        ties=int(np.sum(gain == 0)),
        per_query=dict(zip(a.queries, difference.tolist(), strict=True)),
    )
