"""PyTerrier, ir_datasets, and runs of ir_measures, pytrec_eval, ranx and PyTerrier: the same results and figures."""

from __future__ import annotations

import pytest

from sparserank import TextRanker
from sparserank.data import read_run, write_run
from sparserank.errors import DataError
from sparserank.evaluation import evaluate_run
from sparserank.integrations.runs import as_qrels, as_run
from tests.fruits import fruits
from tests.test_docstrings import faults

from .conftest import TEXTS

INSTALL = "pip install 'sparserank[integrations]'"


@pytest.fixture(scope="module")
def pt():
    return pytest.importorskip("pyterrier", reason=f"pyterrier is not installed: {INSTALL}")


@pytest.fixture(scope="module")
def transformer(pt, model):
    from sparserank.integrations.pyterrier import SparseRankTransformer

    return SparseRankTransformer.from_model(model)


def topics(pt):
    return pt.new.queries(list(TEXTS))


def test_retrieval_returns_the_results_of_search(pt, transformer, ranker):
    frame = transformer(topics(pt))
    for number, text in enumerate(TEXTS, start=1):
        own = frame[frame.qid == str(number)]
        assert list(zip(own.docno, own.score, own["rank"], strict=True)) == [
            (hit.id, hit.score, rank) for rank, hit in enumerate(ranker.search(text))
        ]
    assert set(frame.columns) == {"qid", "query", "docno", "score", "rank"}


def test_reranking_scores_every_document_and_follows_the_order_of_search(pt, transformer, ranker):
    frame = pt.new.ranked_documents([[4.0, 3.0, 2.0, 1.0]] * len(TEXTS), docno=[list("abcd")] * len(TEXTS))
    frame["query"] = [text for text in TEXTS for _ in range(4)]
    frame["other"] = range(len(frame))
    ranked = transformer(frame)
    assert sorted(ranked.other) == list(range(len(frame)))
    for number, text in enumerate(TEXTS, start=1):
        own = ranked[ranked.qid == str(number)]
        hits = ranker.search(text)
        assert [(doc, score) for doc, score in zip(own.docno, own.score, strict=True) if score != 0] == [
            (hit.id, pytest.approx(hit.score, rel=1e-6)) for hit in hits
        ]
        assert own["rank"].tolist() == [0, 1, 2, 3]


def test_pipelines_and_experiments_run_without_java(pt, transformer, ranker):
    pipeline = (transformer % 3) >> transformer
    assert pipeline.search("engine car").docno.tolist() == [hit.id for hit in ranker.search("engine car", 3)]
    mixed = transformer * 0.5 + transformer * 0.5
    found = mixed.search("engine car")
    assert dict(zip(found.docno, found.score, strict=True)) == {
        hit.id: hit.score for hit in ranker.search("engine car")
    }
    qrels = {"1": {"a": 1}, "2": {"c": 1}}
    import pandas as pd

    rows = [(q, d, grade) for q, grades in qrels.items() for d, grade in grades.items()]
    table = pt.Experiment(
        [transformer], topics(pt).head(2), pd.DataFrame(rows, columns=["qid", "docno", "label"]), ["ndcg_cut_10"]
    )
    run = ranker.run({"1": TEXTS[0], "2": TEXTS[1]})
    assert table["ndcg_cut_10"][0] == pytest.approx(evaluate_run(run, qrels, ["nDCG@10"])["nDCG@10"].value)
    assert not pt.java.started()


def test_text_and_explanation_are_optional_columns(pt, model, transformer):
    from sparserank.integrations.pyterrier import SparseRankTransformer

    more = SparseRankTransformer.from_model(model, text=True, explain=1, filter="year<2005")
    frame = more.search("motor")
    assert frame.docno.tolist() == ["a", "b"]
    assert frame.text.tolist() == ["car engine", "boat engine"]
    assert [one[0]["query"] for one in frame.explanation] == ["motor", "motor"]
    assert set(more(topics(pt).head(0)).columns) == {*frame.columns}
    assert len(more.search("unheard")) == 0
    for value in (SparseRankTransformer, SparseRankTransformer.from_model, SparseRankTransformer.transform):
        assert not faults(value)


def test_columns_are_known_without_data(pt, transformer):
    assert pt.inspect.transformer_outputs(transformer, ["qid", "query"]) == ["qid", "query", "docno", "score", "rank"]
    with pytest.raises(pt.validate.InputValidationError):
        transformer(topics(pt).drop(columns="query"))
    with pytest.raises(DataError, match="'nowhere'"):
        transformer(topics(pt).head(1).assign(docno="nowhere"))


