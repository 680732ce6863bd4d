"""Train a TextModel: from graded judgments, from triples by the steps of Chen et al., or from class labels."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..bilinear.label_ranker import LabelRanker
from ..bilinear.ranker import BilinearRanker
from ..data.records import Documents
from ..errors import DataError
from ..optim.penalties import Ridge
from ..optim.problems import ListProblem
from ..preferences import Preferences, classes_of
from .constraints import Constraints
from .lexical import LexicalModel
from .model import TextModel
from .model_selection import Callback, TuningResult, hold_out, learn_pairs, tune_pair_weight
from .pair_learner import PairLearner
from .query_groups import query_groups
from .query_vocabulary import QueryVocabulary, document_rows
from .training_data import TrainingData, TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MAX_HELD_OUT_DOCUMENTS = 1000
"""Held-out documents that are used as queries when a model is trained from class labels."""
log = logging.getLogger(__name__)


def prepare(
    lexical: LexicalModel, data: TrainingData, learner: PairLearner, constraints: Constraints
) -> tuple[PairLearner, TrainingMatrices, QueryVocabulary]:
    """Return the learner with the budget and constraints of this vocabulary, the data as matrices, the vocabulary."""
    if len(data.qrels) < 2:
        raise DataError(f"at least two judged queries are needed; {len(data.qrels)} has a relevant document")
    vocabulary = QueryVocabulary.from_texts(lexical.features, data.texts)
    matrices = data.encode(lexical, vocabulary).grouped(vocabulary)
    learner = replace(
        learner, budget=learner.budget.for_shape(matrices.lists.shape), constraints=constraints.index(vocabulary)
    )
    return learner, matrices, vocabulary


def train(
    lexical: LexicalModel,
    data: TrainingData,
    learner: PairLearner,
    constraints: Constraints,
    callback: Callback,
    *,
    by_steps: bool = False,
) -> TextModel:
    """Learn word pairs from judged queries; the model keeps the lexical score alone if pairs do not help.

    by_steps : learn W by Algorithm 1 of Chen et al. (2010) on triples instead. W starts at zero, because the lexical
    score has the match of every word with itself.
    """
    if len(data.qrels) < 2:
        return _lexical_only(lexical, constraints, f"{len(data.qrels)} judged queries are too few to learn pairs")
    learner, matrices, vocabulary = prepare(lexical, data, learner, constraints)
    if len(np.unique(matrices.group_numbers)) < 2:
        reason = "all judged queries are near-duplicates of each other, so no improvement can be verified"
        return _lexical_only(lexical, constraints, reason)
    if by_steps:
        return _train_by_steps(lexical, data, learner, constraints, callback, matrices, vocabulary)
    W, result = learn_pairs(learner, matrices, callback)
    info = {
        "queries": len(data.qrels),
        "query_normalization": result.query_normalization,
        "ridge_query": result.ridge.query,
        "ridge_document": result.ridge.document,
        "loss": "squared" if result.strength is None else learner.loss,
        "strength": result.strength,
    }
    return _finish(lexical, constraints, result, info, lambda: (vocabulary, W))


def _train_by_steps(
    lexical: LexicalModel,
    data: TrainingData,
    learner: PairLearner,
    constraints: Constraints,
    callback: Callback,
    matrices: TrainingMatrices,
    vocabulary: QueryVocabulary,
) -> TextModel:
    ids, seed = list(data.qrels), learner.random_state

    def fit(some: NDArray[np.intp]) -> csr_array:
        preferences = data.preferences([ids[i] for i in some])
        ranker = BilinearRanker(
            init="zero", max_pairs=learner.budget.pairs, random_state=seed, n_jobs=learner.n_jobs, curve_points=0
        )
        return ranker.fit(matrices.lists.Q[some], matrices.lists.D, preferences).W_

    callback("learning pairs step by step, without the held-out queries")
    folds = hold_out(matrices.group_numbers, seed)
    parts = [matrices[held].dense() for held, _ in folds]
    scores = [part.pair_scores(fit(rest)) for part, (_, rest) in zip(parts, folds, strict=True)]
    result = tune_pair_weight(np.concatenate(scores), TrainingMatrices.concatenate(parts), 0.0, Ridge())
    callback("learning pairs step by step, from all queries")
    everything = np.arange(len(ids))
    return _finish(lexical, constraints, result, {"queries": len(ids)}, lambda: (vocabulary, fit(everything)))


def train_from_labels(
    lexical: LexicalModel,
    documents: Documents,
    lexical_rows: csr_array,
    preferences: Preferences,
    learner: PairLearner,
    constraints: Constraints,
    callback: Callback,
) -> TextModel:
    """Learn pairs from class labels: every document is a query for the documents of its class."""
    classes = classes_of(preferences)
    if classes is None:
        raise DataError(
            "TextRanker.fit accepts preferences of Preferences.from_labels only; for other data give queries and qrels"
        )
    if len(classes) != len(documents):
        raise DataError(f"{len(documents)} documents need as many labels; got {len(classes)}")
    D, seed = document_rows(lexical.features, lexical_rows), learner.random_state
    budget = learner.budget.for_shape((D.shape[1], D.shape[1]))

    def fit(rows: NDArray[np.intp]) -> csr_array:
        ranker = LabelRanker(max_pairs=budget.pairs, random_state=seed, n_jobs=learner.n_jobs)
        return ranker.fit(D[rows], classes[rows]).W_

    held, rest = hold_out(query_groups(D), seed)[0]
    held = held[:MAX_HELD_OUT_DOCUMENTS]
    callback("learning pairs without the held-out documents")
    texts = [f"{documents.titles[i]} {documents.texts[i]}" for i in held]
    scores = np.asarray((lexical.queries(texts) @ lexical_rows[rest].T).toarray(), dtype=np.float32)
    lists = ListProblem(D[held], D[rest], _same_class(classes[held], classes[rest]))
    queries = TrainingMatrices(lists, scores, np.full(len(held), -1, np.int64))
    result = tune_pair_weight(queries.pair_scores(fit(rest)), queries, 0.0, Ridge())
    info = {"queries": len(classes), "classes": int(classes.max()) + 1}
    callback("learning pairs from all documents")
    vocabulary = QueryVocabulary(lexical.features, queries_are_documents=True)
    return _finish(lexical, constraints, result, info, lambda: (vocabulary, fit(np.arange(len(classes)))))


def _same_class(first: NDArray[np.int64], second: NDArray[np.int64]) -> csr_array:
    from scipy.sparse import csr_array

    return csr_array((first[:, None] == second).astype(np.float32))


def _finish(
    lexical: LexicalModel,
    constraints: Constraints,
    result: TuningResult,
    info: dict[str, Any],
    pairs: Callable[[], tuple[QueryVocabulary, csr_array]],
) -> TextModel:
    """Return the model with its pairs, or the lexical part alone if the pairs did not help."""
    info |= {
        "held_out_lexical": result.lexical_ndcg,
        "held_out_learned": result.ndcg,
        "held_out_p_value": result.p_value,
    }
    if result.pair_weight == 0.0:
        reason = (
            f"word pairs did not beat the lexical score on held-out queries (nDCG@10 {result.lexical_ndcg:.3f}, "
            f"p = {result.p_value:.2g})"
        )
        return replace(_lexical_only(lexical, constraints, reason), info=info)
    model = TextModel(lexical, *pairs(), result.pair_weight, constraints, info)
    return model.with_constraints(constraints) if constraints else model


def _lexical_only(lexical: LexicalModel, constraints: Constraints, reason: str) -> TextModel:
    log.warning("%s; the model keeps the lexical score alone", reason)
    return TextModel(lexical, constraints=constraints)
