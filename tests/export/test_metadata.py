"""Metadata in the format of each engine, with the types that its schema names."""

from __future__ import annotations

import json

import jsonschema_rs
import pytest
from elasticsearch.dsl import Mapping as ElasticsearchMapping
from qdrant_client.http import models
from qdrant_edge import EdgeShard, FieldCondition, Filter, MatchValue, Query, QueryRequest, SparseVector
from vespa.package import Document, Field, Schema

import sparserank as sr
from sparserank.errors import DataError
from sparserank.export import export, lucene, qdrant, synonyms, vectors_of, vespa
from sparserank.export.metadata import metadata_fields

from . import schemas
from .test_vespa import blocks

DOCS = {
    "a": {"text": "red apples", "metadata": {"kind": "pome", "n": 3, "ripe": True, "at": "2024-01-31", "a.b": "x"}},
    "b": {"text": "red plums", "metadata": {"kind": 7, "n": 2.5, "at": ["2024-02-01T08:00:00", "2023-01-01"]}},
    "c": {"text": "red pears"},
}
TYPES = {"a.b": "keyword", "at": "date", "kind": "keyword", "n": "double", "ripe": "boolean"}


@pytest.fixture(scope="module")
def ranker():
    return sr.TextRanker("bm25").fit(DOCS)


def test_a_field_has_the_kind_of_all_its_values_and_is_text_otherwise(ranker):
    found = [(field.name, field.kind, field.is_list) for field in vectors_of(ranker).metadata_fields]
    kinds = {"keyword": "text", "double": "number"}
    assert found == [(name, kinds.get(kind, kind), name == "at") for name, kind in TYPES.items()]


@pytest.mark.parametrize("target", ["elasticsearch", "opensearch"])
def test_lucene_engines_get_a_mapping_and_an_object(ranker, tmp_path, target):
    export(ranker, target, tmp_path / "made", {"q": "red"})
    index = json.loads((tmp_path / "made" / "index.json").read_text())
    properties = index["mappings"]["properties"]["metadata"]["properties"]
    assert {name: one["type"] for name, one in properties.items()} == {
        name.replace(".", "%2E"): kind for name, kind in TYPES.items()
    }
    lines = [json.loads(line) for line in (tmp_path / "made" / "bulk-00000.ndjson").read_bytes().splitlines()]
    sources = {source["id"]: source for source in lines[1::2]}
    assert sources["b"]["metadata"] == {"kind": "7", "n": 2.5, "at": DOCS["b"]["metadata"]["at"]}
    assert "metadata" not in sources["c"]
    assert sources["a"]["metadata"]["a%2Eb"] == "x"
    jsonschema_rs.validate(schemas.mapping(target), index)
    for source in sources.values():
        jsonschema_rs.validate(schemas.BULK_DOCUMENT, source)
    with_synonyms = synonyms.index_body(vectors_of(ranker))["mappings"]["properties"]
    assert with_synonyms["metadata"]["properties"] == properties


def test_elasticsearchs_own_client_knows_the_types(ranker):
    mapping = lucene.index_body(lucene.ELASTICSEARCH, vectors_of(ranker).metadata_fields)["mappings"]
    made = ElasticsearchMapping()
    for name, field in mapping["properties"]["metadata"]["properties"].items():
        made.field(name, dict(field))
    assert made.to_dict()["properties"] == mapping["properties"]["metadata"]["properties"]


def test_qdrant_gets_a_payload_and_filters_by_it(ranker, tmp_path):
    export(ranker, "qdrant", tmp_path / "made", {"q": "red"}, embedded=True)
    points = models.PointsList.model_validate_json((tmp_path / "made" / "points-00000.json").read_text()).points
    payloads = {point.payload["id"]: point.payload.get("metadata") for point in points}
    assert payloads == {
        "a": DOCS["a"]["metadata"],
        "b": {"kind": "7", "n": 2.5, "at": DOCS["b"]["metadata"]["at"]},
        "c": None,
    }
    lines = (tmp_path / "made" / "payload-indexes.jsonl").read_text().splitlines()
    indexes = [models.CreateFieldIndex.model_validate_json(line) for line in lines]
    schema = {"keyword": "keyword", "double": "float", "boolean": "bool", "date": "datetime"}
    assert {one.field_name: one.field_schema.value for one in indexes} == {
        f"metadata.{name}" if name != "a.b" else 'metadata."a.b"': schema[kind] for name, kind in TYPES.items()
    }
    shard = EdgeShard.load(str(tmp_path / "made" / "shard"))
    weights = vectors_of(ranker).query("red")
    vector = SparseVector(list(weights), list(weights.values()))
    for key, value, wanted in (
        ("metadata.kind", "pome", ["a"]),
        ('metadata."a.b"', "x", ["a"]),
        ("metadata.kind", "7", ["b"]),
    ):
        chosen = Filter(must=[FieldCondition(key, match=MatchValue(value))])
        query = Query.Nearest(vector, using=qdrant.NAME)
        found = shard.query(QueryRequest(limit=9, query=query, filter=chosen, with_payload=True))
        assert [point.payload["id"] for point in found] == wanted
    shard.close()


def test_vespa_gets_attributes_that_its_own_package_would_write(ranker, tmp_path):
    export(ranker, "vespa", tmp_path / "made", {"q": "red"})
    fields = [
        Field("metadata_a_b", "string", indexing=["summary", "attribute"], match=["cased"], attribute=["fast-search"]),
        Field("metadata_at", "array<long>", indexing=["summary", "attribute"]),
        Field("metadata_kind", "string", indexing=["summary", "attribute"], match=["cased"], attribute=["fast-search"]),
        Field("metadata_n", "double", indexing=["summary", "attribute"]),
        Field("metadata_ripe", "bool", indexing=["summary", "attribute"]),
    ]
    theirs = blocks(Schema("doc", Document(fields=fields)).schema_to_text)["schema doc"]["document doc"]
    for name in ("metadata_a_b", "metadata_kind"):
        theirs[f"field {name} type string"]["dictionary"] = {"hash": {}, "cased": {}}
    ours = blocks((tmp_path / "made" / "application/schemas/doc.sd").read_text())["schema doc"]["document doc"]
    assert {name: block for name, block in ours.items() if "metadata_" in name} == theirs
    puts = [json.loads(line)["fields"] for line in (tmp_path / "made" / "feed.jsonl").read_text().splitlines()]
    found = {put["id"]: {name: value for name, value in put.items() if "metadata_" in name} for put in puts}
    assert found["b"] == {"metadata_kind": "7", "metadata_n": 2.5, "metadata_at": [1706774400, 1672531200]}
    assert found["a"]["metadata_at"] == [1706659200]
    assert found["c"] == {}


def test_two_fields_of_one_name_in_vespa_raise_an_error():
    fields = metadata_fields([{"a.b": 1, "a b": 2}])
    with pytest.raises(DataError, match=r"two metadata fields have the same name in Vespa: a b, a\.b"):
        vespa.schema(100, fields)
