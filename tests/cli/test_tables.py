"""Training from tables: documents, queries, judgments, clicks and triples, as TSV or Parquet."""

from __future__ import annotations

import polars as pl
import pytest

import sparserank as sr
from sparserank.data import write_beir
from sparserank.text_ranker.persistence import load_model

from ..fruits import fruits
from .calling import call, printed, unexpected


@pytest.fixture(scope="module")
def world():
    return fruits()


@pytest.fixture(scope="module", params=["tsv", "parquet"])
def tables(request, world, tmp_path_factory):
    """A function from a table's name to its path."""
    folder, docs = tmp_path_factory.mktemp("tables"), world.documents
    judged = [(q, d, g) for q, grades in world.qrels["train"].items() for d, g in grades.items()]
    query, document, grade = (list(column) for column in zip(*judged, strict=True))
    other = [f"d{(int(d[1:]) + 1) % 60}" for d in document]
    text = {d: f"{title}: {text}" for d, title, text in zip(docs.ids, docs.titles, docs.texts, strict=True)}
    shown = {"session": query, "query": query, "document": document, "position": [1] * len(query)}
    for name, columns in {
        "docs": {"id": docs.ids, "title": docs.titles, "text": docs.texts},
        "queries": {"id": list(world.queries), "text": list(world.queries.values())},
        "judgments": {"query": query, "document": document, "grade": grade},
        "clicks": shown | {"clicked": [1] * len(query)},
        "spoken": shown | {"query": [world.queries[q] for q in query], "clicked": [1] * len(query)},
        "triples": {"query": query, "better": document, "worse": other},
        "unknown": {"query": [*query, "q99"], "document": [*document[1:], "gone", "d1"], "grade": [*grade, 1.0]},
        "missing": {"query": [*query, "q0"], "better": [*document, "gone"], "worse": [*other, "d1"]},
        "carried": {
            "query": [f"{world.queries[q]} {q}" for q in query],
            "better": [text[d] for d in document],
            "worse": [text[d] for d in other],
        },
    }.items():
        frame = pl.DataFrame({key: list(value) for key, value in columns.items()})
        if request.param == "tsv":
            frame.write_csv(folder / f"{name}.tsv", separator="\t")
        else:
            frame.write_parquet(folder / f"{name}.parquet")
    return lambda name: str(folder / f"{name}.{request.param}")


def pairs_of(path):
    return load_model(path).model_.named_pairs()


def test_judgments_in_a_table_teach_what_those_of_a_folder_teach(world, tables, tmp_path, capsys):
    write_beir(tmp_path / "fruit", world)
    given, loss = ("--queries", tables("queries"), "--judgments", tables("judgments")), ("--loss", "squared")
    said = printed(capsys, "train", tables("docs"), *given, *loss, "-o", tmp_path / "m")
    printed(capsys, "train", tmp_path / "fruit", *loss, "-o", tmp_path / "n")
    assert said["pairs"] > 0
    assert pairs_of(tmp_path / "m") == pairs_of(tmp_path / "n")


def test_clicks_teach_by_how_often_what_was_looked_at_was_taken(world, tables, tmp_path, capsys):
    """Each clicked document was shown once, on top: its grade is 1."""
    given = ("--queries", tables("queries"), "--clicks", tables("clicks"), "--loss", "squared")
    said = printed(capsys, "train", tables("docs"), *given, "-o", tmp_path / "m")
    graded = sr.TextRanker(loss="squared").fit(
        world.documents, world.queries, dict(sorted(world.qrels["train"].items()))
    )
    assert said["pairs"] > 0
    assert pairs_of(tmp_path / "m") == graded.model_.named_pairs()


def test_the_table_may_be_data_itself(tables, tmp_path, capsys):
    beside = ("--queries", tables("queries"), "--loss", "squared", "-o")
    for kind in ("judgments", "clicks", "triples"):
        printed(capsys, "train", tables(kind), "--texts", tables("docs"), *beside, tmp_path / "m")
        printed(capsys, "train", tables("docs"), f"--{kind}", tables(kind), *beside, tmp_path / "n")
        assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()


