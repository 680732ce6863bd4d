"""The gate: a candidate must not be worse than the served model on held-out judgments or on held-out feedback.

Neither is ever learned from.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from ...data.records import Qrels
from ...errors import DataError
from ...evaluation import PairedRuns, compare_runs, evaluate_run, not_worse
from ...text_ranker import TextRanker
from ..feedback import normalize_query
from .grades import HELD_OUT_ONE_IN, HELD_OUT_ONE_IN_ALONE, GradedQueries, agreement

FEEDBACK_DEPTH = 100
"""Depth of the rankings that are compared with feedback."""
MEASURE = "nDCG@10"
MIN_HELD_OUT_QUERIES = 10
"""Held-out queries with feedback that the gate needs if there are no held-out judgments."""
TOLERANCE = 1e-9


@dataclass(frozen=True)
class HeldOutJudgments:
    """Judged queries that the gate measures candidates on."""

    name: str
    queries: Mapping[str, str]
    qrels: Qrels
    exclude_self: bool = False

    @classmethod
    def load(cls, data: str | Path, split: str = "dev") -> HeldOutJudgments:
        """Load one split of a BEIR folder or of a named data set."""
        from ...data.open import open_collection

        collection = open_collection(data)
        qrels = collection.split(split)
        queries = {query: collection.queries[query] for query in qrels}
        return cls(f"{collection.name} {split}", queries, qrels, collection.exclude_self)

    def require_documents(self, ranker: TextRanker) -> HeldOutJudgments:
        """Return self; raise DataError if the index has no relevant document of these judgments."""
        if any(d in ranker.index_ for graded in self.qrels.values() for d, grade in graded.items() if grade > 0):
            return self
        raise DataError(f"the served documents include no relevant document of {self.name}")

    def ndcg(self, ranker: TextRanker, excluded: Container[str] = ()) -> tuple[float, float | None]:
        """Return the mean nDCG@10 of all queries, and of those whose normalized form is not excluded.

        If users teach the answers to held-out queries, the gain there must not hide a loss elsewhere.
        """
        evaluated = evaluate_run(self._run(ranker), self.qrels, MEASURE)
        learned_from = {query for query, text in self.queries.items() if normalize_query(text) in excluded}
        return evaluated.mean() or 0.0, evaluated.mean(without=learned_from)

    def compare(self, before: TextRanker, after: TextRanker) -> PairedRuns:
        """Compare two rankers query by query, as `sparserank evaluate --against` does."""
        return compare_runs(self._run(before), self._run(after), self.qrels, MEASURE)

    def _run(self, ranker: TextRanker) -> dict[str, dict[str, float]]:
        return ranker.run(self.queries, 10, self.exclude_self)


@dataclass(frozen=True)
class GateScores:
    """The scores of a model; None if there is nothing to measure.

    `judgments` and `others` are nDCG@10 on held-out judgments, of all queries and of those that are not learned from.
    `feedback` and `training` are the agreement with held-out feedback and with the feedback that is learned from.
    """

    judgments: float | None
    others: float | None
    feedback: float | None
    training: float

    def to_dict(self) -> dict[str, float | None]:
        """Return plain numbers for JSON."""
        held_out = {"judgments": self.judgments, "others": self.others, "feedback": self.feedback}
        return held_out | {"lessons": self.training}

    def passes(self, before: GateScores) -> bool:
        """Return whether no held-out score is worse than before."""
        pairs = (self.judgments, before.judgments), (self.others, before.others), (self.feedback, before.feedback)
        return all(new is None or old is None or not_worse(old, new) for new, old in pairs)


@dataclass(frozen=True)
class Gate:
    """Held-out judgments, if any, and held-out feedback."""

    judgments: HeldOutJudgments | None
    feedback: GradedQueries

    @classmethod
    def split(cls, judgments: HeldOutJudgments | None, recent: GradedQueries) -> tuple[Gate, GradedQueries]:
        """Hold out a share of recent feedback; return the gate and the other feedback."""
        training, held_out = recent.split(held_out_share(judgments))
        return cls(judgments, held_out), training

    @property
    def is_ready(self) -> bool:
        """Whether there is enough held-out data."""
        return self.judgments is not None or len(self.feedback) >= MIN_HELD_OUT_QUERIES

    def score(self, ranker: TextRanker, training: GradedQueries, training_agreement: float) -> GateScores:
        """Score a ranker whose agreement with the training feedback is known."""
        feedback = mean_agreement(ranker, self.feedback) if len(self.feedback) else None
        if self.judgments is None:
            return GateScores(None, None, feedback, training_agreement)
        return GateScores(*self.judgments.ndcg(ranker, training.texts), feedback, training_agreement)

    def to_dict(self) -> dict[str, Any]:
        """Describe the held-out data for JSON."""
        return {
            "judgments": None if self.judgments is None else self.judgments.name,
            "judged_queries": 0 if self.judgments is None else len(self.judgments.queries),
            "feedback_queries": len(self.feedback),
        }


def held_out_share(judgments: HeldOutJudgments | None) -> int:
    """Return n if one query in n is held out."""
    return HELD_OUT_ONE_IN_ALONE if judgments is None else HELD_OUT_ONE_IN


def mean_agreement(ranker: TextRanker, queries: GradedQueries) -> float:
    """Return the mean agreement of a ranker with feedback; 1 without feedback."""
    values = agreements(ranker, queries).values()
    return fmean(values) if values else 1.0


def agreements(ranker: TextRanker, queries: GradedQueries) -> dict[str, float]:
    """Return the agreement of each query."""
    return {q: agreement(queries.grades[q], ranking) for q, ranking in rankings(ranker, queries).items()}


def rankings(ranker: TextRanker, queries: GradedQueries) -> dict[str, list[str]]:
    """Return the top documents of each query."""
    if not len(queries):
        return {}
    results = ranker.search_many(queries.texts.values(), FEEDBACK_DEPTH)
    return {q: [hit.id for hit in hits] for q, hits in zip(queries, results, strict=True)}


def buries_good(
    queries: GradedQueries, before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]
) -> bool:
    """Return whether a good document has more documents above it that are not good than before.

    To push bad documents down may raise the mean and bury a good one.
    """
    return any(
        _others_above(queries.grades[q], after[q], document) > _others_above(queries.grades[q], before[q], document)
        for q in queries
        for document, grade in queries.grades[q].items()
        if grade > 0
    )


def _others_above(grades: Mapping[str, float], ranking: Sequence[str], document: str) -> int:
    above = ranking[: ranking.index(document)] if document in ranking else ranking
    return sum(grades.get(other, 0.0) <= 0.0 for other in above)
