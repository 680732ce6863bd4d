"""TextModel: a lexical ranker, and the word pairs learned beside it.

    score = lexical + gain · qᵀ W d

An index of it has two columns a word: the lexical weight, and the weight that pairs look for. So one inner product is
the whole score, and a query without learned words has the lexical score to the bit.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..bilinear.word_pairs import WordPairs
from ..data.formats.tensors import Tensors, pack_csr
from ..data.records import Documents
from ..errors import ModelError
from ..search.encoded_query import EncodedQuery
from .constraints import Constraints, Pair
from .lexical import LexicalRanker
from .query_words import QueryWords, document_rows

if TYPE_CHECKING:
    from scipy.sparse import csr_array


KEPT = 32
"""Queries that are not read again when they are asked again soon."""


class PairTable(WordPairs):
    """W with the words of its rows and columns."""

    def __init__(self, W: csr_array, words: QueryWords) -> None:
        self.W_, self.query_words_, self.document_words_ = W, words.words, words.documents.words_


@dataclass(frozen=True)
class TextModel:
    """What was learned; `words` and `W` are None where only words were counted."""

    lexical: LexicalRanker
    words: QueryWords | None = None
    W: csr_array | None = None
    gain: float = 0.0
    edits: Constraints = field(default_factory=Constraints)
    told: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_terms(self) -> int:
        """Columns of an index."""
        return len(self.lexical.words) * (1 if self.W is None else 2)

    @property
    def n_pairs(self) -> int:
        """Word pairs."""
        return 0 if self.W is None else int(self.W.nnz)

    @cached_property
    def pairs(self) -> PairTable | None:
        """gain · W, to be asked about words."""
        if self.W is None or self.words is None:
            return None
        return PairTable(self.W * np.float32(self.gain), self.words)

    def named_pairs(self) -> dict[Pair, float]:
        """{(query word, document word): gain · weight}"""
        if self.W is None or self.words is None:
            return {}
        W = self.W.tocoo()
        query, document = self.words.words, self.lexical.words
        weights = (np.float64(self.gain) * W.data).tolist()
        places = zip(W.row.tolist(), W.col.tolist(), weights, strict=True)
        return {(query[i], document[j]): weight for i, j, weight in places}

    def documents(self, documents: Documents) -> csr_array:
        """Rows of documents for an index."""
        return self.beside(self.lexical.documents(documents))

    def beside(self, weighted: csr_array) -> csr_array:
        """Lexical rows, and beside them what pairs look for."""
        from scipy.sparse import csr_array, hstack

        if self.W is None:
            return weighted
        return csr_array(hstack([weighted, document_rows(self.lexical.features, weighted)], format="csr"))

    def asked(self, texts: Iterable[str]) -> EncodedQuery:
        """Queries for an index."""
        texts = list(texts)
        rows, words = self.one(texts[0]) if len(texts) == 1 else self._rows(texts)
        if words is None:
            return EncodedQuery(rows)
        return EncodedQuery(rows, words, self.W, self.gain, len(self.lexical.words), self.pairs_digest)

    def lexical_asked(self, text: str) -> EncodedQuery:
        """A query for an index, without what was learned."""
        return EncodedQuery(self.one(text)[0])

    def one(self, text: str) -> tuple[csr_array, csr_array | None]:
        """One query in the columns of an index, and its words that W has (None without a W); not to be written into.

        The last ones are kept: a search, its explanation and the lexical ranking beside it read a text once.
        """
        found = self._last.get(text) if type(text) is str else None
        if found is None:
            found = self._rows([text])
            if len(self._last) >= KEPT:
                self._last.clear()
            self._last[text] = found
        return found

    @cached_property
    def _last(self) -> dict[str, tuple[csr_array, csr_array | None]]:
        return {}

    def _rows(self, texts: list[str]) -> tuple[csr_array, csr_array | None]:
        rows = self.lexical.queries(texts)
        if self.W is None or self.words is None:
            return rows, None
        rows.resize((len(texts), self.n_terms))
        return rows, self.words.rows(texts)

    @cached_property
    def pairs_digest(self) -> str:
        """A name for the pairs and their gain: documents are expanded through these and no others."""
        digest = hashlib.sha256(json.dumps(self.gain).encode())
        for array in () if self.W is None else (self.W.indptr, self.W.indices, self.W.data):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def edited(self, edits: Constraints) -> TextModel:
        """With these edits, and as if they had always been there. A pinned weight is what is added, gain included."""
        if self.W is None or self.words is None:
            return replace(self, edits=edits)
        scaled = replace(edits, pinned={pair: weight / (self.gain or 1.0) for pair, weight in edits.pinned.items()})
        return replace(self, edits=edits, W=scaled.apply(self.W, self.words))

    # ---- the model file

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Settings and arrays for a model file."""
        settings, arrays = self.lexical.state()
        if self.W is None or self.words is None:
            return settings, arrays
        pairs = {
            "gain": self.gain,
            "edits": self.edits.to_dict(),
            "told": dict(self.told),
            "like_documents": self.words.like_documents,
        }
        return settings | {"pairs": pairs}, arrays | self.words.state() | pack_csr("W", self.W)

    @classmethod
    def from_file(cls, file: Tensors) -> TextModel:
        """The model that `state` described; what is not consistent is refused by name."""
        lexical = LexicalRanker.from_file(file)
        if "pairs" not in file.settings:
            return cls(lexical)
        pairs = file.setting("pairs", dict)
        words = QueryWords.from_file(lexical.features, file, bool(pairs.get("like_documents", False)))
        if len(set(words.words)) < len(words.words):
            raise ModelError(f"{file.path}: its query words are not all different")
        gain = pairs.get("gain")
        if not isinstance(gain, float | int) or not 0.0 <= gain < np.inf:
            raise ModelError(f"{file.path}: the gain of its pairs cannot be {gain!r}")
        W = file.csr("W", (len(words.words), len(lexical.words)))
        edits = Constraints.from_dict(pairs.get("edits"), file.path)
        return cls(lexical, words, W, float(gain), edits, dict(pairs.get("told") or {}))
