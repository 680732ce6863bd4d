"""Vespa: the schema is what its own package would write, documents and queries fit, answers are exact."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import jsonschema_rs
import pytest
import vespa.querybuilder as builder
from vespa.package import Document, Field, RankProfile, Schema, SecondPhaseRanking

from sparserank.errors import ConfigError
from sparserank.export import export, vespa
from sparserank.export.simulation import VespaEngine

from . import schemas
from .worlds import reachable, same_results, vectors_and_queries, world


def words(schema):
    """What a schema says, `a: b` and `a { b }` being the same, in any order."""
    return sorted(re.sub(r"[{}:]", " ", schema).split())


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
        inputs=[("query(asked)", "tensor<float>(term{})")],
        second_phase=SecondPhaseRanking("sum(query(asked) * attribute(weights))", rerank_count=100),
    )
    theirs = Schema("doc", Document(fields=fields), rank_profiles=[profile]).schema_to_text
    ours = vespa.SCHEMA.format(type="doc", rescored=100)
    # it knows no dictionaries: https://docs.vespa.ai/en/reference/schema-reference.html#dictionary
    assert words(ours) == words(theirs + "dictionary { hash cased }")


def test_everything_written_fits_the_engines_format(tmp_path):
    ranker, queries = world(1)
    export(ranker, "vespa", tmp_path / "made", queries, rescored=50)
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


def test_another_query_is_refused_by_the_simulated_engine():
    vectors, _ = vectors_and_queries(0)
    with pytest.raises(ConfigError, match="not the query"):
        VespaEngine(vespa.feed(vectors)).search({"yql": "select * from doc where true"})
