"""Build an index per partition, as a folder of shards in a place that the driver and all executors reach."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..data.files import PathLike
from ..data.records import Documents
from ..errors import ConfigError, DataError
from ..search import Index
from ..search.shards import shard_name, write_shards
from ..text_ranker import TextRanker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def write_index(ranker: TextRanker, frame: DataFrame, path: PathLike) -> int:
    """Write the index of a fitted ranker for documents on a cluster; one shard for each partition with documents.

    Parameters
    ----------
    ranker : TextRanker
        A fitted ranker.
    frame : DataFrame
        The columns id, title and text and, optionally, metadata: a JSON object as text, or empty text.
    path : path-like
        The folder. It must be on a file system that the driver and all executors share.

    Returns
    -------
    int
        The number of documents.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sparserank import load
    >>> docs = {"d1": "red apples", "d2": "green pears"}
    >>> rows = [(i, "", text) for i, text in docs.items()]
    >>> frame = spark.createDataFrame(rows, "id string, title string, text string")
    >>> with TemporaryDirectory() as folder:
    ...     ranker = TextRanker("bm25").fit(docs)
    ...     ranker.save(f"{folder}/model.safetensors")
    ...     write_index(ranker, frame, f"{folder}/model.safetensors.index")
    ...     load(f"{folder}/model.safetensors").search("apples")[0].id
    2
    'd1'
    """
    model, made_for = ranker.fitted_model(), ranker.fingerprint()
    context = frame.sparkSession.sparkContext
    shared = context.broadcast(model)
    with write_shards(path) as folder:
        target = str(folder.absolute())

        def write(number: int, rows: Iterable[Any]) -> Iterator[int]:
            columns = list(zip(*rows, strict=True))
            if not columns:
                return
            ids, titles, texts = columns[:3]
            metadata = tuple(map(_decode, ids, columns[3])) if len(columns) > 3 else ()
            documents = Documents(ids, titles, texts, metadata)
            if not Path(target).is_dir():
                raise ConfigError(f"{path}: an executor cannot write there; give a folder that all executors share")
            index = Index.build(shared.value.encode_documents(documents), documents, made_for=made_for)
            index.save(Path(target) / shard_name(number))
            yield len(documents)

        names = ("id", "title", "text", *(["metadata"] if "metadata" in frame.columns else []))
        written = frame.select(*names).rdd.mapPartitionsWithIndex(write).sum()
    shared.destroy()
    return int(written)


def _decode(doc_id: str, metadata: str) -> Any:
    try:
        return json.loads(metadata) if metadata else {}
    except ValueError:
        raise DataError(
            f"document {doc_id!r}: the column 'metadata' must be a JSON object; got {metadata[:60]!r}"
        ) from None
