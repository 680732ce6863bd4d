"""LETOR files on the command line: train, evaluate, five folds."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import sparserank as sr
from sparserank.data.formats.letor import write_letor
from sparserank.data.records import Letor

from .calling import call, printed, unexpected


def rows(seed, queries=10, each=8, features=3, first=0):
    from scipy.sparse import csr_array

    random = np.random.default_rng(seed)
    X = random.random((queries * each, features))
    y = np.floor(2.5 * X[:, 0] + random.normal(size=len(X)) * 0.3).clip(0, 2)
    return Letor(csr_array(X), y, np.repeat(np.arange(first, first + queries), each))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("letor")
    write_letor(folder / "train.txt", rows(0))
    write_letor(folder / "vali.txt", rows(1))
    write_letor(folder / "test.txt", rows(2))
    write_letor(folder / "wide.txt", rows(2, features=4))
    (folder / "huge.txt").write_text("1 qid:1 1:1\n0 qid:1 1:2 90000000000000:1\n")
    for number in range(1, 6):
        write_letor(folder / f"S{number}.txt", rows(number, queries=4, first=10 * number))
    return folder


@pytest.mark.parametrize("ranker", ["domination", "pamir", "ranksvm", "adarank", "adarank-ndcg", "rankboost", "rbf"])
def test_a_ranker_is_trained_and_measured(capsys, files, tmp_path, ranker):
    model = tmp_path / "m.safetensors"
    said = printed(capsys, "train", files / "train.txt", "--ranker", ranker, "--output", model)
    assert (said["rows"], said["queries"], said["features"], said["ranker"]) == (80, 10, 3, ranker)
    assert said["chosen_on"] == "nDCG@10"
    learned = sr.load(model)
    weights = learned.stumps_.alpha if ranker == "rankboost" else learned.coef_
    assert (said["documents"], said["pairs"]) == (80, sum(weight != 0 for weight in weights.tolist()))
    assert sr.load(model).get_params().items() >= said["settings"].items()
    said = printed(capsys, "evaluate", model, files / "test.txt", "--measures", "nDCG@10 AP PairError")
    assert said["queries"] == 10
    assert said["measures"]["nDCG@10"]["low"] <= said["measures"]["nDCG@10"]["value"]
    assert said["measures"]["nDCG@10"]["value"] > 0.85
    assert said["measures"]["PairError"]["value"] < 0.2


def test_a_file_without_query_ids_is_named_and_group_sizes_beside_it_are_read(capsys, files, tmp_path):
    bare = tmp_path / "train.txt"
    bare.write_text(re.sub(r"qid:\d+ ", "", (files / "train.txt").read_text()))
    command = ("train", bare, "--ranker", "ranksvm", "--output", tmp_path / "m")
    assert call(*command) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith(f"sparserank: {bare}: the rows have no query ids; write 'qid:<id>' after each grade")
    assert line.endswith(f"to {bare}.query")
    (tmp_path / "train.txt.query").write_text("8\n" * 10)
    assert printed(capsys, *command)["queries"] == 10
    (tmp_path / "train.txt.query").write_text("8\n" * 9)
    assert call(*command) == 2
    assert f"train.txt.query: its queries have 72 rows, but {bare} has 80" in capsys.readouterr().err
    (tmp_path / "train.txt.query").write_text("8\n0\n")
    assert call(*command) == 2
    assert "train.txt.query:2: the number of rows of a query must be a positive" in capsys.readouterr().err


def test_a_missing_file_is_not_taken_for_a_data_set_only(capsys, tmp_path):
    for ranker in ("ranksvm", "text"):
        assert call("train", tmp_path / "no.txt", "--ranker", ranker, "--output", tmp_path / "m") == 2
        err = capsys.readouterr().err
        assert err == (
            f"sparserank: no such file or folder, and no data set of that name: '{tmp_path / 'no.txt'}'; "
            "`sparserank datasets` lists the names\n"
        )


def test_a_model_remembers_what_its_file_counts_from(capsys, files, tmp_path):
    """A test file without feature 0, read alone, would have every feature one column too far to the left."""

    def from_zero(name, without=()):
        lines = (files / name).read_text().splitlines()
        moved = []
        for line in lines:
            grade, qid, *features = line.split()
            pairs = [(int(index) - 1, value) for index, value in (one.split(":") for one in features)]
            moved.append(" ".join([grade, qid, *(f"{i}:{value}" for i, value in pairs if i not in without)]))
        (tmp_path / name).write_text("\n".join(moved) + "\n")
        return tmp_path / name

    model, given = tmp_path / "m", ("--ranker", "ranksvm", "--set", "C=1", "--output", tmp_path / "m")
    printed(capsys, "train", from_zero("train.txt"), "--vali", from_zero("vali.txt", without=(0,)), *given)
    assert sr.load(model).zero_based_
    found = printed(capsys, "evaluate", model, from_zero("test.txt", without=(0,)))
    blank = rows(2)
    X = blank.X.toarray()
    X[:, 0] = 0.0
    expected = sr.load(model).score(X, blank.y, qid=blank.qid)
    assert found["measures"]["nDCG@10"]["value"] == pytest.approx(expected)
    printed(capsys, "train", files / "train.txt", *given)
    assert not sr.load(model).zero_based_
    assert call("evaluate", model, tmp_path / "train.txt") == 2
    assert "train.txt:1: feature index 0 in a file that counts from 1" in capsys.readouterr().err


def test_people_get_sentences_and_a_table(capsys, files, tmp_path):
    given = ("--set", "C=0.1", "--set", "penalty=l1", "--set", "max_iter=2000")
    assert call("train", files / "train.txt", "--ranker", "ranksvm", "--output", tmp_path / "m", *given) == 0
    assert "ranksvm on 80 rows, 10 queries and 3 features" in capsys.readouterr().out
    assert sr.load(tmp_path / "m").get_params()["penalty"] == "l1"
    assert call("evaluate", tmp_path / "m", files / "test.txt") == 0
    assert "nDCG@10" in capsys.readouterr().out
    vali = ("--vali", files / "vali.txt", "--measure", "AP")
    assert call("train", files / "train.txt", "--ranker", "ranksvm", "--output", tmp_path / "m", *vali) == 0
    assert "chosen by AP" in capsys.readouterr().out


def test_five_folds_are_learned_chosen_and_tested(capsys, files, tmp_path):
    said = printed(capsys, "train", "--folds", files, "--ranker", "ranksvm", "--output", tmp_path / "models")
    assert said["queries"] == 20
    assert len(said["folds"]) == 5
    measure = said["measures"]["nDCG@10"]["value"]
    assert np.mean(said["by_fold"]["nDCG@10"]) == pytest.approx(said["mean_of_folds"]["nDCG@10"])
    again = printed(capsys, "evaluate", tmp_path / "models", "--folds", files, "--measures", "nDCG@10 P@1")
    assert again["measures"]["nDCG@10"]["value"] == measure
    assert call("train", "--folds", files, "--ranker", "rankboost", "--output", tmp_path / "models") == 0
    assert "test parts of 5 folds, 20 queries" in capsys.readouterr().out


def test_progress_is_shown_on_a_terminal(capsys, files, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert call("train", files / "train.txt", "--ranker", "ranksvm", "--output", tmp_path / "m", "--json") == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 80


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("train", "--ranker", "ranksvm", "--output", "m"), "give one, or --folds DIR"),
        (("train", "--output", "m"), "give the DATA to train on"),
        (("train", "pydocs", "--output", "m", "--set", "C=1"), "are for rankers of LETOR files"),
        (("train", "{}/train.txt", "--output", "m"), "use --ranker domination"),
        (("train", "{}/train.txt", "--folds", "{}", "--ranker", "rbf", "--output", "m"), "give no DATA and no --vali"),
        (("train", "{}/train.txt", "--ranker", "ranksvm", "--set", "C", "--output", "m"), "NAME=VALUE; got 'C'"),
        (("train", "{}/train.txt", "--ranker", "ranksvm", "--set", "D=1", "--output", "m"), "no setting 'D'"),
        (("train", "{}/train.txt", "--ranker", "ranksvm", "--set", "C=x", "--output", "m"), "'C' parameter"),
        (("train", "--folds", "nowhere", "--ranker", "rbf", "--output", "m"), "nowhere: no such folder"),
        (("train", "{}/train.txt", "--vali", "{}/wide.txt", "--ranker", "rbf", "--output", "m"), "wide.txt:1: feature"),
        (("evaluate", "MODEL", "{}/wide.txt"), "wide.txt:1: feature index beyond n_features=3"),
        (("train", "{}/huge.txt", "--ranker", "rbf", "--output", "m"), ":2: feature index 90000000000000 needs"),
        (("evaluate", "MODEL"), "give the LETOR file to measure on"),
        (("evaluate", "MODEL", "--folds", "{}"), "MODEL is the folder"),
        (("evaluate", "{}", "{}/test.txt", "--folds", "{}"), "give no DATA"),
        (("evaluate", "MODEL", "{}/test.txt", "--report", "r.md"), "are for text models"),
        (("evaluate", "{}/train.txt"), "give the DATA to measure on"),
        (("evaluate", "{}/train.txt", "{}/test.txt"), "not a model file"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(capsys, files, tmp_path, monkeypatch, words, complaint):
    monkeypatch.chdir(tmp_path)
    if "MODEL" in words:
        sr.RankSVM().fit(rows(0).X, rows(0).y, rows(0).qid).save("MODEL")
    assert call(*(word.replace("{}", str(files)) for word in words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert complaint in err
    assert len(unexpected(err)) == 1
