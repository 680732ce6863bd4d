"""The best documents of many queries in a collection that lies in partitions: those of one local Index.

Every partition makes an index of its own documents and gives the best k of each query; lists are merged by score and
then by falling id, the order of an Index. A document's row depends on the model and on itself alone, so ids, scores and
the order of equal scores are those of an index of all documents, to the bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import validation
from ..data.records import Documents
from ..errors import DataError
from ..search import Index
from ..search.encoded_query import EncodedQuery
from ..text_ranker import TextRanker
from ..text_ranker.model import TextModel
from .frames import judged, refuse_nulls

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark import Broadcast
    from pyspark.sql import DataFrame

AT_ONCE = 1024
"""Queries whose lists of one partition are in memory at the same time."""
SCHEMA = "query string, document string, score float"


def score_topk(
    ranker: TextRanker | TextModel,
    documents: DataFrame,
    queries: Mapping[str, str] | DataFrame,
    k: int = 10,
    *,
    drop_self: bool = False,
) -> DataFrame:
    """query, document, score, rank: the best k documents of every query, as `Index.top` of all documents has them.

    documents : a table `id, text` and, where it is there, `title`. queries : {id: text}, or a table `id, text`; they
    are sent to every executor. drop_self : a query never finds the document of its own id. A query that nothing
    answers has no row.
    """
    validation.count("k", k, low=1)
    model = ranker._fitted() if isinstance(ranker, TextRanker) else ranker
    if not isinstance(model, TextModel):
        raise DataError(f"a TextRanker or TextModel scores documents by their texts; got {type(model).__name__}")
    wanted = {"id": "text"} | ({"title": "text"} if "title" in documents.columns else {}) | {"text": "text"}
    table = judged(documents, wanted, "documents")
    asked = _asked(queries)
    refuse_nulls(table, "documents")
    refuse_twice(table)
    context = documents.sparkSession.sparkContext
    shared = context.broadcast(_Question(model, tuple(asked), tuple(asked.values()), k, drop_self))
    return _merged(table.mapInArrow(_searcher(shared), SCHEMA), k)


def refuse_twice(documents: DataFrame) -> None:
    """Refuse a collection in which an id stands twice, in whatever partitions."""
    twice = documents.groupBy("id").count().where("count > 1").select("id").first()
    if twice is not None:
        raise DataError(f"document id {twice['id']!r} occurs more than once")


@dataclass(frozen=True)
class _Question:
    """What every partition is asked."""

    model: TextModel
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    k: int
    drop_self: bool

    def parts(self) -> Iterator[tuple[tuple[str, ...], EncodedQuery]]:
        for start in range(0, len(self.ids), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            yield self.ids[some], self.model.asked(self.texts[some])


def _asked(queries: Mapping[str, str] | DataFrame) -> dict[str, str]:
    if isinstance(queries, Mapping):
        return dict(queries)
    table = judged(queries, {"id": "text", "text": "text"}, "queries")
    refuse_nulls(table, "queries")
    rows = table.collect()
    out = {row["id"]: row["text"] for row in rows}
    if len(out) < len(rows):
        raise DataError(f"queries: {len(rows) - len(out):,} ids occur more than once")
    return out


def _searcher(shared: Broadcast[_Question]) -> Any:
    def search(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        question = shared.value
        index = _index(question.model, batches)
        if index is None:
            return
        for ids, asked in question.parts():
            skip = list(ids) if question.drop_self else None
            numbers, scores, counts = index.top(asked, question.k, skip, n_jobs=1)
            names = [[index.id_at(one) for one in row[:n]] for row, n in zip(numbers.tolist(), counts, strict=True)]
            yield pa.RecordBatch.from_arrays(
                [
                    pa.array([query for query, row in zip(ids, names, strict=True) for _ in row], pa.string()),
                    pa.array([name for row in names for name in row], pa.string()),
                    pa.array([s for row, n in zip(scores, counts, strict=True) for s in row[:n]], pa.float32()),
                ],
                names=["query", "document", "score"],
            )

    return search


def _index(model: TextModel, batches: Iterable[pa.RecordBatch]) -> Index | None:
    """An index of all documents of one partition, None where there are none; texts are let go batch by batch."""
    from scipy.sparse import csr_array, vstack

    ids: list[str] = []
    parts = []
    for batch in batches:
        if batch.num_rows == 0:
            continue
        named = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        titles = named.get("title", [""] * batch.num_rows)
        parts.append(model.documents(Documents(tuple(named["id"]), tuple(titles), tuple(named["text"]))))
        ids += named["id"]
    if not ids:
        return None
    empty = ("",) * len(ids)
    rows = parts[0] if len(parts) == 1 else csr_array(vstack(parts, format="csr"))
    return Index.build(rows, Documents(tuple(ids), empty, empty))


def _merged(lists: DataFrame, k: int) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    order = Window.partitionBy("query").orderBy(F.desc("score"), F.desc("document"))
    return lists.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= k)
