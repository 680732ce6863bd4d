"""`sparserank export`, called as a user does."""

from __future__ import annotations

import json

import pytest

import sparserank as sr
from sparserank.data import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.export import TARGETS

from ..motors import DOCS, QRELS, QUERIES, learned_anyway
from .calling import call, printed, unexpected


@pytest.fixture
def model(tmp_path):
    learned_anyway(DOCS, QUERIES, QRELS).save(tmp_path / "m")
    return tmp_path / "m"


@pytest.fixture
def beir(tmp_path):
    qrels = {"dev": {"0": {"a": 1.0}}, "test": {"1": {"a": 1.0}}}
    write_beir(tmp_path / "data", Collection("data", Documents.of(DOCS), QUERIES, qrels))
    return tmp_path / "data"


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_writes_a_folder_that_says_how_to_use_it(capsys, model, tmp_path, target):
    summary = printed(capsys, "export", model, "--to", target, "--output", tmp_path / "made")
    assert (summary["target"], summary["documents"], summary["output"]) == (target, 4, str(tmp_path / "made"))
    files = {str(path.relative_to(tmp_path / "made")) for path in (tmp_path / "made").rglob("*") if path.is_file()}
    assert files == {*summary["files"], "export.json"}
    assert summary["bytes"] == sum((tmp_path / "made" / name).stat().st_size for name in summary["files"])
    readme = (tmp_path / "made/README.md").read_text()
    if target != "static":  # its pages search by themselves
        assert f"sparserank export MODEL --to {target} --query" in readme
        assert "{" not in readme.replace("{'", "")


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "static"])
def test_one_request_is_printed_for_words(capsys, model, target):
    assert call("export", model, "--to", target, "--query", "motor", "-k", "3") == 0
    out, err = capsys.readouterr()
    assert unexpected(err) == []
    assert isinstance(json.loads(out), dict)


def test_people_are_told_where_to_read_on(capsys, model, tmp_path):
    assert call("export", model, "--to", "qdrant", "--output", tmp_path / "made", "--embedded") == 0
    assert f"read {tmp_path / 'made/README.md'}" in capsys.readouterr().out
    assert (tmp_path / "made/shard").is_dir()


def test_queries_come_from_a_file_a_folder_or_a_split(capsys, model, beir, tmp_path):
    command = ("export", model, "--to", "trec", "--output", tmp_path / "made", "--queries")
    assert printed(capsys, *command, beir)["queries"] == 6
    assert printed(capsys, *command, beir / "queries.jsonl")["queries"] == 6
    assert printed(capsys, *command, beir, "--split", "dev")["queries"] == 1
    assert (tmp_path / "made/topics.tsv").read_text().startswith("0\t")


def test_another_index_is_exported_when_it_is_named(capsys, model, beir, tmp_path):
    assert call("index", model, beir, "--output", tmp_path / "other", "--remove", "zz") == 2
    ranker = sr.load(model)
    ranker.remove(["a"]).index_.save(tmp_path / "other")
    capsys.readouterr()
    summary = printed(
        capsys, "export", model, "--to", "ciff", "--output", tmp_path / "made", "--index", tmp_path / "other"
    )
    assert summary["documents"] == 3


def refused(capsys, *words):
    assert call("export", *words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(unexpected(err)) == 1
    return err


def test_mistakes_are_one_line_each(capsys, model, beir, tmp_path):
    to = ("--to", "qdrant")
    made = ("--output", tmp_path / "made")
    assert "give --output DIR" in refused(capsys, model, *to)
    assert "give one of the two" in refused(capsys, model, *to, *made, "--query", "x")
    assert "give both" in refused(capsys, model, *to, *made, "--split", "dev")
    assert "no split 'train'" in refused(capsys, model, *to, *made, "--queries", beir, "--split", "train")
    assert "has no splits" in refused(capsys, model, *to, *made, "--queries", beir / "queries.jsonl", "--split", "dev")
    assert "only qdrant" in refused(capsys, model, "--to", "vespa", *made, "--embedded")
    assert "are not an export" in refused(capsys, model, *to, "--output", beir)
    assert "no such file" in refused(capsys, tmp_path / "nothing", *to, *made)
    assert "solr" in refused(capsys, model, "--to", "solr", *made)
    assert not (tmp_path / "made").exists()


def test_a_model_without_an_index_says_how_to_make_one(capsys, model, tmp_path):
    (tmp_path / "m.index").unlink()
    assert "sparserank index MODEL DATA" in refused(capsys, model, "--to", "qdrant", "--output", tmp_path / "made")


def test_models_without_words_are_rejected(capsys, tmp_path):
    rows = "".join(f"{grade} qid:{query} 1:{grade}.5 2:1\n" for query in (1, 2, 3) for grade in (0, 1, 2))
    (tmp_path / "train.txt").write_text(rows)
    assert call("train", tmp_path / "train.txt", "--ranker", "adarank", "--output", tmp_path / "letor") == 0
    capsys.readouterr()
    err = refused(capsys, tmp_path / "letor", "--to", "elasticsearch", "--output", tmp_path / "made")
    assert str(tmp_path / "letor") in err
