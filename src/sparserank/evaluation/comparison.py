"""Two systems on the same queries: paired tests, intervals of the difference, and the queries that got worse.

`sparserank evaluate MODEL --against OTHER` prints these results. The service serves a new model only if `not_worse`
holds on its held-out judgments.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.records import Qrels, Run
from ..deprecated import renamed_parameters
from ..errors import DataError
from ..validation import count
from .measures import Measure, Measures, PerQuery
from .runs import Evaluation, evaluate_run
from .significance import Estimate, estimate_difference, sign_flip_p_value

SIGNIFICANCE_LEVEL = 0.05
TOLERANCE = 1e-9
"""Differences of two means up to this are rounding errors."""
SHOWN_DOCUMENTS = 10
"""Documents of each ranking that are shown for a query."""


@dataclass(frozen=True)
class Comparison:
    """A system compared with a baseline on one measure, over the queries that have a value in both.

    Attributes
    ----------
    measure : Measure
        The measure.
    baseline, value : float
        The values of the baseline and of the system.
    difference : Estimate
        The system minus the baseline.
    p : float
        The two-sided p-value of a paired sign-flip test (for RMSE, of the squared errors), not corrected for the number
        of comparisons.
    wins, losses, ties : int
        Queries on which the system is better, worse and equal; for an error, lower is better.
    per_query : mapping of str to float
        The difference on each query.
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
        """Whether the system is better than the baseline; None if the difference is not significant (p ≥ 0.05)."""
        if self.p >= SIGNIFICANCE_LEVEL:
            return None
        return (self.difference.value > 0) != self.measure.lower_is_better

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        names = ("baseline", "value", "difference", "p", "wins", "losses", "ties")
        return {name: getattr(self, name) for name in names} | {"difference": self.difference.to_dict()}


@renamed_parameters({"seed": "random_state"})
def compare(a: Evaluation, b: Evaluation, *, random_state: int = 0) -> dict[str, Comparison]:
    """Compare b with the baseline a on every measure that both have.

    Parameters
    ----------
    a, b : Evaluation
        The baseline and the system, on the same queries.
    random_state : int, default=0
        Seed of intervals and tests.

    Examples
    --------
    >>> qrels = {"q": {"a": 1}}
    >>> old, new = (evaluate_run({"q": {"a": s, "b": 1.0}}, qrels, "RR") for s in (0.5, 2.0))
    >>> compare(old, new)["RR"].difference.value
    0.5
    """
    count("random_state", random_state)
    if set(a.queries) != set(b.queries):
        odd = sorted(set(a.queries) ^ set(b.queries))[0]
        raise DataError(f"two systems are compared on the same queries; {odd!r} was judged for one of them only")
    by_measure = {column.measure: column for column in b.columns}
    both = [(column, by_measure[column.measure]) for column in a.columns if column.measure in by_measure]
    if not both:
        raise DataError("the two evaluations have no measure in common")
    return {str(mine.measure): _comparison(*_align(mine, other), random_state) for mine, other in both}


def _align(a: PerQuery, b: PerQuery) -> tuple[PerQuery, PerQuery]:
    """Both on the queries that both have, in a's order."""
    position = {query: i for i, query in enumerate(b.queries)}
    shared = [(i, position[query]) for i, query in enumerate(a.queries) if query in position]
    if not shared:
        raise DataError(f"no query has a value of {a.measure} in both evaluations")

    def select(column: PerQuery, at: NDArray[np.intp]) -> PerQuery:
        queries = tuple(column.queries[i] for i in at)
        return replace(column, queries=queries, values=column.values[at], weights=column.weights[at])

    left, right = np.array(shared).T
    return select(a, left), select(b, right)


def _comparison(a: PerQuery, b: PerQuery, random_state: int) -> Comparison:
    difference = b.values - a.values
    gain = -difference if a.measure.lower_is_better else difference
    power = a.measure.power
    terms = b.weights * b.values**power - a.weights * a.values**power
    return Comparison(
        measure=a.measure,
        baseline=a.mean,
        value=b.mean,
        difference=estimate_difference(a, b, random_state=random_state),
        p=sign_flip_p_value(terms, random_state=random_state),
        wins=int(np.sum(gain > 0)),
        losses=int(np.sum(gain < 0)),
        ties=int(np.sum(gain == 0)),
        per_query=dict(zip(a.queries, difference.tolist(), strict=True)),
    )


