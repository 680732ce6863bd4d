"""The search for a better model: candidates apply a part of a learned change, and the best one that passes is taken.

A candidate must agree better with the feedback it learns from, bury no good document, and pass the gate. Among those
that do, the search takes the one with the highest agreement, then the best on held-out judgments, then the smallest
change. If none passes, the queries are halved and each half is tried alone, so that one bad query blocks no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from ...data.records import Documents
from ...optim.pruning import PairBudget
from ...text_ranker import TextRanker
from ...text_ranker.incremental import PairChange
from ...text_ranker.model import TextModel
from ...text_ranker.pair_learner import PairLearner
from ...text_ranker.training_data import TrainingData
from .gate import TOLERANCE, Gate, GateScores, agreements, buries_good, mean_agreement, rankings
from .grades import GradedQueries

STRENGTHS = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
"""Parts of a change that are tried."""
MAX_PAIRS_PER_QUERY = 2000
"""Pairs that one query may change."""
QUERIES_PER_GROUP = 50
"""Queries that are learned together."""
MAX_GROUPS = 16
"""Groups of queries that one round tries."""
TRAINING_DOCUMENTS = 3000
"""Approximate number of documents to learn from: the top documents of every query."""
MIN_DOCUMENTS_PER_QUERY, MAX_DOCUMENTS_PER_QUERY = 20, 200


@dataclass(frozen=True)
class Candidate:
    """A ranker, its scores, and the part of the change that it applies."""

    ranker: TextRanker
    scores: GateScores
    strength: float = 0.0

    @property
    def sort_key(self) -> tuple[float, float, float]:
        """The best candidate has the largest key."""
        return round(self.scores.training, 9), round(self.scores.judgments or 0.0, 9), -self.strength


@dataclass
class CandidateSearch:
    """The search of one round; `best` is first the served ranker, then each candidate that passes.

    `nearest` is the rejected candidate with the highest agreement.
    """

    best: Candidate
    training: GradedQueries
    gate: Gate
    max_pairs: int
    learned: list[str] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    nearest: Candidate | None = None

    def run(self) -> None:
        """Try to learn every group of queries that the model does not rank perfectly."""
        current = agreements(self.best.ranker, self.training)
        imperfect = [query for query in self.training if current[query] < 1.0 - TOLERANCE]
        step, max_groups = QUERIES_PER_GROUP, MAX_GROUPS
        groups = [imperfect[i : i + step] for i in range(0, len(imperfect), step)]
        if imperfect and self.best.ranker.model_.W is None:  # the first pairs are learned from all queries at once
            groups, max_groups = [list(self.training)], 1
        for _ in range(max_groups):
            if not groups:
                break
            group = groups.pop(0)
            candidate = self._best_candidate(self.training.select(group))
            if candidate is not None:
                self.best = candidate
                self.learned += group
            elif len(group) > 1:
                groups += [group[: len(group) // 2], group[len(group) // 2 :]]
            else:
                self.rejected += group
        self.rejected += [query for group in groups for query in group]

    def _best_candidate(self, group: GradedQueries) -> Candidate | None:
        before = rankings(self.best.ranker, group)
        checked = (self._check(candidate, group, before) for candidate in self._candidates(group))
        passed = [candidate for candidate in checked if candidate is not None]
        return max(passed, key=lambda candidate: candidate.sort_key, default=None)

    def _check(
        self, candidate: Candidate, group: GradedQueries, before: Mapping[str, Sequence[str]]
    ) -> Candidate | None:
        """Return the candidate with its scores, or None if it must not be served."""
        ranker, training = candidate.ranker, mean_agreement(candidate.ranker, self.training)
        if training <= self.best.scores.training + TOLERANCE or buries_good(group, before, rankings(ranker, group)):
            return None
        candidate = replace(candidate, scores=self.gate.score(ranker, self.training, training))
        if candidate.scores.passes(self.best.scores):
            return candidate
        if self.nearest is None or training > self.nearest.scores.training:
            self.nearest = candidate
        return None

    def _candidates(self, group: GradedQueries) -> Iterator[Candidate]:
        """Yield candidates, with the scores of the ranker that they come from."""
        ranker = self.best.ranker
        if ranker.model_.W is None:
            yield from self._first_pairs(group)
            return
        budget = PairBudget(max_pairs=self.max_pairs, nonnegative=bool((ranker.model_.W.data >= 0.0).all()))
        data, learner, most = (
            training_data(ranker, group),
            PairLearner(budget, n_jobs=1),
            MAX_PAIRS_PER_QUERY * len(group),
        )
        for neighbours in (True, False):
            change = PairChange.learn(ranker.model_, data, learner, max_changes=most, only_neighbors=neighbours)
            if change.change.nnz:
                for strength in STRENGTHS:
                    yield self._with_model(change.apply(budget, strength), strength)

    def _first_pairs(self, group: GradedQueries) -> Iterator[Candidate]:
        """Fit the first pairs of a model without any."""
        ranker = copy(self.best.ranker)
        ranker.ranker = "text"
        ranker.partial_fit(None, group.texts, group.grades)
        if ranker.model_.W is not None:
            yield Candidate(ranker, self.best.scores, 1.0)

    def _with_model(self, model: TextModel, strength: float) -> Candidate:
        ranker = copy(self.best.ranker)
        ranker.model_ = model
        return Candidate(ranker, self.best.scores, strength)


def training_data(ranker: TextRanker, group: GradedQueries) -> TrainingData:
    """Return the feedback over the graded documents and the top documents of these queries."""
    depth = TRAINING_DOCUMENTS // max(len(group), 1)
    depth = max(MIN_DOCUMENTS_PER_QUERY, min(MAX_DOCUMENTS_PER_QUERY, depth))
    ids = {document for grades in group.grades.values() for document in grades}
    ids |= {hit.id for hits in ranker.search_many(group.texts.values(), depth) for hit in hits}
    index = ranker.index_
    documents = Documents.of({d: {"title": index.title_of(d), "text": index.text_of(d)} for d in sorted(ids)})
    data = TrainingData.validate(documents, group.texts, group.grades, negative_grades=True)
    return replace(data, lexical_rows=ranker.lexical_.documents(documents))
