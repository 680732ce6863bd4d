"""The best documents over partitions are those of one local Index: ids, scores, and the order of equal scores."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

import sparserank as sr
from sparserank.data.records import Documents
from sparserank.errors import ConfigError, DataError, ModelError, NotFitted
from sparserank.search import Index
from sparserank.spark import score_topk
from sparserank.spark.scoring import _partition_search, _Request
from sparserank.text_ranker.lexical import LexicalModel
from sparserank.text_ranker.model import TextModel
from sparserank.text_ranker.query_vocabulary import QueryVocabulary

from ..search.test_shards import save_shards

WORDS = ["apple", "pear", "plum", "red", "green", "blue", "sweet", "sour", "tree", "fruit"]
SCHEMA = "id string, title string, text string"


@pytest.fixture(scope="module")
def collection():
    """Documents of few words, so that many scores are equal, one without a word, and queries."""
    rng = np.random.default_rng(3)
    docs = {
        f"d{i}": {"title": WORDS[i % 10], "text": " ".join(rng.choice(WORDS, rng.integers(0, 5)))} for i in range(120)
    }
    docs["ü漢"] = docs["😀"] = docs["d0"]
    docs["empty"] = {"title": "", "text": ""}
    queries = {f"q{i}": " ".join(rng.choice([*WORDS, "zebra"], 2)) for i in range(40)}
    return docs, queries | {"none": "xylophone", "d1": "red apple tree"}


@pytest.fixture(scope="module", params=["words", "word pairs"])
def model(collection, request):
    """Of words alone, or with pairs of either sign beside them."""
    from scipy.sparse import random_array

    docs, _ = collection
    lexical = LexicalModel()
    lexical.fit(Documents.of(docs))
    if request.param == "words":
        return TextModel(lexical)
    words = QueryVocabulary.from_texts(lexical.features, [*WORDS, "zebra", "red apple"])
    rng = np.random.default_rng(5)
    W = random_array((len(words.words), len(lexical.words)), density=0.3, rng=rng, dtype=np.float32, format="csr")
    W.data -= np.float32(0.5)
    return TextModel(lexical, words, W, pair_weight=3.0)


def partitioned(spark, docs, parts):
    rows = [(i, d["title"], d["text"]) for i, d in docs.items()]
    bounds = [0, *sorted(parts), len(rows)]
    cut = [rows[a:b] for a, b in pairwise(bounds)]
    rdd = spark.sparkContext.parallelize(range(len(cut)), len(cut)).flatMap(lambda p: cut[p])
    return spark.createDataFrame(rdd, SCHEMA)


def expected(model, docs, queries, k, exclude_self=False):
    documents = Documents.of(docs)
    index = Index.build(model.encode_documents(documents), documents)
    found = index.run(model.encode_queries(queries.values()), list(queries), k, exclude_self)
    return {query: list(scores.items()) for query, scores in found.items() if scores}


def lists_in(frame):
    out = {}
    for row in frame.orderBy("query", "rank").collect():
        out.setdefault(row["query"], []).append((row["document"], row["score"]))
        assert row["rank"] == len(out[row["query"]])
    return out


def test_lists_are_those_of_one_index_over_skewed_and_empty_partitions(spark, collection, model):
    docs, queries = collection
    frame = partitioned(spark, docs, [1, 1, 4])
    for k, exclude_self in ((3, False), (200, True)):
        ours = lists_in(score_topk(model, frame, queries, k, exclude_self=exclude_self))
        assert ours == expected(model, docs, queries, k, exclude_self)
    assert "none" not in ours
    assert any(one == other for (_, one), (_, other) in pairwise(ours["q0"])), "scores are equal, and ids decide"


def test_a_ranker_and_queries_in_a_table_are_taken_as_well(spark, collection):
    docs, queries = collection
    ranker = sr.TextRanker("bm25").fit(docs)
    table = spark.createDataFrame(list(queries.items()), "id string, text string")
    ours = lists_in(score_topk(ranker, partitioned(spark, docs, [60]), table, k=2))
    assert ours["d1"] == [(hit.id, hit.score) for hit in ranker.search(queries["d1"], k=2)]


def test_a_collection_without_titles_has_empty_ones(spark, model):
    docs = {"a": "red apple", "b": "green pear"}
    frame = spark.createDataFrame(list(docs.items()), "id string, text string")
    assert lists_in(score_topk(model, frame, {"q": "pear"})) == expected(model, docs, {"q": "pear"}, 10)


def test_tables_that_cannot_be_searched_raise_an_error_before_any_work(spark, model):
    twice = spark.createDataFrame([("a", "red"), ("b", "blue"), ("a", "green")], "id string, text string")
    with pytest.raises(DataError, match="document id 'a' occurs more than once"):
        score_topk(model, twice.repartition(3), {"q": "red"})
    with pytest.raises(DataError, match=r"documents: no column 'text' \(text\); the columns are id"):
        score_topk(model, twice.select("id"), {"q": "red"})
    with pytest.raises(DataError, match="queries: 1 ids occur more than once"):
        score_topk(model, twice.limit(2), twice)
    with pytest.raises(ConfigError, match="'k' parameter"):
        score_topk(model, twice, {"q": "red"}, k=0)


def test_another_model_raises_an_error_without_a_cluster():
    with pytest.raises(NotFitted, match="this TextRanker is not fitted; call fit first"):
        score_topk(sr.TextRanker("bm25"), None, {"q": "red"})
    with pytest.raises(DataError, match=r"a TextRanker or TextModel scores .* got BilinearRanker"):
        score_topk(sr.BilinearRanker(), None, {"q": "red"})


def test_one_partition_in_several_batches_is_one_index(collection, model):
    import pyarrow as pa

    docs, queries = collection
    rows = [{"id": i} | d for i, d in docs.items()]
    batches = [
        pa.RecordBatch.from_pylist(rows[a:b], pa.schema([(name, pa.string()) for name in ("id", "title", "text")]))
        for a, b in ((0, 50), (50, 50), (50, len(rows)))
    ]
    question = _Request(model, tuple(queries), tuple(queries.values()), 7, False)
    (found,) = _partition_search(SimpleNamespace(value=question))(iter(batches))
    ours = {}
    for row in found.to_pylist():
        ours.setdefault(row["query"], []).append((row["document"], row["score"]))
    assert ours == expected(model, docs, queries, 7)
    assert list(_partition_search(SimpleNamespace(value=question))(iter([]))) == []


def test_a_folder_of_shards_is_searched_like_its_documents(spark, collection, model, tmp_path):
    docs, queries = collection
    whole = Index.build(model.encode_documents(Documents.of(docs)), Documents.of(docs))
    save_shards(tmp_path / "shards", whole.matrix(), whole.documents, [1, 40])
    found = lists_in(score_topk(model, tmp_path / "shards", queries, 3, exclude_self=True, spark=spark))
    assert found == expected(model, docs, queries, 3, exclude_self=True)
    whole.save(tmp_path / "file")
    assert lists_in(score_topk(model, str(tmp_path / "file"), queries, 3, exclude_self=True, spark=spark)) == found
    with pytest.raises(ConfigError, match="'spark' parameter must be a SparkSession"):
        score_topk(model, tmp_path / "shards", queries)
    ranker = sr.TextRanker("bm25").fit({"a": "red"})
    with pytest.raises(ModelError, match="built for another model"):
        score_topk(ranker, tmp_path / "shards", queries, spark=spark)
