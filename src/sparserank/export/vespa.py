"""Vespa: `wand` over a weighted set retrieves documents, and a product of two mapped tensors scores them.

A weighted set has positive integers, so the first phase uses the positive part of a query, quantized. The second phase
scores the best K of each node with the exact signed weights.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from .folder import Folder
from .impacts import Impacts
from .vectors import Vectors, shorts

TYPE = "doc"
DOCUMENT_BITS, QUERY_BITS = 8, 10
"""Of the first phase: the scores of 8,000 terms, 255 · 1023 each, stay below 2³¹."""
SCHEMA = """schema {type} {{
    document {type} {{
        field id type string {{
            indexing: summary | attribute
        }}
        field title type string {{
            indexing: summary
        }}
        field text type string {{
            indexing: summary
        }}
        field terms type weightedset<string> {{
            indexing: attribute
            match: cased
            attribute: fast-search
            dictionary {{
                hash
                cased
            }}
        }}
        field weights type tensor<float>(term{{}}) {{
            indexing: attribute
        }}
    }}
    rank-profile sparserank {{
        inputs {{
            query(asked) tensor<float>(term{{}})
        }}
        first-phase {{
            expression: rawScore(terms)
        }}
        second-phase {{
            rerank-count: {window}
            expression: sum(query(asked) * attribute(weights))
        }}
    }}
}}
"""
SERVICES = """<?xml version="1.0" encoding="utf-8" ?>
<services version="1.0">
  <container id="default" version="1.0">
    <search />
    <document-api />
  </container>
  <content id="content" version="1.0">
    <redundancy>1</redundancy>
    <documents>
      <document type="doc" mode="index" />
    </documents>
    <nodes>
      <node hostalias="node1" distribution-key="0" />
    </nodes>
  </content>
</services>
"""
MAX_HITS = 10_000
QUERY_PROFILE = """<query-profile id="default">
  <field name="maxHits">{max_hits}</field>
  <field name="maxOffset">{max_hits}</field>
</query-profile>
"""
"""Without it, Vespa rejects a query for more than 400 hits."""
README = """# For Vespa

`application/` is an application package. Its schema has the weighted terms of the {documents:,} documents twice: as a
weighted set to retrieve by, and as a mapped tensor to score by.

    vespa config set target local
    vespa deploy --wait 300 application
    vespa feed feed.jsonl

Send a query, here {example!r}:

    vespa query --file query.json

The model encodes any other query:

    sparserank export MODEL --to vespa --query {quoted} > query.json

`wand` retrieves the best {window} by the positive weights, as integers. The second phase scores these with all weights:
`sum(query(asked) * attribute(weights))`. A query may request {max_hits:,} hits, as `search/query-profiles` in the
application allows. Ignore hits of relevance 0: their contributions cancel. `word` is the word itself, `word~` is the
target of learned pairs. `queries.jsonl` has one query per line.
"""


def feed(vectors: Vectors) -> Iterator[dict[str, Any]]:
    """Yield a put operation for every document."""
    impacts = Impacts.over(float(vectors.largest.max(initial=0.0)), DOCUMENT_BITS)
    for document in vectors.documents():
        fields: dict[str, Any] = {"id": document.id, "title": document.title, "text": document.text}
        if len(document.terms):
            names = [vectors.names[term] for term in document.terms.tolist()]
            fields["terms"] = dict(zip(names, impacts.of(document.weights).tolist(), strict=True))
            fields["weights"] = {"cells": dict(zip(names, shorts(document.weights), strict=True))}
        yield {"put": f"id:{TYPE}:{TYPE}::{document.id}", "fields": fields}


def tokens(vectors: Vectors, weights: Mapping[int, float]) -> dict[str, int]:
    """Return the tokens of `wand`: the positive weights as integers."""
    positive = {term: weight for term, weight in weights.items() if weight > 0.0}
    values = np.array(list(positive.values()), np.float64)
    impacts = Impacts.over(float(values.max(initial=0.0)), QUERY_BITS).of(values)
    return dict(zip((vectors.names[term] for term in positive), impacts.tolist(), strict=True))


def body(vectors: Vectors, text: str, k: int, window: int) -> dict[str, Any]:
    """Return the query for the best k.

    The tensor is an object, {term: weight}. Vespa does not unescape quoted labels; `vectors.term_name` writes neither
    quotes nor backslashes.
    """
    weights = vectors.query(text)
    positive = tokens(vectors, weights)
    hits = max(k, window)
    where = f"({{targetHits: {hits}}}wand(terms, {json.dumps(positive, ensure_ascii=False)}))" if positive else "false"
    return {
        "yql": f"select id, title from {TYPE} where {where}",
        "ranking.profile": "sparserank",
        "ranking.rerankCount": hits,
        "hits": k,
        "input.query(asked)": vectors.by_name(weights),
    }


def write(folder: Folder, vectors: Vectors, queries: Mapping[str, str], window: int) -> None:
    """Write an application package, the documents and the queries."""
    folder.text(f"application/schemas/{TYPE}.sd", SCHEMA.format(type=TYPE, window=window))
    folder.text("application/services.xml", SERVICES)
    folder.text("application/search/query-profiles/default.xml", QUERY_PROFILE.format(max_hits=MAX_HITS))
    folder.lines("feed.jsonl", feed(vectors))
    first = next(iter(queries.values()))
    folder.json("query.json", body(vectors, first, 10, window))
    bodies = ({"id": name, "body": body(vectors, text, 10, window)} for name, text in queries.items())
    folder.lines("queries.jsonl", bodies)
    numbers = {"documents": len(vectors.index), "window": window, "max_hits": MAX_HITS}
    folder.text("README.md", README.format(example=first, quoted=shlex.quote(first), **numbers))
