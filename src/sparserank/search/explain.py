"""Why a document has its score: which query word met which document word, and what it added."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..rankers.explanation import Contribution, Explanation
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
