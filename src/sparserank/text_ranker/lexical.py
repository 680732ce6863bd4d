"""Rankers that learn nothing but word counts: BM25 and tf-idf cosine. Score = query row · document row.

Title and text are fields: their counts are added, each times its weight, before anything else is computed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from .. import validation
from ..data.formats.tensors import Tensors, pack_strings
from ..data.records import Documents
from ..errors import DataError, ModelError, SparseRankError
from ..text import Analyzer, TextFeatures

if TYPE_CHECKING:
    from scipy.sparse import csr_array

KINDS = ("bm25", "cosine")


@dataclass(frozen=True)
class LexicalSettings:
    """What a lexical ranker is told before it sees a document."""

    kind: str = "bm25"
    k1: float = 0.9
    b: float = 0.4
    title_weight: float = 1.0
    text_weight: float = 1.0
    analyzer: Analyzer = field(default_factory=Analyzer)

    def __post_init__(self) -> None:
        validation.choice("ranker", self.kind, KINDS)
        validation.number("k1", self.k1, low=0)
        validation.number("b", self.b, low=0, high=1)
        validation.number("title_weight", self.title_weight, low=0)
        validation.number("text_weight", self.text_weight, low=0)


class LexicalRanker:
    """BM25 or cosine over words: `fit` gives the documents' rows, `queries` the queries' rows.

    >>> ranker = LexicalRanker()
    >>> docs = ranker.fit(Documents.of({"a": "red apple", "b": "green pear"}))
    >>> (ranker.queries(["Apple!"]) @ docs.T).toarray()[0].nonzero()[0].tolist()
    [0]
    """

    def __init__(self, settings: LexicalSettings | None = None) -> None:
        self.settings = settings or LexicalSettings()
        self.features = TextFeatures(
            "bm25" if self.settings.kind == "bm25" else "sublinear",
            unit=self.settings.kind == "cosine",
            analyzer=self.settings.analyzer,
            k1=self.settings.k1,
            b=self.settings.b,
        )

    @property
    def _field_weights(self) -> tuple[float, float]:
        return self.settings.title_weight, self.settings.text_weight

    def fit(self, documents: Documents) -> csr_array:
        """Learn vocabulary and document frequencies; returns the documents' rows."""
        if len(documents) == 0:
            raise DataError("there are no documents to learn from")
        counts = self.features.fit_counts(documents.titles, documents.texts, field_weights=self._field_weights)
        if counts.shape[1] == 0:
            raise DataError(f"none of the {len(documents)} documents has a word")
        return self.features.weighted(counts)

    def documents(self, documents: Documents) -> csr_array:
        """Rows of other documents, in the words and frequencies learned before."""
        weights = self._field_weights
        return self.features.weighted(
            self.features.field_counts(documents.titles, documents.texts, field_weights=weights)
        )

    def queries(self, texts: Iterable[str]) -> csr_array:
        """Rows of queries: plain counts for BM25, unit tf-idf for cosine."""
        counts = self.features.counts(texts).matrix
        return counts if self.settings.kind == "bm25" else self.features.weighted(counts)

    @property
    def words(self) -> tuple[str, ...]:
        """The word of every column."""
        return self.features.words_

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Settings and arrays for a model file."""
        settings = asdict(self.settings) | {
            "documents": self.features.documents_,
            "mean_length": self.features.mean_length_,
        }
        return settings, pack_strings("words", self.words) | {"df": self.features.df_}

    @classmethod
    def from_file(cls, file: Tensors) -> LexicalRanker:
        """The ranker that `state` described."""
        words = file.strings("words")
        df = file.array("df", "int64", len(words))
        given: dict[str, Any] = {name: file.settings.get(name) for name in LexicalSettings.__dataclass_fields__}
        try:
            analyzer = Analyzer(**file.setting("analyzer", dict))
            ranker = cls(LexicalSettings(**given | {"analyzer": analyzer}))
            documents = validation.count("documents", file.settings.get("documents"), low=1, high=2**53)
            mean_length = validation.number("mean_length", file.settings.get("mean_length"), low=0, open_low=True)
        except (SparseRankError, TypeError) as error:
            raise ModelError(f"{file.path}: its settings do not fit: {error}") from None
        if len(df) and (df.min() < 1 or df.max() > documents):
            raise ModelError(f"{file.path}: a document frequency is outside [1, {documents}]")
        ranker.features.restore(words, df, documents, mean_length)
        if len(ranker.features.vocabulary_) < len(words):
            raise ModelError(f"{file.path}: its vocabulary is inconsistent")
        return ranker