def test_triples_give_grades_by_what_was_won_and_bilinear_takes_them_as_they_are(world, tables, tmp_path, capsys):
    triples = sr.data.read_triples(tables("triples"))
    wins = {}
    for query, better, worse in zip(triples.query, triples.better, triples.worse, strict=True):
        wins.setdefault(query, {}).setdefault(better, []).append(1.0)
        wins[query].setdefault(worse, []).append(0.0)
    qrels = {q: {d: sum(all_of) / len(all_of) for d, all_of in of.items()} for q, of in sorted(wins.items())}
    by_grades = sr.TextRanker(loss="squared").fit(world.documents, world.queries, qrels)
    by_triples = sr.TextRanker(loss="squared").fit(world.documents, world.queries, triples)
    assert by_triples.model_.n_pairs > 0
    assert by_triples.model_.named_pairs() == pytest.approx(by_grades.model_.named_pairs())

    given = ("--ranker", "bilinear", "--queries", tables("queries"), "--triples", tables("triples"))
    said = printed(capsys, "train", tables("docs"), *given, "-o", tmp_path / "m")
    same = sr.TextRanker("bilinear").fit(world.documents, world.queries, triples)
    other = sr.TextRanker("bilinear").fit(world.documents, world.queries, qrels)
    assert said["pairs"] == same.model_.n_pairs > 0
    assert pairs_of(tmp_path / "m") == same.model_.named_pairs() != other.model_.named_pairs()


def test_triples_that_carry_their_texts_need_nothing_else(tables, tmp_path, capsys):
    said = printed(capsys, "train", tables("carried"), "--loss", "squared", "-o", tmp_path / "m")
    assert said["pairs"] > 0
    found = printed(capsys, "search", tmp_path / "m", "malus red")["results"]
    assert found[0]["id"].startswith("d")


def test_queries_may_be_said_in_words(tables, tmp_path, capsys):
    said = printed(
        capsys, "train", tables("docs"), "--clicks", tables("spoken"), "--loss", "squared", "-o", tmp_path / "m"
    )
    assert said["chosen"]["queries"] == 20  # forty queries, twenty texts
    assert call("train", tables("docs"), "--clicks", tables("clicks"), "-o", tmp_path / "m") == 2
    assert "names queries by their ids; give their texts with --queries" in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "name", "rows"), [("judgments", "unknown", 2), ("triples", "missing", 1)])
def test_rows_about_what_is_not_there_are_rejected_or_left_out(tables, tmp_path, capsys, kind, name, rows):
    given = (tables("docs"), "--queries", tables("queries"), f"--{kind}", tables(name), "--loss", "squared")
    given += ("-o", tmp_path / "m")
    assert call("train", *given) == 2
    err = capsys.readouterr().err
    assert "'q99'" in err or "'gone'" in err
    assert printed(capsys, "train", *given, "--missing", "drop")["left_out"] == rows
    assert call("train", *given, "--missing", "drop") == 0
    assert f"{rows} rows dropped" in capsys.readouterr().out


def test_judgments_of_a_folder_about_what_is_not_there_are_rejected_or_left_out(world, tmp_path, capsys):
    write_beir(folder := tmp_path / "fruit", world)
    given = ("train", folder, "--loss", "squared", "-o", tmp_path / "m")
    assert printed(capsys, *given)["left_out"] == 0
    measured = ("evaluate", tmp_path / "m", folder, "--split", "train")
    before = printed(capsys, *measured)
    with (folder / "qrels/train.tsv").open("a") as file:
        file.write("q1\tgone\t1\nq99\td1\t1\n")
    for command in (given, measured):
        assert call(*command) == 2
        err = capsys.readouterr().err
        assert "2 judgments name an unknown query or document; the first is 'q1', 'gone'" in err
        assert err.endswith("leave such judgments out with --missing drop\n")
    assert printed(capsys, *given, "--missing", "drop")["left_out"] == 2
    assert printed(capsys, *measured, "--missing", "drop") == before | {"left_out": 2}
    assert printed(capsys, "index", tmp_path / "m", folder, "--update")["documents"] == 60


def test_documents_in_a_table_are_indexed_and_judgments_in_one_measured(world, tables, tmp_path, capsys):
    write_beir(tmp_path / "fruit", world)
    printed(capsys, "train", tmp_path / "fruit", "--loss", "squared", "-o", tmp_path / "m")
    assert printed(capsys, "index", tmp_path / "m", tables("docs"), "-o", tmp_path / "i")["documents"] == 60
    folder = printed(capsys, "evaluate", tmp_path / "m", tmp_path / "fruit", "--split", "train")
    given = ("--queries", tables("queries"), "--judgments", tables("judgments"))
    table = printed(capsys, "evaluate", tmp_path / "m", tables("docs"), *given)
    assert (table["measures"], table["bm25"]) == (folder["measures"], folder["bm25"])
    assert table["split"] == tables("judgments")


