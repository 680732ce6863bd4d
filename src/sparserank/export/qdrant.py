"""Qdrant: signed sparse vectors and the inner product, so its results equal those of the model's own index.

Both find only documents that share a term with the query. Both leave out a document whose contributions cancel to 0,
but under a filter Qdrant lists it; `hits` does not. The id of a point is a UUID of the document's id, so a later
export replaces the points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from .. import validation
from ..data.files import PathLike
from ..search import Hit
from .folder import Folder, json_line
from .metadata import MetadataField
from .vectors import Document, Vectors, shorts

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

NAME = "sparserank"
"""The name of the collection and of its vector."""
_NAMESPACE = UUID("6f0d5c1e-7a63-5a0e-9d0a-3c5f0f2b7d11")
BATCH_POINTS = 1000
SCHEMAS = {"text": "keyword", "number": "float", "boolean": "bool", "date": "datetime"}
"""Types of the indexes of metadata fields."""


def point_id(doc_id: str) -> str:
    """Return the id of a document's point, which is the same in every export.

    >>> point_id("d1")
    'a88033eb-144c-5883-86be-b4f28d8f452c'
    """
    return str(uuid5(_NAMESPACE, doc_id))


def collection() -> dict[str, Any]:
    """Return the request that creates the collection: one sparse 32-bit vector per point."""
    return {"vectors": {}, "sparse_vectors": {NAME: {"index": {"datatype": "float32", "on_disk": False}}}}


def point(document: Document) -> dict[str, Any]:
    """Return the point of a document."""
    vector = {"indices": document.terms.tolist(), "values": shorts(document.weights)}
    payload = document.fields() | ({"metadata": document.metadata} if document.metadata else {})
    return {"id": point_id(document.id), "vector": {NAME: vector}, "payload": payload}


def payload_indexes(fields: Sequence[MetadataField]) -> list[dict[str, Any]]:
    """Return the requests that create an index of each metadata field, for filters.

    >>> payload_indexes([MetadataField("kind", "text", False), MetadataField("a.b", "number", False)])[1]
    {'field_name': 'metadata."a.b"', 'field_schema': 'float'}
    """
    return [{"field_name": one.payload_key, "field_schema": SCHEMAS[one.kind]} for one in fields]


def body(vectors: Vectors, text: str, k: int = 10, chosen: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the request for the best k, of the documents that match a filter."""
    weights = vectors.query(text)
    query = {"indices": list(weights), "values": shorts(list(weights.values()))}
    only = {} if chosen is None else {"filter": chosen}
    return {"query": query, "using": NAME, "limit": k, "with_payload": ["id", "title"]} | only


def write(folder: Folder, vectors: Vectors, queries: Mapping[str, str], chosen: dict[str, Any] | None = None) -> None:
    """Write the collection settings, the points, the term names and the queries, with a filter or without."""
    folder.json("collection.json", collection())
    lines = (json_line(point(document)) for document in vectors.documents())
    folder.parts("points-{}.json", lines, delimiters=(b'{"points":[\n', b",", b"]}\n"))
    folder.lines("payload-indexes.jsonl", payload_indexes(vectors.metadata_fields))
    folder.json("terms.json", vectors.names)
    folder.requests(queries, lambda text: {"body": body(vectors, text, chosen=chosen)})
    folder.readme("qdrant", vectors, queries)


# ---- Qdrant Edge: the same engine within this process


def make_shard(vectors: Vectors, path: PathLike) -> EdgeShard:
    """Write a shard that Qdrant Edge opens; its format is that of a server."""
    validation.installed("qdrant_edge", extra="export")
    from qdrant_edge import EdgeConfig, EdgeShard, EdgeSparseVectorParams, UpdateOperation

    shard = EdgeShard.create(str(path), EdgeConfig(sparse_vectors={NAME: EdgeSparseVectorParams()}))
    for points in _point_batches(vectors):
        shard.update(UpdateOperation.upsert_points(points))
    shard.optimize()
    shard.flush()
    return shard


def _point_batches(vectors: Vectors) -> Iterator[list[Any]]:
    from qdrant_edge import Point, SparseVector

    points = []
    for document in vectors.documents():
        vector = SparseVector(document.terms.tolist(), document.weights.tolist())
        payload = {"id": document.id, "title": document.title, "metadata": dict(document.metadata)}
        points.append(Point(point_id(document.id), {NAME: vector}, payload))
        if len(points) == BATCH_POINTS:
            yield points
            points = []
    if points:
        yield points


def hits(shard: EdgeShard, vectors: Vectors, text: str, k: int = 10) -> list[Hit]:
    """Return the best k as `Index.search` does: by score, then by descending id, without scores of 0.

    If the last scores are equal, Qdrant returns any of these documents, so more than k are requested.
    """
    from qdrant_edge import Query, QueryRequest, SparseVector

    weights = vectors.query(text)
    if not weights:
        return []
    vector = SparseVector(list(weights), shorts(list(weights.values())))
    limit = k + 1
    while True:
        points = shard.query(QueryRequest(limit=limit, query=Query.Nearest(vector, using=NAME), with_payload=True))
        scores = [point.score for point in points if point.score != 0.0]
        if len(points) < limit or (len(scores) > k and scores[-1] < scores[k - 1]):
            break
        limit *= 2
    payloads = [(point.payload or {}, point.score) for point in points if point.score != 0.0]
    results = [Hit(payload["id"], score, payload["title"]) for payload, score in payloads]
    return sorted(results, key=lambda hit: (hit.score, hit.id), reverse=True)[:k]
