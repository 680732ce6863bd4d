"""The commands as a user types them: what they print, what they write, and how they refuse."""

from __future__ import annotations

import math
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents

from ..fruits import LATIN, fruits
from .calling import call, printed, unexpected


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    documents = Documents.of(
        {
            "d1": {"title": "Apples", "text": "red apples are sweet", "metadata": {"kind": "pome", "year": 1999}},
            "d2": {"title": "Pears", "text": "green pears are sour", "metadata": {"kind": "pome", "year": 2004}},
            "d3": {"title": "", "text": "plums are blue and apples are red"},
        }
    )
    queries = {"q1": "sweet apple", "q2": "sour pear", "q3": "blue"}
    qrels = {"train": {"q1": {"d1": 2.0, "d3": 1.0}}, "dev": {"q2": {"d2": 1.0}, "q3": {"d3": 1.0, "d2": 0.0}}}
    where = tmp_path_factory.mktemp("data") / "fruit"
    write_beir(where, Collection("fruit", documents, queries, qrels))
    return where


@pytest.fixture(scope="module")
def model(folder):
    path = folder.parent / "fruit.safetensors"
    assert call("train", folder, "--ranker", "bm25", "--output", path) == 0
    return path


def test_train_writes_a_model_and_its_index(capsys, folder, tmp_path):
    said = printed(capsys, "train", folder, "--output", tmp_path / "m")
    assert said["documents"] == 3
    assert (tmp_path / "m").exists()
    assert (tmp_path / "m.index").exists()


def test_train_says_each_fact_once(capsys, folder, tmp_path):
    """One judged query is too few; the model's name has another suffix than its format."""
    assert call("train", folder, "--output", tmp_path / "m.bin") == 0
    out, err = capsys.readouterr()
    assert unexpected(err) == []
    assert "pairs" not in err
    first, fields, reason, suffix = out.splitlines()
    assert fields == "fields: title, text; metadata: kind, year"
    assert first.startswith("text on 3 documents and")
    assert reason == "no word pairs: 1 judged query: too few to learn pairs; the model keeps the lexical score alone"
    assert suffix == (
        f"{tmp_path / 'm.bin'} is a safetensors file; other tools expect the name {tmp_path / 'm.safetensors'}"
    )


