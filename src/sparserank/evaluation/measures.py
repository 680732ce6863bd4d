"""What a ranking is worth: measures as values that print as themselves, and one tie rule under all of them.

*The tie rule.* Scores are rounded to float32 and fall; documents of equal score follow one another by id, in falling
string order, as in trec_eval. So no measure depends on the order in which documents happen to arrive.

*The items of a query* are its judged documents and the documents retrieved for it. An unjudged document has grade 0. A
judged document that was not retrieved stands below every retrieved one, tied with its like, and earns nothing.

*The queries* are those with judgments. One that the run does not answer counts with its worst value (trec_eval -c); one
that nobody judged is ignored. A query with no relevant document has the value 0. Where a measure is undefined for a
query (`DominationError` and `PairError`, all items of one grade) the query is left out of that measure.

Names are those of ir-measures, and their values those of trec_eval: `nDCG nDCG@k AP AP@k P@k R@k RR RR@k Success@k`,
with a least relevant grade where wanted: `P(rel=2)@10`. `NDCG MAP Precision Recall MRR` are taken as well, and printed
under the names above: `MAP` as `AP`, `MRR@10` as `RR@10`, in tables and as the keys of JSON. Beside them:

- `nDCG-letor4@k`, `nDCG-letor4`, `AP-letor4`: as the evaluation script of LETOR 4.0 defines them. Gains 2^grade − 1,
  discount 1 at rank 1 and 1/log2(rank) from rank 2; a query with fewer than k items, or none relevant, counts 0 at k;
  without a cutoff the mean over every cutoff from 1 to the number of items (the script's "MeanNDCG"). Its AP is that
  of trec_eval, named for the record; so is its P@k. (The script breaks ties by place in the file; we by the tie rule.)
- `DominationError`: of the items that should beat some other item of the query, the share with an item of a lower grade
  strictly above them (Stevens et al., 2010, section 1.2). `PairError`: of the pairs (better, worse), the share with
  s(better) < s(worse). A tie is no error in either, so equal scores for all items have an error of 0: read both beside
  AP. An item that was not retrieved counts as wrong. Shares are taken in each query, then averaged.
- `RMSE`: of scores against grades, over all judged rows of all queries together.

Every other name that ir-measures knows (`ERR@20`, `Rprec`, …) is computed by ir-measures, on the order of the tie rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ConfigError, DataError
from .definitions import KINDS
from .items import Floats, Items, Nested, as_single, ranked, tie_ranks
from .names import Measure, Measures, parse, parse_all

__all__ = [
    "Items", "Measure", "Measures", "Nested", "PerQuery", "as_single", "measured", "of_ranking", "parse", "parse_all",
    "per_group", "per_query", "ranked", "tie_ranks",
]  # fmt: skip


@dataclass(frozen=True)
class PerQuery:
    """One measure's value for every query that has one; `weights` are its judged rows for RMSE, else ones."""

    measure: Measure
    queries: tuple[str, ...]
    values: Floats
    weights: Floats

    @property
    def mean(self) -> float:
        """The measure's value over all queries."""
        power = self.measure.power
        return float((self.weights @ self.values**power / self.weights.sum()) ** (1 / power))

    def as_dict(self) -> dict[str, float]:
        """{query id: value}."""
        return dict(zip(self.queries, self.values.tolist(), strict=True))


def per_query(run: Nested, qrels: Nested, measures: Measures) -> dict[str, dict[str, float]]:
    """The value of each measure for each judged query, from {query: {document: score}} and {query: {document: grade}}.

    >>> per_query({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, "RR P@1")
    {'RR': {'q': 0.5}, 'P@1': {'q': 0.0}}
    """
    return {str(column.measure): column.as_dict() for column in measured(Items.of_run(run, qrels), measures)}


def per_group(
    scores: ArrayLike, grades: ArrayLike, qid: ArrayLike, measures: Measures, *, ids: Sequence[str] | None = None
) -> dict[str, dict[str, float]]:
    """The value of each measure for each query of LETOR-like rows: row i has scores[i] and grades[i] for qid[i].

    Rows need not be sorted by query. `ids` break ties; without them the row numbers do, as text.

    >>> per_group([0.1, 0.9, 0.5], [1, 0, 2], [7, 7, 8], "nDCG-letor4@1 AP")
    {'nDCG-letor4@1': {'7': 0.0, '8': 1.0}, 'AP': {'7': 0.5, '8': 1.0}}
    """
    columns = measured(Items.of_rows(scores, grades, qid, ids=ids), measures)
    return {str(column.measure): column.as_dict() for column in columns}


def of_ranking(measure: str | Measure, ranking: Sequence[float], missed: Sequence[float] = ()) -> float:
    """The value for one query from the grades of its documents, best ranked first; `missed` were not retrieved.

    >>> of_ranking("AP", [1, 0, 1], missed=[1])
    0.5555555555555555
    """
    measure = parse(measure)
    if measure.name == "RMSE":
        raise ConfigError("RMSE needs scores; a ranking alone has none")
    return measured(Items.of_ranking(ranking, missed), measure)[0].mean


def measured(items: Items, measures: Measures) -> tuple[PerQuery, ...]:
    """Every measure on every query; a measure that no query defines is a DataError."""
    wanted = parse_all(measures)
    foreign = [measure for measure in wanted if measure.name not in KINDS]
    columns: dict[Measure, Floats] = {}
    if foreign:
        from .ir_measures import by_ir_measures

        columns = by_ir_measures(items, foreign)
    return tuple(_column(items, measure, columns.get(measure)) for measure in wanted)


def _column(items: Items, measure: Measure, values: Floats | None) -> PerQuery:
    if values is None:
        values = KINDS[measure.name].formula(items, measure.cutoff, measure.rel)
    defined = ~np.isnan(values)
    if not defined.any():
        raise DataError(f"{measure} is undefined for every query: none has documents of two different grades")
    weights = items.sum(items.judged) if measure.name == "RMSE" else np.ones(len(values))
    queries = tuple(query for query, keep in zip(items.queries, defined, strict=True) if keep)
    return PerQuery(measure, queries, values[defined], weights[defined])
