"""Elasticsearch and OpenSearch: requests fit the published formats, and answer as exact scoring does."""

from __future__ import annotations

import inspect
import json

import jsonschema_rs
import numpy as np
import pytest
from benchmarks.engine_simulation import LuceneEngine, lucene_weights
from elasticsearch.dsl import Search
from elasticsearch.dsl import query as dsl
from elasticsearch.dsl.field import SparseVector

import sparserank as sr
from sparserank.errors import ConfigError, DataError
from sparserank.export import export, lucene, query_body, vectors_of

from . import schemas
from .worlds import exact, reachable, vectors_and_queries, world

TARGETS = ("elasticsearch", "opensearch")


def valid(schema, content):
    jsonschema_rs.validate(schema, content)


@pytest.mark.parametrize("target", TARGETS)
def test_everything_written_fits_the_engines_format(tmp_path, target):
    ranker, queries = world(1)
    export(ranker, target, tmp_path / "made", queries)
    made = tmp_path / "made"
    valid(schemas.mapping(target), json.loads((made / "index.json").read_text()))
    lines = (made / "bulk-00000.ndjson").read_bytes().splitlines()
    assert len(lines) == 2 * len(ranker.index_)
    for action, source in zip(lines[::2], lines[1::2], strict=True):
        valid(schemas.BULK_ACTION, json.loads(action))
        valid(schemas.BULK_DOCUMENT, json.loads(source))
    bodies = [json.loads(line)["body"] for line in (made / "queries.jsonl").read_text().splitlines()]
    assert len(bodies) == len(queries)
    for body in [*bodies, json.loads((made / "query.json").read_text())]:
        valid(schemas.search(target), body)
    assert "match_none" in bodies[-1]["query"]
    assert any("rescore" in body for body in bodies)


def test_the_format_is_strict_enough_to_fail():
    ranker, _ = world(1)
    body = query_body(ranker, "elasticsearch", "alkan")
    for wrong in (body | {"sizes": 1}, body | {"query": {"sparse_vector": {"field": "x", "query_vector": {"a": -1}}}}):
        with pytest.raises(jsonschema_rs.ValidationError):
            valid(schemas.search("elasticsearch"), wrong)


def test_the_client_of_elasticsearch_knows_every_key():
    ranker, _ = world(2)
    body = query_body(ranker, "elasticsearch", "alkan bemot")
    assert Search.from_dict(body).to_dict() == body
    weighted = body["query"]["sparse_vector"]
    assert dsl.SparseVector(**weighted).to_dict() == body["query"]
    (rescorer,) = body["rescore"]
    scored = rescorer["query"]["rescore_query"]["script_score"]
    assert dsl.ScriptScore(**scored).to_dict() == {"script_score": scored}
    for made, keys in ((dsl.SparseVector, weighted), (dsl.ScriptScore, scored), (SparseVector, {"index_options"})):
        assert set(keys) <= set(inspect.signature(made.__init__).parameters)


def bounds(body):
    """What the rescorers of a request add to every score."""
    scripts = [part["query"]["rescore_query"].get("script_score") for part in body.get("rescore", [])]
    return sum(script["script"]["params"]["bound"] for script in scripts if script)


def whole_products(vectors, text):
    """By the definition: {document: Σ query weight · document weight of 9 bits}."""
    query, rows = vectors.query(text), lucene_weights(vectors.matrix.toarray())
    scores = (sum(weight * float(row[term]) for term, weight in query.items()) for row in rows)
    return dict(zip(vectors.index.documents.ids, scores, strict=True))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(3))
def test_the_engine_answers_as_exact_scoring_but_for_9_bits(target, seed):
    vectors, queries = vectors_and_queries(seed)
    engine = LuceneEngine(lucene.bulk(vectors))
    for text in queries.values():
        body = lucene.body(lucene.ENGINES[target], vectors, text, 10, 100)
        found = [(doc, score - bounds(body)) for doc, score in engine.search(body)]
        best = reachable(vectors, text)
        truth, near = dict(exact(vectors, text, 100)), 0.01 * sum(map(abs, vectors.query(text).values()))
        for (doc, score), (_, value) in zip(found, best, strict=False):
            assert score == pytest.approx(truth.get(doc, 0.0), abs=near)
            assert score == pytest.approx(value, abs=near)
        assert len(found) >= len(best)


def test_a_query_of_many_terms_is_spread_over_rescorers_and_loses_nothing(monkeypatch):
    vectors, queries = vectors_and_queries(3)
    engine = LuceneEngine(lucene.bulk(vectors))
    split = lucene.SignedQuery.split
    monkeypatch.setattr(lucene.SignedQuery, "split", lambda query, largest: split(query, largest, max_terms=3))
    spread = 0
    for text in queries.values():
        body = lucene.body(lucene.ELASTICSEARCH, vectors, text, 100, 100)
        found = {doc: score - bounds(body) for doc, score in engine.search(body)}
        expected = whole_products(vectors, text)
        assert found == pytest.approx({doc: expected[doc] for doc in found}, rel=1e-4, abs=1e-4)
        weighted = body["query"].get("sparse_vector", {"query_vector": {}})["query_vector"]
        columns = [vectors.names.index(name) for name in weighted]
        shares = vectors.matrix.toarray()[:, columns].any(axis=1)
        assert len(weighted) <= 3
        assert len(found) == shares.sum()
        spread += len(body.get("rescore", [])) > 2
    assert spread