def not_worse(before: float, after: float) -> bool:
    """Whether a mean, of which more is better, did not fall.

    Parameters
    ----------
    before, after : float
        The two means.

    Examples
    --------
    >>> not_worse(0.5, 0.5 - 1e-12), not_worse(0.5, 0.4)
    (True, False)
    """
    return after >= before - TOLERANCE


@dataclass(frozen=True)
class WorseQuery:
    """A query on which a system is worse than the baseline.

    Attributes
    ----------
    query : str
        Its id.
    values, baseline_values : dict of str to float
        Each measure's value for this query.
    ranking, baseline_ranking : tuple of (str, float)
        The first documents of both rankings, with their grades; a document without judgment has grade 0.
    """

    query: str
    values: dict[str, float]
    baseline_values: dict[str, float]
    ranking: tuple[tuple[str, float], ...]
    baseline_ranking: tuple[tuple[str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        names = ("ranking", "baseline_ranking")
        return vars(self) | {name: [{"id": d, "grade": grade} for d, grade in getattr(self, name)] for name in names}


@dataclass(frozen=True)
class PairedRuns:
    """A system and its baseline on the same judged queries; `compare_runs` returns it.

    Attributes
    ----------
    baseline, system : Evaluation
        The values of both.
    baseline_run, run : {query id: {document id: score}}
        The rankings of both.
    qrels : {query id: {document id: grade}}
        The judgments.
    """

    baseline: Evaluation
    system: Evaluation
    baseline_run: Run
    run: Run
    qrels: Qrels

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """The system compared with the baseline on every measure."""
        return compare(self.baseline, self.system, random_state=self.system.random_state)

    def not_worse(self, without: Container[str] = ()) -> bool:
        """Whether the mean of the first measure did not get worse.

        Parameters
        ----------
        without : container of str, default=()
            Queries that are left out.
        """
        before, after = (one.mean(without=without) for one in (self.baseline, self.system))
        if before is None or after is None:
            return True
        return not_worse(after, before) if self.system.measures[0].lower_is_better else not_worse(before, after)

    def worse(self) -> list[WorseQuery]:
        """The queries that got worse on the first measure, the largest loss first."""
        measure = self.system.measures[0]
        sign = 1.0 if measure.lower_is_better else -1.0
        before, after = self.baseline.per_query, self.system.per_query
        old, new = before[str(measure)], after[str(measure)]
        loss = {query: sign * (new[query] - old[query]) for query in old.keys() & new.keys()}
        queries = sorted((query for query in loss if loss[query] > 0.0), key=lambda query: (-loss[query], query))
        return [
            WorseQuery(
                query,
                {name: values[query] for name, values in after.items() if query in values},
                {name: values[query] for name, values in before.items() if query in values},
                self._top(self.run, query),
                self._top(self.baseline_run, query),
            )
            for query in queries
        ]

    def _top(self, run: Run, query: str) -> tuple[tuple[str, float], ...]:
        documents = list(run.get(query, {}))[:SHOWN_DOCUMENTS]
        return tuple((document, float(self.qrels[query].get(document, 0.0))) for document in documents)

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Plain values, for JSON: `measures` of the baseline, `comparisons`, `not_worse` and the `worse` queries.

        Parameters
        ----------
        most : int, default=None
            The most queries that got worse; None for all.
        """
        return {
            "measures": self.baseline.to_dict(),
            "comparisons": {name: comparison.to_dict() for name, comparison in self.comparisons.items()},
            "not_worse": self.not_worse(),
            "worse": [one.to_dict() for one in self.worse()[:most]],
        }


@renamed_parameters({"seed": "random_state"})
def compare_runs(baseline: Run, run: Run, qrels: Qrels, measures: Measures, *, random_state: int = 0) -> PairedRuns:
    """Compare a ranking with a baseline on the same judged queries.

    Parameters
    ----------
    baseline, run : {query id: {document id: score}}
        The rankings, best first.
    qrels, measures, random_state : mapping, str or sequence, and int
        As in `evaluate_run`; the first measure decides which queries got worse.

    Examples
    --------
    >>> pair = compare_runs({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 2.0, "a": 1.0}}, {"q": {"a": 1}}, "RR")
    >>> pair.not_worse(), [(one.query, one.baseline_values, one.values) for one in pair.worse()]
    (False, [('q', {'RR': 1.0}, {'RR': 0.5})])
    """
    before, after = (evaluate_run(one, qrels, measures, random_state=random_state) for one in (baseline, run))
    return PairedRuns(before, after, baseline, run, qrels)
