"""Commands on a collection whose queries are documents: --exclude-self, --against, and judgments with a reverse."""

from __future__ import annotations

import json
import lzma

import pytest

import sparserank as sr
from sparserank.data.formats.beir import write_beir
from sparserank.data.records import Collection, Documents
from sparserank.errors import DataError

from ..text_ranker.test_learning import world
from .calling import call, printed, unexpected

TEXTS = {
    "a": "red apples are sweet", "b": "sweet red pears", "c": "blue plums", "d": "plums and blue grapes",
    "e": "green melons", "f": "melons are green and sweet",
}  # fmt: skip
TRAIN = {"b": {"a": 1.0}, "d": {"c": 1.0}}
DEV = {"a": {"b": 1.0, "f": 1.0}, "c": {"d": 1.0}, "e": {"f": 1.0}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pages that link to each other; the files are packed, in a folder of data sets."""
    where = tmp_path_factory.mktemp("data") / "links"
    write_beir(where, Collection("links", Documents.of(TEXTS), TEXTS, {"train": TRAIN, "dev": DEV}))
    for name in ("corpus.jsonl", "queries.jsonl", "qrels/dev.tsv"):
        plain = where / name
        (where / f"{name}.xz").write_bytes(lzma.compress(plain.read_bytes()))
        plain.unlink()
    return where


@pytest.fixture(scope="module")
def models(folder):
    paths = [folder.parent / name for name in ("bm25.model", "cosine.model")]
    for path in paths:
        assert call("train", folder, "--ranker", path.stem, "--output", path) == 0
    return paths


@pytest.fixture
def data_home(folder, monkeypatch):
    monkeypatch.setenv("SPARSERANK_DATA", str(folder.parent))


# ---- --exclude-self


def test_a_query_finds_its_own_document_unless_it_is_excluded(capsys, models, folder):
    capsys.readouterr()
    assert call("evaluate", models[0], folder, "--measures", "RR", "--json") == 0
    out, err = capsys.readouterr()
    off = json.loads(out)
    assert "\n".join(unexpected(err)) == (
        "3 of 3 queries have the id of a document; --exclude-self leaves that document out of its own query's ranking "
        "(--no-exclude-self: the ids name different things)"
    )
    on = printed(capsys, "evaluate", models[0], folder, "--measures", "RR", "--exclude-self")
    assert (off["exclude_self"], on["exclude_self"]) == (False, True)
    assert off["measures"]["RR"]["value"] == 0.5
    assert on["measures"]["RR"]["value"] == 1.0
    assert off["bm25"]["RR"]["value"] == 0.5
    quiet = printed(capsys, "evaluate", models[0], folder, "--measures", "RR", "--no-exclude-self")
    assert quiet["measures"] == off["measures"]


def test_training_leaves_a_querys_own_document_out_of_its_list(capsys, folder, tmp_path, monkeypatch):
    asked = []
    fit = sr.TextRanker.fit
    monkeypatch.setattr(
        sr.TextRanker, "fit", lambda self, *a, **k: asked.append(k["exclude_self"]) or fit(self, *a, **k)
    )
    capsys.readouterr()
    on = printed(capsys, "train", folder, "--loss", "squared", "--output", tmp_path / "m", "--exclude-self")
    assert call("train", folder, "--loss", "squared", "--output", tmp_path / "m", "--json") == 0
    out, err = capsys.readouterr()
    assert asked == [True, False]
    assert (on["exclude_self"], json.loads(out)["exclude_self"]) == (True, False)
    assert "2 of 2 queries have the id of a document; --exclude-self" in err


def test_a_set_that_excludes_by_itself_does_so_until_it_is_told_not_to(capsys, models, monkeypatch):
    documents = Documents.of(TEXTS)
    own = Collection("links", documents, TEXTS, {"train": TRAIN, "dev": DEV}, exclude_self=True)
    monkeypatch.setattr("sparserank.data.open.load", lambda name: own)
    capsys.readouterr()
    assert printed(capsys, "evaluate", models[0], "pydocs")["exclude_self"] is True
    assert printed(capsys, "evaluate", models[0], "pydocs", "--no-exclude-self")["exclude_self"] is False


def test_tables_take_it_too(capsys, tmp_path, models):
    (tmp_path / "docs.tsv").write_text("id\ttext\n" + "".join(f"{d}\t{text}\n" for d, text in TEXTS.items()))
    (tmp_path / "queries.tsv").write_text("id\ttext\n" + "".join(f"{q}\t{TEXTS[q]}\n" for q in DEV))
    rows = "".join(f"{q}\t{d}\t{g:g}\n" for q, of in DEV.items() for d, g in of.items())
    (tmp_path / "dev.tsv").write_text("query\tdocument\tgrade\n" + rows)
    tables = tmp_path / "docs.tsv", "--queries", tmp_path / "queries.tsv", "--judgments", tmp_path / "dev.tsv"
    capsys.readouterr()
    said = printed(capsys, "evaluate", models[0], *tables, "--measures", "RR", "--exclude-self")
    assert (said["exclude_self"], said["measures"]["RR"]["value"]) == (True, 1.0)
    assert said["reverse_in_training"] is None
    trained = printed(capsys, "train", *tables, "--output", tmp_path / "m", "--loss", "squared", "--exclude-self")
    assert trained["exclude_self"] is True


def test_rankers_of_graded_rows_refuse_it(capsys, tmp_path):
    assert call("train", "x.txt", "--ranker", "ranksvm", "--output", tmp_path / "m", "--exclude-self") == 2
    assert "--exclude-self is for rankers of texts" in capsys.readouterr().err


# ---- judgments whose reverse is in training


def test_evaluate_says_how_many_judgments_have_a_reverse_and_measures_without_them(capsys, models, folder):
    capsys.readouterr()
    said = printed(capsys, "evaluate", models[0], folder, "--measures", "RR", "--exclude-self")
    found = said["reverse_in_training"]
    assert (found["judgments"], found["of"], found["share"]) == (2, 4, 0.5)
    assert found["queries_without"] == 2, "nothing else is relevant for c"
    assert found["measures_without"]["RR"]["value"] == found["bm25_without"]["RR"]["value"] == 1.0
    assert call("evaluate", models[0], folder, "--measures", "RR", "--exclude-self") == 0
    out, _ = capsys.readouterr()
    assert "- 2 of 4 judgments (50.0%) have their reverse in training" in out
    assert "- Without them, bm25.model: RR 1.0000 (2 queries)." in out


def test_train_says_it_of_every_other_split(capsys, folder, tmp_path):
    capsys.readouterr()
    said = printed(capsys, "train", folder, "--output", tmp_path / "m", "--loss", "squared", "--exclude-self")
    assert said["reverse_in_training"] == {"dev": {"judgments": 2, "of": 4, "share": 0.5}}
    assert call("train", folder, "--output", tmp_path / "m", "--loss", "squared", "--exclude-self") == 0
    assert "split dev: 2 of 4 judgments (50.0%) have their reverse in training" in capsys.readouterr().out


def test_a_model_that_is_measured_on_what_it_learned_from_is_named(capsys, tmp_path):
    write_beir(tmp_path / "motors", motors())
    words = ("train", tmp_path / "motors", "--loss", "squared", "--output", tmp_path / "m")
    trained = printed(capsys, *words)
    assert trained["pairs"] > 0
    assert (trained["chosen"]["data"], trained["chosen"]["split"]) == ("motors", "train")
    said = printed(capsys, "evaluate", tmp_path / "m", tmp_path / "motors", "--split", "train")
    assert said["learned_from_these"] is True
    assert printed(capsys, "evaluate", tmp_path / "m", tmp_path / "motors")["learned_from_these"] is False
    assert call("evaluate", tmp_path / "m", tmp_path / "motors", "--split", "train") == 0
    assert "- m learned from these judgments" in capsys.readouterr().out


def motors():
    """Who asks for a car wants the automobile of that colour; the last two colours are the split dev."""
    docs, queries, qrels = world()
    dev = {q: of for q, of in qrels.items() if q.endswith(("grey", "pink"))}
    train = {q: of for q, of in qrels.items() if q not in dev}
    return Collection("motors", Documents.of(docs), queries, {"train": train, "dev": dev})


# ---- --against


def test_against_compares_two_models_on_the_same_queries(capsys, models, folder):
    bm25, cosine = models
    capsys.readouterr()
    words = ("evaluate", cosine, folder, "--measures", "nDCG@10 RR", "--exclude-self")
    alone, said = printed(capsys, *words), printed(capsys, *words, "--against", bm25)
    assert {key: said[key] for key in alone if key != "reverse_in_training"} == {
        key: alone[key] for key in alone if key != "reverse_in_training"
    }
    against = said["against"]
    assert against["model"] == str(bm25)
    assert against["measures"] == said["bm25"]
    found = against["comparisons"]["nDCG@10"]
    assert found["difference"]["value"] == pytest.approx(found["value"] - found["baseline"])
    assert 0.0 < found["p"] <= 1.0
    assert len(against["worse"]) == found["losses"]
    assert against["not_worse"] == (found["difference"]["value"] >= -1e-9)


def test_against_shows_the_queries_that_got_worse_with_both_rankings(capsys, models, folder):
    """A model that has an index of other documents' words ranks nothing well."""
    odd = folder.parent / "odd.model"
    sr.TextRanker("bm25").fit({"x": "melons", "y": "and"}).save(odd)
    capsys.readouterr()
    words = ("evaluate", odd, folder, "--exclude-self", "--against", models[0])
    said = printed(capsys, *words)["against"]
    assert said["not_worse"] is False
    worse = {one["query"]: one for one in said["worse"]}
    assert worse["c"]["text"] == "blue plums"
    assert worse["c"]["baseline_ranking"][0] == {"id": "d", "grade": 1.0}
    assert worse["c"]["ranking"] == []
    assert worse["c"]["values"]["nDCG@10"] == 0.0 < worse["c"]["baseline_values"]["nDCG@10"]
    assert call(*words, "--worse", "1") == 0
    out, _ = capsys.readouterr()
    assert f"Worse than bm25.model on nDCG@10: {len(worse)} of 3 queries; 1 shown, all in --json" in out
    assert "“" in out and out.count("→") == 1
    assert "Against bm25.model" in out
    assert "[grade 1]" in out


def test_two_models_of_one_name_are_told_apart_by_their_paths(capsys, models, folder, tmp_path):
    other = tmp_path / models[0].name
    other.write_bytes(models[1].read_bytes())
    assert call("evaluate", models[0], folder, "--against", other, "--exclude-self") == 0
    assert f"Against {other}" in capsys.readouterr().out


def test_what_is_no_text_model_is_rejected_as_the_other_one(capsys, models, folder, tmp_path):
    assert call("evaluate", models[0], folder, "--against", models[0]) == 2
    assert "is MODEL itself" in capsys.readouterr().err
    assert call("evaluate", models[0], folder, "--against", tmp_path / "none") == 2
    assert "none: no such file" in capsys.readouterr().err
    sr.RankSVM().fit([[1.0], [0.0]], [1, 0]).save(tmp_path / "rows")
    assert call("evaluate", models[0], folder, "--against", tmp_path / "rows") == 2
    assert "contains a 'by-query'" in capsys.readouterr().err
    assert call("evaluate", tmp_path / "rows", "x.txt", "--against", models[0]) == 2
    assert "--exclude-self and --against are for text models" in capsys.readouterr().err


# ---- folders as data sets


@pytest.mark.usefixtures("data_home")
def test_a_beir_folder_is_a_data_set_by_its_name(capsys, models):
    assert sr.data.load("links").split("dev") == DEV
    capsys.readouterr()
    said = printed(capsys, "evaluate", models[0], "links", "--exclude-self")
    assert said["data"] == "links"
    listed = {one["name"]: one for one in printed(capsys, "datasets")["datasets"]}
    assert listed["links"]["path"].endswith("/links")
    assert listed["links"]["size"] == "splits: dev, train"
    assert list(listed)[-1] == "links", "after those that the registry names"


@pytest.mark.usefixtures("data_home")
def test_an_unknown_name_is_answered_with_the_folders_too(capsys, folder, tmp_path):
    assert call("train", "linsk", "--output", tmp_path / "m") == 2
    err = capsys.readouterr().err
    assert "did you mean 'links'?" in err
    assert "no such file or folder, and no data set of that name: 'linsk'" in err
    (folder.parent / "no-queries").mkdir(exist_ok=True)
    (folder.parent / "no-queries" / "corpus.jsonl").write_text("{}")
    for name in ("no-queries", "../data/links", ".", ""):
        with pytest.raises(DataError, match="unknown data set"):
            sr.data.load(name)


@pytest.mark.usefixtures("data_home")
def test_a_folder_takes_no_option_of_other_data_sets():
    with pytest.raises(ValueError, match="'links' has no option 'fold'; its options: missing"):
        sr.data.load("links", fold=1)
