"""Incremental training: learn a change of the pairs of a model from more judged queries.

    W + strength · ΔW

ΔW is learned from the residual, the part of the targets that the scores miss, so repeating the same data changes less
and less. Hyperparameters and the pair weight stay, and earlier training data is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..optim.penalties import Ridge
from ..optim.pruning import Importance, PairBudget, prune
from .model import TextModel
from .pair_learner import PairLearner
from .progress import Callback
from .query_vocabulary import QueryVocabulary
from .training_data import TrainingData

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class PairChange:
    """A model and a change of its W; the rows of both are those of `vocabulary`.

    column_importance : the importance of each document word, by which pairs are pruned.
    """

    model: TextModel
    vocabulary: QueryVocabulary
    before: csr_array
    change: csr_array
    column_importance: NDArray[np.float32]
    queries: int

    @classmethod
    def learn(
        cls, model: TextModel, data: TrainingData, learner: PairLearner, *,
        max_changes: int | None = None, only_neighbors: bool = False,
    ) -> PairChange:  # fmt: skip
        """Learn the change from more training data.

        max_changes : the number of pairs that may change; None is the budget.
        only_neighbors : change only rows of neighbouring words, which few other queries have.
        """
        assert model.W is not None
        assert model.vocabulary is not None
        vocabulary = model.vocabulary.extend(data.texts)
        before = model.W.copy()
        before.resize((len(vocabulary.words), before.shape[1]))
        lists = data.encode(model.lexical, vocabulary).lists
        ridge = Ridge(model.info.get("ridge_query", 1.0), model.info.get("ridge_document", 1.0))
        budget = learner.budget.for_shape(lists.shape)
        if max_changes is not None:
            budget = replace(budget, max_pairs=max_changes)
        learner = replace(learner, budget=budget, constraints=model.constraints.index(vocabulary, model.pair_weight))
        rows = vocabulary.is_neighbors if only_neighbors else None
        change = learner.fit_residual(lists, before, model.info.get("query_normalization", 0.5), ridge, rows)
        if model.names is not None:
            model = replace(model, names=model.names.without(model.lexical.features, data.texts))
        return cls(model, vocabulary, before, change, Importance.of(lists, ridge).columns, len(data.qrels))

    def apply(self, budget: PairBudget, strength: float = 1.0) -> TextModel:
        """Return the model with `strength` times the change, pruned to the most important pairs of the budget."""
        importance = Importance(np.ones(self.before.shape[0], np.float32), self.column_importance)
        W = (self.before + np.float32(strength) * self.change).tocsr()
        W = prune(W, importance, budget.for_shape((int(W.shape[0]), int(W.shape[1]))))
        info = dict(self.model.info) | {"queries": int(self.model.info.get("queries", 0)) + self.queries}
        model = replace(self.model, vocabulary=self.vocabulary, W=W, info=info)
        return model.with_constraints(self.model.constraints)


def train_more(model: TextModel, data: TrainingData, learner: PairLearner, callback: Callback) -> TextModel:
    """Return the model after more judged queries, within the budget."""
    if not data.qrels:
        return model
    callback("learning from the residual")
    return PairChange.learn(model, data, learner).apply(learner.budget)
