"""Measures of rankings: their names, their definitions and one tie rule.

*The tie rule.* Scores are rounded to float32 and sorted in descending order. Documents of equal score are sorted by id
in descending string order, as in trec_eval. So no measure depends on the order in which documents arrive.

*The items of a query* are its judged documents and the documents retrieved for it. An unjudged document has grade 0. A
judged document that was not retrieved ranks below every retrieved one and gains nothing.

*The queries* are those with judgments. A query that the run does not answer has the worst value (trec_eval -c). A query
with no relevant document has the value 0. If a measure is undefined for a query (`DominationError` and `PairError`, all
items of one grade), the query is left out of that measure.

Names are those of ir-measures, and values are those of trec_eval: `nDCG nDCG@k AP AP@k P@k R@k RR RR@k Success@k`, with
a least relevant grade where needed: `P(rel=2)@10`. `NDCG MAP Precision Recall MRR` are accepted too, and printed under
the names above: `MAP` as `AP`, `MRR@10` as `RR@10`, in tables and as the keys of JSON. Besides:

- `nDCG-letor4@k`, `nDCG-letor4`, `AP-letor4`: as the evaluation script of LETOR 4.0 defines them. Gains 2^grade − 1,
  discount 1 at rank 1 and 1/log2(rank) from rank 2. A query with fewer than k items, or none relevant, counts 0 at k.
  Without a cutoff: the mean over every cutoff from 1 to the number of items (the script's "MeanNDCG"). Its AP and P@k
  are those of trec_eval. (The script breaks ties by position in the file; SparseRank by the tie rule.)
- `DominationError`: of the items that should beat some other item of the query, the share with an item of a lower grade
  strictly above them (Stevens et al., 2010, section 1.2). `PairError`: of the pairs (better, worse), the share with
  s(better) < s(worse). A tie is no error in either, so equal scores for all items have an error of 0: read both beside
  AP. An item that was not retrieved counts as wrong. Shares are computed in each query, then averaged.
- `RMSE`: of scores against grades, over all judged rows of all queries together.

ir-measures computes every other name that it knows (`ERR@20`, `Rprec`, …), on the order of the tie rule.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

import numpy as np
from numpy.typing import ArrayLike

from ..deprecated import renamed_names, warn
from ..errors import ConfigError, DataError
from .definitions import DEFINITIONS
from .items import Floats, Items, Nested, ranking_order

__all__ = ["Measure", "Measures", "PerQuery", "compute", "evaluate_ranking", "parse", "parse_all", "ranking_order"]

Measures: TypeAlias = Union[str, "Measure", Iterable[Union[str, "Measure"]]]
"""One string of names separated by blanks or commas, or a sequence."""

ALIASES = {"NDCG": "nDCG", "MAP": "AP", "Precision": "P", "Recall": "R", "MRR": "RR"}


@dataclass(frozen=True)
class Measure:
    """One measure, as `parse` returns it; it prints as its name.

    Attributes
    ----------
    name : str
        Name without cutoff and parameters; for a measure of ir-measures, its whole spelling.
    cutoff : int or None
        The last rank that counts.
    rel : int
        The least relevant grade.

    Examples
    --------
    >>> str(Measure("P", cutoff=10, rel=2))
    'P(rel=2)@10'
    """

    name: str
    cutoff: int | None = None
    rel: int = 1

    def __post_init__(self) -> None:
        definition = DEFINITIONS.get(self.name)
        if definition is None:
            return
        if self.cutoff is None and definition.cutoff == "required":
            raise ConfigError(f"measure {self.name} needs a cutoff, such as {self.name}@10")
        if self.cutoff is not None and definition.cutoff == "none":
            raise ConfigError(f"measure {self.name} takes no cutoff; got {self}")
        if self.cutoff is not None and self.cutoff < 1:
            raise ConfigError(f"measure {self}: the cutoff must be a whole number above 0")
        if self.rel < 1:
            raise ConfigError(f"measure {self}: 'rel', the least relevant grade, must be a whole number above 0")

    def __str__(self) -> str:
        rel = f"(rel={self.rel})" if self.rel != 1 else ""
        return self.name + rel + (f"@{self.cutoff}" if self.cutoff is not None else "")

    @property
    def lower_is_better(self) -> bool:
        """Whether this measure is an error."""
        return self.name in DEFINITIONS and DEFINITIONS[self.name].lower_is_better

    @property
    def power(self) -> int:
        """2 for RMSE, whose mean over queries is a mean of squares, weighted by rows; else 1."""
        return 2 if self.name == "RMSE" else 1


def parse(name: str | Measure) -> Measure:
    """Return the measure of this name.

    Parameters
    ----------
    name : str or Measure
        A name such as ``nDCG@10``. An unknown name raises ConfigError with similar names.

    Examples
    --------
    >>> parse("nDCG@10")
    Measure(name='nDCG', cutoff=10, rel=1)
    >>> str(parse("MAP(rel=2)"))
    'AP(rel=2)'
    """
    if isinstance(name, Measure):
        return name
    parts = re.fullmatch(r"([^\W\d][\w-]*)(?:\((.*)\))?(?:@(.*))?", str(name).strip())
    if parts is None:
        raise ConfigError(f"a measure is a name such as 'nDCG@10'; got {name!r}")
    base, arguments, cutoff = ALIASES.get(parts[1], parts[1]), parts[2], parts[3]
    definition = DEFINITIONS.get(base)
    rel = re.fullmatch(r"\s*rel\s*=\s*(-?\d+)\s*", arguments or "rel=1")
    if definition is None or rel is None or (arguments and not definition.rel):
        if definition is not None and not definition.in_ir_measures:
            raise ConfigError(f"measure {name!r}: {base} takes no parameters")
        return _parse_by_ir_measures(str(name).strip())
    if cutoff is not None and not re.fullmatch(r"-?[0-9]{1,18}", cutoff):
        raise ConfigError(f"measure {name!r}: the cutoff must be a whole number above 0; got {cutoff!r}")
    return Measure(base, None if cutoff is None else int(cutoff), int(rel[1]))


def parse_all(names: Measures) -> tuple[Measure, ...]:
    """Return several measures, each once, in the given order.

    Parameters
    ----------
    names : str, Measure or sequence
        Names separated by blanks or commas, or a sequence of names.

    Examples
    --------
    >>> [str(measure) for measure in parse_all("nDCG@10 AP(rel=2), R@100 AP(rel=2)")]
    ['nDCG@10', 'AP(rel=2)', 'R@100']
    """
    if isinstance(names, str):
        # A blank or a comma in brackets belongs to a measure's parameters.
        names = re.findall(r"(?:[^\s,(]|\([^)]*\)?)+", names)
    measures = [names] if isinstance(names, Measure) else [parse(name) for name in names]
    if not measures:
        raise ConfigError("at least one measure is needed, such as 'nDCG@10'")
    return tuple(dict.fromkeys(measures))


def _parse_by_ir_measures(name: str) -> Measure:
    import ir_measures

    base, registry = re.split(r"[@(]", name)[0], ir_measures.measures.registry
    if base not in registry:
        folded = {known.casefold(): known for known in [*registry, *ALIASES, *DEFINITIONS]}
        matches = difflib.get_close_matches(base.casefold(), folded, n=3, cutoff=0.7)
        near = [folded[match] for match in (matches[:1] if base.casefold() in folded else matches)]
        hint = f"; did you mean {' or '.join(near)}?" if near else "."
        known = ", ".join(DEFINITIONS)
        raise ConfigError(f"unknown measure {name!r}{hint} Known: {known}, and the names of ir-measures")
    try:
        measure: Any = ir_measures.parse_measure(name)
        measure.validate_params()
    except (ValueError, AssertionError, AttributeError, TypeError) as error:
        reason = re.sub(r"=<.*>", " (it must be given)", str(error))
        raise ConfigError(f"measure {name!r}: ir-measures does not take it: {reason}") from None
    if not isinstance(measure.aggregator(), ir_measures.MeanAgg):
        raise ConfigError(f"measure {name!r} is a count, not a mean over queries")
    return Measure(str(measure))


@dataclass(frozen=True)
class PerQuery:
    """One measure's value for every query that has one; `weights` are the judged rows for RMSE, else ones."""

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


