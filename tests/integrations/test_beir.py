"""The search interfaces of BEIR and MTEB, called as the libraries do; benchmarks/beir_mteb.sh runs the libraries."""

from __future__ import annotations

import pytest

from sparserank.integrations.beir import BeirSearch, MtebSearch
from tests.motors import QUERIES
from tests.test_docstrings import faults

OTHER = {"x": {"title": "Engines", "text": "of cars"}, "y": {"title": "", "text": "sweet cake"}}
TASK = {"task_metadata": None, "hf_split": "test", "hf_subset": "default", "encode_kwargs": {}, "num_proc": None}


@pytest.fixture(scope="module")
def corpus(ranker):
    return {key: {"title": title, "text": text} for key, (title, text, _) in ranker.index_.documents.rows().items()}


def records(mapping):
    return [{"id": key, **(one if isinstance(one, dict) else {"text": one})} for key, one in mapping.items()]


def test_beir_gets_the_run_of_the_ranker_and_keeps_its_index(ranker, model, corpus):
    search = BeirSearch.from_model(model)
    index = search.ranker.index_
    assert search.search(corpus, QUERIES, 2, "cos_sim") == ranker.run(QUERIES, k=2)
    assert search.ranker.index_ is index
    assert search.search(OTHER, QUERIES, 10, "cos_sim") == ranker.over(OTHER).run(QUERIES, k=10)


def test_mteb_indexes_searches_and_reranks(ranker, model, corpus):
    search = MtebSearch.from_model(model, name="me/motors")
    search.index(records(corpus), **TASK)
    assert search.search(records(QUERIES), top_k=3, **TASK) == ranker.run(QUERIES, k=3)
    candidates = {query: ["d", "a"] for query in QUERIES}
    scored = search.search(records(QUERIES), top_k=3, top_ranked=candidates, **TASK)
    for query, text in QUERIES.items():
        assert list(scored[query].values()) == pytest.approx(ranker.scores([text], ["d", "a"])[0].tolist())
    search.index(records(OTHER), **TASK)
    assert search.search(records(QUERIES), top_k=3, **TASK) == ranker.over(OTHER).run(QUERIES, k=3)


def test_every_method_describes_its_parameters():
    for value in (
        BeirSearch,
        BeirSearch.from_model,
        BeirSearch.search,
        MtebSearch,
        MtebSearch.index,
        MtebSearch.search,
    ):
        assert not faults(value)
