"""Vespa: `wand` over a weighted set finds, a product of two mapped tensors scores.

A weighted set has whole numbers above 0: the positive part of a query, rounded, is the first phase. The second phase
scores the best K of each node with the weights themselves, signs and all.
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
"""Of the first phase; 255 · 1023 · 8,000 terms stay below 2³¹."""
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
            rerank-count: {rescored}
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
MOST_HITS = 10_000
QUERY_PROFILE = """<query-profile id="default">
  <field name="maxHits">{most}</field>
  <field name="maxOffset">{most}</field>
</query-profile>
"""
"""Without it a query for more than 400 hits is refused."""
README = """# For Vespa

`application/` is an application package: a schema with {documents:,} documents' weighted terms twice, as a weighted set
to find by and as a mapped tensor to score by.

    vespa config set target local
    vespa deploy --wait 300 application
    vespa feed feed.jsonl

A query – here {example!r}:

    vespa query --file query.json

Any other one is made by the model:

    sparserank export MODEL --to vespa --query {quoted} > query.json

`wand` finds the best {rescored} by the positive weights, in whole numbers; the second phase scores those with all
weights: `sum(query(asked) * attribute(weights))`. Up to {most:,} hits may be asked for: `search/query-profiles` in the
application says so. A relevance of 0 is no result: contributions cancel. `word` is the word itself, `word~` what
learned pairs look for. `queries.jsonl` has every query that was given, one a line.
"""


def feed(vectors: Vectors) -> Iterator[dict[str, Any]]:
    """Every document as a put."""
    impacts = Impacts.over(float(vectors.largest.max(initial=0.0)), DOCUMENT_BITS)
    for document in vectors.documents():
        fields: dict[str, Any] = {"id": document.id, "title": document.title, "text": document.text}
        if len(document.terms):
            names = [vectors.names[term] for term in document.terms.tolist()]
            fields["terms"] = dict(zip(names, impacts.of(document.weights).tolist(), strict=True))
            fields["weights"] = {"cells": dict(zip(names, shorts(document.weights), strict=True))}
        yield {"put": f"id:{TYPE}:{TYPE}::{document.id}", "fields": fields}


def tokens(vectors: Vectors, weights: Mapping[int, float]) -> dict[str, int]:
    """What `wand` looks for: positive weights in whole numbers."""
    positive = {term: weight for term, weight in weights.items() if weight > 0.0}
    values = np.array(list(positive.values()), np.float64)
    impacts = Impacts.over(float(values.max(initial=0.0)), QUERY_BITS).of(values)
    return dict(zip((vectors.names[term] for term in positive), impacts.tolist(), strict=True))


def body(vectors: Vectors, text: str, k: int, rescored: int) -> dict[str, Any]:
    """The query for the best k.

    The tensor is an object, {term: weight}. Vespa reads labels between quotes as they stand, escapes and all; a term
    has neither quotes nor backslashes in it (`vectors.term_name`).
    """
    weights = vectors.query(text)
    found = tokens(vectors, weights)
    target = max(k, rescored)
    where = f"({{targetHits: {target}}}wand(terms, {json.dumps(found, ensure_ascii=False)}))" if found else "false"
    return {
        "yql": f"select id, title from {TYPE} where {where}",
        "ranking.profile": "sparserank",
        "ranking.rerankCount": target,
        "hits": k,
        "input.query(asked)": vectors.named(weights),
    }


def write(folder: Folder, vectors: Vectors, queries: Mapping[str, str], rescored: int) -> None:
    """An application package, the documents and queries."""
    folder.text(f"application/schemas/{TYPE}.sd", SCHEMA.format(type=TYPE, rescored=rescored))
    folder.text("application/services.xml", SERVICES)
    folder.text("application/search/query-profiles/default.xml", QUERY_PROFILE.format(most=MOST_HITS))
    folder.lines("feed.jsonl", feed(vectors))
    first = next(iter(queries.values()))
    folder.json("query.json", body(vectors, first, 10, rescored))
    bodies = ({"id": name, "body": body(vectors, text, 10, rescored)} for name, text in queries.items())
    folder.lines("queries.jsonl", bodies)
    told = {"documents": len(vectors.index), "rescored": rescored, "most": MOST_HITS}
    folder.text("README.md", README.format(example=first, quoted=shlex.quote(first), **told))
