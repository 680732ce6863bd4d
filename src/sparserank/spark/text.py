"""SparkTextRanker: learn a `TextRanker` from documents that stay on a cluster.

The learner is that of `TextRanker`. Its documents are rows on the executors: the sums of the closed form, candidate
searches, scores and the gradient of the loss are computed there, by partition, and the driver solves for W. The result
is an ordinary `TextRanker`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..data.files import PathLike
from ..data.records import Documents, Qrels
from ..deprecated import renamed_parameters
from ..errors import ConfigError, DataError
from ..parameters import Parameters
from ..search import Index
from ..text_ranker.document_names import DocumentNames
from ..text_ranker.indexed_model import Docs
from ..text_ranker.lexical import BM25, LexicalModel
from ..text_ranker.model import TextModel
from ..text_ranker.query_vocabulary import QueryVocabulary
from ..text_ranker.ranker import TextRanker
from ..text_ranker.training_data import TrainingData, TrainingMatrices
from .documents import ClusterDocuments
from .errors import check_settings, executor_errors
from .features import fit_features
from .index import write_index
from .normal_equations import Product
from .tables import document_columns, to_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SparkTextRanker(Parameters):
    """Learns a `TextRanker` from documents on a cluster.

    The driver holds the queries, the judgments and W, and matrices of words; no document is sent to it.

    Parameters
    ----------
    ranker : TextRanker, optional
        The settings; ranker must be 'text' and penalty 'ridge'.
    partitions : int, optional
        Partitions of documents that are given as a mapping; by default the cluster's default parallelism. A DataFrame
        keeps its own.

    Attributes
    ----------
    products_ : tuple of Product
        One record per matrix product of the squared loss, after `fit`.

    Examples
    --------
    >>> docs = {"d1": "red apples", "d2": "green pears"}
    >>> ranker = SparkTextRanker(partitions=1).fit(spark, docs, {"q1": "fruit"}, {"q1": {"d1": 1}})
    >>> ranker.search("pears")[0].id
    'd2'
    """

    def __init__(self, ranker: TextRanker | None = None, *, partitions: int | None = None) -> None:
        self.ranker = TextRanker() if ranker is None else ranker
        self.partitions = partitions

    @renamed_parameters({"drop_self": "exclude_self", "tell": "callback"})
    def fit(
        self,
        spark: SparkSession,
        docs: Docs | DataFrame,
        queries: Mapping[str, str],
        qrels: Qrels,
        *,
        query_weight: Mapping[str, float] | None = None,
        query_group: Mapping[str, str] | None = None,
        exclude_self: bool = False,
        callback: Callable[[str], None] = lambda message: None,
        index: PathLike | None = None,
    ) -> TextRanker:
        """Learn from documents and judged queries.

        Parameters
        ----------
        spark : SparkSession
            The cluster.
        docs : DataFrame or mapping
            A DataFrame with the columns id, text and, optionally, title, whose order can be reproduced; or documents as
            in `TextRanker.fit`.
        queries, qrels, query_weight, query_group, exclude_self, callback
            As in `TextRanker.fit`; qrels must be a mapping.
        index : path-like, optional
            Where to write the index, as a folder of shards that the driver and all executors reach. Without it, a
            DataFrame gets no index.

        Returns
        -------
        TextRanker
            A fitted ranker.
        """
        self.validate()
        if not isinstance(qrels, Mapping):
            raise DataError(f"qrels must be {{query id: {{document id: grade}}}}; got {type(qrels).__name__}")
        local = None
        if isinstance(docs, Mapping | Documents):
            frame = to_frame(spark, local := Documents.of(docs), self.partitions)
            local = replace(local, fields=())  # metadata
        else:
            frame = document_columns(docs)
        out = TextRanker(**self.ranker.get_params(deep=False))
        trainer = out.trainer(callback)
        given: dict[str, Any] = {"query_weight": query_weight, "query_group": query_group, "exclude_self": exclude_self}
        with executor_errors():
            fit_lexical(trainer.lexical, frame, callback)
            documents = ClusterDocuments(frame, trainer.lexical)
            try:
                data = ClusterTrainingData.find(documents, queries, qrels, **given)
                lexical_only = TextModel(trainer.lexical, constraints=trainer.constraints)
                out.model_ = trainer.train(data) if data.qrels else lexical_only
                self.products_: tuple[Product, ...] = tuple(documents.products)
            finally:
                documents.close()
            if index is not None:
                callback("writing the index")
                write_index(out, frame, index)
                out.index_ = Index.load(index)
        if index is None and local is not None:
            out.index_ = out.index(local)
        return out

    def validate(self) -> None:
        """Check all parameters; raises ConfigError."""
        ranker = self.ranker
        check_settings(ranker, TextRanker, self.partitions)
        if (ranker.ranker, ranker.penalty) != ("text", "ridge"):
            raise ConfigError(
                f"on Spark a TextRanker needs ranker='text' and penalty='ridge'; got ranker={ranker.ranker!r} and "
                f"penalty={ranker.penalty!r}"
            )


@dataclass(frozen=True)
class ClusterTrainingData(TrainingData):
    """Training data whose documents are on a cluster; `documents` has the ids of the judged ones only."""

    rows: ClusterDocuments | None = None
    position: dict[str, int] = field(default_factory=dict)

    @classmethod
    def find(
        cls, rows: ClusterDocuments, queries: Mapping[str, str], qrels: Qrels, *, exclude_self: bool, **given: Any
    ) -> ClusterTrainingData:
        """Check the data against the documents on the cluster."""
        ids = {document for grades in qrels.values() for document in grades} | (set(qrels) if exclude_self else set())
        position = rows.find(ids)
        blank = ("",) * len(position)
        known = Documents(tuple(position), blank, blank)
        data = TrainingData.validate(known, queries, qrels, exclude_self=exclude_self, **given)
        return cls(**vars(data), rows=rows, position=position)

    def encode(self, lexical: LexicalModel, vocabulary: QueryVocabulary) -> TrainingMatrices:
        """Return the data as matrices, with the rows of documents on the cluster."""
        assert self.rows is not None
        return self.to_matrices(lexical, vocabulary, self.position, self.rows.lexical_rows, self.rows.pair_rows)

    def document_names(self, lexical: LexicalModel) -> DocumentNames:
        """Return the names of the documents; the executors compute their digests."""
        assert self.rows is not None
        return self.rows.names(lexical)


def fit_lexical(lexical: LexicalModel, documents: DataFrame, callback: Callable[[str], None]) -> LexicalModel:
    """Fit a lexical model with words counted on the cluster."""
    if isinstance(lexical.scoring, BM25) and lexical.scoring.field_weights is not None:
        raise ConfigError("Spark scores title and text by BM25; field_weights needs training on one machine")
    callback("counting words")
    features = fit_features(documents, ["title", "text"], lexical.features, field_weights=lexical.field_weights)
    if not features.documents_:
        raise DataError("there are no documents to learn from")
    if not features.words_:
        raise DataError(f"none of the {features.documents_} documents has a word")
    return lexical
