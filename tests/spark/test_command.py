"""`sparserank train --engine spark`, as a user types it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import sparserank as sr
from sparserank.data.formats.beir import write_beir
from sparserank.data.open import Sources, open_sources
from sparserank.errors import DataError
from sparserank.preferences import win_rates
from sparserank.preferences.clicks import read_click_grades
from sparserank.spark.tables import collect_training_data
from sparserank.text_ranker import pair_learner
from sparserank.text_ranker.persistence import load_model

from ..cli.calling import call, printed, unexpected
from ..fruits import fruits
from .cluster import MASTER

SPARK = ("--engine", "spark", "--master", MASTER)


@pytest.fixture(scope="module")
def collection():
    return fruits()


@pytest.fixture(scope="module")
def tables(collection, tmp_path_factory):
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder, docs = tmp_path_factory.mktemp("tables"), collection.documents
    judged = [(q, d, g) for q, grades in collection.qrels["train"].items() for d, g in grades.items()]
    query, document, grade = zip(*judged, strict=True)
    shown = ["s", *query], ["q0", *query], ["d1", *document], [2] + [1] * len(query), [False] + [True] * len(query)
    for name, columns in {
        "docs": {"id": docs.ids, "title": docs.titles, "text": docs.texts},
        "queries": {"id": list(collection.queries), "text": list(collection.queries.values())},
        "judgments": {"query": query, "document": document, "grade": grade},
        "clicks": dict(zip(("session", "query", "document", "position", "clicked"), shown, strict=True)),
        "triples": {"query": query, "better": document, "worse": ["d60" if d == "d0" else "d0" for d in document]},
    }.items():
        pq.write_table(pa.table({key: list(value) for key, value in columns.items()}), folder / f"{name}.parquet")
    return folder


@pytest.fixture(scope="module")
def wrong(tables):
    """Tables beside the good ones: of mixed types, cut off, and with rows that contradict one another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name, columns in {
        "twice": {"id": ["a", "b", "a"], "text": ["red apple", "plum", "green pear"]},
        "two-texts": {"id": ["q0", "q1", "q0"], "text": ["red", "green", "blue"]},
        "two-grades": {"query": ["q0", "q1", "q1", "q0"], "document": ["d0"] * 4, "grade": [1.0, 2.0, 2.0, 0.0]},
    }.items():
        pq.write_table(pa.table(columns), tables / f"{name}.parquet")
    for name in ("mixed", "cut"):
        (tables / f"{name}.parquet").mkdir()
        for part, ids in (("a", ["a", "b"]), ("b", [1, 2] if name == "mixed" else ["c", "d"])):
            pq.write_table(pa.table({"id": ids, "text": ["red", "blue"]}), tables / f"{name}.parquet/{part}.parquet")
    half = tables / "cut.parquet/b.parquet"
    half.write_bytes(half.read_bytes()[:300])
    return tables


def test_words_counted_on_spark_are_the_model_of_one_machine(spark, collection, tables, tmp_path, capsys):
    said = printed(
        capsys,
        "train",
        tables / "docs.parquet",
        *SPARK,
        "--ranker",
        "bm25",
        "--title-weight",
        2,
        "--output",
        tmp_path / "m",
    )
    assert (said["engine"], said["documents"], said["index"]) == ("spark", 60, None)
    given = {"lexical": sr.BM25(title_weight=2.0), "analyzer": sr.Analyzer("english")}
    sr.TextRanker("bm25", **given).fit(collection.documents).save(tmp_path / "local")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "local").read_bytes()


