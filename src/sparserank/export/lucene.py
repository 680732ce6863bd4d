"""Elasticsearch and OpenSearch: features of Lucene, whose weights are above 0 and keep 9 bits.

The query finds documents by the positive part of its weights. Then the best K (per shard) are scored again: a rescorer
adds the positive terms that one query had no room for, and another adds `bound - Σ |negative weights| · d`. No engine
on Lucene allows a score below 0; `bound` is at least what any document can lose, and the same for all, so the order is
that of the signed scores and every score is above 0. Where a weight is above 64, all are divided by a power of two, the
query's scale: a score less the query's bounds, times its scale, is ours.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import DataError
from .folder import Folder, json_line
from .stages import MOST_CLAUSES, Signed
from .vectors import Vectors, short, shorts

FIELD = "sparserank"
MOST_WEIGHT = 64.0
"""Lucene's FeatureField.newLinearQuery takes weights in (0, 64]."""
LONGEST_ID = 512
"""Bytes of a document's id in both engines."""
LONGEST_TERM = 32_766
"""Bytes of a Lucene term."""
SCRIPT = "Math.max(0.0, params.bound - _score)"

Clause = Callable[[dict[str, float]], dict[str, Any]]


@dataclass(frozen=True)
class Engine:
    """What differs: the field's mapping and the clause that looks for weighted terms."""

    title: str
    field: Mapping[str, Any]
    clause: Clause
    needs: str


ELASTICSEARCH = Engine(
    "Elasticsearch",
    {"type": "sparse_vector", "index_options": {"prune": False}},
    lambda terms: {"sparse_vector": {"field": FIELD, "query_vector": terms, "prune": False}},
    "Needs 8.19, or 9.1 and later; before, leave `index_options` out of index.json: nothing was pruned then. "
    "Pruning is off on purpose: it would drop the terms that most documents have.",
)
OPENSEARCH = Engine(
    "OpenSearch",
    {"type": "rank_features"},
    lambda terms: {"neural_sparse": {FIELD: {"query_tokens": terms}}},
    "Needs 2.14 or later with the neural-search plugin, which is part of the distribution; no model is deployed.",
)
ENGINES = {"elasticsearch": ELASTICSEARCH, "opensearch": OPENSEARCH}

LOADING = """    export ENGINE=http://localhost:9200
    curl -X PUT $ENGINE/sparserank -H 'content-type: application/json' -d @index.json
    for part in bulk-*.ndjson; do
      curl -X POST $ENGINE/sparserank/_bulk -H 'content-type: application/x-ndjson' --data-binary @$part
    done
    curl -X POST $ENGINE/sparserank/_refresh"""
"""How index.json and bulk files get into an engine."""
README = """# For {title}

{documents:,} documents as weighted terms in the field `{field}`. {needs}

{loading}

A query – here {example!r}:

    curl -X POST $ENGINE/sparserank/_search -H 'content-type: application/json' -d @query.json

Any other one is made by the model:

    sparserank export MODEL --to {target} --query {quoted} > query.json

Lucene takes no negative weights. So `query` looks for the positive ones, at most {most:,} terms, and the best
{rescored} documents of each shard are scored again under `rescore` with all weights; the negative ones as
`{script}`, which moves every score up by the same bound. Where a weight is above {heaviest:g}, which Lucene refuses,
all are divided by a power of two, the query's scale: {scale:g} in query.json. A score less the bounds, times the scale,
is the model's. `word` is the word itself, `word~` what learned pairs look for. `queries.jsonl` has every query that was
given, one a line: its `id`, its `scale`, and the `body` to send.
"""


def index_body(engine: Engine) -> dict[str, Any]:
    """What makes the index."""
    told = {"id": {"type": "keyword"}, "title": {"type": "text"}, "text": {"type": "text"}}
    return {"mappings": {"dynamic": "strict", "properties": told | {FIELD: dict(engine.field)}}}


def bulk(vectors: Vectors, weighted: bool = True) -> Iterator[bytes]:
    """An action and a document, two lines each, with its weighted terms or without."""
    for name in vectors.names:
        if len(name.encode()) > LONGEST_TERM:
            raise DataError(f"the term {name[:40]!r}… has more than {LONGEST_TERM:,} bytes; Lucene takes no more")
    for document in vectors.documents():
        if not 0 < len(document.id.encode("utf-8", "replace")) <= LONGEST_ID:
            raise DataError(f"an id there has 1 to {LONGEST_ID} bytes; got {document.id[:60]!r}")
        source: dict[str, Any] = {"id": document.id, "title": document.title, "text": document.text}
        if weighted and len(document.terms):
            names = [vectors.names[term] for term in document.terms.tolist()]
            source[FIELD] = dict(zip(names, shorts(document.weights), strict=True))
        yield json_line({"index": {"_id": document.id}}) + json_line(source)


def body(engine: Engine, vectors: Vectors, text: str, k: int, rescored: int) -> dict[str, Any]:
    """The search for the best k, of which the best `rescored` are scored with signs."""
    return scaled_body(engine, vectors, text, k, rescored)[0]


def scaled_body(engine: Engine, vectors: Vectors, text: str, k: int, rescored: int) -> tuple[dict[str, Any], float]:
    """`body`, and its scale: 1, or the power of two that its weights were divided by since one was above 64."""
    signed, scale = Signed.of(vectors.query(text), vectors.largest).scaled(MOST_WEIGHT)
    found: dict[str, Any] = {"size": k, "_source": ["id", "title"]}
    if not signed.first:
        return found | {"query": {"match_none": {}}}, scale
    found["query"] = engine.clause(vectors.named(signed.first))
    again = [engine.clause(vectors.named(part)) for part in signed.more]
    again += [_taken_away(engine, vectors, part) for part in signed.less]
    if again:
        found["rescore"] = [{"window_size": max(k, rescored), "query": _added(query)} for query in again]
    return found, scale


def _added(query: dict[str, Any]) -> dict[str, Any]:
    return {"rescore_query": query, "query_weight": 1.0, "rescore_query_weight": 1.0, "score_mode": "total"}


def _taken_away(engine: Engine, vectors: Vectors, part: dict[int, float]) -> dict[str, Any]:
    """bound - Σ weight · d, for every document: one that has none of the terms loses nothing and gets the bound."""
    every = {"bool": {"filter": [{"match_all": {}}], "should": [engine.clause(vectors.named(part))]}}
    script = {"source": SCRIPT, "params": {"bound": short(vectors.most_of(part))}}
    return {"script_score": {"query": every, "script": script}}


def write(target: str, folder: Folder, vectors: Vectors, queries: Mapping[str, str], rescored: int) -> None:
    """Everything the engine takes."""
    engine = ENGINES[target]
    folder.json("index.json", index_body(engine))
    folder.parts("bulk-{}.ndjson", bulk(vectors))
    first = next(iter(queries.values()))
    request, scale = scaled_body(engine, vectors, first, 10, rescored)
    folder.json("query.json", request)
    bodies = ((name, scaled_body(engine, vectors, text, 10, rescored)) for name, text in queries.items())
    folder.lines("queries.jsonl", ({"id": name, "scale": by, "body": made} for name, (made, by) in bodies))
    told = {
        "title": engine.title,
        "needs": engine.needs,
        "target": target,
        "field": FIELD,
        "script": SCRIPT,
        "loading": LOADING,
    }
    numbers = {"documents": len(vectors.index), "rescored": rescored, "most": MOST_CLAUSES, "scale": scale}
    numbers["heaviest"] = MOST_WEIGHT
    folder.text("README.md", README.format(example=first, quoted=shlex.quote(first), **told, **numbers))
