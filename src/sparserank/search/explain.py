"""Why a document has its score: which query word met which document word, and what it added."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .index import Index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scipy.sparse import csr_array


class Contribution(NamedTuple):
    """One word pair and what it adds to the score."""

    query: str
    document: str
    contribution: float


@dataclass(frozen=True)
class Explanation:
    """The contributions sum to the score; the largest comes first."""

    score: float
    pairs: tuple[Contribution, ...]

    def to_dict(self) -> dict[str, Any]:
        """As the command line prints it."""
        return {"score": self.score, "pairs": [pair._asdict() for pair in self.pairs]}


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
