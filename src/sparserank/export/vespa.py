"""Vespa: `wand` over a weighted set retrieves documents, and a product of two mapped tensors scores them.

A weighted set has positive integers, so the first phase uses the positive part of a query, quantized. The second phase
scores the best K of each node with the exact signed weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from string import Template
from typing import Any

import numpy as np

from ..errors import DataError
from ..search.filters import parse_date
from .folder import Folder, template
from .impacts import Impacts
from .metadata import MetadataField
from .vectors import Vectors

TYPE = "doc"
TYPES = {"text": "string", "number": "double", "boolean": "bool", "date": "long"}
"""Types of metadata fields; a date is the number of seconds since 1970."""
DOCUMENT_BITS, QUERY_BITS = 8, 10
"""Of the first phase: the scores of 8,000 terms, 255 · 1023 each, stay below 2³¹."""


def feed(vectors: Vectors) -> Iterator[dict[str, Any]]:
    """Yield a put operation for every document."""
    impacts = Impacts.over(float(vectors.largest.max(initial=0.0)), DOCUMENT_BITS)
    for document in vectors.documents():
        fields: dict[str, Any] = document.fields()
        for field in vectors.metadata_fields:
            if field.name in document.metadata:
                fields[field.identifier] = field_value(field, document.metadata[field.name])
        if weights := vectors.by_name(document.vector()):
            fields["terms"] = dict(zip(weights, impacts.of(document.weights).tolist(), strict=True))
            fields["weights"] = {"cells": weights}
        yield {"put": f"id:{TYPE}:{TYPE}::{document.id}", "fields": fields}


def field_value(field: MetadataField, value: Any) -> Any:
    """Return a value of metadata: a date in seconds since 1970, and an array for a field of lists."""
    values = value if isinstance(value, list) else [value]
    if field.kind == "date":
        values = [int(parse_date(one) or 0) for one in values]
    return values if field.is_list else values[0]


def tokens(vectors: Vectors, weights: Mapping[int, float]) -> dict[str, int]:
    """Return the tokens of `wand`: the positive weights as integers."""
    positive = {term: weight for term, weight in weights.items() if weight > 0.0}
    values = np.array(list(positive.values()), np.float64)
    impacts = Impacts.over(float(values.max(initial=0.0)), QUERY_BITS).of(values)
    return dict(zip((vectors.names[term] for term in positive), impacts.tolist(), strict=True))


def body(vectors: Vectors, text: str, k: int, window: int, chosen: str | None = None) -> dict[str, Any]:
    """Return the query for the best k, of the documents that match a condition.

    The tensor is an object, {term: weight}. Vespa does not unescape quoted labels; `vectors.term_name` writes neither
    quotes nor backslashes.
    """
    weights = vectors.query(text)
    positive = tokens(vectors, weights)
    hits = max(k, window)
    where = f"({{targetHits: {hits}}}wand(terms, {json.dumps(positive, ensure_ascii=False)}))" if positive else "false"
    where = where if chosen is None else f"{where} and {chosen}"
    return {
        "yql": f"select id, title from {TYPE} where {where}",
        "ranking.profile": "sparserank",
        "ranking.rerankCount": hits,
        "hits": k,
        "input.query(words)": vectors.by_name(weights),
    }


def schema(window: int, fields: Sequence[MetadataField] = ()) -> str:
    """Return the schema; the second phase scores the best `window` of each node."""
    names = [field.identifier for field in fields]
    if len(set(names)) < len(names):
        raise DataError(f"two metadata fields have the same name in Vespa: {', '.join(one.name for one in fields)}")
    metadata = "".join(_schema_field(field) for field in fields)
    return Template(template("vespa.sd")).substitute(window=window, metadata=metadata)


def _schema_field(field: MetadataField) -> str:
    kind = f"array<{TYPES[field.kind]}>" if field.is_list else TYPES[field.kind]
    lines = ["indexing: summary | attribute"]
    if field.kind == "text":
        lines += ["match: cased", "attribute: fast-search", "dictionary {", "    hash", "    cased", "}"]
    inner = "".join(f"            {line}\n" for line in lines)
    return f"        field {field.identifier} type {kind} {{\n{inner}        }}\n"


def write(folder: Folder, vectors: Vectors, queries: Mapping[str, str], window: int, chosen: str | None = None) -> None:
    """Write an application package, the documents and the queries, with a condition or without."""
    folder.text(f"application/schemas/{TYPE}.sd", schema(window, vectors.metadata_fields))
    folder.text("application/services.xml", template("vespa-services.xml"))
    folder.text("application/search/query-profiles/default.xml", template("vespa-query-profile.xml"))
    folder.lines("feed.jsonl", feed(vectors))
    folder.requests(queries, lambda text: {"body": body(vectors, text, 10, window, chosen)})
    folder.readme("vespa", vectors, queries, window=window)
