"""TextSearcher: the read side of a text ranker. It searches, scores and explains with a model and an index."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from time import process_time
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..data.records import Documents
from ..deprecated import renamed_attribute, renamed_parameters
from ..errors import DataError, NotFitted
from ..search import Explanation, Index
from ..search.comparison import Comparison, compare
from ..search.expansion import MAX_EXPANSION_BYTES, Expansion
from ..search.explanation import Contribution
from ..search.filters import FilterLike
from ..search.results import SearchResults
from .explain import QueryExplainer
from .lexical import LexicalModel
from .model import PairTable, TextModel
from .unknown_words import unknown_words

Docs = Documents | Mapping[str, "str | Mapping[str, Any]"]


class TextSearcher:
    """A fitted model (`model_`) and an index of documents (`index_`)."""

    model_: TextModel
    index_: Index

    counted = renamed_attribute("counted", "normalize")
    explaining = renamed_attribute("explaining", "explainer")
    gain_of_expanding = renamed_attribute("gain_of_expanding", "expansion_speedup")

    # ---- search

    def search(
        self, text: str, k: int = 10, filter: FilterLike | None = None, offset: int = 0, facets: Sequence[str] = ()
    ) -> SearchResults:
        """Return the best documents for a query, best first.

        A result shares a word with the query, or has a word that a learned pair looks for.

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
            Leave out so many of the best documents, and return the k after them.
        facets : sequence of str, default=()
            Fields of metadata whose values to count among all documents that match the query and the filter; the
            counts are the `facets` of the result.

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
        """
        index = self._filtered_index(filter)
        query = self.model_.encode_queries([text])
        return SearchResults(index.search(query, k, offset=offset)[0], index.facets(query, facets) if facets else None)

    def search_many(
        self, texts: Iterable[str], k: int = 10, n_jobs: int | None = None, filter: FilterLike | None = None
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
        """
        index = self._filtered_index(filter)
        return [SearchResults(hits) for hits in index.search(self.model_.encode_queries(texts), k, n_jobs)]

    def search_lexical(
        self, text: str, k: int = 10, filter: FilterLike | None = None, offset: int = 0
    ) -> SearchResults:
        """Search by the lexical score alone, without learned pairs.

        Parameters
        ----------
        text, k, filter, offset : str, int, filter and int
            As in `search`.
        """
        index = self._filtered_index(filter)
        return SearchResults(index.search(self.model_.encode_lexical_query(text), k, offset=offset)[0])

    @renamed_parameters({"drop_self": "exclude_self"})
    def run(self, queries: Mapping[str, str], k: int = 1000, exclude_self: bool = False) -> dict[str, dict[str, float]]:
        """Return {query id: {document id: score}}, best documents first.

        Parameters
        ----------
        queries : mapping of str to str
            The text of each query id.
        k : int, default=1000
            The largest number of documents of each query.
        exclude_self : bool, default=False
            Whether a query never finds the document with its own id.
        """
        index = self._require_index()
        return index.run(self.model_.encode_queries(queries.values()), list(queries), k, exclude_self)

    def scores(self, texts: Iterable[str], doc_ids: Sequence[str] | None = None) -> NDArray[np.float32]:
        """Return out[i, j], the score of document j for query i.

        Parameters
        ----------
        texts : iterable of str
            The queries.
        doc_ids : sequence of str or None, default=None
            The documents; None is all of them, in the order in which `fit` and `add` got them (`index_.input_ids`).

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> ranker = TextRanker().fit({"d1": "red apple", "d2": "pear"})
        >>> ranker.scores(["apple"]).argmax(axis=1)
        array([0])
        """
        index = self._require_index()
        documents = index.matrix(index.input_ids if doc_ids is None else doc_ids)
        queries = self.model_.encode_queries(texts)
        return np.asarray((queries.expand() @ documents.astype(np.float64).T).todense(), dtype=np.float32)

    # ---- explanations

    def explain(self, text: str, doc_id: str) -> Explanation:
        """Explain a score: what each pair of a query word and a document word adds to it.

        Parameters
        ----------
        text, doc_id : str
            The query and the document.

        Examples
        --------
        >>> from sparserank import TextRanker
        >>> ranker = TextRanker().fit({"d1": "red apples", "d2": "a pear"})
        >>> [pair.query for pair in ranker.explain("sweet apple", "d1").pairs]
        ['appl']
        """
        return self.explainer(text).explain(doc_id)

    def explain_parts(self, text: str, doc_id: str) -> tuple[Explanation, Explanation]:
        """Explain the lexical score and the score of learned pairs separately.

        Parameters
        ----------
        text, doc_id : str
            The query and the document.
        """
        return self.explainer(text).parts(doc_id)

    def explainer(self, text: str) -> QueryExplainer:
        """Return an object that explains one query for many documents.

        Parameters
        ----------
        text : str
            The query.
        """
        return QueryExplainer(self.fitted_model(), self._require_index(), text)

    def compare(self, text: str, first: str, second: str) -> Comparison:
        """Explain why one document ranks above another, and which pairs would have to go to swap them.

        Parameters
        ----------
        text, first, second : str
            The query and two documents.
        """
        if first == second:
            raise DataError(f"compare needs two different documents; got {first!r} twice")
        explainer = self.explainer(text)
        return compare(first, second, explainer.explain(first), explainer.explain(second))

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
            A query word; its stem counts.
        k : int, default=5
            The largest number of words.
        """
        return self.pairs_.related(self.normalize(word), k)

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
        """The learned pairs; raises NotFitted if the model has none."""
        pairs = self.fitted_model().pairs
        if pairs is None:
            raise NotFitted("this ranker has no word pairs; fit it on judged queries")
        return pairs

    @property
    def lexical_(self) -> LexicalModel:
        """The lexical part of the model."""
        return self.fitted_model().lexical

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

    # ---- documents

    def index(self, docs: Docs) -> Index:
        """Build an index of another collection, with the fitted vocabulary and document frequencies.

        Parameters
        ----------
        docs : mapping
            {id: text} or {id: {"title": …, "text": …}}.
        """
        documents = Documents.of(docs)
        return Index.build(self.fitted_model().encode_documents(documents), documents, made_for=self.fingerprint())

    def over(self, docs: Docs) -> Self:
        """Return a ranker with the same model and an index of another collection.

        Parameters
        ----------
        docs : mapping
            {id: text} or {id: {"title": …, "text": …}}.
        """
        other = copy(self)
        other.index_ = self.index(docs)
        return other

    def add(self, docs: Docs) -> Self:
        """Add documents to the index, or replace those with the same ids; the model does not change.

        A word that no training document had is not found.

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
        self.index_ = self._require_index().with_documents(self.model_.encode_documents(documents), documents)
        return self

    def remove(self, doc_ids: Iterable[str]) -> Self:
        """Remove documents from the index; raises DataError if one is not there.

        Parameters
        ----------
        doc_ids : iterable of str
            The documents.
        """
        self.index_ = self._require_index().without(doc_ids)
        return self

    def serves(self, documents: Documents) -> bool:
        """Return whether the index holds exactly these documents.

        Parameters
        ----------
        documents : Documents
            The documents.
        """
        return hasattr(self, "index_") and self.index_.documents.rows() == documents.rows()

    @renamed_parameters({"most_bytes": "max_bytes"})
    def expand(self, max_bytes: int = MAX_EXPANSION_BYTES) -> bool:
        """Expand the indexed documents through the learned pairs, which makes some queries faster.

        Results do not change: `search` uses the faster plan for each query. New pairs make the expansion invalid.

        Parameters
        ----------
        max_bytes : int, default=MAX_EXPANSION_BYTES
            The largest size. If the expansion is larger, or there are no pairs, nothing changes and False is returned.
        """
        index = self._require_index()
        expansion = Expansion.build(index.segments, self.model_.encode_queries([""]), max_bytes)
        if expansion is not None:
            self.index_ = replace(index, expansion=expansion)
        return expansion is not None

    def expansion_speedup(self, queries: int = 64) -> float:
        """Measure how many times faster the expanded documents answer, with titles of documents as queries.

        Parameters
        ----------
        queries : int, default=64
            About how many queries to time.
        """
        index, segment = self._require_index(), self._require_index().segments[0]
        sample = range(0, len(segment), max(1, len(segment) // queries))
        texts = [index.title_at(i) or " ".join(segment.texts[i].split()[:8]) for i in sample]
        encoded, seconds = [self.model_.encode_queries([text]) for text in texts], {}
        for plan in ("query", "documents") * 2:  # the first round warms up
            started = process_time()
            for query in encoded:
                index.top(query, 10, n_jobs=1, plan=plan)
            seconds[plan] = process_time() - started
        return seconds["query"] / max(seconds["documents"], 1e-9)

    def fingerprint(self) -> str:
        """Return a digest of everything that decides how documents are weighted; an index fits one fingerprint.

        Pairs belong to the query side: a model that learns more of them keeps its index.
        """
        settings, arrays = self.lexical_.state()
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    def fitted_model(self) -> TextModel:
        """Return `model_`; raises NotFitted before the first fit."""
        if not hasattr(self, "model_"):
            raise NotFitted("this ranker is not fitted; call fit first")
        return self.model_

    def _filtered_index(self, filter: FilterLike | None) -> Index:
        index = self._require_index()
        return index if filter is None else index.filtered(filter)

    def _require_index(self) -> Index:
        self.fitted_model()
        if not hasattr(self, "index_"):
            raise NotFitted(
                "this ranker has no index; build it with `sparserank index MODEL DATA --output MODEL.index`"
            )
        return self.index_
