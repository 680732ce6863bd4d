from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import sparserank as sr
from sparserank.errors import ConfigError, DataError
from sparserank.optim.pattern_ridge import PatternRidge
from sparserank.optim.penalties import Ridge
from sparserank.spark import SparkTextRanker
from sparserank.spark.text import ClusterOperators
from sparserank.text_ranker import pair_learner as text_pairs

from ..optim.judged_world import on_pattern, some_lists
from .small_worlds import judged_texts


def start_on(lists, seed=0):
    pattern = np.random.default_rng(seed).random(lists.shape) < 0.5
    return csr_array(np.where(pattern, np.float32(0.1), np.float32(0.0))), pattern


@pytest.mark.parametrize("partitions", [2, 14])
def test_products_over_partitions_give_the_solution_of_one_machine(spark, partitions):
    """Fourteen partitions of twelve documents: some are empty."""
    lists, ridge = some_lists(), Ridge(0.7, 0.4)
    W, pattern = start_on(lists)
    fixed = np.arange(W.nnz) == 2
    local = PatternRidge(4, 1).solve(lists, ridge, W, fixed).weights
    products = []
    operators = ClusterOperators(spark, partitions, products)
    found = PatternRidge(4, 1, operators).solve(lists, ridge, W, fixed).weights
    operators.close()
    assert_allclose(found.toarray(), local.toarray(), rtol=1e-4, atol=1e-6)
    assert found.data[2] == np.float32(0.1)
    assert {one.pairs for one in products} == {pattern.sum()}
    assert products[0].bytes_out == 0
    assert products[1].bytes_out == 4 * pattern.sum()
    assert products[1].bytes_in == partitions * 8 * pattern.sum()


def test_the_products_of_parts_add_up_to_the_normal_equations(spark):
    lists, ridge = some_lists(seed=1, query_normalization=0.25), Ridge(1.0, 1.0)
    W, pattern = start_on(lists)
    operators = ClusterOperators(spark, 2, [])
    found = PatternRidge(8, 1, operators).solve(lists, ridge, W).weights
    operators.close()
    assert_allclose(found.toarray(), on_pattern(lists, ridge, pattern), atol=1e-4)


def test_a_text_ranker_learned_on_a_cluster_is_that_of_one_machine(spark, monkeypatch, tmp_path):
    monkeypatch.setattr(text_pairs, "FIRST_STEPS", 2)
    monkeypatch.setattr(text_pairs, "STEPS", 2)
    monkeypatch.setattr("sparserank.text_ranker.model_selection.MAX_ROTATED_QUERIES", 10)  # one fold, not four
    monkeypatch.setattr(
        "sparserank.text_ranker.model_selection.SIGNIFICANCE_LEVEL", 1.0
    )  # thirty queries cannot show a gain
    monkeypatch.setattr("sparserank.text_ranker.model_selection.PRUNED_LEVEL", 1.0)
    docs, queries, qrels = judged_texts()
    settings = sr.TextRanker(loss="squared", max_pairs=200, analyzer=None)
    local = sr.TextRanker(**settings.get_params(deep=False)).fit(docs, queries, qrels)
    cluster = SparkTextRanker(settings, partitions=2)
    found = cluster.fit(spark, docs, queries, qrels)
    assert type(found) is sr.TextRanker
    assert local.model_.W is not None
    assert_allclose(found.model_.pair_weight, local.model_.pair_weight, rtol=1e-4)
    largest = np.abs(local.model_.W.data).max()
    assert_allclose(found.model_.W.toarray(), local.model_.W.toarray(), atol=1e-4 * largest)
    assert len(cluster.products_) == 2 * (2 + 2 + 2 + 2)
    found.save(tmp_path / "model.safetensors")
    hits = sr.load(tmp_path / "model.safetensors").search(queries["q1"])
    assert [hit.id for hit in hits] == [hit.id for hit in local.search(queries["q1"])]


@pytest.mark.parametrize(
    ("ranker", "words"),
    [
        (sr.TextRanker(), "got ranker='text', loss='domination' and penalty='ridge'"),
        (sr.TextRanker("bm25", loss="squared"), "got ranker='bm25'"),
        (sr.TextRanker(loss="squared", penalty="l1"), "penalty='l1'"),
        (sr.PAMIR(), "'ranker' parameter must be a TextRanker; got PAMIR"),
    ],
)
def test_other_losses_raise_an_error_without_a_cluster(ranker, words):
    with pytest.raises(ConfigError, match=words):
        SparkTextRanker(ranker).fit(None, {"a": "b"}, {"q": "b"}, {"q": {"a": 1}})


def test_bad_input_raises_an_error_without_a_cluster(spark):
    with pytest.raises(DataError, match=r"qrels must be .* got list"):
        SparkTextRanker().fit(None, {"a": "b"}, {"q": "b"}, [])
    with pytest.raises(ConfigError, match="'partitions' parameter"):
        SparkTextRanker(partitions=0).fit(None, {"a": "b"}, {"q": "b"}, {"q": {"a": 1}})
    with pytest.raises(DataError, match="1 judged documents are not among the documents, the first is 'z'"):
        SparkTextRanker(partitions=1).fit(spark, {"a": "b"}, {"q": "b"}, {"q": {"z": 1}})
