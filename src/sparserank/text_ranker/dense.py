"""A dense score beside words and pairs: the cosine of embeddings that any model makes, at a weight that is tuned.

    score = lexical + pair_weight · qᵀ W d + weight · cos(query vector, document vector)

The weight is the best one on held-out judged queries, whose pairs come from the other queries; it is 0 unless the
improvement is significant. A model file names the embeddings and their dimension. The embedding model stays outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import DataError
from ..search.dense import DTYPES, DenseVectors, Vectors, vectors_by_id
from .candidates import ALL_DOCUMENTS, POOL_DEPTH
from .dense_score import DenseScore
from .held_out import HeldOut, Scores
from .learn_again import HeldOutPairs, held_out_pairs
from .model import TextModel
from .model_selection import SIGNIFICANCE_LEVEL, improvement_p_value
from .training import Trainer
from .training_data import TrainingData

WEIGHTS = tuple(float(f"{0.1 * 2 ** (i / 2):.2g}") for i in range(14))
"""Weights of the dense score to try, in standard deviations of both scores."""


@dataclass(frozen=True)
class Dense:
    """Embeddings of queries and documents for `TextRanker.fit`; the tuple (queries, documents) is one without a name.

    Parameters
    ----------
    queries : array of shape (n_queries, n_dimensions), or mapping
        One vector for each of the queries that `fit` gets, in their order; or {query id: vector}.
    documents : array of shape (n_documents, n_dimensions), or mapping
        The same for documents.
    name : str, default=""
        The name of the embedding model, which the model file remembers.
    dtype : {"float16", "float32"}, default="float16"
        How vectors of documents are stored.

    Examples
    --------
    >>> Dense([[1.0, 0.0]], {"d1": [0.0, 1.0]}, name="my-encoder").name
    'my-encoder'
    """

    queries: Any
    documents: Any
    name: str = ""
    dtype: str = "float16"

    def __post_init__(self) -> None:
        validation.choice("dtype", self.dtype, DTYPES)


def as_dense(dense: Dense | Sequence[Any]) -> Dense:
    """Return a tuple (queries, documents) as `Dense`."""
    if isinstance(dense, Dense):
        return dense
    if not isinstance(dense, tuple) or len(dense) != 2:
        raise DataError(f"dense must be (Q, D) or a Dense(Q, D, name=…); got {type(dense).__name__}")
    return Dense(*dense)


@dataclass(frozen=True, eq=False)
class TrainingVectors:
    """Vectors of unit length: one for each judged query, in the order of `qrels`, and those of the documents."""

    name: str
    queries: Vectors
    documents: DenseVectors

    @classmethod
    def validate(cls, data: TrainingData, dense: Dense | Sequence[Any]) -> TrainingVectors:
        """Check the vectors before the training; raises DataError if they do not fit the texts."""
        dense = as_dense(dense)
        if len(data.qrels) < 2:
            raise DataError(f"the weight of dense scores needs at least two judged queries; got {len(data.qrels)}")
        D = vectors_by_id("documents", dense.documents, data.documents.ids)
        ids = list(data.qrels if isinstance(dense.queries, Mapping) else data.queries)
        rows = {query: row for row, query in enumerate(ids)}
        Q = vectors_by_id("queries", dense.queries, ids, D.shape[1])[[rows[query] for query in data.qrels]]
        return cls(dense.name, Q, DenseVectors(tuple(data.documents.ids), D.astype(dense.dtype)))


def tune_dense(trainer: Trainer, model: TextModel, data: TrainingData, vectors: TrainingVectors) -> DenseScore:
    """Choose the weight of the dense score by nDCG@10 of held-out queries."""
    trainer.callback("tuning the weight of the dense score")
    folds = [
        _scored(fold, model.pair_weight, vectors.queries[fold.numbers], vectors.documents)
        for fold in held_out_pairs(trainer, model, data)
    ]
    return DenseScore(vectors.name, vectors.documents.dimension, *_choose_weight(folds))


def _scored(
    fold: HeldOutPairs, pair_weight: float, Q: Vectors, vectors: DenseVectors
) -> tuple[HeldOut, Scores, Scores]:
    """Return held-out queries of one fold with their candidates, the scores of words and pairs, and the cosines."""
    queries, search, W = fold.queries, fold.search, fold.W
    documents = None
    if queries.lists.D.shape[0] > ALL_DOCUMENTS:
        pools = [search.top(queries, POOL_DEPTH)]
        pools += [] if W is None else [search.top(queries, POOL_DEPTH, W, pair_weight)]
        documents = np.hstack([*pools, np.stack([vectors.best(q, POOL_DEPTH) for q in Q])])
    held_out = HeldOut.of(queries, documents, search.n_jobs)
    lists = held_out.candidates
    base = lists.base if W is None else lists.base + np.float32(pair_weight) * held_out.pair_scores(W)
    parts = zip(Q, lists.start[:-1], lists.start[1:], strict=True)
    cosines = [vectors.cosines(q, lists.document[a:b].astype(np.int64)) for q, a, b in parts]
    return held_out, base, np.concatenate(cosines)


def _choose_weight(folds: list[tuple[HeldOut, Scores, Scores]]) -> tuple[float, float, float, float]:
    """Return the weight, nDCG@10 without and with the dense score, and the p-value of the improvement."""

    def ndcg(weight: float) -> NDArray[np.float64]:
        return np.concatenate([one.ndcg(base + np.float32(weight) * cosines)[0] for one, base, cosines in folds])

    deviation = np.std(np.concatenate([cosines for _, _, cosines in folds]), dtype=np.float64)
    if not deviation:
        lexical = float(ndcg(0.0).mean())
        return 0.0, lexical, lexical, 1.0
    unit = float(np.std(np.concatenate([base for _, base, _ in folds]), dtype=np.float64) or 1.0) / float(deviation)
    before, tried = ndcg(0.0), np.array([ndcg(weight * unit) for weight in WEIGHTS])
    groups = np.concatenate([one.groups for one, _, _ in folds])
    p_value, means = improvement_p_value((tried - before)[None], groups), tried.mean(axis=1)
    best = int(np.argmax(means))
    weight = WEIGHTS[best] * unit if p_value <= SIGNIFICANCE_LEVEL and means[best] > before.mean() else 0.0
    return weight, float(before.mean()), float(means[best]), p_value
