"""Vespa: the schema is what its own package would write, documents and queries fit, answers are exact."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import jsonschema_rs
import pytest
import vespa.querybuilder as builder
from benchmarks.engine_simulation import VespaEngine
from vespa.package import (
    ApplicationPackage,
    Document,
    Field,
    QueryField,
    QueryProfile,
    RankProfile,
    Schema,
    SecondPhaseRanking,
)

import sparserank as sr
from sparserank.errors import ConfigError
from sparserank.export import export, query_body, vespa

from . import schemas
from .worlds import reachable, same_results, vectors_and_queries, world


def blocks(schema):
    """What a schema says, {line: what is in its block}, `a: b` and `a { b }` being the same, in any order."""
    root = {}
    stack = [root]
    for line in filter(None, map(str.strip, schema.splitlines())):
        if line == "}":
            stack.pop()
            continue
        name, _, value = line.removesuffix(" {").partition(": ")
        assert name not in stack[-1], f"{name!r} is there twice"
        stack[-1][name] = {value: {}} if value else {}
        if line.endswith(" {"):
            stack.append(stack[-1][name])
    assert stack == [root]
    return root


def test_a_setting_of_another_block_is_another_schema():
    ours = vespa.schema(100)
    line = "            match: cased\n"
    moved = ours.replace(line, "").replace("indexing: summary\n", "indexing: summary\n" + line, 1)
    assert sorted(moved.split()) == sorted(ours.split())
    assert blocks(moved) != blocks(ours)
    assert blocks("a {\n b: c\n d\n}") == blocks("a {\n d\n b {\n c\n }\n}") == {"a": {"b": {"c": {}}, "d": {}}}


def test_the_schema_is_the_one_that_vespas_own_package_writes():
    stored = [Field(name, "string", indexing=["summary"]) for name in ("title", "text")]
    fields = [
        Field("id", "string", indexing=["summary", "attribute"]),
        *stored,
        Field("terms", "weightedset<string>", indexing=["attribute"], match=["cased"], attribute=["fast-search"]),
        Field("weights", "tensor<float>(term{})", indexing=["attribute"]),
    ]
    profile = RankProfile(
        "sparserank",
        first_phase="rawScore(terms)",
        inputs=[("query(words)", "tensor<float>(term{})")],
        second_phase=SecondPhaseRanking("sum(query(words) * attribute(weights))", rerank_count=100),
    )
    theirs = blocks(Schema("doc", Document(fields=fields), rank_profiles=[profile]).schema_to_text)
    # it knows no dictionaries: https://docs.vespa.ai/en/reference/schema-reference.html#dictionary
    terms = theirs["schema doc"]["document doc"]["field terms type weightedset<string>"]
    terms["dictionary"] = {"hash": {}, "cased": {}}
    assert blocks(vespa.schema(100)) == theirs


def profile_fields(xml):
    root = ElementTree.fromstring(xml)
    assert (root.tag, root.attrib["id"]) == ("query-profile", "default")
    return {field.attrib["name"]: field.text for field in root.findall("field")}


def test_the_query_profile_is_the_one_that_vespas_own_package_writes_and_allows_every_k(tmp_path):
    ranker, queries = world(1)
    summary = export(ranker, "vespa", tmp_path / "made", queries)
    path = "application/search/query-profiles/default.xml"
    assert path in summary["files"]
    most = schemas.VESPA_MOST_HITS
    fields = [QueryField(name, most) for name in ("maxHits", "maxOffset")]
    theirs = ApplicationPackage("doc", query_profile=QueryProfile(fields=fields)).query_profile_to_text
    assert profile_fields((tmp_path / "made" / path).read_text()) == profile_fields(theirs)
    body = query_body(ranker, "vespa", "alkan", k=10_000)
    jsonschema_rs.validate(schemas.VESPA_QUERY, body)
    assert body["hits"] == most
    assert f"targetHits: {most}" in body["yql"]


def test_a_query_tensor_is_terms_and_weights_signs_and_all():
    vectors, queries = vectors_and_queries(2)
    signs = set()
    for text in queries.values():
        tensor = vespa.body(vectors, text, 10, 100)["input.query(words)"]
        assert tensor == vectors.by_name(vectors.query(text))
        signs |= {weight > 0.0 for weight in tensor.values()}
    assert signs == {True, False}
    odd = sr.TextRanker("bm25", analyzer=sr.Analyzer("english", ngrams=2)).fit({"a": "heart attack", "b": "größe"})
    tensor = query_body(odd, "vespa", "heart attack größe")["input.query(words)"]
    assert set(tensor) >= {"heart", "attack", "heart+attack"}
    jsonschema_rs.validate(schemas.VESPA_WORDS, tensor)


def test_everything_written_fits_the_engines_format(tmp_path):
    ranker, queries = world(1)
    export(ranker, "vespa", tmp_path / "made", queries, rescore_window=50)
    made = tmp_path / "made"
    assert "rerank-count: 50" in (made / "application/schemas/doc.sd").read_text()
    services = ElementTree.parse(made / "application/services.xml").getroot()
    assert services.find("content/documents/document").attrib == {"type": "doc", "mode": "index"}
    puts = [json.loads(line) for line in (made / "feed.jsonl").read_text().splitlines()]
    assert len(puts) == len(ranker.index_)
    for put in puts:
        jsonschema_rs.validate(schemas.VESPA_PUT, put)
        assert put["put"] == f"id:doc:doc::{put['fields']['id']}"
        assert set(put["fields"].get("terms", {})) == set(put["fields"].get("weights", {"cells": {}})["cells"])
    for line in (made / "queries.jsonl").read_text().splitlines():
        jsonschema_rs.validate(schemas.VESPA_QUERY, json.loads(line)["body"])
    assert json.loads((made / "query.json").read_text())["ranking.rerankCount"] == 50


def test_the_query_is_the_one_that_vespas_own_builder_writes():
    vectors, queries = vectors_and_queries(2)
    for text in queries.values():
        found = vespa.tokens(vectors, vectors.query(text))
        if found:
            wand = builder.wand("terms", found, annotations={"targetHits": 100})
            built = builder.select(["id", "title"]).from_("doc").where(wand)
            assert vespa.body(vectors, text, 10, 100)["yql"] == str(built)
    assert vespa.body(vectors, "zzzz", 10, 100)["yql"] == "select id, title from doc where false"


@pytest.mark.parametrize("seed", range(3))
def test_the_engine_answers_exactly(seed):
    vectors, queries = vectors_and_queries(seed)
    engine = VespaEngine(vespa.feed(vectors))
    for text in queries.values():
        found = engine.search(vespa.body(vectors, text, 10, 100))
        same_results([hit for hit in found if hit[1] != 0.0], reachable(vectors, text))


def test_another_query_is_rejected_by_the_simulated_engine():
    vectors, _ = vectors_and_queries(0)
    with pytest.raises(ConfigError, match="not the query"):
        VespaEngine(vespa.feed(vectors)).search({"yql": "select * from doc where true"})
