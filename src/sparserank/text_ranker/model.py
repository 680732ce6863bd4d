"""TextModel: a lexical model and the word pairs learned with it.

    score = lexical + pair_weight · qᵀ W d

An index of the model has two columns per word: the lexical weight, and the weight that pairs look for. One inner
product gives the whole score, and a query without learned words has exactly the lexical score.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bilinear.word_pairs import WordPairs
from ..data.formats.tensors import Tensors, pack_csr
from ..data.records import Documents
from ..deprecated import renamed_attribute
from ..errors import ModelError
from ..parameters import Summary
from ..search.encoded_query import EncodedQuery, KernelRows
from ..text.tokens import with_grams
from .analyzer_file import pack_spellings, stored_spellings
from .constraints import Constraints, Pair
from .dense_score import DenseScore
from .document_names import DocumentNames
from .lexical import LexicalModel
from .query_vocabulary import QueryVocabulary, document_rows
from .synonyms import stored_synonyms

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..text import TextFeatures

QUERY_CACHE_SIZE = 32
"""Encoded queries that are remembered."""
KEYS_OF_0_1 = {"evenness": "query_normalization", "a": "ridge_query", "b": "ridge_document"}


class PairTable(WordPairs):
    """W with the words of its rows and columns."""

    def __init__(self, W: csr_array, vocabulary: QueryVocabulary) -> None:
        self.W_, self.query_words_, self.document_words_ = W, vocabulary.words, vocabulary.documents.words_
        self._vocabulary = vocabulary

    @classmethod
    def empty(cls, documents: TextFeatures) -> PairTable:
        """Return the table of a model without pairs."""
        from scipy.sparse import csr_array

        n = len(documents.words_)
        return cls(csr_array((n, n), dtype=np.float32), QueryVocabulary(documents))

    def related_to(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return the document words with the largest weights for stems that are separated by blanks.

        A sequence without a row of its own, such as the bigrams of a long word, has the sum of the rows of its stems.
        """
        row = self._vocabulary.column(text)
        stems = text.split(" ") if row is None else []
        rows = [known for stem in stems if (known := self._vocabulary.column(stem)) is not None]
        if not rows:
            return self.related(text if row is None else row, k)
        total = self.W_[rows].sum(axis=0)
        best = [i for i in np.argsort(-total, kind="stable")[: validation.count("k", k, low=1)].tolist() if total[i]]
        return [(self._word(self.document_words_, i), float(total[i])) for i in best]


