"""The parts of each engine's published request format that we use, as JSON Schema, closed: a key too many is an error.

Elasticsearch   https://www.elastic.co/docs/reference/query-languages/query-dsl/query-dsl-sparse-vector-query
                https://www.elastic.co/docs/reference/elasticsearch/mapping-reference/sparse-vector
                https://www.elastic.co/docs/reference/elasticsearch/rest-apis/filter-search-results#rescore
                https://www.elastic.co/docs/reference/query-languages/query-dsl/query-dsl-script-score-query
                https://www.elastic.co/docs/reference/text-analysis/analysis-synonym-graph-tokenfilter
                https://www.elastic.co/docs/reference/text-analysis/analysis-length-tokenfilter
                https://www.elastic.co/docs/reference/text-analysis/analysis-pattern-tokenizer
OpenSearch      https://docs.opensearch.org/latest/query-dsl/specialized/neural-sparse/
                https://docs.opensearch.org/latest/mappings/supported-field-types/rank/
Vespa           https://docs.vespa.ai/en/reference/document-json-format.html
                https://docs.vespa.ai/en/reference/query-api-reference.html#hits
                https://docs.vespa.ai/en/reference/tensor.html#tensor-literal-form
"""

from __future__ import annotations

from typing import Any

STRING, BOOLEAN = {"type": "string"}, {"type": "boolean"}


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object of exactly these keys."""
    properties = required | (optional or {})
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def constant(value: Any) -> dict[str, Any]:
    return {"const": value}


# a feature's name has no dots; a query's weight is in (0, 64]; at most 1,024 clauses
FEATURE_NAME = {"pattern": r"^[^.]+$", "maxLength": 32766}
QUERY_WEIGHTS = {
    "type": "object",
    "propertyNames": FEATURE_NAME,
    "additionalProperties": {"type": "number", "exclusiveMinimum": 0, "maximum": 64},
    "minProperties": 1,
    "maxProperties": 1022,
}
FEATURES = {
    "type": "object",
    "propertyNames": FEATURE_NAME,
    "additionalProperties": {"type": "number", "exclusiveMinimum": 1.1754943508222875e-38},
    "minProperties": 1,
}
CLAUSES = {
    "elasticsearch": closed(
        {"sparse_vector": closed({"field": STRING, "query_vector": QUERY_WEIGHTS}, {"prune": BOOLEAN})}
    ),
    "opensearch": closed({"neural_sparse": closed({"sparserank": closed({"query_tokens": QUERY_WEIGHTS})})}),
}
FIELDS = {
    "elasticsearch": closed(
        {"type": constant("sparse_vector")},
        {"index_options": closed({"prune": BOOLEAN}, {"pruning_config": {"type": "object"}}), "store": BOOLEAN},
    ),
    "opensearch": closed({"type": constant("rank_features")}, {"positive_score_impact": BOOLEAN}),
}
PLAIN_FIELD = closed(
    {"type": {"enum": ["keyword", "text"]}},
    {"index": BOOLEAN, "copy_to": STRING, "analyzer": STRING, "search_analyzer": STRING},
)


METADATA_FIELD = closed(
    {"type": {"enum": ["keyword", "double", "boolean", "date"]}}, {"ignore_above": {"type": "integer"}}
)
METADATA_PROPERTY = closed(
    {"properties": {"type": "object", "propertyNames": FEATURE_NAME, "additionalProperties": METADATA_FIELD}}
)


def mapping(target: str) -> dict[str, Any]:
    properties = closed(
        dict.fromkeys(("id", "title", "text"), PLAIN_FIELD) | {"sparserank": FIELDS[target]},
        {"metadata": METADATA_PROPERTY},
    )
    return closed({"mappings": closed({"dynamic": constant("strict"), "properties": properties})})


def search(target: str) -> dict[str, Any]:
    """A search request with its rescorers."""
    clause = CLAUSES[target]
    every = closed({"bool": closed({"filter": {"const": [{"match_all": {}}]}, "should": _list(clause)})})
    script = closed({"source": STRING, "params": closed({"bound": {"type": "number", "exclusiveMinimum": 0}})})
    scored = closed({"script_score": closed({"query": every, "script": script})})
    weight = {"type": "number"}
    second = closed(
        {"rescore_query": {"oneOf": [clause, scored]}},
        {
            "query_weight": weight,
            "rescore_query_weight": weight,
            "score_mode": {"enum": ["total", "multiply", "avg", "max", "min"]},
        },
    )
    window = {"type": "integer", "minimum": 1, "maximum": 10_000}
    rescorer = closed({"window_size": window, "query": second})
    nothing = closed({"match_none": closed({})})
    required = {"query": {"oneOf": [clause, nothing]}, "size": {"type": "integer", "minimum": 0, "maximum": 10_000}}
    return closed(required, {"_source": {"type": "array", "items": STRING}, "rescore": _list(rescorer)})


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item, "minItems": 1}


BULK_ACTION = closed({"index": closed({"_id": {"type": "string", "minLength": 1, "maxLength": 512}})})
METADATA = {"type": "object", "propertyNames": FEATURE_NAME, "minProperties": 1}
BULK_DOCUMENT = closed({"id": STRING, "title": STRING, "text": STRING}, {"sparserank": FEATURES, "metadata": METADATA})

VESPA_WEIGHTS = {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1, "maximum": 2**31 - 1}}
VESPA_MOST_HITS = 10_000  # of the application's query profile; where there is none, 400
VESPA_LABEL = {"pattern": r'^[^"\\\x00-\x20]+$'}  # labels of a query are read as they stand between quotes
VESPA_WORDS = {"type": "object", "propertyNames": VESPA_LABEL, "additionalProperties": {"type": "number"}}
VESPA_TENSOR = closed({"cells": {"type": "object", "additionalProperties": {"type": "number"}}})
VESPA_PUT = closed(
    {
        "put": {"type": "string", "pattern": "^id:[^:]+:[^:]+::.+$"},
        "fields": closed(
            {"id": STRING, "title": STRING, "text": STRING}, {"terms": VESPA_WEIGHTS, "weights": VESPA_TENSOR}
        ),
    }
)
VESPA_QUERY = closed(
    {
        "yql": {"type": "string", "pattern": "^select "},
        "ranking.profile": constant("sparserank"),
        "ranking.rerankCount": {"type": "integer", "minimum": 1},
        "hits": {"type": "integer", "minimum": 0, "maximum": VESPA_MOST_HITS},
        "input.query(words)": VESPA_WORDS,
    }
)

ANALYSIS = closed(
    {
        "tokenizer": closed({"word": closed({"type": constant("pattern"), "pattern": STRING})}),
        "filter": closed(
            {
                "pairs": closed({"type": constant("synonym_graph"), "synonyms_path": STRING}),
                "long": closed({"type": constant("length"), "min": {"type": "integer", "minimum": 0}}),
            },
            {
                "stopped": closed({"type": constant("stop"), "stopwords": {"type": "array", "items": STRING}}),
                "stems": closed({"type": constant("snowball"), "language": STRING}),
            },
        ),
        "analyzer": {
            "type": "object",
            "additionalProperties": closed(
                {"type": constant("custom"), "tokenizer": STRING, "filter": {"type": "array", "items": STRING}}
            ),
        },
    }
)
SYNONYM_DOCUMENT = closed({"id": STRING, "title": STRING, "text": STRING})
SYNONYM_SEARCH = closed(
    {
        "size": {"type": "integer", "minimum": 0, "maximum": 10_000},
        "_source": {"type": "array", "items": STRING},
        "query": closed({"match": closed({"content": closed({"query": STRING})})}),
    }
)
SYNONYM_INDEX = closed(
    {
        "settings": closed({"analysis": ANALYSIS}),
        "mappings": closed(
            {
                "dynamic": constant("strict"),
                "properties": closed(dict.fromkeys(("id", "title", "text", "content"), PLAIN_FIELD)),
            }
        ),
    }
)
