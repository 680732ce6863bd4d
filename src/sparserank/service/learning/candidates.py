"""Models that would do better what users said, each a part of what could be learned; the best that passes the checks.

A candidate must be better on what it is learned from, put nothing more above what users called good, and not be worse
on anything that is held out. Of those that are, the one that agrees best with users is taken; where several do, the one
that is best on held-out judgments, then the least change. Where none is, the queries are halved and each half is tried
by itself, so that one bad query holds up no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from ...data.records import Documents
from ...optim.pruning import PairBudget
from ...text_ranker import TextRanker
from ...text_ranker.incremental import PairChange
from ...text_ranker.learning import How, Lesson
from ...text_ranker.model import TextModel
from .gate import SAME, Checks, Figures, agreed, agreements, rankings, sinks
from .grades import Lessons

STRENGTHS = (0.05, 0.08, 0.12, 0.18, 0.25, 0.35, 0.5, 0.7, 1.0)
"""Parts of a change that are tried."""
PAIRS_A_QUERY = 2000
"""The most pairs that one query changes."""
AT_ONCE = 50
"""Queries that are learned together."""
TRIES = 16
"""Groups of queries that are tried in one round."""
DOCUMENTS = 3000
"""About so many documents are learned over: the first of every query."""
FEWEST, MOST = 20, 200
"""The fewest and the most of them for one query."""


@dataclass(frozen=True)
class Candidate:
    """A ranker, its figures, and how it came about."""

    ranker: TextRanker
    figures: Figures
    strength: float = 0.0

    @property
    def rank(self) -> tuple[float, float, float]:
        """The largest is the best."""
        return round(self.figures.lessons, 9), round(self.figures.judgments or 0.0, 9), -self.strength


@dataclass
class Search:
    """One round: goes on from `best`, the ranker that is served, whenever a group of queries could be learned."""

    best: Candidate
    lessons: Lessons
    checks: Checks
    room: int
    learned: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    nearest: Candidate | None = None

    def run(self) -> None:
        """Learn every group of queries that can be; nothing is tried about those that are as users want them."""
        now = agreements(self.best.ranker, self.lessons)
        wanted = [query for query in self.lessons if now[query] < 1.0 - SAME]
        waiting = [wanted[i : i + AT_ONCE] for i in range(0, len(wanted), AT_ONCE)]
        tries = TRIES
        if wanted and self.best.ranker.model_.W is None:  # first pairs come from all queries at once, or not at all
            waiting, tries = [list(self.lessons)], 1
        for _ in range(tries):
            if not waiting:
                break
            part = waiting.pop(0)
            found = self._better(self.lessons.some(part))
            if found is not None:
                self.best = found
                self.learned += part
            elif len(part) > 1:
                waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
            else:
                self.refused += part
        self.refused += [query for part in waiting for query in part]

    def _better(self, part: Lessons) -> Candidate | None:
        ranked = rankings(self.best.ranker, part)
        tried = (self._checked(one, part, ranked) for one in self._candidates(part))
        passed = [one for one in tried if one is not None]
        return max(passed, key=lambda one: one.rank, default=None)

    def _checked(self, one: Candidate, part: Lessons, ranked: Mapping[str, Sequence[str]]) -> Candidate | None:
        """With its figures; None where it may not be served. `ranked` is what is served now for this part."""
        lessons = agreed(one.ranker, self.lessons)
        if lessons <= self.best.figures.lessons + SAME or sinks(part, ranked, rankings(one.ranker, part)):
            return None
        one = replace(one, figures=self.checks.of(one.ranker, self.lessons, lessons))
        if one.figures.held(self.best.figures):
            return one
        if self.nearest is None or lessons > self.nearest.figures.lessons:
            self.nearest = one
        return None

    def _candidates(self, part: Lessons) -> Iterator[Candidate]:
        """Those that are tried; their figures are those of the ranker they come from."""
        ranker = self.best.ranker
        if ranker.model_.W is None:
            yield from self._first_pairs(part)
            return
        budget = PairBudget(max_pairs=self.room, nonnegative=bool((ranker.model_.W.data >= 0.0).all()))
        lesson, how = lesson_of(ranker, part), How(budget, n_jobs=1)
        for neighbours in (True, False):
            change = PairChange.of(ranker.model_, lesson, how, most=PAIRS_A_QUERY * len(part), neighbours=neighbours)
            if change.change.nnz:
                for strength in STRENGTHS:
                    yield self._with(change.taken(budget, strength), strength)

    def _first_pairs(self, part: Lessons) -> Iterator[Candidate]:
        """A model without any pair learns its first from all that was said, or none."""
        other = copy(self.best.ranker)
        other.ranker = "text"
        other.partial_fit(None, part.texts, part.grades)
        if other.model_.W is not None:
            yield Candidate(other, self.best.figures, 1.0)

    def _with(self, model: TextModel, strength: float) -> Candidate:
        other = copy(self.best.ranker)
        other.model_ = model
        return Candidate(other, self.best.figures, strength)


def lesson_of(ranker: TextRanker, part: Lessons) -> Lesson:
    """What was said, over the documents that were judged and those that stand first for these queries."""
    depth = max(FEWEST, min(MOST, DOCUMENTS // max(len(part), 1)))
    ids = {d for grades in part.grades.values() for d in grades}
    ids |= {hit.id for hits in ranker.search_many(part.texts.values(), depth) for hit in hits}
    index = ranker.index_
    documents = Documents.of({d: {"title": index.title_of(d), "text": index.text_of(d)} for d in sorted(ids)})
    weighted = ranker.lexical_.documents(documents)
    return Lesson.of(documents, weighted, part.texts, part.grades, drop_self=False, below=True)