def test_columns_of_text_that_are_not_searched_are_named(spark, tables, tmp_path, capsys, caplog):
    import polars as pl

    columns = {"notes": ["a b", "c d"], "tags": [["p"], ["q"]], "year": [1999, 2001], "vector": [[0.5], [1.5]]}
    path = tables / "wide.parquet"
    pl.DataFrame({"id": ["a", "b"], "text": ["red apple", "plum"]} | columns).write_parquet(path)
    train = ("--ranker", "bm25", "--output", tmp_path / "m")
    said = printed(capsys, "train", path, *SPARK, *train)
    assert (said["fields"], said["metadata"]) == ({"title": 1.0, "text": 1.0}, ["notes", "tags", "year"])
    assert caplog.messages == [
        f"{path}: left out: vector (neither text nor metadata)",
        f"{path}: not searched: notes, tags (on Spark the model searches title, text)",
    ]
    caplog.clear()
    table = tables / "wide.tsv"
    table.write_text("id\ttext\tnotes\na\tred apple\ta b\nb\tplum\tc d\n")
    said = printed(capsys, "train", table, *SPARK, *train)
    assert (said["fields"], said["metadata"]) == ({"text": 1.0}, ["notes"])
    assert caplog.messages == ["documents: not searched: notes (on Spark the model searches title, text)"]


@pytest.fixture
def few_steps(monkeypatch):
    """Every step of conjugate gradient is a job of the cluster."""
    monkeypatch.setattr(pair_learner, "FIRST_STEPS", 2)
    monkeypatch.setattr(pair_learner, "STEPS", 2)


def test_pairs_learned_on_spark_are_those_of_one_machine(spark, few_steps, collection, tables, tmp_path, capsys):
    given = ("--queries", tables / "queries.parquet", "--judgments", tables / "judgments.parquet")
    words = ("train", tables / "docs.parquet", *given, *SPARK, "--loss", "squared", "--output", tmp_path / "m")
    said = printed(capsys, *words)
    qrels = dict(sorted(collection.qrels["train"].items()))  # a table has no order but that of its ids
    local = sr.TextRanker(loss="squared").fit(collection.documents, collection.queries, qrels)
    assert said["pairs"] == local.model_.n_pairs > 0
    ours, theirs = load_model(tmp_path / "m").model_, local.model_
    assert abs(ours.W * ours.pair_weight - theirs.W * theirs.pair_weight).max() < 1e-4 * theirs.pair_weight
    assert said["index"] == str(tmp_path / "m.index")
    assert (tmp_path / "m.index" / "shards.json").exists()
    assert len(sr.load(tmp_path / "m").index_) == 60


def test_clicks_are_taken_for_judgments(spark, collection, tables):
    paths = [str(tables / f"{name}.parquet") for name in ("docs", "queries", "clicks")]
    docs, queries, clicks = paths
    found, frame, left_out = collect_training_data(spark, Sources(docs, queries=queries, clicks=clicks), None, None)
    assert (found.qrels, left_out) == (collection.qrels, 0)
    assert found.queries == collection.queries
    assert set(found.documents.ids) == {document for grades in found.qrels["train"].values() for document in grades}
    assert {row["id"] for row in frame.collect()} == set(collection.documents.ids)


@pytest.mark.parametrize("kind", ["judgments", "clicks", "triples"])
@pytest.mark.parametrize("beside", [True, False])
def test_the_same_words_say_the_same_on_both_sides(spark, tables, kind, beside):
    """A table beside the documents, or in their place with --texts; triples with d60 are left out: it is not there."""
    docs, told = str(tables / "docs.parquet"), str(tables / f"{kind}.parquet")
    where = {"data": docs, kind: told} if beside else {"data": told, "texts": docs}
    named = Sources(**where, queries=str(tables / "queries.parquet"), missing="drop")
    found, frame, left_out = collect_training_data(spark, named, None, None)
    here, grades, left_out_here = open_sources(named, True, read_click_grades)
    assert (left_out > 0) == (kind == "triples")
    assert left_out == left_out_here
    if kind == "triples":
        grades = win_rates(grades.query, grades.better, grades.worse, grades.weight)
    assert found.qrels["train"] == grades
    assert found.queries == here.queries
    assert sorted(row["id"] for row in frame.collect()) == sorted(here.documents.ids)