def test_judgments_without_a_relevant_document_are_one_line(capsys, folder, tmp_path):
    shutil.copytree(folder, tmp_path / "zeros")
    (tmp_path / "zeros" / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t0\n")
    assert call("train", tmp_path / "zeros", "--output", tmp_path / "m") == 2
    assert capsys.readouterr().err == (
        "sparserank: none of the 1 judgments has a grade above 0; give at least one relevant document, or no qrels for "
        "the lexical score alone\n"
    )


def test_search_prints_what_the_contract_says(capsys, model):
    said = printed(capsys, "search", model, "red apples zebra", "-k", "5")
    assert [row["id"] for row in said["results"]] == ["d1", "d3"]
    assert said["results"][0].keys() == {"id", "score", "title", "text", "metadata"}
    assert said["unknown"] == ["zebra"]
    assert len(printed(capsys, "search", model, "red apples", "-k", "1")["results"]) == 1


def test_search_is_filtered_counted_and_continued(capsys, model):
    words = ["search", model, "red apples are sweet and sour"]
    said = printed(capsys, *words, "--filter", "year<2000", "--facets", "kind,year")
    (result,) = said["results"]
    assert {name: value for name, value in result.items() if name != "score"} == {
        "id": "d1",
        "title": "Apples",
        "text": "red apples are sweet",
        "metadata": {"kind": "pome", "year": 1999},
    }
    assert said["facets"] == {"kind": {"pome": 1}, "year": {"1999": 1}}
    every = [result["id"] for result in printed(capsys, *words)["results"]]
    assert len(every) == 3
    assert [result["id"] for result in printed(capsys, *words, "--offset", "1", "-k", "1")["results"]] == every[1:2]
    assert call(*words, "--facets", "kind", "--offset", "1") == 0
    out = capsys.readouterr().out
    assert "kind: pome (2)" in out
    assert [line.split()[0] for line in out.splitlines() if every[1] in line] == ["2"]
    assert call(*words, "--filter", "kind:stone") == 0
    assert "no document matches the words and the filter" in capsys.readouterr().out


def test_explain_sums_to_the_score_of_the_search(capsys, model):
    hit = printed(capsys, "search", model, "red apples")["results"][0]
    said = printed(capsys, "explain", model, "red apples", hit["id"])
    assert said["score"] == hit["score"]
    assert math.isclose(sum(pair["contribution"] for pair in said["pairs"]), said["score"], rel_tol=1e-6)
    assert said["pairs"][0].keys() == {"query", "document", "contribution"}
    assert math.isclose(sum(line["contribution"] for line in said["lines"]), said["score"], rel_tol=1e-6)
    assert said["lines"][0].keys() == {"document", "queries", "contribution"}
    assert said["explained_share"] is None  # this model has the lexical score alone


def test_evaluate_prints_measures_with_intervals_beside_bm25(capsys, model, folder, tmp_path):
    said = printed(
        capsys, "evaluate", model, folder, "--split", "dev", "--measures", "nDCG@10 AP R@100",
        "--report", tmp_path / "r.html", "--run", tmp_path / "r.run",
    )  # fmt: skip
    assert list(said["measures"]) == ["nDCG@10", "AP", "R@100"]
    for value in said["measures"].values():
        assert value["low"] <= value["value"] <= value["high"]
        assert value["value"] == 1.0
    assert said["bm25"] == said["measures"]
    assert "<html" in (tmp_path / "r.html").read_text()
    assert (tmp_path / "r.run").read_text().startswith("q2 Q0 d2 1 ")


def test_evaluate_indexes_documents_the_model_has_not_seen(capsys, model, folder, tmp_path):
    other = Documents.of({"x1": "apples", "x2": "sour pears", "x3": "blue"})
    write_beir(tmp_path / "other", Collection("other", other, {"q": "pear"}, {"test": {"q": {"x2": 1.0}}}))
    said = printed(capsys, "evaluate", model, tmp_path / "other", "--split", "test")
    assert said["measures"]["nDCG@10"]["value"] == 1.0


def test_an_index_of_other_documents_can_be_made_and_searched(capsys, model, tmp_path):
    other = Documents.of({"x1": "an apple a day", "x2": "pears"})
    write_beir(tmp_path / "other", Collection("other", other, {"q": "pear"}, {"test": {"q": {"x2": 1.0}}}))
    assert printed(capsys, "index", model, tmp_path / "other", "--output", tmp_path / "i")["documents"] == 2
    said = printed(capsys, "search", model, "apples", "--index", tmp_path / "i")
    assert [row["id"] for row in said["results"]] == ["x1"]


@pytest.fixture
def own_model(model, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(model.read_bytes())
    return path


@pytest.mark.parametrize("damage", ["missing", "damaged", "foreign"])
def test_an_index_that_cannot_be_used_is_made_again_by_the_command_its_error_names(
    capsys, own_model, folder, tmp_path, damage
):
    beside = tmp_path / "m.index"
    if damage == "damaged":
        beside.write_bytes(b"not an index")
    if damage == "foreign":
        assert call("train", folder, "--output", tmp_path / "other", "--b", "0.1") == 0
        beside.write_bytes((tmp_path / "other.index").read_bytes())
        capsys.readouterr()
    assert printed(capsys, "evaluate", own_model, folder)["measures"]["AP"]["value"] == 1.0
    assert call("search", own_model, "apple") == 2
    capsys.readouterr()
    assert printed(capsys, "index", own_model, folder, "--output", beside)["documents"] == 3
    assert printed(capsys, "search", own_model, "apple")["results"]


def test_a_damaged_model_is_rejected_by_evaluate(capsys, folder, tmp_path):
    (tmp_path / "m").write_bytes(b"not a model")
    assert call("evaluate", tmp_path / "m", folder) == 2
    assert "m: truncated, damaged or not a model file" in capsys.readouterr().err


def test_a_cutoff_beyond_a_thousand_is_searched_that_deep(capsys, tmp_path):
    docs = Documents.of({f"d{i:04d}": "apple" for i in range(1500)})
    relevant = {f"d{i:04d}": 1.0 for i in range(1500)}
    write_beir(tmp_path / "many", Collection("many", docs, {"q": "apple"}, {"dev": {"q": relevant}}))
    assert call("train", tmp_path / "many", "--output", tmp_path / "m") == 0
    capsys.readouterr()
    for measures in ("R@1500", "SetP P@10 R(rel=1)@1500", "IPrec@0.1 Judged@1500 R@10"):
        run = tmp_path / "run"
        assert call("evaluate", tmp_path / "m", tmp_path / "many", "--measures", measures, "--run", run) == 0
        assert len(run.read_text().splitlines()) == 1500, measures
    capsys.readouterr()
    said = printed(capsys, "evaluate", tmp_path / "m", tmp_path / "many", "--measures", "R@1500")
    assert said["measures"]["R@1500"]["value"] == 1.0


def test_a_bad_measure_is_rejected_before_anything_is_read(capsys):
    assert call("evaluate", "no-model", "no-data", "--measures", "nDCK@10") == 2
    assert "nDCK" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--report", "--run"])
def test_evaluate_checks_first_whether_its_files_can_be_written(capsys, tmp_path, option):
    target = tmp_path / "nosuch" / "x.md"
    assert call("evaluate", "no-model", "no-data", option, target) == 2
    assert capsys.readouterr() == ("", f"sparserank: {target}: cannot be written: No such file or directory\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("bm25 --max-pairs 100", "--max-pairs is for rankers with word pairs; --ranker bm25 has none"),
        ("cosine --loss squared --nonnegative", "--loss, --nonnegative are for rankers with word pairs"),
        ("domination --max-pairs 3", "--max-pairs is for rankers of texts; --ranker domination reads LETOR files"),
        ("domination --language german", "--language is for rankers of texts; --ranker domination reads LETOR files"),
    ],
)
def test_an_option_that_does_not_apply_is_an_error(capsys, tmp_path, words, complaint):
    assert call("train", "no-data", "-o", tmp_path / "m", "--ranker", *words.split()) == 2
    assert f"sparserank: {complaint}" in capsys.readouterr().err


@pytest.mark.parametrize("report", ["r.pdf", "r.html", "nowhere/r.md"])
def test_a_report_that_cannot_be_written_leaves_no_run_behind(capsys, monkeypatch, model, folder, tmp_path, report):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(tmp_path)
    assert call("evaluate", model, folder, "--report", report, "--run", "r.run") == 2
    assert list(tmp_path.iterdir()) == []
    assert "sparserank[plot]" in capsys.readouterr().err or report != "r.html"
    if report != "nowhere/r.md":
        assert call("evaluate", "no-model", "no-data", "--report", report) == 2
        assert report in capsys.readouterr().err or report == "r.html", "judged before anything is read"


def test_a_model_called_bm25_is_told_from_the_baseline(capsys, model, folder, tmp_path):
    (tmp_path / "BM25").write_bytes(model.read_bytes())
    said = printed(capsys, "evaluate", tmp_path / "BM25", folder)
    assert list(said["comparisons"]) == ["BM25 (model)"]


def test_a_split_is_judged_only_where_the_user_names_it(capsys, folder, tmp_path):
    assert call("train", folder, "--output", tmp_path / "m", "--split", "nonsense") == 2
    assert "no split 'nonsense'; it has: dev, train" in capsys.readouterr().err
    assert call("train", folder, "--output", tmp_path / "m", "--split", "dev") == 0
    plain = Collection("plain", Documents.of({"a": "apple"}), {"q": "x"}, {})
    write_beir(tmp_path / "plain", plain)
    assert call("train", tmp_path / "plain", "--output", tmp_path / "m") == 0


def test_a_packed_name_is_still_a_model(capsys, folder, tmp_path):
    assert call("train", folder, "--output", tmp_path / "m.gz") == 0
    capsys.readouterr()
    assert printed(capsys, "search", tmp_path / "m.gz", "apple")["results"]


def test_datasets_lists_every_known_set(capsys, monkeypatch):
    monkeypatch.delenv("SPARSERANK_DATA", raising=False)  # every BEIR folder there would be listed too
    names = [row["name"] for row in printed(capsys, "datasets")["datasets"]]
    assert names == [
        "20newsgroups",
        "mnist",
        "digits",
        "rcv1",
        "mq2007",
        "mq2008",
        "ohsumed",
        "nfcorpus",
        "cranfield",
        "esci",
        "wands",
        "pydocs",
    ]


def test_demo_measures_and_searches_a_collection(capsys, monkeypatch):
    """On a small world; `tests/test_release.py` runs it on the embedded collection."""
    world = fruits()
    dev = {name: {f"d{d}": 1.0 for d in range(number, 60, 5)} for number, name in enumerate(LATIN)}
    queries, splits = {**world.queries, **{name: name for name in LATIN}}, {**world.qrels, "dev": dev}
    small = replace(world, queries=queries, qrels=splits, versions={"numpy": "2.4"})
    monkeypatch.setattr("sparserank.data.load", lambda name: small)
    said = printed(capsys, "demo")
    reverses = said["reverse_in_training"]
    assert (reverses["judgments"], reverses["of"], reverses["share"]) == (0, 60, 0.0)
    bm25, learned = (said["measures"][name]["nDCG@10"]["value"] for name in ("BM25", "learned"))
    assert bm25 == 0.0 < learned
    assert len(said["searches"]) == 3
    assert all(case["bm25_rank"] is None and case["learned"][0] == case["found"] for case in said["searches"])
    assert call("demo") == 0
    assert f"BM25 and {said['pairs']} learned word pairs" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["train", "search", "explain", "evaluate", "index", "datasets", "demo"])
