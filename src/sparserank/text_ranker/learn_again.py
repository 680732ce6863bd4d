"""Learn the pairs of a model again from some of its queries, so that its score can be measured on the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError
from ..optim.closed_form import ClosedForm
from ..optim.penalties import Ridge
from .candidates import CandidateSearch
from .held_out import MAX_HELD_OUT, MAX_ROTATED_QUERIES, hold_out
from .model import TextModel
from .pair_learner import PairLearner
from .training import Trainer
from .training_data import TrainingData, TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class PairRelearner:
    """The hyperparameters of a model, to learn pairs from some of its queries."""

    learner: PairLearner
    model: TextModel
    data: TrainingMatrices

    @cached_property
    def search(self) -> CandidateSearch:
        """The search for candidates in the documents."""
        return CandidateSearch.of(self.data, self.learner.n_jobs)

    @cached_property
    def _closed_form(self) -> ClosedForm:
        return ClosedForm(self.data.lists.D, self.learner.max_size)

    def learn(self, train: TrainingMatrices) -> csr_array:
        """Return the pairs W that these queries give."""
        info, learner = self.model.info, self.learner
        ridge = Ridge(info["ridge_query"], info["ridge_document"])
        W = learner.fit(self._closed_form, train.lists, info["query_normalization"], ridge, info["refitted"])
        if info["epochs"]:
            lists, rate = learner.candidate_lists(train, self.search), info["learning_rate"]
            *_, W = learner.refit_by_loss(W, train, lists, self.model.pair_weight, rate, info["epochs"])
        return W


@dataclass(frozen=True)
class HeldOutPairs:
    """Held-out queries by number, their matrices, and W of the other queries; None if the model has no pairs."""

    numbers: NDArray[np.intp]
    queries: TrainingMatrices
    search: CandidateSearch
    W: csr_array | None


def held_out_pairs(trainer: Trainer, model: TextModel, data: TrainingData) -> Iterator[HeldOutPairs]:
    """Yield the folds of held-out judged queries, as model selection divides them, with the pairs of the others.

    If the model has no pairs, all queries are held out, or as many as a fold of many queries has.
    """
    learner, matrices, vocabulary = trainer.prepare(data)
    seed = learner.random_state
    again = PairRelearner(replace(learner, constraints=trainer.constraints.index(vocabulary)), model, matrices)
    if model.W is None:
        n = len(matrices)
        numbers = np.arange(n) if n <= MAX_ROTATED_QUERIES else hold_out(matrices.group_numbers, seed)[0][0]
        yield HeldOutPairs(numbers[:MAX_HELD_OUT], matrices[numbers[:MAX_HELD_OUT]], again.search, None)
        return
    if "ridge_query" not in model.info:
        raise ConfigError("pairs learned step by step cannot be learned again without some queries; use ranker='text'")
    for held_out, rest in hold_out(matrices.group_numbers, seed):
        trainer.callback("learning pairs without the held-out queries")
        yield HeldOutPairs(held_out, matrices[held_out], again.search, again.learn(matrices[rest]))
