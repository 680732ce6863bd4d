"""Fit the lexical model, and tune the field weights of BM25F on held-out judged queries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..data.records import Documents
from .bm25f import coordinate_search, improves
from .held_out import hold_out, ranked_ndcg
from .lexical import BM25, LexicalModel
from .progress import Callback
from .query_vocabulary import QueryVocabulary
from .training_data import TrainingData, TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

QUERIES_AT_ONCE = 200


def fit_lexical(
    lexical: LexicalModel, documents: Documents, data: TrainingData, random_state: int, callback: Callback
) -> csr_array:
    """Fit the lexical model and return the rows of the documents; untold field weights are tuned on judged queries."""
    callback(f"splitting {len(documents):,} documents into words")
    counts = lexical.fit_counts(documents)
    if lexical.bm25f is None or not isinstance(lexical.scoring, BM25):
        return lexical.features.apply_weights(counts)
    n_fields = sum(field.nnz > 0 for field in counts)
    if lexical.scoring.given_field_weights or n_fields < 2 or len(data.qrels) < 2:
        return lexical.weigh(counts)
    bm25f, normalized = lexical.bm25f, lexical.bm25f.normalize(counts)

    def rows(weights: tuple[float, ...]) -> csr_array:
        return lexical.features.apply_weights(replace(bm25f, weights=weights).add(normalized))

    vocabulary = QueryVocabulary.from_texts(lexical.features, data.texts)
    encoded = replace(data, lexical_rows=rows(bm25f.weights)).encode(lexical, vocabulary)
    matrices = encoded.grouped(vocabulary, data.declared_groups)
    if len(np.unique(matrices.group_numbers)) < 2:
        return rows(bm25f.weights)
    held_out = np.unique(np.concatenate([part for part, _ in hold_out(matrices.group_numbers, random_state)]))
    queries = matrices[held_out]
    callback(phase := f"tuning the weights of {len(bm25f.weights)} fields")

    def ndcg(lexical_rows: csr_array) -> NDArray[np.float64]:
        return ranked_ndcg(queries, top_documents(queries, lexical_rows))

    bm25 = None if lexical.fields else lexical.plain_rows(counts)
    baseline = ndcg(rows(bm25f.weights) if bm25 is None else bm25)
    best, found = coordinate_search(bm25f.weights, lambda weights: ndcg(rows(weights)), baseline)
    if bm25 is not None and not improves(found, baseline):
        callback(f"{phase}: BM25 stays")
        lexical.use_bm25()
        return bm25
    callback(f"{phase}: nDCG@10 on held-out queries {baseline.mean():.4f} → {found.mean():.4f}")
    lexical.bm25f = replace(bm25f, weights=best)
    return rows(best)


def top_documents(queries: TrainingMatrices, lexical_rows: csr_array, k: int = 10) -> NDArray[np.int64]:
    """Return the best k documents of each query by the lexical score, without its excluded one; -1 after the last."""
    out = np.full((len(queries), k), -1, np.int64)
    by_term = lexical_rows.T.tocsr()
    for first in range(0, len(queries), QUERIES_AT_ONCE):
        scores = (queries.lexical.queries[first : first + QUERIES_AT_ONCE] @ by_term).tocsr()
        for row in range(scores.shape[0]):
            at = slice(scores.indptr[row], scores.indptr[row + 1])
            documents, values = scores.indices[at], scores.data[at]
            other = (documents != queries.excluded[first + row]) & (values > 0.0)
            documents, values = documents[other], values[other]
            if len(values) > k:
                best = values >= np.partition(values, len(values) - k)[len(values) - k]
                documents, values = documents[best], values[best]
            found = documents[np.lexsort((documents, -values))][:k]
            out[first + row, : len(found)] = found
    return out
