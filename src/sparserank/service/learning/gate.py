"""What a model is checked on before it is served: judgments that are held out, and feedback that is.

Neither is ever learned from. A model that is worse on either of them than the one that is served is never served.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...data.records import Collection, Qrels
from ...errors import DataError
from ...evaluation import PairedRuns, compare_runs, evaluate_run, not_worse
from ...text_ranker import TextRanker
from .grades import ONE_OF, ONE_OF_ALONE, Lessons, agreement, plain

DEPTH = 100
"""How far down a ranking is looked at for what users said."""
MEASURE = "nDCG@10"
"""What held-out judgments are measured by."""
ENOUGH = 10
"""Held-out queries of users that are enough to check on where there are no held-out judgments."""
SAME = 1e-9
"""Differences that are none."""


def one_of(judged: bool) -> int:
    """One query of how many is held out, where there are held-out judgments and where there are none."""
    return ONE_OF if judged else ONE_OF_ALONE


@dataclass(frozen=True)
class Judgments:
    """Judged queries that are held out."""

    name: str
    queries: Mapping[str, str]
    qrels: Qrels
    drop_self: bool = False

    @classmethod
    def of(cls, data: str | Path, split: str = "dev") -> Judgments:
        """One split of a BEIR folder, or of a known collection."""
        from ... import data as sets

        found = sets.read_beir(Path(data)) if Path(data).is_dir() else sets.load(str(data))
        if not isinstance(found, Collection):
            raise DataError(f"{data!r} is not a text collection with queries; held-out judgments need one")
        qrels = found.split(split)
        return cls(f"{found.name} {split}", {q: found.queries[q] for q in qrels}, qrels, found.drop_self)

    def among(self, ranker: TextRanker) -> Judgments:
        """Itself, where it can tell anything about this ranker's documents."""
        if any(d in ranker.index_ for judged in self.qrels.values() for d, grade in judged.items() if grade > 0):
            return self
        raise DataError(f"no relevant document of {self.name} is among the documents that are served")

    def ndcg(self, ranker: TextRanker, without: Container[str] = ()) -> tuple[float, float | None]:
        """Mean nDCG@10 of all queries, and of those that are not, in their plain form, among `without` (None: of none).

        Who teaches the answers to held-out queries must not pay with them for what is worse elsewhere.
        """
        found = evaluate_run(self._run(ranker), self.qrels, MEASURE)
        taught = {query for query, text in self.queries.items() if plain(text) in without}
        return found.mean() or 0.0, found.mean(without=taught)

    def paired(self, before: TextRanker, after: TextRanker) -> PairedRuns:
        """A ranker against another one, query by query, with a paired test: what `evaluate --against` prints."""
        return compare_runs(self._run(before), self._run(after), self.qrels, MEASURE)

    def _run(self, ranker: TextRanker) -> dict[str, dict[str, float]]:
        return ranker.run(self.queries, 10, self.drop_self)


@dataclass(frozen=True)
class Figures:
    """What was found about one model. None: there is nothing to check on.

    judgments, others : nDCG@10 of held-out judgments, of all and of those whose queries are not learned from.
    feedback, lessons : agreement with held-out feedback, and with what is learned from.
    """

    judgments: float | None
    others: float | None
    feedback: float | None
    lessons: float

    def to_dict(self) -> dict[str, float | None]:
        """Plain numbers, for JSON."""
        return asdict(self)

    def held(self, before: Figures) -> bool:
        """Whether nothing that is held out is worse than before."""
        sides = (self.judgments, before.judgments), (self.others, before.others), (self.feedback, before.feedback)
        return all(new is None or old is None or not_worse(old, new) for new, old in sides)


@dataclass(frozen=True)
class Checks:
    """Held-out judgments, if any, and held-out feedback."""

    judgments: Judgments | None
    feedback: Lessons

    @classmethod
    def parted(cls, judgments: Judgments | None, recent: Lessons) -> tuple[Checks, Lessons]:
        """What of recent feedback is held out beside the judgments, and the others."""
        lessons, held = recent.parted(one_of(judgments is not None))
        return cls(judgments, held), lessons

    @property
    def enough(self) -> bool:
        """Whether there is enough to check on."""
        return self.judgments is not None or len(self.feedback) >= ENOUGH

    def of(self, ranker: TextRanker, lessons: Lessons, agreement: float) -> Figures:
        """All figures, the agreement with what is learned from being known."""
        said = agreed(ranker, self.feedback) if len(self.feedback) else None
        if self.judgments is None:
            return Figures(None, None, said, agreement)
        judged, others = self.judgments.ndcg(ranker, lessons.texts)
        return Figures(judged, others, said, agreement)

    def to_dict(self) -> dict[str, Any]:
        """What there is to check on."""
        return {
            "judgments": None if self.judgments is None else self.judgments.name,
            "judged_queries": 0 if self.judgments is None else len(self.judgments.queries),
            "feedback_queries": len(self.feedback),
        }


def agreed(ranker: TextRanker, lessons: Lessons) -> float:
    """The mean agreement of a ranker with what was said; 1 where nothing was."""
    found = _mean(list(agreements(ranker, lessons).values()))
    return 1.0 if found is None else found


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def agreements(ranker: TextRanker, lessons: Lessons) -> dict[str, float]:
    """The agreement of each query."""
    return {q: agreement(lessons.grades[q], ranked) for q, ranked in rankings(ranker, lessons).items()}


def rankings(ranker: TextRanker, lessons: Lessons) -> dict[str, list[str]]:
    """The first documents of each query."""
    if not len(lessons):
        return {}
    found = ranker.search_many(lessons.texts.values(), DEPTH)
    return {q: [hit.id for hit in hits] for q, hits in zip(lessons, found, strict=True)}


def sinks(lessons: Lessons, before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> bool:
    """Whether a document that users called good has more of the others above it than before.

    Pushing down what they called bad may lift the mean and bury what they want.
    """
    return any(
        _others_above(lessons.grades[q], after[q], d) > _others_above(lessons.grades[q], before[q], d)
        for q in lessons
        for d, grade in lessons.grades[q].items()
        if grade > 0
    )


def _others_above(grades: Mapping[str, float], ranked: Sequence[str], document: str) -> int:
    above = ranked[: ranked.index(document)] if document in ranked else ranked
    return sum(grades.get(other, 0.0) <= 0.0 for other in above)
