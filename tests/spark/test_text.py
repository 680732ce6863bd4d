"""Learning from documents on a cluster gives what one machine learns from the same documents."""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import sparserank as sr
from sparserank.data import read_documents as local_documents
from sparserank.data.records import Documents
from sparserank.errors import ConfigError, DataError
from sparserank.optim.candidate_lists import CandidateLists, RerankingProblem
from sparserank.optim.closed_form import ClosedForm, Side, compute_middle
from sparserank.optim.losses import Domination, Hinge, Softmax
from sparserank.optim.pattern_adagrad import PatternAdagrad
from sparserank.optim.pattern_ridge import PatternRidge
from sparserank.optim.penalties import NoPenalty, Ridge
from sparserank.optim.problems import ListProblem, compute_squared_norms
from sparserank.optim.pruning import Importance, PairBudget, RowPruning
from sparserank.search import Index
from sparserank.spark import SparkTextRanker
from sparserank.spark import documents as cluster_documents
from sparserank.spark.documents import ClusterDocuments
from sparserank.spark.index import write_index
from sparserank.spark.tables import read_documents, to_frame
from sparserank.text_ranker import model_selection
from sparserank.text_ranker.candidates import CandidateSearch
from sparserank.text_ranker.document_names import DocumentNames
from sparserank.text_ranker.lexical import LexicalModel
from sparserank.text_ranker.query_vocabulary import QueryVocabulary
from sparserank.text_ranker.training_data import LexicalRows, TrainingMatrices, grade_matrix

from .small_worlds import judged_texts
from .test_faults import executor_here, executors, once


@pytest.fixture(scope="module")
def world(spark):
    """The same training data here and on the cluster, in five partitions, of which one is empty."""
    docs, queries, qrels = judged_texts()
    documents, lexical = Documents.of(docs), LexicalModel()
    rows = lexical.fit(documents)
    frame = to_frame(spark, documents, 4)
    frame = frame.union(frame.limit(0))
    cluster = ClusterDocuments(frame, lexical)
    vocabulary = QueryVocabulary.from_texts(lexical.features, queries.values())
    Q, lexical_queries = vocabulary.encode(queries.values()), lexical.queries(queries.values())
    grades = grade_matrix(qrels, list(queries), {d: i for i, d in enumerate(docs)})
    weight, excluded = np.linspace(0.5, 2.0, len(queries)), np.full(len(queries), -1, np.int64)
    from sparserank.text_ranker.query_vocabulary import document_rows

    D = document_rows(lexical.features, rows)
    here = TrainingMatrices(ListProblem(Q, D, grades, weight), LexicalRows(lexical_queries, rows), excluded)
    there = TrainingMatrices(
        ListProblem(Q, cluster.pair_rows, grades, weight), LexicalRows(lexical_queries, cluster.lexical_rows), excluded
    )
    yield here, there, cluster
    cluster.close()


def some_lists(data, n_random=8):
    found = CandidateSearch.of(data).top(data, 10)
    return data.with_lexical_scores(CandidateLists.build(data.lists, data.excluded, found, n_random))


def some_weights(data, seed=0):
    from scipy.sparse import random_array

    return random_array(data.lists.shape, density=0.05, rng=np.random.default_rng(seed), dtype=np.float32).tocsr()


def test_documents_are_numbered_in_their_order(world):
    here, there, cluster = world
    assert cluster.shape == here.lists.D.shape == there.lists.D.shape
    assert len(cluster.starts) - 1 == len(cluster.parts)
    assert cluster.find(["d3", "none", "d79", "d0"]) == {"d0": 0, "d3": 3, "d79": 79}


def test_the_names_of_documents_are_joined_on_the_cluster(world):
    _, _, cluster = world
    docs, _, _ = judged_texts()
    lexical, documents = LexicalModel(), Documents.of(docs)
    lexical.fit(documents)
    found = cluster.names(lexical)
    expected = DocumentNames.of(lexical.features, documents.titles, documents.texts)
    assert len(found.digests) > 0
    assert_array_equal(found.digests, expected.digests)
    assert_array_equal(found.share, expected.share)


