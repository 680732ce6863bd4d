"""Text features of a DataFrame: words are counted where the texts lie, and the columns are those of a local fit.

Every batch of texts is counted by `TextFeatures` itself; Spark adds the counts up, word by word. So only the words that
are kept, with one number each, come to the driver, and the same texts give the same columns, document frequencies and
mean length to the bit, however they are partitioned. (Where fields are weighted by other than whole numbers that holds
up to about 2^28 weighted words: as long as sums in 64 bits are exact.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import ConfigError
from ..text import TextFeatures
from .frames import judged, refuse_nulls
from .refusals import told_plainly

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import RDD
    from pyspark.sql import DataFrame
    from scipy.sparse import csr_array

BLOCK = 4096
"""Texts that become one block of rows."""


def fit_features(
    frame: DataFrame,
    columns: str | Sequence[str] = "text",
    features: TextFeatures | None = None,
    *,
    field_weights: Sequence[float] | None = None,
) -> TextFeatures:
    """`TextFeatures.fit` over the texts of a DataFrame: the same object, with the same words in the same columns.

    columns : the column of the texts, or several fields, whose counts are added, each times its weight.
    """
    return SparkTextFeatures(features or TextFeatures()).fit(frame, columns, field_weights=field_weights)


class SparkTextFeatures:
    """The features of one model over the partitions of DataFrames: `fit` learns them, `rows` applies them."""

    def __init__(self, features: TextFeatures) -> None:
        self.features = features

    def fit(
        self, frame: DataFrame, columns: str | Sequence[str] = "text", *, field_weights: Sequence[float] | None = None
    ) -> TextFeatures:
        """Learn the vocabulary and the document frequencies of one or more fields; returns the features given."""
        fields, weights = _fields(columns, field_weights)
        texts = judged(frame, dict.fromkeys(fields, "text"), "texts")
        copy(self.features).fit([])  # settings are judged here, not on an executor
        refuse_nulls(texts, "texts")
        with told_plainly():
            words, df, documents, length = _tallied(texts, self.features, weights)
        return self.features.restore(words, df, documents, length / max(documents, 1))

    def rows(
        self,
        frame: DataFrame,
        columns: str | Sequence[str] = "text",
        *,
        id: str = "id",
        field_weights: Sequence[float] | None = None,
        block: int = BLOCK,
    ) -> RDD[tuple[list[Any], csr_array]]:
        """Blocks of (ids, weighted rows) in the order of the DataFrame, each row as the local `transform` gives it."""
        fields, weights = _fields(columns, field_weights)
        validation.count("block", block, low=1)
        kinds = {id: "id"} | dict.fromkeys(fields, "text")
        texts = judged(frame, kinds, "texts")
        refuse_nulls(texts, "texts")
        shared = frame.sparkSession.sparkContext.broadcast(self.features)

        return texts.rdd.mapPartitions(lambda rows: _blocks(shared.value, rows, weights, block))


def _blocks(
    features: TextFeatures, rows: Iterable[Any], weights: list[float], size: int
) -> Iterator[tuple[list[Any], csr_array]]:
    left = iter(rows)
    while some := list(islice(left, size)):
        ids, *parts = zip(*some, strict=True)
        yield list(ids), features.weighted(features.field_counts(*parts, field_weights=weights))


def _fields(columns: str | Sequence[str], weights: Sequence[float] | None) -> tuple[list[str], list[float]]:
    fields = [columns] if isinstance(columns, str) else list(columns)
    given = [1.0] * len(fields) if weights is None else [validation.number("field weight", w, low=0) for w in weights]
    if not fields or len(given) != len(fields):
        raise ConfigError(f"{len(fields)} fields need {len(fields)} weights, and one field at least; got {len(given)}")
    return fields, given


def _tallied(
    texts: DataFrame, features: TextFeatures, weights: list[float]
) -> tuple[tuple[str, ...], NDArray[np.int64], int, float]:
    """Words kept, document frequencies (hashed: of all columns), number of documents, sum of their lengths."""
    from pyspark.sql import functions as F  # noqa: N812

    hashed = features.hashing is not None
    kind = "int" if hashed else "string"
    counted = texts.mapInArrow(_counter(features, weights), f"word {kind}, df bigint, frequency double")
    sums = counted.groupBy("word").agg(F.sum("df").alias("df"), F.sum("frequency").alias("frequency")).persist()
    try:
        texts_counted = sums.where("word is null").first()
        kept = sums.where("word is not null")
        if features.columns is not None:
            kept = kept.orderBy(F.desc("frequency"), "word").limit(features.columns)
        found = kept.toArrow().sort_by("word")
    finally:
        sums.unpersist()
    documents = 0 if texts_counted is None else int(texts_counted["df"])
    df = found.column("df").to_numpy().astype(np.int64)
    length = float(found.column("frequency").to_numpy().sum())
    if not hashed:
        return tuple(found.column("word").to_pylist()), df, documents, length
    everywhere = np.zeros(1 << (features.hashing or 0), np.int64)
    everywhere[found.column("word").to_numpy()] = df
    return (), everywhere, documents, length


def _counter(features: TextFeatures, weights: list[float]) -> Any:
    """Batches of texts to batches of (word or column, df, frequency); the row without a word counts the texts."""
    settings = copy(features)
    settings.columns = None  # which words are kept is known when all are counted
    for learned in [name for name in vars(settings) if name.endswith("_")]:
        delattr(settings, learned)

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            part = copy(settings)
            total = part.fit_counts(*(column.to_pylist() for column in batch.columns), field_weights=weights)
            there = np.flatnonzero(part.df_)
            frequency = np.bincount(total.indices, total.data, total.shape[1])[there]
            words: list[Any] = there.tolist() if part.hashing is not None else [part.words_[i] for i in there]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([*words, None], pa.int32() if part.hashing is not None else pa.string()),
                    pa.array([*part.df_[there].tolist(), part.documents_], pa.int64()),
                    pa.array([*frequency.tolist(), 0.0], pa.float64()),
                ],
                names=["word", "df", "frequency"],
            )

    return count