def test_a_data_set_of_ir_datasets_becomes_a_collection(tmp_path):
    ir_datasets = pytest.importorskip("ir_datasets", reason=f"ir_datasets is not installed: {INSTALL}")
    from sparserank.integrations.ir_datasets import read_ir_datasets

    fruit = fruits()
    docs, queries, qrels = tmp_path / "docs.tsv", tmp_path / "queries.tsv", tmp_path / "qrels.txt"
    docs.write_text("".join(f"{i}\t{t}\n" for i, t in zip(fruit.documents.ids, fruit.documents.texts, strict=True)))
    queries.write_text("".join(f"{i}\t{text}\n" for i, text in fruit.queries.items()))
    grades = [(q, d) for q, docs_of in fruit.qrels["train"].items() for d in docs_of]
    qrels.write_text("".join(f"{q} 0 {d} 1\n" for q, d in grades))
    dataset = ir_datasets.create_dataset(docs_tsv=str(docs), queries_tsv=str(queries), qrels_trec=str(qrels))
    collection = read_ir_datasets(dataset)
    assert collection.documents.ids == fruit.documents.ids
    assert collection.documents.texts == fruit.documents.texts
    assert collection.queries == fruit.queries
    assert collection.qrels == fruit.qrels
    assert read_ir_datasets({"dev": dataset}).qrels == {"dev": fruit.qrels["train"]}
    with pytest.raises(DataError, match="ir_datasets has no data set 'no/such'"):
        read_ir_datasets("no/such")
    with pytest.raises(DataError, match="there are no data sets"):
        read_ir_datasets({})
    assert not faults(read_ir_datasets)


def test_runs_go_to_other_tools_and_come_back(tmp_path):
    import ir_measures
    import pytrec_eval
    from ir_measures import AP, nDCG

    fruit = fruits()
    qrels, run = fruit.qrels["train"], TextRanker("bm25").fit(fruit.documents).run(fruit.queries, k=20)
    ours = evaluate_run(run, qrels, ["nDCG@10", "AP"])
    theirs = ir_measures.calc_aggregate([nDCG @ 10, AP], {q: dict.fromkeys(ds, 1) for q, ds in qrels.items()}, run)
    assert theirs[nDCG @ 10] == pytest.approx(ours["nDCG@10"].value)
    assert theirs[AP] == pytest.approx(ours["AP"].value)
    trec = pytrec_eval.RelevanceEvaluator({q: dict.fromkeys(ds, 1) for q, ds in qrels.items()}, {"map"})
    per_query = [one["map"] for one in trec.evaluate(run).values()]
    assert sum(per_query) / len(per_query) == pytest.approx(ours["AP"].value)

    write_run(tmp_path / "run.txt", run)
    assert as_run(ir_measures.read_trec_run(str(tmp_path / "run.txt"))) == read_run(tmp_path / "run.txt")
    assert as_run(ir_measures.ScoredDoc(q, d, s) for q, docs in run.items() for d, s in docs.items()) == run
    assert as_qrels(ir_measures.Qrel(q, d, 1) for q, docs in qrels.items() for d in docs) == qrels
    assert as_run(run) == run


@pytest.mark.filterwarnings("ignore")  # of Numba, when it compiles the measures of ranx
def test_runs_and_judgments_of_ranx_come_back_and_measure_the_same():
    ranx = pytest.importorskip("ranx", reason="pip install ranx")
    fruit = fruits()
    run = TextRanker("bm25").fit(fruit.documents).run(fruit.queries, k=20)
    qrels = {query: grades for query, grades in fruit.qrels["train"].items() if run[query]}  # ranx takes no empty one
    run = {query: run[query] for query in qrels}
    theirs = ranx.Run(run), ranx.Qrels({query: dict.fromkeys(grades, 1) for query, grades in qrels.items()})
    assert (as_run(theirs[0]), as_qrels(theirs[1])) == (run, qrels)
    ours = evaluate_run(run, qrels, "nDCG@10").mean()
    assert ranx.evaluate(theirs[1], theirs[0], "ndcg@10") == pytest.approx(ours)


def test_frames_become_runs_and_judgments():
    import pandas as pd
    import polars as pl

    rows = {"qid": ["q", "q"], "docno": ["d", "e"], "score": [2.0, 1.0], "label": [1, 0]}
    for frame in (pd.DataFrame(rows), pl.DataFrame(rows)):
        assert as_run(frame) == {"q": {"d": 2.0, "e": 1.0}}
        assert as_qrels(frame) == {"q": {"d": 1.0, "e": 0.0}}
    with pytest.raises(DataError, match="no column relevance or label; its columns are qid, docno"):
        as_qrels(pd.DataFrame({"qid": ["q"], "docno": ["d"]}))