def test_one_python_worker_a_core_has_the_documents_open(world):
    """Spark would take turns among more of them, and each would open all rows."""
    cluster = world[2]
    cluster.pair_rows.squared_norms()  # the first use of parts takes a second worker, to make them
    assert len({pid for _ in range(4) for pid in cluster.parts.map(lambda *_: os.getpid())}) <= 2


@pytest.mark.parametrize(("block_bytes", "is_small"), [(1 << 25, False), (3000, False), (1 << 25, True)])
def test_sums_over_partitions_are_those_of_all_documents(world, monkeypatch, block_bytes, is_small):
    monkeypatch.setattr(cluster_documents, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(world[2], "is_small", is_small)
    tolerance = 0.0 if is_small else 1e-6
    here, there, _ = world
    assert_allclose(compute_squared_norms(there.lists.D), compute_squared_norms(here.lists.D), rtol=1e-12)
    for size in (20, 60):
        ours, theirs = Side.of(there.lists.D, max_size=size), Side.of(here.lists.D, max_size=size)
        assert_array_equal(ours.words, theirs.words)
        assert len(ours) == size
        assert_allclose(ours.compute_gram(), theirs.compute_gram(), rtol=tolerance)
        assert_allclose(ours.ones, theirs.ones, rtol=tolerance)
        for left in (Side(here.lists.Q, here.lists.weight), Side.of(here.lists.Q, here.lists.weight, 10)):
            found = compute_middle(left, ours, there.lists)
            assert_allclose(found, compute_middle(left, theirs, here.lists), rtol=10 * tolerance, atol=tolerance)


@pytest.mark.parametrize("max_size", [100, 40])
def test_the_closed_form_is_that_of_one_machine(world, max_size):
    """From items, with the same bits, and from words."""
    here, there, _ = world
    found = []
    for data in (here, there):
        form = ClosedForm(data.lists.D, max_size)
        if max_size == 100:
            form.__dict__["documents"] = Side(data.lists.D)
        pruning = RowPruning(data.lists.shape, Importance.of(data.lists, Ridge()), PairBudget(150, pairs_per_word=9))
        found.append(form.compute_weights(data.lists, Ridge(0.3, 0.7), pruning))
    assert found[0].nnz == found[1].nnz == 150
    assert_allclose(found[1].toarray(), found[0].toarray(), rtol=0 if max_size == 100 else 1e-4, atol=1e-7)


@pytest.mark.parametrize("k", [3, 200])
def test_searches_and_scores_have_the_bits_of_one_machine(world, monkeypatch, k):
    monkeypatch.setattr(cluster_documents, "RESULTS_AT_ONCE", 1)
    here, there, _ = world
    W, ours, theirs = some_weights(here), CandidateSearch.of(there), CandidateSearch.of(here)
    assert_array_equal(ours.top(there, k), theirs.top(here, k))
    assert_array_equal(ours.top(there, k, W, 2.0), theirs.top(here, k, W, 2.0))
    assert_array_equal(ours.top(there, k, W, 1.0, lexical=False), theirs.top(here, k, W, 1.0, lexical=False))
    lists, same = some_lists(here), some_lists(there)
    for name, value in vars(lists).items():
        assert_array_equal(getattr(same, name), value, err_msg=name)
    assert_array_equal(lists.score(there.lists.Q, W, there.lists.D), lists.score(here.lists.Q, W, here.lists.D))
    words = np.array([1, 5, 30])
    expanded = np.random.default_rng(0).normal(size=(len(here), 3)).astype(np.float32)
    assert_array_equal(
        lists.score_expanded(expanded, there.lists.D, words), lists.score_expanded(expanded, here.lists.D, words)
    )


@pytest.mark.parametrize("loss", [Domination(), Softmax(), Hinge()])
def test_the_steps_of_a_loss_have_the_bits_of_one_machine(world, loss):
    here, there, _ = world
    W, solver, found = some_weights(here), PatternAdagrad(2, 0.3), []
    lists = some_lists(here)
    for data in (here, there):
        problem = RerankingProblem(data.lists.Q, data.lists.D, lists, loss)
        found.append(solver.solve(problem, NoPenalty(), W).weights)
    assert abs(found[0] - W).max() > 0.0
    assert_array_equal(found[1].toarray(), found[0].toarray())


@pytest.mark.parametrize("is_small", [True, False])
def test_the_squared_loss_on_a_pattern_is_that_of_one_machine(world, monkeypatch, is_small):
    monkeypatch.setattr(world[2], "is_small", is_small)
    monkeypatch.setattr("sparserank.optim.pattern_ridge.MAX_WORDS", 0)  # products read documents
    here, there, cluster = world
    W, fixed = some_weights(here), np.arange(some_weights(here).nnz) == 2
    before = len(cluster.products)
    local, found = (PatternRidge(4, 1).solve(data.lists, Ridge(0.7, 0.4), W, fixed).weights for data in (here, there))
    assert_allclose(found.toarray(), local.toarray(), rtol=0 if is_small else 1e-4, atol=0 if is_small else 1e-6)
    products = cluster.products[before:]
    assert {one.pairs for one in products} == {W.nnz}
    assert products[0].bytes_out == 0
    assert products[1].bytes_out == 4 * W.nnz
    assert products[1].bytes_in == (1 if is_small else len(cluster.parts)) * 8 * W.nnz


@pytest.fixture
def few_steps(monkeypatch):
    """One fold, one rate and one epoch; thirty queries cannot show an improvement."""
    from sparserank.text_ranker import pair_learner

    monkeypatch.setattr(pair_learner, "FIRST_STEPS", 2)
    monkeypatch.setattr(pair_learner, "STEPS", 2)
    monkeypatch.setattr("sparserank.text_ranker.held_out.MAX_ROTATED_QUERIES", 10)
    for name, value in (("SIGNIFICANCE_LEVEL", 1.0), ("PRUNED_LEVEL", 1.0), ("MAX_EPOCHS", 1), ("RATES", (0.3,))):
        monkeypatch.setattr(model_selection, name, value)


@pytest.mark.parametrize("loss", ["squared", "domination"])
def test_a_text_ranker_learned_on_a_cluster_is_that_of_one_machine(spark, few_steps, tmp_path, loss):
    docs, queries, qrels = judged_texts()
    settings = sr.TextRanker(loss=loss, max_pairs=200, analyzer=None)
    local = sr.TextRanker(**settings.get_params(deep=False)).fit(docs, queries, qrels)
    documents = Documents.of(docs)
    documents = replace(documents, metadata=tuple({"n": i, "tags": ["a", "b"][: i % 3]} for i in range(len(documents))))
    frame = to_frame(spark, documents, 3)
    found = SparkTextRanker(settings).fit(spark, frame, queries, qrels, index=tmp_path / "model.safetensors.index")
    assert type(found) is sr.TextRanker
    assert local.model_.W is not None
    assert found.model_.info == pytest.approx(local.model_.info)
    assert_allclose(found.model_.pair_weight, local.model_.pair_weight, rtol=1e-4)
    largest = np.abs(local.model_.W.data).max()
    assert_allclose(found.model_.W.toarray(), local.model_.W.toarray(), atol=1e-4 * largest)
    index = found.index_
    del found.index_
    found.save(tmp_path / "model.safetensors")
    assert (tmp_path / "model.safetensors.index").is_dir()
    assert len(index.segments) == 3
    loaded = sr.load(tmp_path / "model.safetensors")
    assert loaded.serves(documents)
    assert loaded.index_.filtered("n<7 AND tags:b").documents.metadata == (
        {"n": 5, "tags": ["a", "b"]},
        {"n": 2, "tags": ["a", "b"]},
    )
    hits = loaded.search(queries["q1"])
    assert [hit.id for hit in hits] == [hit.id for hit in local.search(queries["q1"])]


def test_other_columns_of_a_table_are_metadata_as_on_one_machine(spark, tmp_path):
    columns = {
        "id": ["a", "b"],
        "text": ["red apple", "green pear"],
        "n": [1, None],
        "share": [2.5, 0.25],
        "is": [True, False],
    }
    others = {"tags": [["p", "q"], []], "at": [date(2024, 1, 31)] * 2, "vector": [[0.5], [1.5]], "raw": [b"", b""]}
    pl.DataFrame(columns | others).write_parquet(tmp_path / "docs.parquet")
    local = local_documents(tmp_path / "docs.parquet")
    rows = read_documents(spark, str(tmp_path / "docs.parquet")).collect()
    assert tuple(json.loads(row["metadata"]) for row in rows) == local.metadata
    ranker = sr.TextRanker("bm25", analyzer=None).fit(local)
    write_index(ranker, read_documents(spark, str(tmp_path / "docs.parquet")), tmp_path / "i")
    assert Index.load(tmp_path / "i").documents.rows() == local.rows()


class DeadlyCallback:
    """Kills all executors when the training says this."""

    def __init__(self, spark, words):
        self.pids, self.words, self.killed = executors(spark), words, False

    def __call__(self, message):
        if self.words in message and not self.killed:
            self.killed = True
            for pid in self.pids:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the executor's process is found in /proc")
def test_executors_killed_in_the_middle_of_the_training_change_no_bit(spark, by_value, few_steps):
    docs, queries, qrels = judged_texts()
    cluster = SparkTextRanker(sr.TextRanker(max_pairs=200, analyzer=None), partitions=3)
    calm = cluster.fit(spark, docs, queries, qrels)
    kill = DeadlyCallback(spark, "learning pairs from all queries")
    hurt = cluster.fit(spark, docs, queries, qrels, callback=kill)
    assert kill.killed
    assert kill.pids.isdisjoint(executors(spark))
    assert_array_equal(hurt.model_.W.toarray(), calm.model_.W.toarray())


@pytest.fixture
def by_value(spark):
    """What is defined in tests goes to the executors itself: they cannot import it."""
    from pyspark import cloudpickle

    modules = [sys.modules[executor_here.__module__], sys.modules[__name__]]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the executor's process is found in /proc")
def test_a_worker_killed_in_the_middle_of_a_sum_changes_no_bit(spark, world, by_value, tmp_path):
    _, _, cluster = world

    def compute(number, part, folder):
        if number == 1 and folder is not None and once(folder / "killed"):
            os.kill(executor_here(), signal.SIGKILL)
        return part.pairs.sum(dtype=np.float64)

    calm = cluster.parts.map(lambda number, part: compute(number, part, None))
    assert cluster.parts.map(lambda number, part: compute(number, part, tmp_path)) == calm
    assert (tmp_path / "killed").exists()


@pytest.mark.parametrize(
    ("ranker", "words"),
    [
        (sr.TextRanker("bm25"), "got ranker='bm25'"),
        (sr.TextRanker(loss="squared", penalty="l1"), "penalty='l1'"),
        (sr.PAMIR(), "'ranker' parameter must be a TextRanker; got PAMIR"),
    ],
)
def test_other_rankers_raise_an_error_without_a_cluster(ranker, words):
    with pytest.raises(ConfigError, match=words):
        SparkTextRanker(ranker).fit(None, {"a": "b"}, {"q": "b"}, {"q": {"a": 1}})


def test_bad_input_raises_an_error(spark):
    with pytest.raises(DataError, match=r"qrels must be .* got list"):
        SparkTextRanker().fit(None, {"a": "b"}, {"q": "b"}, [])
    with pytest.raises(ConfigError, match="'partitions' parameter"):
        SparkTextRanker(partitions=0).fit(None, {"a": "b"}, {"q": "b"}, {"q": {"a": 1}})
    with pytest.raises(DataError, match="1 judged document not among the documents, the first is 'z'"):
        SparkTextRanker(partitions=1).fit(spark, {"a": "bird"}, {"q": "bird"}, {"q": {"z": 1}})