def test_a_folder_with_clicks_of_its_own(spark, few_steps, collection, tables, tmp_path, capsys):
    write_beir(tmp_path / "fruit", collection)
    given = ("--clicks", tables / "clicks.parquet", "--loss", "squared", "--output")
    cluster = printed(capsys, "train", tmp_path / "fruit", *SPARK, *given, tmp_path / "m")
    local = printed(capsys, "train", tmp_path / "fruit", *given, tmp_path / "n")
    assert cluster["pairs"] == local["pairs"] > 0
    assert cluster["chosen"]["queries"] == local["chosen"]["queries"] == 40


def test_a_folder_is_taken_as_well(spark, collection, tmp_path, capsys):
    write_beir(tmp_path / "fruit", collection)
    printed(capsys, "train", tmp_path / "fruit", *SPARK, "--ranker", "cosine", "--output", tmp_path / "m")
    given = {"lexical": sr.Cosine(), "analyzer": sr.Analyzer("english")}
    sr.TextRanker("cosine", **given).fit(collection.documents).save(tmp_path / "local")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "local").read_bytes()


@pytest.mark.parametrize("asked", [True, False])
def test_exclude_self_leaves_a_querys_own_document_out(spark, collection, tmp_path, capsys, monkeypatch, asked):
    from sparserank.spark import SparkTextRanker

    given = []

    def fit_here(self, spark, *data, exclude_self, **others):
        given.append(exclude_self)
        return sr.TextRanker("bm25").fit(collection.documents)

    monkeypatch.setattr(SparkTextRanker, "fit", fit_here)
    same = {f"d{q[1:]}": q for q in collection.queries}
    queries = {d: collection.queries[q] for d, q in same.items()}
    train = {d: collection.qrels["train"][q] for d, q in same.items()}
    write_beir(tmp_path / "fruit", replace(collection, queries=queries, qrels={"train": train}))
    words = ("train", tmp_path / "fruit", *SPARK, "--output", tmp_path / "m", "--json")
    assert call(*words, *(["--exclude-self"] if asked else [])) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["exclude_self"] is asked
    assert given == [asked]
    assert ("40 of 40 queries have the id of a document" in err) is not asked


def test_without_json_it_says_what_was_written(spark, tables, tmp_path, capsys):
    assert call("train", tables / "docs.parquet", *SPARK, "--ranker", "cosine", "--output", tmp_path / "m") == 0
    out = capsys.readouterr().out
    assert out.startswith("cosine on 60 documents and 10 words by Spark on local-cluster[2,1,1024]")
    assert "no index: the documents stay on the cluster" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["docs", "--ranker", "text"],
            "give --judgments, --clicks or --triples, and --queries; --ranker bm25",
        ),
        (["docs", "--queries", "q", "--judgments", "j", "--clicks", "c"], "--judgments and --clicks all say"),
        (["docs", "--ranker", "bm25", "--conf", "memory=3"], "--conf must be spark.NAME=VALUE; got 'memory=3'"),
        (["docs", "--checkpoint", "here"], "--engine spark stores no checkpoints; remove --checkpoint"),
        (["docs", "--ranker", "domination"], "--engine spark trains --ranker text, bm25 or cosine; got domination"),
        (["docs", "--ranker", "bm25", "--master", "spark:/x"], "there is no master 'spark:/x'"),
        (["queries", "--ranker", "bm25", "--k1", "-1"], "The 'k1' parameter must be"),
        (["judgments", "--ranker", "bm25"], "no column 'id' (id); the columns are query, document, grade"),
        (["none", "--ranker", "bm25"], "cannot be read as Parquet: [PATH_NOT_FOUND]"),
        (["mixed", "--ranker", "bm25"], "mixed.parquet/b.parquet): column: [id], physicalType: INT64"),
        (["cut", "--ranker", "bm25"], "cut.parquet/b.parquet is not a Parquet file"),
        (["twice", "--ranker", "bm25"], "document id 'a' occurs more than once"),
    ],
)
def test_what_cannot_be_trained_is_rejected_in_one_line(
    runs_spark, spark, wrong, tables, tmp_path, capsys, words, said
):
    data, *rest = words
    master = () if "--master" in rest else ("--master", MASTER)
    assert call("train", tables / f"{data}.parquet", "--engine", "spark", *master, *rest, "-o", tmp_path / "m") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert len(unexpected(err)) == 1
    assert not (tmp_path / "m").exists()


