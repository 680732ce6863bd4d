"""DenseSearch: the vectors of documents beside an index, and what the dense score needs of a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.files import PathLike
from ..data.records import Documents
from ..errors import DataError, NotFitted
from ..search import Explanation, Index
from ..search.dense import DenseVectors, Vectors, search_with_dense, vectors_by_id
from ..search.encoded_query import EncodedQuery
from ..search.explanation import Contribution
from ..search.hit import Hit
from .dense_score import DenseScore
from .indexed_model import Docs, IndexedModel


class DenseSearch(IndexedModel):
    """An indexed model whose score may have a dense part."""

    dense_: DenseVectors
    _words_only = False

    def embed(self, vectors: ArrayLike | Mapping[str, ArrayLike]) -> Self:
        """Set the vectors of documents, after `add` or `over`; a document without a vector has the dense score 0.

        If the weight of the dense score is 0, nothing happens: the ranker needs no vectors.

        Parameters
        ----------
        vectors : array of shape (n_documents, n_dimensions), or mapping
            One row for each document of the index, in the order of `index_.input_ids`; or {document id: vector}.

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> TextRanker("bm25").fit({"d1": "red apples"}).embed([[1.0, 0.0]])
        Traceback (most recent call last):
        sparserank.errors.DataError: this model has no dense score; fit it with dense=(Q, D)
        """
        score, index = self.fitted_model().dense, self._require_index()
        if score is None:
            raise DataError("this model has no dense score; fit it with dense=(Q, D)")
        if not score.weight:
            return self
        ids = list(vectors) if isinstance(vectors, Mapping) else index.input_ids
        for doc_id in ids:
            index.number(doc_id)
        dtype = str(self.dense_.vectors.dtype) if hasattr(self, "dense_") else "float16"
        rows = vectors_by_id("documents", vectors, ids, score.dimension)
        new = DenseVectors(tuple(ids), rows.astype(dtype))
        self.dense_ = self.dense_.updated(new) if hasattr(self, "dense_") else new
        return self

    def words_only(self) -> Self:
        """Return a ranker that ranks by words and pairs alone, and needs no vector of a query.

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> [hit.id for hit in TextRanker("bm25").fit({"d1": "red apples"}).words_only().search("apple")]
        ['d1']
        """
        other = copy(self)
        other._words_only = True
        return other

    def over(self, docs: Docs) -> Self:
        """Return a ranker with the same model and an index of another collection; `embed` sets its vectors.

        Parameters
        ----------
        docs : mapping
            {id: text} or {id: {"title": …, "text": …}}.
        """
        other = super().over(docs)
        other.__dict__.pop("dense_", None)
        return other

    def add(self, docs: Docs) -> Self:
        """Add documents to the index, or replace those with the same ids; the model does not change.

        A word that no training document had is not found. With a dense score, `embed` sets the vectors of the added
        documents.

        Parameters
        ----------
        docs : mapping
            {id: text} or {id: {"title": …, "text": …}}.

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> ranker = TextRanker().fit({"d1": "red apples", "d2": "a pear"})
        >>> [hit.id for hit in ranker.add({"d3": "red pear"}).remove(["d2"]).search("pear")]
        ['d3']
        """
        documents = Documents.of(docs)
        super().add(documents)
        return self._without_vectors(documents.ids)

    def _without_vectors(self, doc_ids: Sequence[str]) -> Self:
        if hasattr(self, "dense_"):
            self.dense_ = self.dense_.without(doc_ids)
        return self

    def _save_vectors(self, path: Path) -> None:
        score = self._dense_score()
        if score is None:
            return
        if hasattr(self, "dense_"):
            self.dense_.save(path, score.name)
        else:
            path.unlink(missing_ok=True)  # vectors of the model that this one replaces

    def _load_vectors(self, path: Path) -> None:
        score = self._dense_score()
        if score is not None and path.exists():
            self.dense_ = DenseVectors.load(path, score.name, score.dimension)

    # ---- for the searcher

    def _dense_score(self) -> DenseScore | None:
        """The dense part of the model if it counts."""
        score = self.fitted_model().dense
        return score if score is not None and score.weight > 0.0 else None

    def _query_vector(self, dense: ArrayLike | None) -> Vectors | None:
        """Return the vector of a query at unit length; None if the score has no dense part."""
        vectors = self._query_vectors(None if dense is None else np.asarray(dense, object)[None], [""])
        return None if vectors is None else vectors[0]

    def _query_vectors(
        self, dense: ArrayLike | Mapping[str, ArrayLike] | None, queries: Sequence[str]
    ) -> Vectors | None:
        """Return the vectors of queries; raises DataError if the model needs them and there are none."""
        score = self._dense_score()
        if score is None and dense is not None and self.model_.dense is None:
            raise DataError("this model has no dense score; fit it with dense=(Q, D), or leave 'dense' out")
        if score is None or (dense is None and self._words_only):
            return None
        if dense is None:
            raise DataError(
                f"this model ranks with vectors of {score}: give the vector of the query as dense=…, or use "
                "words_only() to rank by words and pairs alone"
            )
        if not hasattr(self, "dense_"):
            raise NotFitted(f"this ranker has no vectors of documents, of {score}; set them with embed(D)")
        return vectors_by_id("queries", dense, queries, score.dimension)

    def _dense_hits(
        self, index: Index, query: EncodedQuery, vector: Vectors, k: int, skip: str | None = None
    ) -> list[Hit]:
        score = self.model_.dense
        assert score is not None
        return search_with_dense(index, query, self.dense_, vector, score.weight, k, skip)

    def _dense_scores(self, vectors: Vectors, ids: Sequence[str]) -> NDArray[np.float64]:
        """Return weight · cosine of queries × documents."""
        score, rows = self.model_.dense, self.dense_.rows_of(ids)
        assert score is not None
        return score.weight * np.stack([self.dense_.cosines(vector, rows) for vector in vectors]).astype(np.float64)

    def _with_dense_line(self, explanation: Explanation, vector: Vectors, doc_id: str) -> Explanation:
        """Return the explanation with one line for the dense score."""
        score = self.model_.dense
        assert score is not None
        cosine = float(self.dense_.cosines(vector, self.dense_.rows_of([doc_id]))[0])
        line = Contribution(
            "query vector", score.name or "document vector", score.weight * cosine, f"cosine {cosine:.3f}"
        )
        out = explanation.plus(Explanation(line.contribution, (line,)))
        return replace(out, learned=explanation.learned)


def dense_path(model: PathLike) -> Path:
    """Return the path of the document vectors of a model file.

    >>> dense_path("model.safetensors").name
    'model.safetensors.dense'
    """
    return Path(f"{model}.dense")
