"""TextRanker: text in, search out. It stands on a ranker, an index and the measures.

A saved ranker is a model file; the index of the documents it was fitted on lies beside it, as `MODEL.index`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .data.files import PathLike
from .data.records import Documents, Qrels
from .data.tensors import read_tensors, write_tensors
from .errors import DataError, ModelError, NotFitted
from .rankers import bilinear_file, by_query_file
from .rankers.lexical import LexicalRanker, LexicalSettings
from .search import Explanation, Hit, Index
from .search import explain as explain_score
from .text import Analyzer

if TYPE_CHECKING:
    from .rankers.bilinear import BilinearRanker
    from .rankers.by_query import ByQueryRanker

MODEL_KIND = "text"


class TextRanker:
    """Search over documents by words.

    ranker : 'bm25' (with k1 and b) or 'cosine' (sublinear tf-idf, unit length).
    title_weight, text_weight : how much a word counts in each field; 1 and 1 is "joined".
    stem, stop_words, ngrams : see `sparserank.text.Analyzer`; for texts that are not English say stem=None,
        stop_words=None, or name a Snowball language.

    >>> ranker = TextRanker().fit({"d1": "red apples are sweet", "d2": "a green pear"})
    >>> [hit.id for hit in ranker.search("sweet red")]
    ['d1']
    >>> [pair.query for pair in ranker.explain("red and sweet", "d1").pairs]
    ['red', 'sweet']
    """

    def __init__(
        self,
        ranker: str = "bm25",
        *,
        k1: float = 0.9,
        b: float = 0.4,
        title_weight: float = 1.0,
        text_weight: float = 1.0,
        stem: str | None = "english",
        stop_words: str | Sequence[str] | None = "english",
        ngrams: int = 1,
    ) -> None:
        self.ranker = ranker
        self.k1 = k1
        self.b = b
        self.title_weight = title_weight
        self.text_weight = text_weight
        self.stem = stem
        self.stop_words = stop_words
        self.ngrams = ngrams

    def fit(
        self,
        docs: Documents | Mapping[str, str | Mapping[str, str]],
        queries: Mapping[str, str] | None = None,
        qrels: Qrels | None = None,
    ) -> Self:
        """Learn from documents; the lexical rankers have no use for queries and judgments and only check them.

        docs : {id: text} or {id: {"title": …, "text": …}}; queries : {id: text}; qrels : {query id: {doc id: grade}}.
        """
        documents = Documents.of(docs)
        unknown = [q for q in qrels or {} if q not in (queries or {})]
        if unknown:
            raise DataError(f"{len(unknown)} judged queries have no text, the first is {unknown[0]!r}")
        there = set(documents.ids)
        absent = list(dict.fromkeys(d for judged in (qrels or {}).values() for d in judged if d not in there))
        if absent:
            raise DataError(f"{len(absent)} judged documents are not among the documents, the first is {absent[0]!r}")
        stop_words = self.stop_words if isinstance(self.stop_words, str | None) else tuple(self.stop_words)
        settings = LexicalSettings(
            self.ranker, self.k1, self.b, self.title_weight, self.text_weight,
            Analyzer(stem=self.stem, stop_words=stop_words, ngrams=self.ngrams),
        )  # fmt: skip
        lexical = LexicalRanker(settings)
        matrix = lexical.fit(documents)
        self.lexical_ = lexical
        self.index_ = Index.build(matrix, documents, made_for=self.fingerprint())
        return self

    def index(self, docs: Documents | Mapping[str, str | Mapping[str, str]]) -> Index:
        """Make another collection ready for this ranker, in the words and frequencies it has learned."""
        documents = Documents.of(docs)
        return Index.build(self._fitted().documents(documents), documents, made_for=self.fingerprint())

    def over(self, docs: Documents | Mapping[str, str | Mapping[str, str]]) -> TextRanker:
        """This ranker over another collection; what it has learned stays, only the index changes."""
        other = copy(self)
        other.index_ = self.index(docs)
        return other

    def serves(self, documents: Documents) -> bool:
        """Whether the index at hand holds exactly these documents."""
        if not hasattr(self, "index_"):
            return False
        there = self.index_.documents
        return dict(zip(there.ids, zip(there.titles, there.texts, strict=True), strict=True)) == dict(
            zip(documents.ids, zip(documents.titles, documents.texts, strict=True), strict=True)
        )

    def search(self, text: str, k: int = 10) -> list[Hit]:
        """The best k documents for a text, best first; only documents that share a word with it.

        >>> TextRanker().fit({"d1": "apple", "d2": "pear"}).search("plum")
        []
        """
        return self.search_many([text], k)[0]

    def search_many(self, texts: Iterable[str], k: int = 10, n_jobs: int | None = None) -> list[list[Hit]]:
        """`search` for many texts at once, on all cores."""
        return self._searched().search(self._fitted().queries(texts), k, n_jobs)

    def run(self, queries: Mapping[str, str], k: int = 1000, drop_self: bool = False) -> dict[str, dict[str, float]]:
        """{query id: {document id: score}} for every query, best first."""
        rows = self._fitted().queries(queries.values())
        return self._searched().run(rows, list(queries), k, drop_self)

    def scores(self, texts: Iterable[str], doc_ids: Sequence[str] | None = None) -> NDArray[np.float32]:
        """out[i, j] = score of document j (all, in the order of `index_.documents`, or those named) for text i."""
        rows, index = self._fitted().queries(texts), self._searched()
        from scipy.sparse import csc_array

        shape = (len(index), index.n_terms)
        by_term = csc_array((index.weights, index.docs, index.starts), shape=shape)
        chosen = range(len(index)) if doc_ids is None else [self._place(d) for d in doc_ids]
        docs = by_term.astype(np.float64).tocsr()[list(chosen)]
        return np.asarray((rows.astype(np.float64) @ docs.T).todense(), dtype=np.float32)

    def explain(self, text: str, doc_id: str) -> Explanation:
        """Which word of the text met which word of the document, and what it added to the score."""
        lexical = self._fitted()
        return explain_score(self._searched(), lexical.queries([text]), doc_id, lexical.words)

    def unknown(self, text: str) -> list[str]:
        """The words of a text that no document of the index has, as the text spells them; stop words do not count.

        >>> TextRanker().fit({"d1": "apples"}).unknown("The Plums and the apple")
        ['Plums']
        """
        lexical = self._fitted()
        analyzer = replace(lexical.settings.analyzer, ngrams=1)
        as_written = replace(analyzer, lowercase=False, stem=None, stop_words=None)
        spelled: dict[str, str] = {}
        for word in as_written.tokens(text):
            for form in analyzer.tokens(word):
                spelled.setdefault(form, word)
        return list(dict.fromkeys(word for form, word in spelled.items() if not self._occurs(form)))

    def _occurs(self, form: str) -> bool:
        column = self._fitted().features.vocabulary_.get(form)
        if column is None or not hasattr(self, "index_"):
            return column is not None
        return bool(self.index_.starts[column] < self.index_.starts[column + 1])

    def save(self, path: PathLike) -> None:
        """Write the model, and the index beside it as `PATH.index`; each file appears whole or not at all."""
        settings, arrays = self._fitted().state()
        write_tensors(path, MODEL_KIND, settings, arrays)
        if hasattr(self, "index_"):
            self.index_.save(index_path(path))

    def fingerprint(self) -> str:
        """A digest of all that decides how documents are weighted; an index is refused by any other model."""
        settings, arrays = self._fitted().state()
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
        for name in sorted(arrays):
            digest.update(np.ascontiguousarray(arrays[name]).tobytes())
        return digest.hexdigest()

    def _fitted(self) -> LexicalRanker:
        if not hasattr(self, "lexical_"):
            raise NotFitted("this ranker has seen no documents yet; call fit first")
        return self.lexical_

    def _searched(self) -> Index:
        self._fitted()
        if not hasattr(self, "index_"):
            raise NotFitted(
                "this ranker has no index; make one with `sparserank index MODEL DATA --output MODEL.index`"
            )
        return self.index_

    def _place(self, doc_id: str) -> int:
        if doc_id not in self.index_.places:
            raise DataError(f"there is no document {doc_id!r} in this index of {len(self.index_)} documents")
        return self.index_.places[doc_id]


def index_path(model: PathLike) -> Path:
    """Where the index of a model file lies."""
    return Path(f"{model}.index")


def load_model(path: PathLike) -> TextRanker:
    """Read a saved ranker without any index: enough to make one, whatever has become of the one beside it."""
    file = read_tensors(path, MODEL_KIND)
    lexical = LexicalRanker.from_file(file)
    told: Mapping[str, Any] = {
        k: v for k, v in file.settings.items() if k in ("k1", "b", "title_weight", "text_weight")
    }
    analyzer = lexical.settings.analyzer
    ranker = TextRanker(
        lexical.settings.kind, **told, stem=analyzer.stem, stop_words=analyzer.stop_words, ngrams=analyzer.ngrams
    )
    ranker.lexical_ = lexical
    return ranker


def load(path: PathLike, index: PathLike | None = None) -> TextRanker | BilinearRanker | ByQueryRanker:
    """Read a saved ranker of any kind; a text ranker comes with the index beside it, or with another one."""
    file = read_tensors(path)
    if file.kind == by_query_file.KIND:
        return by_query_file.load(file)
    return bilinear_file.load(file) if file.kind == bilinear_file.KIND else load_text(path, index)


def load_pairs(path: PathLike) -> BilinearRanker:
    """Read a ranker of word pairs; a text ranker is refused, for it has none."""
    file = read_tensors(path)
    if file.kind == MODEL_KIND:
        kind = file.settings.get("kind")
        raise ModelError(f"{path}: a text model ({kind}) has no word pairs: each word looks for itself alone")
    if file.kind != bilinear_file.KIND:
        raise ModelError(f"{path}: holds a {file.kind!r}; a {bilinear_file.KIND!r} is wanted")
    return bilinear_file.load(file)


def load_text(path: PathLike, index: PathLike | None = None) -> TextRanker:
    """Read a text ranker and the index beside it (or another one); an index of another model is refused."""
    ranker = load_model(path)
    where = index_path(path) if index is None else Path(index)
    if index is not None or where.exists():
        found = Index.load(where)
        if found.made_for != ranker.fingerprint() or found.n_terms != len(ranker.lexical_.words):
            raise ModelError(f"{where}: made for another model than {path}; make it again with `sparserank index`")
        ranker.index_ = found
    return ranker