def test_a_lexical_ranker_needs_the_documents_alone(world, tables, tmp_path, capsys):
    printed(capsys, "train", tables("docs"), "--ranker", "bm25", "-o", tmp_path / "m")
    given = {"lexical": sr.BM25(), "analyzer": sr.Analyzer("english")}
    sr.TextRanker("bm25", **given).fit(world.documents).save(tmp_path / "n")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()
    assert call("train", tables("docs"), "-o", tmp_path / "m") == 0
    assert "no word pairs: the data has no split 'train' to learn from" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["docs", "--judgments", "judgments", "--clicks", "clicks"], "--judgments and --clicks all say what is relev"),
        (["clicks", "--texts", "docs", "--triples", "triples"], "--texts and --triples all say what is relevant"),
        (
            ["docs", "--ranker", "bm25", "--clicks", "clicks"],
            "--ranker bm25 does not learn from judgments; remove",
        ),
        (
            ["docs", "--clicks", "clicks", "--split", "dev"],
            "names a split of a folder; --clicks replaces it",
        ),
        (["pydocs", "--queries", "queries"], "--queries needs documents in a table; a folder has its own"),
        (["clicks"], "a table of clicks; give the documents with --texts"),
        (["judgments", "--ranker", "bm25"], "a table of judgments; give the documents with --texts"),
        (["triples"], "its triples contain ids, not texts; give the texts with --texts"),
        (["queries", "--texts", "docs"], "with --texts it must be a table of clicks"),
        (["queries", "--clicks", "judgments"], "no column 'session'"),
        (["s3://bucket/docs.parquet"], "only --engine spark reads this address"),
        (["docs", "--clicks", "hdfs://x/y.parquet"], "hdfs://x/y.parquet: only --engine spark reads this address"),
        (["docs", "--ranker", "ranksvm", "--clicks", "clicks"], "--clicks is for rankers of texts; --ranker ranksvm"),
        (["docs", "--queries", "queries", "--clicks", "gone.parquet"], "gone.parquet: no such file"),
    ],
)
def test_tables_that_do_not_go_together_are_rejected(tables, tmp_path, capsys, words, said):
    names = {"docs", "queries", "judgments", "clicks", "triples"}
    given = [tables(word) if word in names else word for word in words]
    assert call("train", *given, "-o", tmp_path / "m") == 2
    out, err = capsys.readouterr()
    assert said in err
    assert (out, len(unexpected(err))) == ("", 1)
    assert not (tmp_path / "m").exists()


def test_a_model_of_rows_takes_no_tables_of_texts(tmp_path, capsys):
    rows = tmp_path / "rows.txt"
    rows.write_text("".join(f"{i % 2} qid:{i // 4} 1:{i} 2:{i % 3}\n" for i in range(16)))
    printed(capsys, "train", rows, "--ranker", "ranksvm", "-o", tmp_path / "m")
    assert call("evaluate", tmp_path / "m", rows, "--judgments", "j.tsv") == 2
    assert "--queries and --judgments are for text models" in capsys.readouterr().err


def test_queries_of_a_group_are_held_out_together(world, tmp_path, capsys, monkeypatch):
    write_beir(tmp_path / "fruits", world)
    given, fit = [], sr.TextRanker.fit
    monkeypatch.setattr(
        sr.TextRanker, "fit", lambda self, *a, **k: given.append(k["query_group"]) or fit(self, *a, **k)
    )
    groups, model = tmp_path / "groups.tsv", tmp_path / "model.safetensors"
    groups.write_text("q0\tfirst site\nq1\tsecond site\n")
    printed(capsys, "train", tmp_path / "fruits", "--output", model, "--query-groups", groups)
    assert given == [{"q0": "first site", "q1": "second site"}]
    groups.write_text("q0\tfirst site\nq0\tsecond site\n")
    assert call("train", tmp_path / "fruits", "--output", model, "--query-groups", groups) == 2
    message = "groups.tsv:2: query 'q0' is in the groups 'first site' and 'second site'; keep one of them"
    assert message in capsys.readouterr().err