def test_a_refusal_is_all_that_is_said_and_no_folder_is_left_even_in_folders_with_a_space(runs_spark, wrong, tmp_path):
    """A process of its own, with a Java and a cluster of its own; Spark is where it can write."""
    import pyspark

    room, spark_home = tmp_path / "a folder", tmp_path / "spark"
    shutil.copytree(Path(sr.__file__).parent, room / "sparserank", ignore=shutil.ignore_patterns("__pycache__"))
    spark_home.mkdir()
    for name in ("bin", "jars", "python"):
        (spark_home / name).symlink_to(Path(pyspark.__file__).parent / name)
    master = ("--engine", "spark", "--master", "local-cluster[1,1,1024]")
    ran = subprocess.run(
        [sys.executable, "-m", "sparserank", "train", wrong / "mixed.parquet", *master, "--ranker", "bm25", "-o", "m"],
        env=os.environ | {"PYTHONPATH": str(room), "SPARK_HOME": str(spark_home)},
        cwd=room, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "mixed.parquet/b.parquet): column: [id], physicalType: INT64" in ran.stderr
    assert len(unexpected(ran.stderr)) == 1
    assert list((spark_home / "work").iterdir()) == []


@pytest.mark.parametrize(
    ("queries", "judgments", "said"),
    [
        ("two-texts", "judgments", "two-texts.parquet: query id 'q0' occurs more than once"),
        ("queries", "two-grades", "document 'd0' has the grades 0 and 1 for query 'q0'; keep one of them"),
    ],
)
def test_tables_that_contradict_themselves_raise(spark, wrong, queries, judgments, said):
    docs, asked, told = (str(wrong / f"{name}.parquet") for name in ("docs", queries, judgments))
    with pytest.raises(DataError) as refused:
        collect_training_data(spark, Sources(docs, queries=asked, judgments=told), None, None)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ranker", "bm25", "--split", "dev"], "--split dev names a split of a folder; judgments in Parquet have no"),
        (["--queries", "q", "--judgments", "j", "--loss", "none"], "loss"),
        (["--ranker", "bm25", "--k1", "-1"], "The 'k1' parameter must be"),
        (["--ranker", "bm25", "--output", "no/such/m"], "no/such/m: cannot be written: No such file or directory"),
        (["--ranker", "bm25", "--output", "."], "cannot be written: it is a folder"),
    ],
)
def test_what_the_command_line_tells_is_rejected_before_a_cluster_is_asked(tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    output = () if "--output" in words else ("--output", "m")
    nowhere = "spark://127.0.0.1:1"
    assert call("train", "docs.parquet", "--engine", "spark", "--master", nowhere, *words, *output) == 2
    assert said in capsys.readouterr().err


def test_a_split_that_a_folder_has_not_is_rejected_before_a_cluster_is_asked(collection, tmp_path, capsys):
    write_beir(tmp_path / "fruit", collection)
    nowhere = ("--engine", "spark", "--master", "spark://127.0.0.1:1")
    assert call("train", tmp_path / "fruit", *nowhere, "--split", "dev", "-o", tmp_path / "m") == 2
    assert "fruit has no split 'dev'; it has: train" in capsys.readouterr().err


def test_options_of_spark_need_it(tables, tmp_path, capsys):
    assert call("train", tables, "--master", "yarn", "--conf", "spark.a=1", "-o", tmp_path / "m") == 2
    assert "--master, --conf needs --engine spark" in capsys.readouterr().err


def test_a_folder_brings_its_own_queries(tables, tmp_path, capsys):
    assert call("train", tables, *SPARK, "--queries", "q", "-o", tmp_path / "m") == 2
    assert "--queries needs documents in a table; a folder has its own" in capsys.readouterr().err
