"""Text features of a DataFrame: the executors count words, and the columns equal those of a local fit.

`TextFeatures` counts every batch of texts, and Spark adds the counts by word. So the driver receives only the selected
words with one number each, and the same texts give the same columns, document frequencies and mean length to the bit,
for any partitions. (With fractional field weights this holds up to about 2^28 weighted words, as long as 64-bit
sums are exact.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError
from ..text import Analyzer, TextFeatures
from ..text.analyzer import as_analyzer
from ..text.languages import AUTO
from ..text.spellings import Spellings
from .errors import executor_errors
from .frames import check_no_nulls, select_columns

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import RDD
    from pyspark.sql import DataFrame
    from scipy.sparse import csr_array

BLOCK_ROWS = 4096


def fit_features(
    frame: DataFrame,
    columns: str | Sequence[str] = "text",
    features: TextFeatures | None = None,
    *,
    field_weights: Sequence[float] | None = None,
) -> TextFeatures:
    """Fit `TextFeatures` on the texts of a DataFrame; words and columns equal those of a local fit.

    Parameters
    ----------
    frame : DataFrame
        The texts.
    columns : str or sequence of str, default "text"
        One column, or several fields whose counts are added.
    features : TextFeatures, optional
        The settings; `TextFeatures()` by default.
    field_weights : sequence of float, optional
        Factor of the counts of each field; 1 by default.

    Returns
    -------
    TextFeatures
        The given features, fitted.

    Examples
    --------
    >>> frame = spark.createDataFrame([("d1", "red apples"), ("d2", "green apples")], "id string, text string")
    >>> fit_features(frame).words_
    ('apples', 'green', 'red')
    """
    return SparkTextFeatures(features or TextFeatures()).fit(frame, columns, field_weights=field_weights)


class SparkTextFeatures:
    """Text features over the partitions of DataFrames: `fit` learns them, `rows` applies them.

    Parameters
    ----------
    features : TextFeatures
        The settings, or fitted features.

    Examples
    --------
    >>> frame = spark.createDataFrame([("d1", "red apples"), ("d2", "green apples")], "id string, text string")
    >>> features = SparkTextFeatures(TextFeatures())
    >>> features.fit(frame).documents_
    2
    >>> [(ids, rows.shape) for ids, rows in features.rows(frame.coalesce(1)).collect()]
    [(['d1', 'd2'], (2, 3))]
    """

    def __init__(self, features: TextFeatures) -> None:
        self.features = features

    def fit(
        self, frame: DataFrame, columns: str | Sequence[str] = "text", *, field_weights: Sequence[float] | None = None
    ) -> TextFeatures:
        """Learn the vocabulary and the document frequencies.

        Parameters
        ----------
        frame, columns, field_weights
            As in `fit_features`.
        """
        fields, weights = _fields(columns, field_weights)
        texts = select_columns(frame, dict.fromkeys(fields, "text"), "texts")
        copy(self.features).fit([])  # validates the settings here, not on an executor
        check_no_nulls(texts, "texts")
        settings = copy(self.features)
        with executor_errors():
            settings.analyzer = _detected(texts, as_analyzer(self.features.analyzer))
            words, df, documents, length, spellings = _count_words(texts, settings, weights)
        self.features.restore(words, df, documents, length / max(documents, 1))
        self.features.analyzer_, self.features.spellings_ = settings.analyzer, Spellings(spellings)
        return self.features

    def rows(
        self,
        frame: DataFrame,
        columns: str | Sequence[str] = "text",
        *,
        id: str = "id",
        field_weights: Sequence[float] | None = None,
        block: int = BLOCK_ROWS,
    ) -> RDD[tuple[list[Any], csr_array]]:
        """Transform texts into blocks of (ids, weighted rows), in the order of the DataFrame.

        Parameters
        ----------
        frame : DataFrame
            Ids and texts.
        columns : str or sequence of str, default "text"
            One column, or several fields whose counts are added.
        id : str, default "id"
            The column of the ids.
        field_weights : sequence of float, optional
            Factor of the counts of each field; 1 by default.
        block : int, default 4096
            Rows per block.

        Returns
        -------
        RDD of (list, csr_array)
            Each row equals that of the local `transform`.
        """
        fields, weights = _fields(columns, field_weights)
        validation.count("block", block, low=1)
        texts = select_columns(frame, {id: "id"} | dict.fromkeys(fields, "text"), "texts")
        check_no_nulls(texts, "texts")
        shared = frame.sparkSession.sparkContext.broadcast(self.features)

        return texts.rdd.mapPartitions(lambda rows: _blocks(shared.value, rows, weights, block))


def _blocks(
    features: TextFeatures, rows: Iterable[Any], weights: list[float], size: int
) -> Iterator[tuple[list[Any], csr_array]]:
    remaining = iter(rows)
    while block := list(islice(remaining, size)):
        ids, *parts = zip(*block, strict=True)
        yield list(ids), features.apply_weights(features.field_counts(*parts, field_weights=weights))


def _detected(texts: DataFrame, analyzer: Analyzer) -> Analyzer:
    """Return the analyzer with the languages of all texts; the same as that of a local fit."""
    if analyzer.compounds is True:
        raise ConfigError("compounds=True learns the parts of compounds on one machine; train without --engine spark")
    if analyzer.language != AUTO:
        return analyzer
    counted = texts.rdd.mapPartitions(lambda rows: [analyzer.evidence(text for row in rows for text in row)])
    return analyzer.with_evidence(counted.fold(Counter(), lambda one, other: one + other))


def _fields(columns: str | Sequence[str], weights: Sequence[float] | None) -> tuple[list[str], list[float]]:
    fields = [columns] if isinstance(columns, str) else list(columns)
    factors = [1.0] * len(fields) if weights is None else [validation.number("field weight", w, low=0) for w in weights]
    if not fields or len(factors) != len(fields):
        raise ConfigError(
            f"{len(fields)} fields need {len(fields)} weights, and one field at least; got {len(factors)}"
        )
    return fields, factors


def _count_words(
    texts: DataFrame, features: TextFeatures, weights: list[float]
) -> tuple[tuple[str, ...], NDArray[np.int64], int, float, dict[str, str]]:
    """The selected words, document frequencies (hashed: of all columns), number of documents, sum of their lengths,
    and the most frequent spellings.
    """
    from pyspark.sql import functions as F  # noqa: N812

    hashed = features.hashing is not None
    type_name = "int" if hashed else "string"
    columns = f"word {type_name}, spelling string, df bigint, frequency double"
    counted = texts.mapInArrow(_batch_counter(features, weights), columns)
    added = F.sum("df").alias("df"), F.sum("frequency").alias("frequency")
    sums = counted.groupBy("word", "spelling").agg(*added).persist()
    try:
        totals = sums.where("word is null").first()
        selected = sums.where("word is not null and spelling is null").drop("spelling")
        first = F.min(F.struct((-F.col("df")).alias("order"), "spelling")).alias("first")
        spelled = sums.where("spelling is not null").groupBy("word").agg(first).where("first.spelling != word")
        spellings = {} if hashed else {row["word"]: row["first"]["spelling"] for row in spelled.collect()}
        if features.columns is not None:
            selected = selected.orderBy(F.desc("frequency"), "word").limit(features.columns)
        table = selected.toArrow().sort_by("word")
    finally:
        sums.unpersist()
    documents = 0 if totals is None else int(totals["df"])
    df = table.column("df").to_numpy().astype(np.int64)
    length = float(table.column("frequency").to_numpy().sum())
    if not hashed:
        return tuple(table.column("word").to_pylist()), df, documents, length, spellings
    all_df = np.zeros(1 << (features.hashing or 0), np.int64)
    all_df[table.column("word").to_numpy()] = df
    return (), all_df, documents, length, {}


def _batch_counter(features: TextFeatures, weights: list[float]) -> Any:
    """A function from batches of texts to batches of (word or column, df, frequency); the null word counts texts."""
    settings = copy(features)
    settings.columns = None  # words are selected after all are counted
    for name in [name for name in vars(settings) if name.endswith("_")]:
        delattr(settings, name)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            part, spellings = copy(settings), Spellings()
            fields = (column.to_pylist() for column in batch.columns)
            counts = part.fit_counts(*fields, field_weights=weights, spellings=spellings)
            present = np.flatnonzero(part.df_)
            frequency = np.bincount(counts.indices, counts.data, counts.shape[1])[present]
            words: list[Any] = present.tolist() if part.hashing is not None else [part.words_[i] for i in present]
            spelled = {} if part.hashing is not None else spellings.counts()
            nothing = [None] * (len(words) + 1)
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array(
                        [*words, None, *(word for word, _ in spelled)],
                        pa.int32() if part.hashing is not None else pa.string(),
                    ),
                    pa.array([*nothing, *(spelling for _, spelling in spelled)], pa.string()),
                    pa.array([*part.df_[present].tolist(), part.documents_, *spelled.values()], pa.int64()),
                    pa.array([*frequency.tolist(), 0.0, *[0.0] * len(spelled)], pa.float64()),
                ],
                names=["word", "spelling", "df", "frequency"],
            )

    return count
