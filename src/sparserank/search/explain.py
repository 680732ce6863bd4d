"""Why a document has its score: which query word met which document word, and what it added."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..rankers.explanation import Contribution, Explanation
from ..rankers.text_model import TextModel
from .index import Index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_array


def explain(index: Index, query: csr_array, doc_id: str, words: Sequence[str]) -> Explanation:
    """Explain the score of one document for one query row.

    Every product is taken in 64 bits, as the search does, so the score is the one that the search shows.
    """
    terms = query.indices.astype(np.int64)
    products = query.data.astype(np.float64) * index.weights_of(doc_id, terms).astype(np.float64)
    met = np.flatnonzero(products)
    met = met[np.argsort(-np.abs(products[met]), kind="stable")]
    pairs = tuple(Contribution(words[terms[i]], words[terms[i]], float(products[i])) for i in met)
    return Explanation(float(np.float32(products.sum())), pairs)


def explain_pairs(model: TextModel, index: Index, text: str, doc_id: str) -> Explanation:
    """What learned pairs add to the score of one document for one text."""
    assert model.W is not None
    assert model.words is not None
    query, W = model.words.rows([text]), model.W
    entries = W[query.indices].tocoo()
    document = index.weights_of(doc_id, entries.col.astype(np.int64) + len(model.lexical.words)).astype(np.float64)
    value = model.gain * query.data.astype(np.float64)[entries.row] * entries.data * document
    met = np.flatnonzero(value)
    met = met[np.argsort(-np.abs(value[met]), kind="stable")]
    words, columns = model.words.words, model.lexical.words
    pairs = tuple(
        Contribution(words[query.indices[entries.row[i]]], columns[entries.col[i]], float(value[i])) for i in met
    )
    return Explanation(float(np.float32(value.sum())), pairs)
