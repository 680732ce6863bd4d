"""Hybrid fusion: the formulas by hand, tuning on judged queries, and a LangChain retriever of two."""

from __future__ import annotations

import asyncio

import pytest

from sparserank.errors import ConfigError, DataError
from sparserank.evaluation import evaluate_run
from sparserank.integrations import fusion as module
from sparserank.integrations.fusion import Fusion, tune_fusion
from tests.test_docstrings import faults

SPARSE = {"a": 9.0, "b": 8.0, "c": 1.0}
DENSE = {"b": 0.9, "d": 0.8, "a": 0.1}


def test_reciprocal_ranks_by_hand():
    fused = Fusion(weights=(2.0, 1.0), rank_constant=10.0).fuse([SPARSE, DENSE])
    wanted = {"a": 2 / 11 + 1 / 13, "b": 2 / 12 + 1 / 11, "c": 2 / 13, "d": 1 / 12}
    assert fused == pytest.approx(wanted)
    assert list(fused) == sorted(wanted, key=wanted.get, reverse=True)
    assert list(Fusion().fuse([{"a": 1.0, "b": 1.0}])) == ["b", "a"], "ties as everywhere: by descending id"


def test_weighted_sums_by_hand():
    fused = Fusion("weighted", (0.25, 0.75)).fuse([SPARSE, DENSE])
    assert fused == pytest.approx({"b": 0.25 * 7 / 8 + 0.75, "d": 0.75 * 7 / 8, "a": 0.25, "c": 0.0})
    assert Fusion("weighted").fuse([{"a": 2.0}, {}]) == {"a": 1.0}


def test_runs_are_fused_by_query():
    fused = Fusion().fuse_runs([{"q": SPARSE}, {"q": DENSE, "r": DENSE}])
    assert fused == {"q": Fusion().fuse([SPARSE, DENSE]), "r": Fusion().fuse([{}, DENSE])}


def test_tuning_takes_the_best_of_all_candidates():
    sparse = {f"q{i}": {"good": 2.0 + i % 3, "bad": 2.5, "other": 1.0} for i in range(9)}
    dense = {f"q{i}": {"good": 0.5, "other": 0.4 + (i % 2) * 0.2} for i in range(9)}
    qrels = {query: {"good": 1} for query in sparse}

    def ndcg(run):
        return evaluate_run(run, qrels, "nDCG@10").mean()

    best = tune_fusion([sparse, dense], qrels)
    grid = [Fusion(m, (w / 10, 1 - w / 10), c) for m in module.METHODS for w in range(11) for c in (10.0, 60.0)]
    assert ndcg(best.fuse_runs([sparse, dense])) == pytest.approx(
        max(ndcg(one.fuse_runs([sparse, dense])) for one in grid)
    )
    assert ndcg(best.fuse_runs([sparse, dense])) > max(ndcg(sparse), ndcg(dense)) - 1e-9
    same = tune_fusion([sparse, sparse], qrels)
    assert same == Fusion("reciprocal-rank", (0.5, 0.5), 60.0), "of equally good ones the simplest"


def test_wrong_settings_are_one_line():
    with pytest.raises(ConfigError, match="'method' parameter must be one of"):
        Fusion("borda")
    with pytest.raises(ConfigError, match="one of the weights must be larger than 0"):
        Fusion(weights=(0.0, 0.0))
    with pytest.raises(DataError, match="2 weights; got 1 rankings"):
        Fusion(weights=(1.0, 2.0)).fuse([SPARSE])
    with pytest.raises(ConfigError, match="two runs are tuned; got 1"):
        tune_fusion([{}], {})
    for value in (Fusion, Fusion.fuse, Fusion.fuse_runs, tune_fusion):
        assert not faults(value)


def test_a_langchain_retriever_fuses_two(model, ranker):
    pytest.importorskip(
        "langchain_core", reason="langchain-core is not installed: pip install 'sparserank[integrations]'"
    )
    from langchain_core.documents import Document
    from langchain_core.embeddings import DeterministicFakeEmbedding
    from langchain_core.vectorstores import InMemoryVectorStore

    from sparserank.integrations.langchain import HybridRetriever, SparseRankRetriever

    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=8))
    store.add_documents(
        [Document(id=one, page_content=ranker.index_.text_of(one), metadata={"id": one}) for one in "abcd"]
    )
    dense, sparse = store.as_retriever(search_kwargs={"k": 4}), SparseRankRetriever.from_model(model)
    hybrid = HybridRetriever(retrievers=[sparse, dense], fusion=Fusion(weights=(0.7, 0.3)), k=3)
    found = hybrid.invoke("engine car")
    rankings = [
        {hit.id: hit.score for hit in ranker.search("engine car")},
        {one.id: -n for n, one in enumerate(dense.invoke("engine car"))},
    ]
    wanted = list(Fusion(weights=(0.7, 0.3)).fuse(rankings).items())[:3]
    assert [(one.metadata["id"], one.metadata["score"]) for one in found] == wanted
    assert "explanation" in found[0].metadata
    assert asyncio.run(hybrid.ainvoke("engine car")) == found
