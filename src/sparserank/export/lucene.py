"""Elasticsearch and OpenSearch: features of Lucene, which have positive weights with 9 significant bits.

The query retrieves documents by the positive part of its weights. Rescorers then change the scores of the best K of
each shard: one adds the positive terms beyond Lucene's limit, another adds `bound - Σ |negative weights| · d`. Lucene
allows no negative score. `bound` is at least what any document can lose and is the same for all, so scores stay
positive and keep the order of the signed scores. If a weight exceeds 64, all are divided by a power of two, the
query's scale: (score - bounds) · scale is the model's score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import DataError
from .folder import Folder, json_line
from .metadata import MetadataField
from .stages import MAX_CLAUSES, SignedQuery
from .vectors import Vectors, short, term_name

FIELD = "sparserank"
MAX_WEIGHT = 64.0
"""Lucene's FeatureField.newLinearQuery takes weights in (0, 64]."""
MAX_ID_BYTES = 512
"""Of a document's id, in both engines."""
MAX_TERM_BYTES = 32_766
SCRIPT = "Math.max(0.0, params.bound - _score)"

TYPES: Mapping[str, Mapping[str, Any]] = {
    "text": {"type": "keyword", "ignore_above": MAX_TERM_BYTES // 4},
    "number": {"type": "double"},
    "boolean": {"type": "boolean"},
    "date": {"type": "date"},
}
"""Types of metadata fields; longer texts are stored, but not found by filters."""

Clause = Callable[[dict[str, float]], dict[str, Any]]


@dataclass(frozen=True)
class Engine:
    """What differs between the engines: the mapping of the field and the clause that matches weighted terms."""

    title: str
    field: Mapping[str, Any]
    clause: Clause
    needs: str


ELASTICSEARCH = Engine(
    "Elasticsearch",
    {"type": "sparse_vector", "index_options": {"prune": False}},
    lambda terms: {"sparse_vector": {"field": FIELD, "query_vector": terms, "prune": False}},
    "Needs 8.19, or 9.1 and later; for earlier versions, which never prune, remove `index_options` from index.json. "
    "Pruning is off because it would drop the terms that most documents have.",
)
OPENSEARCH = Engine(
    "OpenSearch",
    {"type": "rank_features"},
    lambda terms: {"neural_sparse": {FIELD: {"query_tokens": terms}}},
    "Needs 2.14 or later with the neural-search plugin, which is part of the distribution; you deploy no model.",
)
ENGINES = {"elasticsearch": ELASTICSEARCH, "opensearch": OPENSEARCH}


def index_body(engine: Engine, fields: Iterable[MetadataField] = ()) -> dict[str, Any]:
    """Return the request that creates the index."""
    texts = {"id": {"type": "keyword"}, "title": {"type": "text"}, "text": {"type": "text"}}
    properties = texts | {FIELD: dict(engine.field)} | metadata_property(fields)
    return {"mappings": {"dynamic": "strict", "properties": properties}}


def metadata_property(fields: Iterable[MetadataField]) -> dict[str, Any]:
    """Return the mapping of `metadata`, an object; empty without fields. A dot would start another object."""
    properties = {term_name(field.name): dict(TYPES[field.kind]) for field in fields}
    return {"metadata": {"properties": properties}} if properties else {}


def bulk(vectors: Vectors, weighted: bool = True) -> Iterator[bytes]:
    """Yield an action and a document, one line each, with the weighted terms or without."""
    for name in vectors.names:
        if len(name.encode()) > MAX_TERM_BYTES:
            raise DataError(f"the term {name[:40]!r}… exceeds {MAX_TERM_BYTES:,} bytes, Lucene's limit")
    for document in vectors.documents():
        if not 0 < len(document.id.encode("utf-8", "replace")) <= MAX_ID_BYTES:
            raise DataError(f"a document id must have 1 to {MAX_ID_BYTES} bytes; got {document.id[:60]!r}")
        source: dict[str, Any] = document.fields()
        if document.metadata:
            source["metadata"] = {term_name(name): value for name, value in document.metadata.items()}
        if weighted and len(document.terms):
            source[FIELD] = vectors.by_name(document.vector())
        yield json_line({"index": {"_id": document.id}}) + json_line(source)


def body(
    engine: Engine, vectors: Vectors, text: str, k: int, window: int, chosen: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return the search for the best k; the best `window` documents are rescored with signed weights."""
    search: dict[str, Any] = scaled_request(engine, vectors, text, k, window, chosen)["body"]
    return search


def scaled_request(
    engine: Engine, vectors: Vectors, text: str, k: int, window: int, chosen: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return {"scale", "body"}; the scale is the power of two that divides weights, 1 unless one exceeds 64.

    chosen : a query that documents must match.
    """
    signed, scale = SignedQuery.split(vectors.query(text), vectors.largest).scale(MAX_WEIGHT)
    query = engine.clause(vectors.by_name(signed.first)) if signed.first else {"match_none": {}}
    search: dict[str, Any] = {"size": k, "_source": ["id", "title"], "query": with_filter(query, chosen)}
    rescorers = [engine.clause(vectors.by_name(part)) for part in signed.overflow]
    rescorers += [_subtract(engine, vectors, part) for part in signed.negative]
    if rescorers and signed.first:
        search["rescore"] = [{"window_size": max(k, window), "query": add_score(query)} for query in rescorers]
    return {"scale": scale, "body": search}


def with_filter(query: dict[str, Any], chosen: dict[str, Any] | None) -> dict[str, Any]:
    """Return a query for the documents that also match a filter, which does not score."""
    return query if chosen is None else {"bool": {"must": [query], "filter": [chosen]}}


def add_score(query: dict[str, Any]) -> dict[str, Any]:
    """Return the rescorer that adds the score of a query."""
    return {"rescore_query": query, "query_weight": 1.0, "rescore_query_weight": 1.0, "score_mode": "total"}


def _subtract(engine: Engine, vectors: Vectors, weights: dict[int, float]) -> dict[str, Any]:
    """Return the query that scores every document `bound - Σ weight · d`, also one without any of the terms."""
    all_documents = {"bool": {"filter": [{"match_all": {}}], "should": [engine.clause(vectors.by_name(weights))]}}
    script = {"source": SCRIPT, "params": {"bound": short(vectors.upper_bound(weights))}}
    return {"script_score": {"query": all_documents, "script": script}}


def write(
    target: str,
    folder: Folder,
    vectors: Vectors,
    queries: Mapping[str, str],
    window: int,
    chosen: dict[str, Any] | None = None,
) -> None:
    """Write the index settings, the documents and the queries, with a filter or without."""
    engine = ENGINES[target]
    folder.json("index.json", index_body(engine, vectors.metadata_fields))
    folder.parts("bulk-{}.ndjson", bulk(vectors))
    folder.requests(queries, lambda text: scaled_request(engine, vectors, text, 10, window, chosen))
    folder.readme(
        "lucene", vectors, queries, title=engine.title, needs=engine.needs, target=target, field=FIELD, script=SCRIPT,
        window=window, max_terms=MAX_CLAUSES, max_weight=MAX_WEIGHT,
        scale=scaled_request(engine, vectors, next(iter(queries.values())), 10, window)["scale"],
    )  # fmt: skip