def evaluate_ranking(measure: str | Measure, ranking: Sequence[float], missed: Sequence[float] = ()) -> float:
    """Compute a measure of one query from the grades of its documents.

    Parameters
    ----------
    measure : str or Measure
        What to compute.
    ranking : sequence of float
        Grades of the retrieved documents, best ranked first.
    missed : sequence of float, default=()
        Grades of the documents that were not retrieved.

    Examples
    --------
    >>> evaluate_ranking("AP", [1, 0, 1], missed=[1])
    0.5555555555555555
    """
    measure = parse(measure)
    if measure.name == "RMSE":
        raise ConfigError("RMSE needs scores; a ranking alone has none")
    return compute(Items.from_ranking(ranking, missed), measure)[0].mean


def compute(items: Items, measures: Measures) -> tuple[PerQuery, ...]:
    """Every measure on every query; a measure that no query defines raises DataError."""
    parsed = parse_all(measures)
    foreign = [measure for measure in parsed if measure.name not in DEFINITIONS]
    values: dict[Measure, Floats] = {}
    if foreign:
        from .ir_measures import compute_by_ir_measures

        values = compute_by_ir_measures(items, foreign)
    return tuple(_per_query(items, measure, values.get(measure)) for measure in parsed)


def _per_query(items: Items, measure: Measure, values: Floats | None) -> PerQuery:
    if values is None:
        values = DEFINITIONS[measure.name].formula(items, measure.cutoff, measure.rel)
    defined = ~np.isnan(values)
    if not defined.any():
        raise DataError(f"{measure} is undefined for every query: none has documents of two different grades")
    weights = items.sum(items.is_judged) if measure.name == "RMSE" else np.ones(len(values))
    queries = tuple(query for query, keep in zip(items.queries, defined, strict=True) if keep)
    return PerQuery(measure, queries, values[defined], weights[defined])


def by_measure(columns: Iterable[PerQuery]) -> dict[str, dict[str, float]]:
    """{measure: {query id: value}}."""
    return {str(column.measure): column.as_dict() for column in columns}


def per_query(run: Nested, qrels: Nested, measures: Measures) -> dict[str, dict[str, float]]:
    """Deprecated: use `evaluate_run(run, qrels, measures).per_query`."""
    warn("sparserank.evaluation.measures.per_query", "evaluate_run(run, qrels, measures).per_query")
    return by_measure(compute(Items.from_run(run, qrels), measures))


def per_group(
    scores: ArrayLike, grades: ArrayLike, qid: ArrayLike, measures: Measures, *, ids: Sequence[str] | None = None
) -> dict[str, dict[str, float]]:
    """Deprecated: use `evaluate_rows(scores, grades, qid, measures).per_query`."""
    warn("sparserank.evaluation.measures.per_group", "evaluate_rows(scores, grades, qid, measures).per_query")
    return by_measure(compute(Items.from_rows(scores, grades, qid, ids=ids), measures))


__getattr__ = renamed_names(
    __name__, {"measured": "compute", "of_ranking": "evaluate_ranking", "ranked": "ranking_order"}
)