@pytest.mark.parametrize("target", TARGETS)
def test_a_score_less_its_bounds_times_its_scale_is_ours(tmp_path, target):
    ranker, queries = world(4, gain=5000.0)
    export(ranker, target, tmp_path / "made", queries)
    vectors, scales = vectors_of(ranker), set()
    engine = LuceneEngine(lucene.bulk(vectors))
    for line in (tmp_path / "made/queries.jsonl").read_text().splitlines():
        record = json.loads(line)
        assert set(record) == {"id", "scale", "body"}
        expected = whole_products(vectors, queries[record["id"]])
        near = 1e-5 * sum(map(abs, vectors.query(queries[record["id"]]).values()))
        for doc, score in engine.search(record["body"]):
            assert (score - bounds(record["body"])) * record["scale"] == pytest.approx(expected[doc], abs=near)
        scales.add(record["scale"])
    assert max(scales) > min(scales) == 1.0
    first = json.loads((tmp_path / "made/queries.jsonl").read_text().splitlines()[0])
    assert f"the query's scale: {first['scale']:g} in query.json" in (tmp_path / "made/README.md").read_text()


def test_scores_are_never_below_0_and_weights_never_above_64():
    vectors, queries = vectors_and_queries(4, gain=5000.0)
    engine = LuceneEngine(lucene.bulk(vectors))
    for text in queries.values():
        for _, score in engine.search(lucene.body(lucene.OPENSEARCH, vectors, text, 50, 100)):
            assert score >= 0.0


def test_words_alone_need_no_rescoring():
    body = query_body(sr.TextRanker("bm25").fit({"a": "apple", "b": "pear"}), "elasticsearch", "apple pear")
    assert "rescore" not in body


def test_k_above_the_rescore_window_widens_it():
    ranker, _ = world(5)
    body = query_body(ranker, "opensearch", "alkan bemot", k=500, rescore_window=100)
    assert [part["window_size"] for part in body["rescore"]] == [500]


def test_bulk_parts_are_whole_documents(tmp_path, monkeypatch):
    ranker, queries = world(6)
    parts = lucene.Folder.parts
    monkeypatch.setattr(lucene.Folder, "parts", lambda self, name, records: parts(self, name, records, 2000))
    summary = export(ranker, "elasticsearch", tmp_path / "made", queries)
    names = sorted(name for name in summary["files"] if name.startswith("bulk"))
    assert len(names) > 2
    assert all(summary["files"][name] <= 2000 for name in names)
    count = 0
    for name in names:
        lines = (tmp_path / "made" / name).read_bytes().splitlines()
        count += sum("index" in json.loads(line) for line in lines[::2])
        assert len(lines) % 2 == 0
    assert count == len(ranker.index_)


def test_what_lucene_would_reject_raises_an_error_before():
    long = sr.TextRanker("bm25").fit({"é" * 300: "word"})
    with pytest.raises(DataError, match="1 to 512 bytes"):
        list(lucene.bulk(vectors_of(long)))
    wide = sr.TextRanker("bm25").fit({"d": "w" * 40_000})
    with pytest.raises(DataError, match="32,766 bytes"):
        list(lucene.bulk(vectors_of(wide)))


def test_the_simulated_engine_refuses_what_the_engine_would():
    document = [b'{"index":{"_id":"a"}}\n{"sparserank":{"x":1.0}}\n']
    engine = LuceneEngine(document)
    clause = lucene.ELASTICSEARCH.clause
    for terms in ({"x": -1.0}, {"x": 65.0}, {f"t{i}": 1.0 for i in range(1023)}):
        with pytest.raises(ConfigError, match="at most 1024 clauses"):
            engine.search({"size": 10, "query": clause(terms)})
    with pytest.raises(ConfigError, match="kind 'wildcard'"):
        engine.search({"size": 10, "query": {"wildcard": {}}})
    rescorer = {"window_size": 10, "query": {"rescore_query": clause({"x": 1.0}), "score_mode": "max"}}
    with pytest.raises(ConfigError, match="added up"):
        engine.search({"size": 10, "query": clause({"x": 1.0}), "rescore": [rescorer]})
    with pytest.raises(ConfigError, match="no dots"):
        LuceneEngine([b'{"index":{"_id":"a"}}\n{"sparserank":{"x.y":1.0}}\n'])


def test_a_document_outside_the_window_stays_below_those_inside():
    docs = [
        f'{{"index":{{"_id":"{n}"}}}}\n{{"sparserank":{{"x":{w},"y":1.0}}}}\n'.encode()
        for n, w in zip("abc", (3, 2, 1), strict=True)
    ]
    clause = lucene.ELASTICSEARCH.clause
    less = {
        "script_score": {
            "query": {"bool": {"filter": [{"match_all": {}}], "should": [clause({"y": 1.0})]}},
            "script": {"source": lucene.SCRIPT, "params": {"bound": 5.0}},
        }
    }
    body = {"size": 3, "query": clause({"x": 1.0}), "rescore": [{"window_size": 2, "query": lucene.add_score(less)}]}
    assert LuceneEngine(docs).search(body) == [("a", 7.0), ("b", 6.0), ("c", 1.0)]


def test_9_bits_are_a_relative_error_below_half_a_percent():
    weights = np.random.default_rng(0).lognormal(size=1000).astype(np.float32)
    kept = lucene_weights(weights)
    assert (kept <= weights).all()
    assert ((weights - kept) / weights).max() < 2**-8
