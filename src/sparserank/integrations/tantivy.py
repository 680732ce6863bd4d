"""Tantivy: documents as an index of stems, and queries that learned pairs expand.

Tantivy ranks by its own BM25 over the words of all searched fields; a field of weight 0 is left out, other weights do
not count. A query is a sum of boosted words: its own, and the words that its pairs look for. The
boost of such a word is the weight of its pairs times the mean ratio of its learned weight to its BM25 weight in the
documents. Negative weights are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.files import PathLike
from ..errors import DataError
from ..export import vectors_of
from ..export.vectors import Vectors
from ..text_ranker import TextRanker
from .requirement import require

require("tantivy", "0.22")

import tantivy  # noqa: E402

__all__ = ["TantivySearch"]
FIELD = "content"
WRITER_BYTES = 64 << 20


class TantivySearch:
    """Search the documents of a ranker with Tantivy.

    Parameters
    ----------
    ranker : TextRanker
        A fitted ranker with an index.
    path : path-like or None, default=None
        An existing empty folder for Tantivy's index; None keeps it in memory.

    Examples
    --------
    >>> search = TantivySearch(TextRanker("bm25").fit({"d1": "red apples", "d2": "a green pear"}))
    >>> [doc_id for doc_id, score in search.search("an apple")]
    ['d1']
    """

    def __init__(self, ranker: TextRanker, path: PathLike | None = None) -> None:
        if path is not None and not (Path(path).is_dir() and not any(Path(path).iterdir())):
            raise DataError(f"{path}: must be an empty folder")
        self.vectors: Vectors = vectors_of(ranker)
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("id", stored=True, tokenizer_name="raw")
        builder.add_text_field(FIELD, tokenizer_name="whitespace", index_option="freq")
        self.schema = builder.build()
        self.index = tantivy.Index(self.schema, path=None if path is None else str(path))
        writer, documents = self.index.writer(WRITER_BYTES, 1), self.vectors.index.documents
        lexical = self.vectors.model.lexical
        columns = zip(*lexical.columns(documents).values(), strict=True)
        searched = [weight > 0.0 for weight in lexical.weight_of_field.values()]
        for doc_id, texts in zip(documents.ids, columns, strict=True):
            tokens = (word for text in compress(texts, searched) for word in lexical.analyzer.tokens(text))
            words = [word.replace(" ", "+") for word in tokens]
            writer.add_document(tantivy.Document(id=doc_id, content=" ".join(words)))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()

    def boosts(self, text: str, *, pairs: bool = True) -> Mapping[str, float]:
        """Return the boost of each word that a query looks for, the largest first.

        Parameters
        ----------
        text : str
            The query.
        pairs : bool, default=True
            Whether to add the words that learned pairs look for.
        """
        words, n = self.vectors.model.lexical.words, len(self.vectors.model.lexical.words)
        boosts: dict[str, float] = {}
        for term, weight in self.vectors.query(text).items():
            if term >= n:
                weight = weight * float(self._ratios[term - n]) if pairs else 0.0
            word = words[term % n]
            boosts[word] = boosts.get(word, 0.0) + weight
        positive = {word: weight for word, weight in boosts.items() if weight > 0.0}
        return dict(sorted(positive.items(), key=lambda one: -one[1]))

    def query(self, text: str, *, pairs: bool = True) -> Any:
        """Return Tantivy's query.

        Parameters
        ----------
        text : str
            The query.
        pairs : bool, default=True
            Whether to add the words that learned pairs look for.
        """
        terms = [
            (tantivy.Occur.Should, tantivy.Query.boost_query(self._term(word), boost))
            for word, boost in self.boosts(text, pairs=pairs).items()
        ]
        return tantivy.Query.boolean_query(terms) if terms else tantivy.Query.empty_query()

    def search(self, text: str, k: int = 10, *, pairs: bool = True) -> list[tuple[str, float]]:
        """Return (document id, Tantivy's score) of the best documents, best first.

        Parameters
        ----------
        text : str
            The query.
        k : int, default=10
            The largest number of results.
        pairs : bool, default=True
            Whether to add the words that learned pairs look for.
        """
        searcher = self.index.searcher()
        found = searcher.search(self.query(text, pairs=pairs), validation.count("k", k, low=1)).hits
        return [(searcher.doc(address)["id"][0], float(score)) for score, address in found]

    def _term(self, word: str) -> Any:
        return tantivy.Query.term_query(self.schema, FIELD, word.replace(" ", "+"), "freq")

    @cached_property
    def _ratios(self) -> NDArray[np.float64]:
        """The learned weight of each word in units of its BM25 weight, by least squares over the documents."""
        n = len(self.vectors.model.lexical.words)
        lexical, learned = self.vectors.matrix[:, :n], self.vectors.matrix[:, n:]
        both = np.asarray(lexical.multiply(learned).sum(axis=0), np.float64).ravel()
        squares = np.asarray(lexical.multiply(lexical).sum(axis=0), np.float64).ravel()
        return both / np.where(squares > 0.0, squares, 1.0)