def test_every_command_has_help_that_teaches(capsys, command):
    assert call(command, "--help") == 0
    said = capsys.readouterr().out
    assert "--json" in said
    assert command != "demo" or "leaves nothing but the cached collection" in said


def test_people_get_tables(capsys, model, folder, tmp_path):
    for words in (
        ["search", model, "red apples zebra"],
        ["search", model, "zebra"],
        ["explain", model, "red apples", "d1"],
        ["evaluate", model, folder],
        ["index", model, folder, "--output", tmp_path / "i"],
        ["train", folder, "--output", tmp_path / "m", "--ranker", "cosine"],
        ["datasets"],
    ):
        assert call(*words) == 0
        assert capsys.readouterr().out.strip()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["search", "none.safetensors", "x"], "none.safetensors: no such file"),
        (["search", "MODEL", "x", "-k", "0"], "-k"),
        (["search", "MODEL", "x", "--filter", "kind:"], "filter: expected a value after 'kind:' at position 5"),
        (["search", "MODEL", "x", "--facets", "knd"], "facets: there is no field 'knd'; the fields are kind, year"),
        (["search", "FOLDER", "x"], "is a folder"),
        (["search", "FOLDER/corpus.jsonl", "x"], "truncated, damaged or not a model file"),
        (["explain", "MODEL", "x", "d9"], "no document 'd9'"),
        (["train", "FOLDER", "--output", "/nowhere/m"], "cannot be written"),
        (["train", "FOLDER/corpus.jsonl", "--output", "m"], "BEIR folder"),
        (["train", "digits", "--output", "m"], "not a text collection"),
        (["train", "unheard-of", "--output", "m"], "unheard-of"),
        (["train", "FOLDER", "--output", "m", "--ranker", "magic"], "magic"),
        (["train", "FOLDER", "--output", "m", "--stem", "klingon"], "klingon"),
        (["train", "FOLDER"], "--output"),
        (["train", "FOLDER", "--output", ""], "it is a folder; give the name of a file"),
        (["train", "x" * 5000, "--output", "m"], "File name too long"),
        (["evaluate", "MODEL", "FOLDER", "--split", "test"], "no split 'test'; it has: dev, train"),
        (["evaluate", "MODEL", "FOLDER", "--measures", "nDCK@10"], "nDCK"),
        (["evaluate", "MODEL", "FOLDER", "--report", "r.pdf"], ".pdf"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(capsys, monkeypatch, tmp_path, model, folder, words, says):
    monkeypatch.chdir(tmp_path)
    assert call(*(w.replace("MODEL", str(model)).replace("FOLDER", str(folder)) for w in words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert says in err
    assert len(unexpected(err)) == 1


def test_without_words_there_is_help_and_no_complaint(capsys):
    assert call() == 2
    out, err = capsys.readouterr()
    assert "Usage" in out + err
    assert "sparserank: " not in out + err


def test_version(capsys):
    import sparserank

    assert call("--version") == 0
    assert capsys.readouterr().out == f"sparserank {sparserank.__version__}\n"


@pytest.mark.data
def test_bm25_on_nfcorpus_reaches_the_known_figure(capsys, real, tmp_path):
    folder = real("nfcorpus")
    assert call("train", folder, "--ranker", "bm25", "--output", tmp_path / "m") == 0
    capsys.readouterr()
    said = printed(capsys, "evaluate", tmp_path / "m", folder, "--split", "dev")
    assert said["measures"]["nDCG@10"]["value"] >= 0.275
    shown = (Path(__file__).parents[2] / "docs/index.md").read_text()
    words, document = re.search(r'explain model.safetensors "(.*)" (\S+)', shown).groups()
    assert len(printed(capsys, "explain", tmp_path / "m", words, document)["pairs"]) == 2, "the example has an answer"


@pytest.mark.parametrize("output", ["no/such/model", "."])
@pytest.mark.parametrize("ranker", ["bm25", "ranksvm"])
def test_a_model_that_could_not_be_written_is_rejected_before_anything_is_read(capsys, output, ranker):
    assert call("train", "no-such-data", "--ranker", ranker, "--output", output) == 2
    err = capsys.readouterr().err
    assert "cannot be written" in err
    assert "no-such-data" not in err
