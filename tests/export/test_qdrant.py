"""Qdrant, for real: embedded shards give our results, and a server would take what is written."""

from __future__ import annotations

import json

import numpy as np
import pytest
from qdrant_client.http import models
from qdrant_edge import EdgeShard, Filter, HasIdCondition, Query, QueryRequest, SparseVector

import sparserank as sr
from sparserank import data
from sparserank.export import export, qdrant, vectors_of

from .worlds import exact, same_results, vectors_and_queries, with_pairs, world


@pytest.fixture
def shard(tmp_path):
    made = []

    def of(vectors):
        made.append(qdrant.make_shard(vectors, tmp_path / f"shard{len(made)}"))
        return made[-1]

    yield of
    for one in made:
        one.close()


def pairs(hits):
    return [(hit.id, hit.score) for hit in hits]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 10, 100])
def test_the_top_k_are_exact_signs_and_all(shard, seed, k):
    vectors, queries = vectors_and_queries(seed)
    made = shard(vectors)
    for text in queries.values():
        same_results(pairs(qdrant.hits(made, vectors, text, k)), exact(vectors, text, k))


def test_documents_below_0_are_results_and_those_that_share_no_term_are_not(shard):
    vectors, queries = vectors_and_queries(1, documents=12)
    made = shard(vectors)
    below = fewer = 0
    for text in queries.values():
        found = pairs(qdrant.hits(made, vectors, text, 100))
        same_results(found, exact(vectors, text, 100))
        below += sum(score < 0.0 for _, score in found)
        fewer += len(found) < len(vectors.index)
    assert below
    assert fewer
    assert qdrant.hits(made, vectors, "zzzz") == []


def nearest(weights):
    return Query.Nearest(SparseVector(list(weights), list(weights.values())), using=qdrant.NAME)


def only(*doc_ids):
    return Filter(must=[HasIdCondition({qdrant.point_id(doc_id) for doc_id in doc_ids})])


def test_a_point_without_a_common_term_is_not_found_by_a_filter_either(shard):
    vectors = vectors_of(sr.TextRanker("bm25").fit({"a": "apple", "b": "pear"}))
    request = QueryRequest(limit=10, query=nearest(vectors.query("apple")), filter=only("b"))
    assert shard(vectors).query(request) == []


@pytest.mark.parametrize("chosen", [None, only("a", "b", "c")], ids=["all", "filtered"])
def test_contributions_that_cancel_are_no_result_here_as_in_our_index(shard, chosen):
    vectors = vectors_of(sr.TextRanker("bm25").fit({"a": "apple", "b": "apple pear", "c": "pear"}))
    rows = dict(zip(vectors.index.documents.ids, vectors.matrix.toarray(), strict=True))
    apple, pear = (int(np.flatnonzero(rows[doc])[0]) for doc in "ac")
    assert rows["b"][apple] == rows["b"][pear]
    request = QueryRequest(limit=10, query=nearest({apple: 1.0, pear: -1.0}), filter=chosen, with_payload=True)
    found = {point.payload["id"]: point.score for point in shard(vectors).query(request) if point.score != 0.0}
    assert found == {"a": pytest.approx(rows["a"][apple]), "c": pytest.approx(-rows["c"][pear])}


def test_equal_scores_come_by_falling_id_however_many_there_are(shard):
    ranker = sr.TextRanker("bm25").fit({f"d{i:02d}": "apple" for i in range(40)} | {"z": "pear"})
    found = qdrant.hits(shard(vectors_of(ranker)), vectors_of(ranker), "apple", 3)
    assert [hit.id for hit in found] == ["d39", "d38", "d37"] == [hit.id for hit in ranker.search("apple", 3)]


def test_a_shard_that_was_exported_is_opened_again(tmp_path):
    ranker, queries = world(4)
    summary = export(ranker, "qdrant", tmp_path / "made", queries, embedded=True)
    assert summary["documents"] == 61
    opened = EdgeShard.load(str(tmp_path / "made/shard"))
    vectors = vectors_of(ranker)
    for text in queries.values():
        same_results(pairs(qdrant.hits(opened, vectors, text)), exact(vectors, text))
    opened.close()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", ["nfcorpus", "pydocs"])
def test_the_top_10_of_real_queries_are_exact(real, shard, name):
    if name != "pydocs":
        real(name)
    collection = data.load(name)
    texts = [collection.queries[q] for q in collection.qrels["dev"]]
    ranker = with_pairs(sr.TextRanker("bm25").fit(collection.documents), texts, density=2e-4, gain=30.0)
    vectors = vectors_of(ranker)
    made = shard(vectors)
    for text, hits in zip(texts, ranker.search_many(texts, 10), strict=True):
        same_results(pairs(qdrant.hits(made, vectors, text)), pairs(hits))


def test_a_server_takes_what_is_written(tmp_path):
    ranker, queries = world(5)
    export(ranker, "qdrant", tmp_path / "made", queries)
    made, vectors = tmp_path / "made", vectors_of(ranker)
    models.CreateCollection.model_validate_json((made / "collection.json").read_text(), strict=True)
    upsert = models.PointsList.model_validate_json((made / "points-00000.json").read_text())
    assert len(upsert.points) == len(vectors.index)
    names = json.loads((made / "terms.json").read_text())
    assert tuple(names) == vectors.names
    rows = dict(zip(vectors.index.documents.ids, vectors.matrix.toarray(), strict=True))
    for point in upsert.points:
        vector = point.vector[qdrant.NAME]
        assert str(point.id) == qdrant.point_id(point.payload["id"])
        assert vector.indices == np.flatnonzero(rows[point.payload["id"]]).tolist()
        assert (np.float32(vector.values) == rows[point.payload["id"]][vector.indices]).all()
    for line in (made / "queries.jsonl").read_text().splitlines():
        record = json.loads(line)
        request = models.QueryRequest.model_validate(record["body"])
        expected = vectors.query(queries[record["id"]])
        assert request.using == qdrant.NAME
        assert dict(zip(request.query.indices, request.query.values, strict=True)) == pytest.approx(expected, rel=1e-6)
    assert models.QueryRequest.model_validate_json((made / "query.json").read_text()).limit == 10


def test_points_keep_their_numbers_from_export_to_export():
    assert qdrant.point_id("d1") == qdrant.point_id("d1") != qdrant.point_id("d2")
