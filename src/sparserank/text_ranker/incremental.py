"""What more judged queries would change about the pairs of a model: all of it, or a part.

    W + strength · ΔW

ΔW is learned from what the scores still miss of these queries, so a second lesson of the same content adds less, and
many of them no more than is missed now. Nothing is chosen again: penalties and gain stay, and what was learned before
is not looked at, so it need not be kept.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..optim.penalties import Ridge
from ..optim.pruning import Importance, PairBudget, prune
from .learning import How, Lesson, told_edits
from .model import TextModel
from .pair_learner import Tell
from .query_words import QueryWords

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class PairChange:
    """A model, and what is to be added to its W, whose rows are those of `words`. `columns` is what a pair is worth."""

    model: TextModel
    words: QueryWords
    before: csr_array
    change: csr_array
    columns: NDArray[np.float32]
    queries: int

    @classmethod
    def of(
        cls, model: TextModel, lesson: Lesson, how: How, *, most: int | None = None, neighbours: bool = False
    ) -> PairChange:
        """What the lesson would change. most : pairs that change; None, as many as a model may have.

        neighbours : only rows of neighbouring words, which few other queries have.
        """
        assert model.W is not None
        assert model.words is not None
        words = model.words.with_words_of(lesson.texts)
        before = model.W.copy()
        before.resize((len(words.words), before.shape[1]))
        lists = lesson.judged(model.lexical, words).lists
        ridge, evenness = Ridge(model.told.get("a", 1.0), model.told.get("b", 1.0)), model.told.get("evenness", 0.5)
        learner = how.learner(lists.shape, told_edits(model.edits, words, model.gain))
        if most is not None:
            learner = replace(learner, budget=replace(learner.budget, max_pairs=most))
        rows = np.fromiter((" " in word for word in words.words), np.bool_, lists.shape[0]) if neighbours else None
        change = learner.residual(lists, before, evenness, ridge, rows)
        return cls(model, words, before, change, Importance.of(lists, ridge).columns, len(lesson.qrels))

    def taken(self, budget: PairBudget, strength: float = 1.0) -> TextModel:
        """The model with so much of the change; where it has more pairs than it may, the least go."""
        even = Importance(np.ones(self.before.shape[0], np.float32), self.columns)
        W = (self.before + np.float32(strength) * self.change).tocsr()
        told = dict(self.model.told) | {"queries": int(self.model.told.get("queries", 0)) + self.queries}
        return replace(self.model, words=self.words, W=prune(W, even, budget), told=told).edited(self.model.edits)


def more_learned(model: TextModel, lesson: Lesson, how: How, tell: Tell) -> TextModel:
    """The model after more judged queries, within the size it may have."""
    if not lesson.qrels:
        return model
    tell("learning from what is still missed")
    change = PairChange.of(model, lesson, how)
    return change.taken(how.budget.for_shape((int(change.before.shape[0]), int(change.before.shape[1]))))
