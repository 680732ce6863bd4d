"""Qdrant: sparse vectors with signs and the inner product, so its top 10 are ours.

It finds only points that share a term with the query, as we do. A point whose contributions cancel to 0 it leaves out
as well, but under a filter it lists it; `hits` does not. Points are numbered by a UUID made of the document's id, so
that a later export replaces what is there.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

from .. import validation
from ..data.files import PathLike
from ..search import Hit
from .folder import Folder, json_line
from .vectors import Document, Vectors, shorts

if TYPE_CHECKING:
    from qdrant_edge import EdgeShard

NAME = "sparserank"
"""Of the collection, and of the vector in it."""
_SPACE = UUID("6f0d5c1e-7a63-5a0e-9d0a-3c5f0f2b7d11")
AT_ONCE = 1000
README = """# For Qdrant

{documents:,} documents as sparse vectors of {terms:,} terms, weights with signs, inner product: the results are exact.

    export QDRANT=http://localhost:6333
    curl -X PUT $QDRANT/collections/{name} -H 'content-type: application/json' -d @collection.json
    for part in points-*.json; do
      curl -X PUT "$QDRANT/collections/{name}/points?wait=true" -H 'content-type: application/json' -d @$part
    done

A query – here {example!r} – is one vector:

    curl -X POST $QDRANT/collections/{name}/points/query -H 'content-type: application/json' -d @query.json

Any other one is made by the model:

    sparserank export MODEL --to qdrant --query {quoted} > query.json

`terms.json` names every term: `word` is the word itself, `word~` what learned pairs look for. Under a filter, a point
of score 0 may be listed; it is no result: its contributions cancel. `queries.jsonl` has every query that was given, one
a line.
"""


def point_id(doc_id: str) -> str:
    """The point of a document: the same one in every export.

    >>> point_id("d1")
    'a88033eb-144c-5883-86be-b4f28d8f452c'
    """
    return str(uuid5(_SPACE, doc_id))


def collection() -> dict[str, Any]:
    """What makes the collection: one sparse vector a point, in 32 bits, and no dense one."""
    return {"vectors": {}, "sparse_vectors": {NAME: {"index": {"datatype": "float32", "on_disk": False}}}}


def point(document: Document) -> dict[str, Any]:
    """A document as a point."""
    vector = {"indices": document.terms.tolist(), "values": shorts(document.weights)}
    payload = {"id": document.id, "title": document.title, "text": document.text}
    return {"id": point_id(document.id), "vector": {NAME: vector}, "payload": payload}


def body(vectors: Vectors, text: str, k: int = 10) -> dict[str, Any]:
    """The query that finds the best k."""
    weights = vectors.query(text)
    query = {"indices": list(weights), "values": shorts(list(weights.values()))}
    return {"query": query, "using": NAME, "limit": k, "with_payload": ["id", "title"]}


def write(folder: Folder, vectors: Vectors, queries: Mapping[str, str]) -> None:
    """Everything a server takes."""
    folder.json("collection.json", collection())
    lines = (json_line(point(document)) for document in vectors.documents())
    folder.parts("points-{}.json", lines, between=(b'{"points":[\n', b",", b"]}\n"))
    folder.json("terms.json", vectors.names)
    first = next(iter(queries.values()))
    folder.json("query.json", body(vectors, first))
    folder.lines("queries.jsonl", ({"id": name, "body": body(vectors, text)} for name, text in queries.items()))
    told = {"documents": len(vectors.index), "terms": len(vectors.names), "name": NAME}
    folder.text("README.md", README.format(example=first, quoted=shlex.quote(first), **told))


# ---- embedded: the same engine, in this process


def make_shard(vectors: Vectors, path: PathLike) -> EdgeShard:
    """A shard on disk that Qdrant Edge opens, and that has a server's format."""
    validation.installed("qdrant_edge", extra="export")
    from qdrant_edge import EdgeConfig, EdgeShard, EdgeSparseVectorParams, UpdateOperation

    shard = EdgeShard.create(str(path), EdgeConfig(sparse_vectors={NAME: EdgeSparseVectorParams()}))
    for points in _points(vectors):
        shard.update(UpdateOperation.upsert_points(points))
    shard.optimize()
    shard.flush()
    return shard


def _points(vectors: Vectors) -> Iterator[list[Any]]:
    from qdrant_edge import Point, SparseVector

    points = []
    for document in vectors.documents():
        vector = SparseVector(document.terms.tolist(), document.weights.tolist())
        payload = {"id": document.id, "title": document.title}
        points.append(Point(point_id(document.id), {NAME: vector}, payload))
        if len(points) == AT_ONCE:
            yield points
            points = []
    if points:
        yield points


def hits(shard: EdgeShard, vectors: Vectors, text: str, k: int = 10) -> list[Hit]:
    """The best k, as `Index.search` finds them: by score, then by falling id; a score of 0 is no result.

    More than k are asked for where the last ones are equal, since Qdrant keeps any of those.
    """
    from qdrant_edge import Query, QueryRequest, SparseVector

    weights = vectors.query(text)
    if not weights:
        return []
    vector = SparseVector(list(weights), shorts(list(weights.values())))
    wanted = k + 1
    while True:
        asked = QueryRequest(limit=wanted, query=Query.Nearest(vector, using=NAME), with_payload=True)
        found = shard.query(asked)
        scores = [one.score for one in found if one.score != 0.0]
        if len(found) < wanted or (len(scores) > k and scores[-1] < scores[k - 1]):
            break
        wanted *= 2
    payloads = [(one.payload or {}, one.score) for one in found if one.score != 0.0]
    results = [Hit(payload["id"], score, payload["title"]) for payload, score in payloads]
    return sorted(results, key=lambda hit: (hit.score, hit.id), reverse=True)[:k]