@dataclass(frozen=True, repr=False)
class TextModel(Summary):
    """The fitted model; `vocabulary` and `W` are None if it has the lexical part alone.

    info : facts about the training, such as the chosen hyperparameters and held-out nDCG.
    names : queries that are ranked by the lexical score alone, because they are names of documents.
    dense : the score of embeddings beside words and pairs, or None.
    """

    lexical: LexicalModel
    vocabulary: QueryVocabulary | None = None
    W: csr_array | None = None
    pair_weight: float = 0.0
    constraints: Constraints = field(default_factory=Constraints)
    info: Mapping[str, Any] = field(default_factory=dict)
    names: DocumentNames | None = None
    dense: DenseScore | None = None

    gain = renamed_attribute("gain", "pair_weight")
    edits = renamed_attribute("edits", "constraints")
    told = renamed_attribute("told", "info")

    def _summary(self) -> dict[str, Any]:
        return {"lexical": self.lexical, "n_pairs": self.n_pairs, "pair_weight": self.pair_weight}

    @property
    def n_terms(self) -> int:
        """The number of columns of an index."""
        return len(self.lexical.words) * (1 if self.W is None else 2)

    @property
    def n_pairs(self) -> int:
        """The number of word pairs."""
        return 0 if self.W is None else int(self.W.nnz)

    @cached_property
    def pairs(self) -> PairTable | None:
        """pair_weight · W with its words, or None."""
        if self.W is None or self.vocabulary is None:
            return None
        return PairTable(self.W * np.float32(self.pair_weight), self.vocabulary)

    def has_pairs(self, word: str) -> bool:
        """Return whether a stem has pairs as a query word."""
        if self.W is None or self.vocabulary is None or (row := self.vocabulary.column(word)) is None:
            return False
        return bool(self.W.indptr[row + 1] > self.W.indptr[row])

    def named_pairs(self) -> dict[Pair, float]:
        """Return {(query word, document word): pair_weight · weight}."""
        if self.W is None or self.vocabulary is None:
            return {}
        W, query, document = self.W.tocoo(), self.vocabulary.words, self.lexical.words
        entries = zip(W.row.tolist(), W.col.tolist(), (np.float64(self.pair_weight) * W.data).tolist(), strict=True)
        return {(query[i], document[j]): weight for i, j, weight in entries}

    # ---- encoding for an index

    def encode_documents(self, documents: Documents) -> csr_array:
        """Return the rows of documents for an index."""
        return self.index_rows(self.lexical.documents(documents))

    def index_rows(self, lexical_rows: csr_array) -> csr_array:
        """Return lexical rows followed by the pair columns."""
        from scipy.sparse import csr_array, hstack

        if self.W is None:
            return lexical_rows
        return csr_array(hstack([lexical_rows, document_rows(self.lexical.features, lexical_rows)], format="csr"))

    def encode_queries(self, texts: Iterable[str]) -> EncodedQuery:
        """Encode queries for an index."""
        texts = list(texts)
        if len(texts) == 1:
            return self.encode_rows(*self.query_rows(texts[0]))
        rows = self.lexical.queries(texts)
        if self.W is None or self.vocabulary is None:
            return EncodedQuery(rows)
        rows.resize((len(texts), self.n_terms))
        words = self.vocabulary.encode(texts)
        for i in np.flatnonzero(self._are_names(texts)).tolist():
            row = slice(words.indptr[i], words.indptr[i + 1])
            if not self._has_pinned(words.indices[row]):
                words.data[row] = 0.0
        words.eliminate_zeros()
        return EncodedQuery(rows, words, self.W, self.pair_weight, len(self.lexical.words), self.pairs_digest)

    def encode_lexical_query(self, text: str) -> EncodedQuery:
        """Encode a query without its learned pairs."""
        known = self._cache.get(text) if type(text) is str else None
        row = KernelRows.from_row(*self.lexical.query_row(text)) if known is None else known[0]
        return self.encode_rows(row)

    def query_rows(self, text: str) -> tuple[KernelRows, KernelRows | None]:
        """Return one query in the columns of an index and in the rows of W (None without W).

        The last queries are cached: a search, its explanation and its lexical ranking encode a text once.
        """
        rows = self._cache.get(text) if type(text) is str else None
        if rows is None:
            words = self.lexical.features.short_words(text)  # both rows, and the look-up among names, begin with them
            rows = KernelRows.from_row(*self.lexical.query_row(text, words)), self.word_row(text, words)
            if len(self._cache) >= QUERY_CACHE_SIZE:
                self._cache.clear()
            self._cache[text] = rows
        return rows

    def word_row(self, text: str, words: list[str] | None = None) -> KernelRows | None:
        """Return one query in the rows of W, or None without W; the row of a name is empty.

        words : those of the text, if they are known.
        """
        vocabulary = None if self.W is None else self.vocabulary
        if vocabulary is None:
            return None
        columns, weights = vocabulary.encode_row(text, words)
        if self._is_name(text, words) and not self._has_pinned(columns):
            columns, weights = columns[:0], weights[:0]
        return KernelRows.from_row(columns, weights)

    def _is_name(self, text: str, words: list[str] | None) -> bool:
        if self.names is None or words is None:
            return bool(self._are_names([text])[0])
        return self.names.has(with_grams(words, self.lexical.features.analyzer_.ngrams))

    def encode_rows(self, terms: KernelRows, words: KernelRows | None = None) -> EncodedQuery:
        """Return the query with these rows for an index."""
        return EncodedQuery.from_rows(terms, words, self._no_queries)

    def _are_names(self, texts: Sequence[str]) -> NDArray[np.bool_]:
        if self.names is None:
            return np.zeros(len(texts), np.bool_)
        return self.names.shares(self.lexical.features, texts) > 0.0

    def _has_pinned(self, columns: NDArray[np.int32]) -> bool:
        """Whether a query has the word of a pinned pair: pinned pairs count for names too."""
        words = () if self.vocabulary is None else self.vocabulary.words
        return any(words[i] == word for i in columns.tolist() for word, _ in self.constraints.pinned)

    @cached_property
    def _cache(self) -> dict[str, tuple[KernelRows, KernelRows | None]]:
        return {}

    @cached_property
    def _no_queries(self) -> EncodedQuery:
        """What all queries of the model share."""
        return self.encode_queries([])

    @cached_property
    def pairs_digest(self) -> str:
        """A digest of the pairs and their weight; an expansion of documents is valid for these pairs only."""
        digest = hashlib.sha256(json.dumps(self.pair_weight).encode())
        for array in () if self.W is None else (self.W.indptr, self.W.indices, self.W.data):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def with_constraints(self, constraints: Constraints) -> TextModel:
        """Return the model with these constraints applied; a pinned weight includes `pair_weight`."""
        if self.W is None or self.vocabulary is None:
            return replace(self, constraints=constraints)
        W = constraints.index(self.vocabulary, self.pair_weight or 1.0).apply(self.W)
        return replace(self, constraints=constraints, W=W)

    # ---- the model file

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return settings and arrays for a model file."""
        settings, arrays = self.lexical.state()
        arrays |= pack_spellings(self.lexical.features.spellings_)
        if self.lexical.synonyms:
            settings |= {"synonyms": asdict(self.lexical.synonyms)}
        if self.dense is not None:
            settings |= {"dense": self.dense.to_dict()}
        if self.W is None or self.vocabulary is None:
            return settings, arrays
        pairs = {
            "pair_weight": self.pair_weight,
            "constraints": self.constraints.to_dict(),
            "info": dict(self.info),
            "like_documents": self.vocabulary.queries_are_documents,
        }
        arrays |= self.vocabulary.state() | pack_csr("W", self.W)
        return settings | {"pairs": pairs}, arrays | ({} if self.names is None else {"names": self.names.digests})

    @classmethod
    def from_file(cls, file: Tensors) -> TextModel:
        """Return the model that `state` described, or that release 0.1 wrote."""
        lexical = LexicalModel.from_file(file)
        lexical.features.spellings_ = stored_spellings(file)
        lexical.use_synonyms(stored_synonyms(file.settings.get("synonyms"), file.path))
        dense = DenseScore.stored(file)
        if "pairs" not in file.settings:
            return cls(lexical, dense=dense)
        pairs = file.setting("pairs", dict)
        pairs = {"pair_weight": pairs.get("gain"), "constraints": pairs.get("edits"), "info": pairs.get("told")} | pairs
        vocabulary = QueryVocabulary.from_file(lexical.features, file, bool(pairs.get("like_documents", False)))
        if len(set(vocabulary.words)) < len(vocabulary.words):
            raise ModelError(f"{file.path}: a query word occurs twice")
        weight = pairs["pair_weight"]
        if not isinstance(weight, float | int) or not 0.0 <= weight < np.inf:
            raise ModelError(f"{file.path}: 'pair_weight' must be a number in [0, inf). Got {weight!r} instead.")
        W = file.csr("W", (len(vocabulary.words), len(lexical.words)))
        constraints = Constraints.from_dict(pairs["constraints"], file.path)
        info = {KEYS_OF_0_1.get(key, key): value for key, value in (pairs["info"] or {}).items()}
        names = DocumentNames.stored(file.array("names", "int64")) if "names" in file.arrays else None
        return cls(lexical, vocabulary, W, float(weight), constraints, info, names, dense)
