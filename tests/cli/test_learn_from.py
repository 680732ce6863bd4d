"""train --learn-from: documents without queries and judgments."""

from __future__ import annotations

import json

import polars as pl
import pytest

from sparserank.cli.learn_from import LearnFrom
from sparserank.data import Collection, write_beir
from sparserank.data.records import Documents

from ..fruits import fruits
from ..topics import PAGES, topics
from .calling import call, printed, unexpected


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with corpus.jsonl alone."""
    docs, path = topics(), tmp_path_factory.mktemp("pages")
    rows = [{"_id": i, "title": title, "text": text} for i, (title, text, _) in docs.rows().items()]
    (path / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_folder_of_documents_alone_is_enough(folder, tmp_path, capsys):
    said = printed(capsys, "train", folder, "--learn-from", "titles,headings", "-o", tmp_path / "m.safetensors")
    assert said["learned_from"] == {"titles": PAGES, "headings": 0}
    assert said["pairs"] > 0
    assert said["chosen"]["learned_from"]["titles"]["weight"] > 0.0
    assert printed(capsys, "search", tmp_path / "m.safetensors", "name3x1")["results"]


def test_a_table_of_documents_alone_is_enough(tmp_path, capsys):
    docs = topics()
    pl.DataFrame({"id": docs.ids, "title": docs.titles, "text": docs.texts}).write_csv(tmp_path / "docs.csv")
    options = ("--learn-from", "titles", "--learn-from", "openings", "-o", tmp_path / "m.safetensors")
    assert call("train", tmp_path / "docs.csv", *options) == 0
    out, err = capsys.readouterr()
    assert f"titles: {PAGES} queries; their word pairs are kept (nDCG@10 on held-out queries" in out
    assert "no split 'train'" not in out
    assert err == "" or f"made queries from {PAGES} titles, {PAGES} openings" in err


def test_judgments_can_be_added(tmp_path, capsys):
    world = fruits()
    write_beir(tmp_path / "fruit", world)
    said = printed(
        capsys, "train", tmp_path / "fruit", "--learn-from", "judgments,titles", "-o", tmp_path / "m.safetensors"
    )
    assert said["learned_from"]["judgments"] == len(world.qrels["train"])
    assert said["learned_from"]["titles"] > 0


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--learn-from", "headlines"),
            "--learn-from must be of titles, openings, headings, links, mentions, log, judgments",
        ),
        (("--learn-from", "headings"), "there are no headings to learn from"),
        (("--learn-from", "clicks"), "--learn-from clicks needs a click log; give it with --clicks or --ubi"),
        (("--learn-from", "titles", "--engine", "spark"), "--learn-from titles needs --engine local"),
        (("--learn-from", "titles", "--ranker", "bm25"), "--learn-from titles is for --ranker text"),
        (("--learn-from", "titles", "--ranker", "ranksvm"), "--learn-from titles is for --ranker text"),
        (
            ("--learn-from", "titles", "--judgments", "x.tsv"),
            "--judgments is not used; give --learn-from titles,judgments",
        ),
    ],
)
def test_a_mistake_is_one_line(folder, tmp_path, capsys, options, sentence):
    assert call("train", folder, *options, "-o", tmp_path / "m.safetensors") == 2
    err = capsys.readouterr().err
    assert sentence in err
    assert len(unexpected(err)) == 1


def test_without_the_option_documents_alone_get_bm25(folder, tmp_path, capsys):
    assert call("train", folder, "-o", tmp_path / "m.safetensors") == 0
    out = capsys.readouterr().out
    assert "no word pairs: the data has no split 'train' to learn from" in out
    assert "--learn-from" in out
    note = printed(capsys, "train", folder, "-o", tmp_path / "m.safetensors")["note"]
    assert note.startswith("no word pairs: the data has no split 'train' to learn from; name another with --split")


def test_judgments_of_a_folder_are_not_used_by_titles_alone(tmp_path, capsys):
    docs, plain = topics(), tmp_path / "plain"
    write_beir(plain, Collection("plain", docs, {"q1": "name0x1"}, {"train": {"q1": {"p1": 1.0}}}))
    said = printed(capsys, "train", plain, "--learn-from", "titles", "-o", tmp_path / "m.safetensors")
    assert "split" not in said["chosen"]
    assert said["learned_from"] == {"titles": PAGES}


def test_a_log_has_no_queries_of_other_splits():
    queries = {"a": "trained", "b": "both", "c": "tested", "d": "only typed"}
    qrels = {"train": {"a": {"x": 1}, "b": {"x": 1}}, "test": {"b": {"x": 1}, "c": {"x": 1}}}
    collection = Collection("made", Documents.of({"x": "text"}), queries, qrels)
    assert set(LearnFrom.parse(["log"]).without_other_splits(collection, "train").queries) == {"a", "b", "d"}
    assert LearnFrom.parse(["titles"]).without_other_splits(collection, "train") is collection
