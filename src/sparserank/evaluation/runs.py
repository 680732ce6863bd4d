"""Measures of a run against judgments, with confidence intervals."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from numpy.typing import ArrayLike

from ..data.records import Qrels, Run
from ..deprecated import renamed_attribute, renamed_parameters
from ..errors import DataError
from ..validation import count
from .items import Items
from .measures import Measure, Measures, PerQuery, compute
from .significance import Estimate, estimates

DEFAULT_MEASURES = "nDCG@10 AP R@100"


@dataclass(frozen=True)
class Evaluation:
    """The values of one system.

    Attributes
    ----------
    queries : tuple of str
        The judged queries.
    columns : tuple of PerQuery
        The values of each measure, one per query.
    random_state : int
        Seed of the intervals.

    Examples
    --------
    >>> result = evaluate_run({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, "RR")
    >>> result["RR"].value, result.per_query
    (0.5, {'RR': {'q': 0.5}})
    """

    queries: tuple[str, ...]
    columns: tuple[PerQuery, ...]
    random_state: int = 0
    seed = renamed_attribute("seed", "random_state")

    @cached_property
    def estimates(self) -> Mapping[str, Estimate]:
        """Each measure's value and 95 % interval, by its name."""
        return dict(zip(map(str, self.measures), estimates(self.columns, random_state=self.random_state), strict=True))

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures, in order."""
        return tuple(column.measure for column in self.columns)

    @property
    def per_query(self) -> dict[str, dict[str, float]]:
        """{measure: {query id: value}}; a query for which a measure is undefined is left out."""
        return {str(column.measure): column.as_dict() for column in self.columns}

    def __getitem__(self, measure: str | Measure) -> Estimate:
        if str(measure) not in self.estimates:
            raise DataError(f"{measure} was not measured; there are: {', '.join(self.estimates)}")
        return self.estimates[str(measure)]

    def mean(self, *, without: Container[str] = ()) -> float | None:
        """Average the first measure; return None if no query is left.

        Parameters
        ----------
        without : container of str, default=()
            Queries that are left out.
        """
        values = [value for query, value in self.columns[0].as_dict().items() if query not in without]
        return sum(values) / len(values) if values else None

    def to_dict(self) -> dict[str, dict[str, float]]:
        """{"nDCG@10": {"value": …, "low": …, "high": …}, …}."""
        return {name: result.to_dict() for name, result in self.estimates.items()}


@renamed_parameters({"seed": "random_state"})
def evaluate_run(run: Run, qrels: Qrels, measures: Measures = DEFAULT_MEASURES, *, random_state: int = 0) -> Evaluation:
    """Measure a run against judgments.

    Parameters
    ----------
    run, qrels : {query id: {document id: score}} and {query id: {document id: grade}}
        The rankings and the judgments.
    measures : str or sequence, default="nDCG@10 AP R@100"
        What to measure; see `sparserank.evaluation.measures`.
    random_state : int, default=0
        Seed of the intervals.

    Examples
    --------
    >>> evaluate_run({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, "RR P@1").per_query
    {'RR': {'q': 0.5}, 'P@1': {'q': 0.0}}
    """
    return _evaluate(Items.from_run(run, qrels), measures, random_state)


def _evaluate(items: Items, measures: Measures, random_state: int) -> Evaluation:
    return Evaluation(items.queries, compute(items, measures), count("random_state", random_state))


@renamed_parameters({"seed": "random_state"})
def evaluate_rows(
    scores: ArrayLike,
    grades: ArrayLike,
    qid: ArrayLike,
    measures: Measures = DEFAULT_MEASURES,
    *,
    ids: Sequence[str] | None = None,
    random_state: int = 0,
) -> Evaluation:
    """Measure the scores of LETOR rows; the rows need not be sorted by query.

    Parameters
    ----------
    scores, grades, qid : array-like of shape (n_rows,)
        Score, grade and query id of each row.
    ids : sequence of str, default=None
        Document ids, which break ties. None means the row numbers, as text.
    measures, random_state : str or sequence, and int
        As in `evaluate_run`.

    Examples
    --------
    >>> evaluate_rows([0.1, 0.9], [1, 0], [7, 7], "AP").to_dict()
    {'AP': {'value': 0.5, 'low': 0.5, 'high': 0.5}}
    """
    return _evaluate(Items.from_rows(scores, grades, qid, ids=ids), measures, random_state)
