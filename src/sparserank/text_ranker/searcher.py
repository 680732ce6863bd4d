"""TextSearcher: the read side of a text ranker. It searches, scores and explains with a model and an index."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import validation
from ..deprecated import renamed_attribute, renamed_parameters
from ..errors import DataError
from ..search import Explanation, Index
from ..search.comparison import Comparison, compare
from ..search.explanation import Contribution
from ..search.filters import FilterLike
from ..search.results import SearchResults
from .dense_search import DenseSearch
from .explain import QueryExplainer
from .model import PairTable, TextModel
from .query_rewriting import RewrittenQuery, as_typed, rewrite
from .unknown_words import unknown_words


class TextSearcher(DenseSearch):
    """Search, explain and look up pairs with a fitted model and its index."""

    _last_rewritten: tuple[TextModel, Index, tuple[str, bool, bool], RewrittenQuery] | None = None
    counted = renamed_attribute("counted", "normalize")
    explaining = renamed_attribute("explaining", "explainer")

    # ---- search

    def search(
        self,
        text: str,
        k: int = 10,
        filter: FilterLike | None = None,
        offset: int = 0,
        facets: Sequence[str] = (),
        *,
        typos: bool = False,
        prefix: bool = False,
        dense: ArrayLike | None = None,
        total: bool = False,
    ) -> SearchResults:
        """Return the best documents for a query, best first.

        A result shares a word with the query, or has a word that a learned pair looks for, or its vector is similar.

        Parameters
        ----------
        text : str
            The query.
        k : int, default=10
            The largest number of results.
        filter : str, mapping or None, default=None
            Only documents with this metadata are results: "kind:function AND year>=2000", or
            {"kind": ["function", "struct"], "year": {">=": 2000}}. A mistake raises FilterError with its position.
        offset : int, default=0
            Skip this many results, and return the k after them.
        facets : sequence of str, default=()
            Fields of metadata whose values to count among all documents that match the query and the filter; the
            counts are the `facets` of the result.
        typos : bool, default=False
            Whether a word that no document has is replaced by the nearest word that documents have, at a distance of
            one error from 4 letters on and of two from 8 on; the `corrections` of the result name both.
        prefix : bool, default=False
            Whether the last word may be unfinished, if nothing follows it: it also finds all words that begin with it.
        dense : array of shape (n_dimensions,) or None, default=None
            The vector of the query, by the model that made the vectors of the documents (`fit(dense=)`). A model with
            a dense score raises DataError without it; `words_only` returns a ranker that needs none. Facets count
            documents that match by words.
        total : bool, default=False
            Whether to count all documents that match. The `total` of the result is also known if there are fewer than
            k hits.

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> ranker = TextRanker().fit({"d1": "red apple", "d2": "pear"})
        >>> [hit.id for hit in ranker.search("apples")], ranker.search("plum")
        (['d1'], [])
        >>> docs = {"d1": {"text": "red apple", "metadata": {"year": 1999}}, "d2": "apple pie"}
        >>> results = TextRanker().fit(docs).search("apples", filter="year<2000", facets=["year"])
        >>> [hit.id for hit in results], results.facets
        (['d1'], {'year': {'1999': 1}})
        >>> results = ranker.search("aple", typos=True)
        >>> [hit.id for hit in results], results.corrections
        (['d1'], (Correction(word='aple', replacement='apple'),))
        """
        index = self._filtered_index(filter)
        if typos or prefix:
            rewritten = self._rewrite(text, typos, prefix)
            query, corrections = self.model_.encode_rows(rewritten.terms, rewritten.words), rewritten.corrections
        else:
            query, corrections = self.model_.encode_queries([text]), ()
        number, counts = None, None
        vector = self._query_vector(dense)
        if facets or total:
            hits, number, counts = index.search_and_count(query, k, offset, facets)
        elif vector is None:
            hits = index.search(query, k, offset=offset)[0]
        if vector is not None:
            skipped = validation.count("offset", offset, low=0)
            hits = self._dense_hits(index, query, vector, validation.count("k", k, low=1) + skipped)[skipped:]
            number = None  # it finds documents that match by no word
        elif number is None and len(hits) < k and (hits or not offset):
            number = offset + len(hits)
        return SearchResults(hits, counts, corrections, number)

    def search_many(
        self,
        texts: Iterable[str],
        k: int = 10,
        n_jobs: int | None = None,
        filter: FilterLike | None = None,
        *,
        dense: ArrayLike | None = None,
    ) -> list[SearchResults]:
        """Search for many queries at once.

        Parameters
        ----------
        texts : iterable of str
            The queries.
        k : int, default=10
            The largest number of results of each query.
        n_jobs : int or None, default=None
            The number of threads; None uses all cores.
        filter : str, mapping or None, default=None
            As in `search`.
        dense : array of shape (n_queries, n_dimensions) or None, default=None
            The vectors of the queries, as in `search`.
        """
        index, texts = self._filtered_index(filter), _as_list("texts", texts)
        vectors = self._query_vectors(dense, texts)
        if vectors is not None:
            pairs = zip(texts, vectors, strict=True)
            return [SearchResults(self.search(text, k, filter, dense=vector)) for text, vector in pairs]
        return [SearchResults(hits) for hits in index.search(self.model_.encode_queries(texts), k, n_jobs)]

    def search_lexical(
        self,
        text: str,
        k: int = 10,
        filter: FilterLike | None = None,
        offset: int = 0,
        *,
        typos: bool = False,
        prefix: bool = False,
    ) -> SearchResults:
        """Search by the lexical score alone, without learned pairs.

        Parameters
        ----------
        text, k, filter, offset, typos, prefix : str, int, filter, int, bool and bool
            As in `search`.
        """
        index = self._filtered_index(filter)
        if typos or prefix:
            rewritten = self._rewrite(text, typos, prefix)
            hits = index.search(self.model_.encode_rows(rewritten.terms), k, offset=offset)[0]
            return SearchResults(hits, corrections=rewritten.corrections)
        return SearchResults(index.search(self.model_.encode_lexical_query(text), k, offset=offset)[0])

    @renamed_parameters({"drop_self": "exclude_self"})
    def run(
        self,
        queries: Mapping[str, str],
        k: int = 1000,
        exclude_self: bool = False,
        *,
        dense: ArrayLike | Mapping[str, ArrayLike] | None = None,
    ) -> dict[str, dict[str, float]]:
        """Return {query id: {document id: score}}, best documents first.

        Parameters
        ----------
        queries : mapping of str to str
            The text of each query id.
        k : int, default=1000
            The largest number of documents of each query.
        exclude_self : bool, default=False
            Whether a query never finds the document with its own id.
        dense : array, mapping or None, default=None
            The vectors of the queries, as rows or as {query id: vector}.
        """
        index = self._require_index()
        vectors = self._query_vectors(dense, list(queries))
        if vectors is not None:
            hits = {
                query: self._dense_hits(
                    index, self.model_.encode_queries([text]), vector, k, query if exclude_self else None
                )
                for (query, text), vector in zip(queries.items(), vectors, strict=True)
            }
            return {query: {hit.id: hit.score for hit in found} for query, found in hits.items()}
        return index.run(self.model_.encode_queries(queries.values()), list(queries), k, exclude_self)

    def scores(
        self, texts: Iterable[str], doc_ids: Sequence[str] | None = None, *, dense: ArrayLike | None = None
    ) -> NDArray[np.float32]:
        """Return out[i, j], the score of document j for query i.

        Parameters
        ----------
        texts : iterable of str
            The queries.
        doc_ids : sequence of str or None, default=None
            The documents; None is all of them, in the order in which `fit` and `add` got them (`index_.input_ids`).
        dense : array of shape (n_queries, n_dimensions) or None, default=None
            The vectors of the queries, as in `search`.

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> ranker = TextRanker().fit({"d1": "red apple", "d2": "pear"})
        >>> ranker.scores(["apple"]).argmax(axis=1)
        array([0])
        """
        index = self._require_index()
        texts = _as_list("texts", texts)
        ids = index.input_ids if doc_ids is None else _as_list("doc_ids", doc_ids)
        documents, vectors = index.matrix(ids), self._query_vectors(dense, texts)
        queries = self.model_.encode_queries(texts)
        scores = np.asarray((queries.expand() @ documents.astype(np.float64).T).todense())
        if vectors is not None:
            scores = scores + self._dense_scores(vectors, ids)
        return scores.astype(np.float32)

    # ---- explanations

    def explain(
        self, text: str, doc_id: str, *, typos: bool = False, prefix: bool = False, dense: ArrayLike | None = None
    ) -> Explanation:
        """Explain a score: what each pair of a query word and a document word adds to it.

        The dense score is one line, with the name of the vectors.

        Parameters
        ----------
        text, doc_id : str
            The query and the document.
        typos, prefix : bool, default=False
            As in `search`; the `note` of a pair says how its document word comes from the query.
        dense : array of shape (n_dimensions,) or None, default=None
            The vector of the query, as in `search`.

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> ranker = TextRanker().fit({"d1": "red apples", "d2": "a pear"})
        >>> [pair.query for pair in ranker.explain("sweet apple", "d1").pairs]
        ['appl']
        >>> ranker.explain("aples", "d1", typos=True).pairs[0].note
        'typo of apples'
        """
        vector = self._query_vector(dense)
        explanation = self.explainer(text, typos=typos, prefix=prefix).explain(doc_id)
        return explanation if vector is None else self._with_dense_line(explanation, vector, doc_id)

    def explainer(self, text: str, *, typos: bool = False, prefix: bool = False) -> QueryExplainer:
        """Return an object that explains one query for many documents.

        Parameters
        ----------
        text : str
            The query.
        typos, prefix : bool, default=False
            As in `search`.
        """
        model, index = self.fitted_model(), self._require_index()
        query = self._rewrite(text, typos, prefix) if typos or prefix else as_typed(model, text)
        return QueryExplainer(model, index, query)

    def compare(
        self,
        text: str,
        first: str,
        second: str,
        *,
        typos: bool = False,
        prefix: bool = False,
        dense: ArrayLike | None = None,
    ) -> Comparison:
        """Explain why one document ranks above another, and which pairs would have to go to swap them.

        Parameters
        ----------
        text, first, second : str
            The query and two documents.
        typos, prefix : bool, default=False
            As in `search`.
        dense : array of shape (n_dimensions,) or None, default=None
            The vector of the query, as in `search`.
        """
        if first == second:
            raise DataError(f"compare needs two different documents; got {first!r} twice")
        options: dict[str, Any] = {"typos": typos, "prefix": prefix, "dense": dense}
        return compare(first, second, self.explain(text, first, **options), self.explain(text, second, **options))

    def unknown(self, text: str) -> list[str]:
        """Return the words of a query that no document of the index has; stop words are left out.

        Parameters
        ----------
        text : str
            The query.

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> TextRanker().fit({"d1": "apples"}).unknown("The Plums and the apple")
        ['Plums']
        """
        return unknown_words(self.lexical_, getattr(self, "index_", None), text)

    # ---- learned pairs

    def related(self, word: str, k: int = 5) -> list[tuple[str, float]]:
        """Return the document words that a query word looks for, with their weights, the largest first.

        Parameters
        ----------
        word : str
            A query word; its stem counts. A word that the analyzer splits, such as a long Japanese word under bigrams,
            and neighbouring words without pairs of their own have the sum of the weights of their parts.
        k : int, default=5
            The largest number of words.
        """
        return self.pairs_.related_to(self.normalize(word), k)

    def top_pairs(self, k: int = 20) -> list[Contribution]:
        """Return the pairs with the largest absolute weights.

        Parameters
        ----------
        k : int, default=20
            The largest number of pairs.
        """
        return self.pairs_.top_pairs(k)

    @property
    def pairs_(self) -> PairTable:
        """The learned pairs; an empty table if the model has none."""
        model = self.fitted_model()
        return PairTable.empty(model.lexical.features) if model.pairs is None else model.pairs

    def normalize(self, word: str) -> str:
        """Return a word, or neighbouring words, as the model counts it: its stem.

        Parameters
        ----------
        word : str
            The word.
        """
        forms = replace(self.lexical_.analyzer, ngrams=1, stop_words=None).tokens(word)
        if not forms:
            raise DataError(f"{word!r} contains no tokens")
        return " ".join(forms)

    def _rewrite(self, text: str, typos: bool, prefix: bool) -> RewrittenQuery:
        """Rewrite a query; the last one is kept for its explanation. A filter does not change it."""
        model, index = self.fitted_model(), self._require_index()
        key, last = (text, typos, prefix), self._last_rewritten
        if last is not None and last[0] is model and last[1] is index and last[2] == key:
            return last[3]
        query = rewrite(model, index, text, typos, prefix)
        self._last_rewritten = model, index, key, query
        return query

    def _filtered_index(self, filter: FilterLike | None) -> Index:
        index = self._require_index()
        return index if filter is None else index.filtered(filter)


def _as_list(name: str, values: Iterable[str]) -> list[str]:
    """A string is an error: its letters would be texts or ids."""
    if isinstance(values, str):
        raise DataError(f"{name} must be a list of strings; got the string {values!r}: write [{values!r}]")
    return list(values)
