"""Train a TextModel: from graded judgments, from triples by the steps of Chen et al., or from class labels."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..bilinear.label_ranker import LabelRanker
from ..bilinear.ranker import BilinearRanker
from ..data.files import PathLike
from ..data.records import Documents
from ..errors import DataError, count_of
from ..optim.penalties import Ridge
from ..optim.problems import ListProblem
from ..preferences import Preferences, classes_of
from .candidates import CandidateSearch
from .checkpoint import Checkpoint
from .constraints import Constraints
from .document_names import DocumentNames
from .held_out import hold_out
from .lexical import LexicalModel
from .memory import MemoryPlan, count_overlaps, text_bytes
from .model import TextModel
from .model_selection import TuningResult, learn_pairs, score_held_out, tune_pair_weight
from .pair_learner import PairLearner
from .progress import Callback, Note
from .query_groups import query_groups
from .query_vocabulary import QueryVocabulary, document_rows
from .training_data import LexicalRows, TrainingData, TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_HELD_OUT_DOCUMENTS = 1000
"""Held-out documents that are used as queries when a model is trained from class labels."""
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Trainer:
    """Learn the word pairs of a lexical model; the model keeps the lexical score alone if pairs do not help."""

    lexical: LexicalModel
    learner: PairLearner
    constraints: Constraints
    callback: Callback
    memory_limit: float = float("inf")
    checkpoint: PathLike | None = None

    def prepare(self, data: TrainingData) -> tuple[PairLearner, TrainingMatrices, QueryVocabulary]:
        """Return the learner with the budget and constraints of the vocabulary, the matrices, and the vocabulary."""
        if len(data.qrels) < 2:
            raise DataError(f"at least two judged queries with a relevant document are needed; got {len(data.qrels)}")
        self.callback("encoding queries")
        vocabulary = QueryVocabulary.from_texts(self.lexical.features, data.texts)
        matrices = data.encode(self.lexical, vocabulary)
        self.callback("grouping near-duplicate queries")
        matrices = matrices.grouped(vocabulary, data.declared_groups)
        budget = self.learner.budget.for_shape(matrices.lists.shape)
        D = matrices.lists.D
        words = int(np.count_nonzero(np.bincount(matrices.lists.Q.indices, minlength=1))), int(D.shape[1])
        texts, overlaps = text_bytes(data.documents), (count_overlaps(matrices.lists.Q), count_overlaps(D))
        shape, limit = matrices.lists.grades.shape, self.memory_limit
        plan = MemoryPlan.of(D.nnz, shape, words, budget.pairs, limit, texts=texts, overlaps=overlaps)
        self.callback(Note(f"training needs about {plan}"))
        learner = replace(
            self.learner, budget=budget, constraints=self.constraints.index(vocabulary), max_size=plan.max_size,
            solver=replace(self.learner.solver, max_words=plan.max_words),
        )  # fmt: skip
        return learner, matrices, vocabulary

    def train(self, data: TrainingData, *, by_steps: bool = False) -> TextModel:
        """Learn from judged queries.

        by_steps : learn W by Algorithm 1 of Chen et al. (2010) on triples instead. W starts at zero, because the
        lexical score has the match of every word with itself.
        """
        if len(data.qrels) < 2:
            return self.lexical_only(f"{count_of(len(data.qrels), 'judged query')}: too few to learn pairs")
        learner, matrices, vocabulary = self.prepare(data)
        if len(np.unique(matrices.group_numbers)) < 2:
            return self.lexical_only(
                "all judged queries are near-duplicates or of one group, so no improvement can be verified"
            )
        names = data.document_names(self.lexical)
        matrices = replace(matrices, named=names.shares(self.lexical.features, data.texts))
        names = names.without(self.lexical.features, data.texts)
        if by_steps:
            return self._train_by_steps(data, learner, matrices, vocabulary, names)
        params = {name: repr(getattr(learner, name)) for name in ("budget", "loss", "penalty", "random_state")}
        checkpoint = Checkpoint.open(self.checkpoint, params | {"constraints": self.constraints.to_dict()}, matrices)
        learner = replace(learner, max_size=checkpoint.max_size(learner.max_size))
        W, result = learn_pairs(learner, matrices, self.callback, checkpoint)
        checkpoint.remove()
        info = {
            "queries": len(data.qrels),
            "query_normalization": result.query_normalization,
            "ridge_query": result.ridge.query,
            "ridge_document": result.ridge.document,
            "loss": learner.loss if result.epochs else "squared",
            "refitted": result.refit,
            "learning_rate": result.rate,
            "epochs": result.epochs,
        }
        return self._finish(result, info, lambda: (vocabulary, W), names)

    def _train_by_steps(
        self,
        data: TrainingData,
        learner: PairLearner,
        matrices: TrainingMatrices,
        vocabulary: QueryVocabulary,
        names: DocumentNames,
    ) -> TextModel:
        ids, seed = list(data.qrels), learner.random_state
        settings: dict[str, Any] = {"random_state": seed, "n_jobs": learner.n_jobs, "curve_points": 0}

        def fit(some: NDArray[np.intp]) -> csr_array:
            preferences = data.preferences([ids[i] for i in some])
            ranker = BilinearRanker(init="zero", max_pairs=learner.budget.pairs, **settings)
            return ranker.fit(matrices.lists.Q[some], matrices.lists.D, preferences).W_

        self.callback("learning pairs step by step, without the held-out queries")
        folds = hold_out(matrices.group_numbers, seed)
        search = CandidateSearch.of(matrices, learner.n_jobs)
        scored = [score_held_out(matrices[held_out], search, fit(rest)) for held_out, rest in folds]
        result = tune_pair_weight(scored, 0.0, Ridge())
        self.callback("learning pairs step by step, from all queries")
        return self._finish(result, {"queries": len(ids)}, lambda: (vocabulary, fit(np.arange(len(ids)))), names)

    def train_from_labels(self, documents: Documents, lexical_rows: csr_array, preferences: Preferences) -> TextModel:
        """Learn pairs from class labels: every document is a query for the documents of its class."""
        from scipy.sparse import csr_array

        classes = classes_of(preferences)
        if classes is None:
            raise DataError(
                "TextRanker.fit accepts preferences of Preferences.from_labels only; "
                "for other data give queries and qrels"
            )
        if len(classes) != len(documents):
            raise DataError(f"{len(documents)} documents need as many labels; got {len(classes)}")
        D, learner = document_rows(self.lexical.features, lexical_rows), self.learner
        n_pairs, seed = learner.budget.for_shape((D.shape[1], D.shape[1])).pairs, learner.random_state

        def fit(rows: NDArray[np.intp]) -> csr_array:
            ranker = LabelRanker(max_pairs=n_pairs, random_state=seed, n_jobs=learner.n_jobs)
            return ranker.fit(D[rows], classes[rows]).W_

        held_out, rest = hold_out(query_groups(D), seed)[0]
        held_out = held_out[:MAX_HELD_OUT_DOCUMENTS]
        self.callback("learning pairs without the held-out documents")
        texts = [f"{documents.titles[i]} {documents.texts[i]}" for i in held_out]
        same_class = csr_array((classes[held_out][:, None] == classes[rest]).astype(np.float32))
        lists, lexical = ListProblem(D[held_out], D[rest], same_class), self.lexical.queries(texts)
        queries = TrainingMatrices(
            lists, LexicalRows(lexical, lexical_rows[rest]), np.full(len(held_out), -1, np.int64)
        )
        result = tune_pair_weight(
            [score_held_out(queries, CandidateSearch.of(queries, learner.n_jobs), fit(rest))], 0.0, Ridge()
        )
        info = {"queries": len(classes), "classes": int(classes.max()) + 1}
        self.callback("learning pairs from all documents")
        vocabulary = QueryVocabulary(self.lexical.features, queries_are_documents=True)
        return self._finish(result, info, lambda: (vocabulary, fit(np.arange(len(classes)))))

    def _finish(
        self,
        result: TuningResult,
        info: dict[str, Any],
        pairs: Callable[[], tuple[QueryVocabulary, csr_array]],
        names: DocumentNames | None = None,
    ) -> TextModel:
        """Return the model with its pairs, or the lexical part alone if the pairs did not help."""
        info |= {"held_out_lexical": result.lexical_ndcg, "held_out_learned": result.ndcg}
        info |= {"held_out_p_value": result.p_value}
        if result.pair_weight == 0.0:
            reason = (
                "word pairs did not beat the lexical score on held-out queries "
                f"(nDCG@10 {result.lexical_ndcg:.3f}, p = {result.p_value:.2g})"
            )
            return self.lexical_only(reason, info)
        names = None if names is None or result.name_share is None else names.at_least(result.name_share)
        info |= {"name_share": result.name_share if names is not None else None}
        model = TextModel(self.lexical, *pairs(), result.pair_weight, self.constraints, info, names)
        return model.with_constraints(self.constraints) if self.constraints else model

    def lexical_only(self, reason: str, info: Mapping[str, Any] | None = None) -> TextModel:
        """Return a model without pairs, and log the reason."""
        log.warning("%s; the model keeps the lexical score alone", reason)
        return TextModel(self.lexical, constraints=self.constraints, info={**(info or {}), "no_pairs": reason})
