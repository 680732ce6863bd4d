"""Two systems on the same queries: paired tests, intervals of the difference, and the queries that got worse.

`sparserank evaluate MODEL --against OTHER` prints what is found here, and the service serves a new model only if
`not_worse` says so of its held-out judgments.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..data.records import Qrels, Run
from .measures import Measures
from .runs import Comparison, Evaluation, compare, evaluate_run

TOLERANCE = 1e-9
"""Differences of two means that are rounding errors."""
DEPTH = 10
"""Documents of each ranking that are shown for a query."""


def not_worse(before: float, after: float) -> bool:
    """Whether a mean, of which more is better, is at least as large as before."""
    return after >= before - TOLERANCE


@dataclass(frozen=True)
class WorseQuery:
    """A query for which a system is worse than the baseline.

    Attributes
    ----------
    query : str
        Its id.
    values, baseline_values : dict of str to float
        Each measure's value for this query.
    ranking, baseline_ranking : tuple of (str, float)
        The first documents of both, each with its grade; a document without judgment has grade 0.
    """

    query: str
    values: dict[str, float]
    baseline_values: dict[str, float]
    ranking: tuple[tuple[str, float], ...]
    baseline_ranking: tuple[tuple[str, float], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        rankings = {"ranking": self.ranking, "baseline_ranking": self.baseline_ranking}
        listed = {name: [{"id": d, "grade": grade} for d, grade in ranked] for name, ranked in rankings.items()}
        return {"query": self.query, "values": self.values, "baseline_values": self.baseline_values} | listed


@dataclass(frozen=True)
class PairedRuns:
    """A system and its baseline on the same judged queries; made by `compare_runs`.

    Attributes
    ----------
    baseline, system : Evaluation
        The values of both.
    baseline_run, run : Run
        The rankings of both.
    qrels : Qrels
        The judgments.
    """

    baseline: Evaluation
    system: Evaluation
    baseline_run: Run
    run: Run
    qrels: Qrels

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """The system against the baseline on every measure, with interval and paired test."""
        return compare(self.baseline, self.system, seed=self.system.seed)

    def not_worse(self, without: Container[str] = ()) -> bool:
        """Whether the mean of the first measure is not worse, over the queries that are not in `without`."""
        before, after = (one.mean(without=without) for one in (self.baseline, self.system))
        if before is None or after is None:
            return True
        return not_worse(after, before) if self.system.measures[0].lower_is_better else not_worse(before, after)

    def worse(self) -> list[WorseQuery]:
        """The queries that got worse on the first measure, the largest loss first."""
        measure = self.system.measures[0]
        sign = 1.0 if measure.lower_is_better else -1.0
        before, after = (one.per_query for one in (self.baseline, self.system))
        shared = before[str(measure)].keys() & after[str(measure)].keys()
        lost = {query: sign * (after[str(measure)][query] - before[str(measure)][query]) for query in shared}
        queries = sorted((query for query in lost if lost[query] > 0.0), key=lambda query: (-lost[query], query))
        return [self._query(query, before, after) for query in queries]

    def _query(self, query: str, before: dict[str, dict[str, float]], after: dict[str, dict[str, float]]) -> WorseQuery:
        values, base = ({name: of[query] for name, of in one.items() if query in of} for one in (after, before))
        return WorseQuery(query, values, base, self._top(self.run, query), self._top(self.baseline_run, query))

    def _top(self, run: Run, query: str) -> tuple[tuple[str, float], ...]:
        ranked: Sequence[str] = list(run.get(query, {}))[:DEPTH]
        return tuple((document, float(self.qrels[query].get(document, 0.0))) for document in ranked)

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
        """Plain values, for JSON.

        Parameters
        ----------
        most : int, default=None
            The most queries that got worse; None for all.

        Returns
        -------
        dict
            `measures` of the baseline, `comparisons` by measure, `not_worse`, and the `worse` queries.
        """
        return {
            "measures": self.baseline.to_dict(),
            "comparisons": {name: found.to_dict() for name, found in self.comparisons.items()},
            "not_worse": self.not_worse(),
            "worse": [one.to_dict() for one in self.worse()[:most]],
        }


def compare_runs(baseline: Run, run: Run, qrels: Qrels, measures: Measures, *, seed: int = 0) -> PairedRuns:
    """Compare a ranking with a baseline on the same judged queries.

    Parameters
    ----------
    baseline, run : {query id: {document id: score}}
        The rankings, best first.
    qrels : {query id: {document id: grade}}
        The judgments.
    measures : str or sequence
        What to measure; the first measure decides which queries got worse.
    seed : int, default=0
        Seed of intervals and tests.

    Returns
    -------
    PairedRuns
        Values, paired tests, and the queries that got worse.

    Examples
    --------
    >>> found = compare_runs({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 2.0, "a": 1.0}}, {"q": {"a": 1}}, "RR")
    >>> found.not_worse(), [(one.query, one.baseline_values, one.values) for one in found.worse()]
    (False, [('q', {'RR': 1.0}, {'RR': 0.5})])
    """
    before, after = (evaluate_run(one, qrels, measures, seed=seed) for one in (baseline, run))
    return PairedRuns(before, after, baseline, run, qrels)
