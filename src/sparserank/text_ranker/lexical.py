"""The lexical part of a text ranker: BM25 or tf-idf cosine.  score = query row · document row

Title and text are fields. Their counts are added, each times its weight, before the term weights are computed. With
further fields, or with `field_weights`, BM25 is BM25F: each field's counts are divided by its own length normalization.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..base.parameters_file import storable
from ..data.formats.tensors import Tensors, pack_strings
from ..data.records import Documents
from ..errors import ConfigError, DataError, ModelError, NotInstalled, SparseRankError
from ..parameters import Summary
from ..text import Analyzer, TextFeatures
from ..text.analyzer import as_analyzer
from ..text.segmentation import segmenter_version
from ..text.sparse_counts import weighted_sum
from ..text.surface_forms import SurfaceForms
from .analyzer_file import analyzer_settings, pack_compounds, stored_analyzer, warn_other_segmenter
from .bm25f import BM25F, mean_length
from .synonyms import Synonyms, SynonymTable

if TYPE_CHECKING:
    from scipy.sparse import csr_array

LEXICAL = ("bm25", "cosine")
storable(Analyzer)


@storable
@dataclass(frozen=True)
class Cosine:
    """Score documents by the cosine of sublinear tf-idf vectors.

    Parameters
    ----------
    title_weight, text_weight : float, default=1.0
        The weights of a word in the title and in the text.

    Examples
    --------
    >>> from sparserank import TextRanker
    >>> TextRanker(lexical=Cosine(title_weight=2.0))
    TextRanker(lexical=Cosine(title_weight=2.0, text_weight=1.0))
    """

    title_weight: float = 1.0
    text_weight: float = 1.0

    def __post_init__(self) -> None:
        _check_nonnegative(self)


@storable
@dataclass(frozen=True)
class BM25:
    """Score documents by BM25.

    Parameters
    ----------
    k1 : float, default=0.9
        Term-frequency saturation: the larger, the more repeated words count.
    b : float, default=0.4
        Length normalization, from 0 (none) to 1 (full).
    title_weight, text_weight : float, default=1.0
        The weights of a word in the title and in the text.
    field_weights : mapping of str to float, "auto" or None, default=None
        The weights of the fields for BM25F; a field without one has the weight 1. "auto" tunes them on held-out judged
        queries; with title and text only, BM25 stays unless BM25F is better there. None is BM25 for documents with
        title and text, and "auto" for documents with further fields.

    Examples
    --------
    >>> from sparserank import TextRanker
    >>> TextRanker(lexical=BM25(k1=1.2)).get_params()["lexical__k1"]
    1.2
    """

    k1: float = 0.9
    b: float = 0.4
    title_weight: float = 1.0
    text_weight: float = 1.0
    field_weights: Mapping[str, float] | str | None = None

    def __post_init__(self) -> None:
        validation.number("b", self.b, low=0, high=1)
        _check_nonnegative(self)
        if isinstance(self.field_weights, str):
            validation.choice("field_weights", self.field_weights, ("auto",))
        for name, weight in self.given_field_weights.items():
            validation.number(f"field_weights[{name!r}]", weight, low=0)

    @property
    def given_field_weights(self) -> Mapping[str, float]:
        """The weights that the user gave."""
        weights = self.field_weights
        if weights is None or isinstance(weights, str):
            return {}
        return validation.mapping("field_weights", weights)


def _check_nonnegative(scoring: BM25 | Cosine) -> None:
    for name, value in vars(scoring).items():
        if name != "field_weights":
            validation.number(name, value, low=0)


def as_lexical(value: Any) -> BM25 | Cosine:
    """Return the lexical scoring for a parameter: "bm25", "cosine" or an object."""
    if isinstance(value, BM25 | Cosine):
        return value
    return BM25() if validation.choice("lexical", value, LEXICAL) == "bm25" else Cosine()


class LexicalModel(Summary):
    """A fitted lexical scoring: `fit` returns the rows of documents, `queries` those of queries.

    >>> model = LexicalModel()
    >>> rows = model.fit(Documents.of({"a": "red apple", "b": "green pear"}))
    >>> (model.queries(["Apple!"]) @ rows.T).toarray()[0].nonzero()[0].tolist()
    [0]
    """

    def __init__(
        self, scoring: BM25 | Cosine | None = None, analyzer: Analyzer | None = None, synonyms: Synonyms | None = None
    ) -> None:
        self.scoring = BM25() if scoring is None else scoring
        self.synonyms = Synonyms() if synonyms is None else synonyms
        analyzer = Analyzer() if analyzer is None else analyzer
        self.text_field = "text"
        self.fields: tuple[str, ...] = ()
        self.bm25f: BM25F | None = None
        if isinstance(self.scoring, BM25):
            k1, b = self.scoring.k1, self.scoring.b
            self.features = TextFeatures("bm25", unit=False, analyzer=analyzer, k1=k1, b=b)
        else:
            self.features = TextFeatures("sublinear", unit=True, analyzer=analyzer)
        self.segmenter_version = segmenter_version(analyzer.segmenter)

    def _summary(self) -> dict[str, Any]:
        n_words = len(getattr(self.features, "words_", ()))  # none before the fit
        return {"scoring": self.scoring, "analyzer": self.analyzer, "n_words": n_words}

    @property
    def kind(self) -> str:
        """'bm25' or 'cosine'."""
        return "bm25" if isinstance(self.scoring, BM25) else "cosine"

    @property
    def analyzer(self) -> Analyzer:
        """The analyzer; after a fit with the languages that were detected."""
        return getattr(self.features, "analyzer_", None) or as_analyzer(self.features.analyzer)

    @property
    def field_weights(self) -> tuple[float, ...]:
        """The weights of title, text and further fields."""
        return self.scoring.title_weight, self.scoring.text_weight, *(1.0 for _ in self.fields)

    @property
    def weight_of_field(self) -> dict[str, float]:
        """The weight of each searched field."""
        names = ("title", self.text_field, *self.fields)
        return dict(zip(names, self.field_weights if self.bm25f is None else self.bm25f.weights, strict=True))

    @property
    def words(self) -> tuple[str, ...]:
        """The word of each column."""
        return self.features.words_

    def surface_forms(self, words: Iterable[str]) -> dict[str, str]:
        """Return {word: as most documents spell it} for the words that are stems, or sequences of stems.

        >>> model = LexicalModel(analyzer=Analyzer("english"))
        >>> rows = model.fit(Documents.of({"a": "red apples"}))
        >>> model.surface_forms(["red", "appl", "red appl"])
        {'appl': 'apples', 'red appl': 'red apples'}
        """
        spellings = self.features.spellings_.most_frequent()
        shown = {word: " ".join([spellings.get(part, part) for part in word.split(" ")]) for word in words}
        return {word: form for word, form in shown.items() if word != form}

    def fit(self, documents: Documents) -> csr_array:
        """Learn the vocabulary and document frequencies; return the rows of the documents."""
        counts = self.fit_counts(documents)
        return self.features.apply_weights(counts) if self.bm25f is None else self.weigh(counts)

    def fit_counts(self, documents: Documents) -> Any:
        """Learn the vocabulary and the statistics; return the counts, for BM25F those of each field."""
        if len(documents) == 0:
            raise DataError("there are no documents to learn from")
        given = self.scoring.given_field_weights if isinstance(self.scoring, BM25) else {}
        self.text_field = documents.text_field
        others = (*documents.fields, *(name for name in given if name not in ("title", "text", self.text_field)))
        self.fields = tuple(dict.fromkeys(others))
        for name in self.fields:
            if name not in documents.fields and not any(documents.column(name)):
                raise DataError(f"no document has the field {name!r} of field_weights")
        columns = list(self.columns(documents).values())
        if isinstance(self.scoring, Cosine) or not (self.fields or self.scoring.field_weights is not None):
            counts: Any = self.features.fit_counts(*columns, field_weights=self.field_weights)
        else:
            self.features.b = 0.0  # BM25F normalizes the lengths of fields before the counts are added
            counts = self.features.fit_fields(*columns)
            weights = dict(zip(("title", self.text_field, *self.fields), self.field_weights, strict=True)) | dict(given)
            if "text" in given:
                weights[self.text_field] = given["text"]
            weights = {name: weights[name] for name in ("title", self.text_field, *self.fields)}
            self.bm25f = BM25F(tuple(weights.values()), tuple(map(mean_length, counts)), self.scoring.b)
        if len(self.features.words_) == 0:
            raise DataError(f"none of the {len(documents)} documents has a word")
        self.use_synonyms(self.synonyms)
        return counts

    def use_synonyms(self, synonyms: Synonyms) -> None:
        """Use these synonyms; a word that the analyzer removes raises DataError."""
        self.synonyms, self.__dict__["synonym_table"] = synonyms, SynonymTable(synonyms, self.features)

    @cached_property
    def synonym_table(self) -> SynonymTable:
        """The synonyms by column."""
        return SynonymTable(self.synonyms, self.features)

    def weigh(self, counts: Sequence[csr_array]) -> csr_array:
        """Return the rows of documents, given the counts of their fields, by BM25F."""
        assert self.bm25f is not None
        return self.features.apply_weights(self.bm25f.combine(counts))

    def plain_rows(self, counts: list[csr_array]) -> csr_array:
        """Return the rows of documents by BM25, given the counts of title and text."""
        features = copy(self.features)
        features.b = self.scoring.b if isinstance(self.scoring, BM25) else 0.0
        return features.apply_weights(weighted_sum(counts, self.field_weights))

    def use_bm25(self) -> None:
        """Score by BM25 instead of BM25F."""
        self.bm25f = None
        self.features.b = self.scoring.b if isinstance(self.scoring, BM25) else 0.0

    def documents(self, documents: Documents) -> csr_array:
        """Return rows of other documents, with the fitted vocabulary and frequencies."""
        columns = list(self.columns(documents).values())
        if self.bm25f is not None:
            return self.weigh([self.features.counts(column).matrix for column in columns])
        counts = self.features.field_counts(*columns, field_weights=self.field_weights)
        return self.features.apply_weights(counts)

    def columns(self, documents: Documents) -> dict[str, tuple[str, ...]]:
        """Return {searched field: its text in every document}; the second is "text", whatever its name was."""
        text = documents.column(self._text_name(documents))
        return {"title": documents.titles, "text": text} | {name: documents.column(name) for name in self.fields}

    def _text_name(self, documents: Documents) -> str:
        """Return the field that is searched as the text; an index holds it under the name "text"."""
        is_other = self.text_field not in ("text", documents.text_field) and any(documents.column(self.text_field))
        return self.text_field if is_other else documents.text_field

    def not_searched(self, documents: Documents) -> Counter[str]:
        """Count the documents with a text in each text field that this model does not search."""
        others = {documents.text_field, *documents.fields}.difference([self._text_name(documents)], self.fields)
        return Counter({name: n for name in sorted(others) if (n := sum(map(bool, documents.column(name))))})

    def queries(self, texts: Iterable[str]) -> csr_array:
        """Return rows of queries: counts for BM25, tf-idf vectors of unit length for cosine."""
        texts = list(texts) if self.synonyms else texts
        counts = self.features.counts(texts).matrix
        if self.synonyms:
            counts = counts + self._synonym_counts(texts)
        return counts if self.kind == "bm25" else self.features.apply_weights(counts)

    def _synonym_counts(self, texts: Iterable[str]) -> csr_array:
        from scipy.sparse import csr_array

        added = [self.synonym_table.added(text) for text in texts]
        entries = [(i, column, weight) for i, one in enumerate(added) for column, (weight, _) in one.items()]
        rows, columns, weights = zip(*entries, strict=True) if entries else ((), (), ())
        position = np.array(rows, np.int32), np.array(columns, np.int32)
        return csr_array((np.array(weights, np.float32), position), shape=(len(added), len(self.words)))

    def query_counts(self, text: str, words: list[str] | None = None) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the columns of one query in ascending order, and their counts; a synonym has a fraction.

        words : those of the text, if they are known.
        """
        columns, counts = self.features.count_words(text, words)
        if not self.synonyms:
            return columns, counts
        total = dict(zip(columns.tolist(), counts.tolist(), strict=True))
        for column, (weight, _) in self.synonym_table.added(text).items():
            total[column] = total.get(column, 0.0) + weight
        order = sorted(total)
        return np.array(order, np.int32), np.array([total[column] for column in order], np.float32)

    def query_row(self, text: str, words: list[str] | None = None) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the columns and the weights of one query, as `queries` does.

        words : those of the text, if they are known.
        """
        if self.kind == "bm25":
            return self.query_counts(text, words)
        row = self.queries([text])
        return row.indices.astype(np.int32, copy=False), row.data

    def query_weights(self, columns: NDArray[np.int32], counts: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the weights of query words with these counts, which may be fractions, before the row is normalized."""
        return counts if self.kind == "bm25" else counts * self.features.idf_[columns]

    def weigh_query(
        self, columns: NDArray[np.int32], counts: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the row of a query with these counts, as `query_row` does for a text."""
        if self.kind == "bm25":
            return columns, counts
        from scipy.sparse import csr_array

        shape = (1, len(self.words))
        row = self.features.apply_weights(csr_array((counts, columns, np.array([0, len(columns)])), shape=shape))
        return row.indices.astype(np.int32, copy=False), row.data

    @cached_property
    def spelling_index(self) -> SurfaceForms:
        """All spellings of the words, by first letters and with typing errors."""
        return SurfaceForms(self.features)

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return settings and arrays for a model file; `TextRanker.fingerprint` depends on every byte of them."""
        scoring = self.scoring if isinstance(self.scoring, BM25) else BM25()
        settings = {
            "kind": self.kind,
            **vars(scoring) | vars(self.scoring),
            "analyzer": analyzer_settings(self.analyzer, self.segmenter_version),
            "documents": self.features.documents_,
            "mean_length": self.features.mean_length_,
        }
        del settings["field_weights"]
        if self.text_field != "text" or self.fields or self.bm25f is not None:
            settings["fields"] = {"names": ["title", self.text_field, *self.fields]}
        if self.bm25f is not None:
            settings["fields"] |= {"weights": list(self.bm25f.weights), "lengths": list(self.bm25f.mean_lengths)}
        arrays = pack_strings("words", self.words) | {"df": self.features.df_}
        return settings, arrays | pack_compounds(self.analyzer.compounds)

    def _restore_fields(self, stored: Any) -> None:
        """Set the fields that `state` described; None: title and text."""
        if stored is None:
            return
        names = [str(name) for name in stored["names"]]
        self.text_field, self.fields = names[1], tuple(names[2:])
        if "weights" not in stored:
            return
        weights, lengths = (
            tuple(validation.number(key, one, low=0) for one in stored[key]) for key in ("weights", "lengths")
        )
        if not len(weights) == len(lengths) == len(names):
            raise ConfigError(f"{len(names)} fields need as many weights and lengths")
        self.bm25f = BM25F(weights, lengths, self.scoring.b if isinstance(self.scoring, BM25) else 0.0)
        self.features.b = 0.0

    @classmethod
    def from_file(cls, file: Tensors) -> LexicalModel:
        """Return the model that `state` described."""
        words = file.strings("words")
        df = file.array("df", "int64", len(words))
        settings = file.settings
        try:
            analyzer, made_by = stored_analyzer(file)
            fields = {name: settings.get(name) for name in BM25.__dataclass_fields__}
            bm25 = BM25(**fields)  # type: ignore[arg-type]
            cosine = Cosine(bm25.title_weight, bm25.text_weight)
            model = cls(
                bm25 if validation.choice("kind", settings.get("kind"), LEXICAL) == "bm25" else cosine, analyzer
            )
            model._restore_fields(settings.get("fields"))
            documents = validation.count("documents", settings.get("documents"), low=1, high=2**53)
            mean_length = validation.number("mean_length", settings.get("mean_length"), low=0, open_low=True)
        except NotInstalled as error:
            raise NotInstalled(f"{file.path}: {error}") from None
        except (SparseRankError, TypeError, KeyError, ValueError) as error:
            raise ModelError(f"{file.path}: invalid settings: {error}") from None
        if made_by != model.segmenter_version:
            warn_other_segmenter(file.path, analyzer.segmenter, made_by, model.segmenter_version)
            model.segmenter_version = made_by  # as the index of the model has it
        if len(df) and (df.min() < 1 or df.max() > documents):
            raise ModelError(f"{file.path}: a document frequency is outside [1, {documents}]")
        model.features.restore(words, df, documents, mean_length)
        if len(model.features.vocabulary_) < len(words):
            raise ModelError(f"{file.path}: a word occurs twice in the vocabulary")
        return model
