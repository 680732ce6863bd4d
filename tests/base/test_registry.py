"""A ranker is one file and one line of the registry."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

import sparserank as sr
from sparserank.base import registry
from sparserank.data.formats.tensors import read_tensors, write_tensors
from sparserank.data.records import Letor
from sparserank.errors import ConfigError, ModelError
from sparserank.letor.model_selection import tune

TOY = """
from sparserank.letor.base import LinearRanker


class MeanRanker(LinearRanker):
    def __init__(self, scale=1.0):
        self.scale = scale

    def _train(self, X, queries):
        grade = queries.by_row(queries.grade)
        self.coef_ = self.scale * (grade @ X) / len(grade)
"""
LINE = "from sparserank.base.registry import RANKERS; RANKERS['letor']['mean'] = 'toy:MeanRanker'; "
ROWS = "1 qid:1 1:0.9 2:0.1\n0 qid:1 1:0.2 2:0.3\n1 qid:2 1:0.8 2:0.5\n0 qid:2 1:0.1 2:0.4\n"


def test_a_toy_ranker_is_trained_saved_loaded_and_evaluated_from_the_command_line(tmp_path):
    (tmp_path / "toy.py").write_text(TOY)
    (tmp_path / "rows.txt").write_text(ROWS)

    def sparserank(*arguments):
        code = f"{LINE}import sys; sys.path.insert(0, {str(tmp_path)!r}); from sparserank.cli import main; main()"
        command = [sys.executable, "-c", code, *arguments, "--json"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    trained = sparserank("train", "rows.txt", "--ranker", "mean", "--set", "scale=2.0", "--output", "m.safetensors")
    assert trained["ranker"] == "mean"
    assert trained["settings"] == {"scale": 2.0}
    found = sparserank("evaluate", "m.safetensors", "rows.txt", "--measures", "AP")
    assert found["measures"]["AP"]["value"] == 1.0
    code = f"{LINE}import sparserank as sr; print(sr.load('m.safetensors'))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert shown.stdout == "MeanRanker(scale=2.0)\n", shown.stderr


def test_every_line_of_the_registry_names_a_ranker():
    for data, rankers in registry.RANKERS.items():
        for name, target in rankers.items():
            assert registry.registered_name(registry.ranker_class(data, name)) == target.partition(":")[2]
    with pytest.raises(ConfigError, match="There is no ranker 'magic' for letor; there are: domination"):
        registry.ranker_class("letor", "magic")


GRADED = Letor(
    csr_array([[0.9, 0.1], [0.2, 0.3], [0.8, 0.5], [0.1, 0.4]]), np.array([1.0, 0.0, 1.0, 0.0]), np.array([1, 1, 2, 2])
)
DOCS = {"d1": "red apples are sweet", "d2": "a green pear", "d3": "sweet red cherries"}
NAMES = [(data, name) for data, rankers in registry.RANKERS.items() for name in rankers]


def train_registered(data, name):
    """A ranker of that name, and the scores of its training rows as a function of a ranker."""
    if data == "letor":
        return tune(name, GRADED, candidates=[]).ranker, lambda ranker: ranker.predict(GRADED.X)
    if data == "texts":
        queries, qrels = {"q1": "apples", "q2": "pear"}, {"q1": {"d1": 1}, "q2": {"d2": 1}}
        return sr.TextRanker(name).fit(DOCS, queries, qrels), lambda ranker: ranker.scores(["sweet apples", "pear"])
    X, y = np.eye(4, dtype=np.float32) + 0.1, [0, 0, 1, 1]
    ranker = registry.ranker_class(data, name)(max_pairs=4, random_state=0)
    ranker = ranker.fit(X, y) if name == "label" else ranker.fit(X, X, sr.Preferences.from_labels(y))
    return ranker, lambda ranker: ranker.scores(X, X)


@pytest.mark.parametrize(("data", "name"), NAMES)
def test_every_registered_ranker_is_trained_saved_and_loaded_with_the_same_scores(data, name, tmp_path):
    ranker, score = train_registered(data, name)
    assert isinstance(ranker, registry.ranker_class(data, name))
    ranker.save(tmp_path / "m.safetensors")
    again = sr.load(tmp_path / "m.safetensors")
    assert again.get_params(deep=False).keys() == ranker.get_params(deep=False).keys()
    found = np.asarray(score(again))
    assert np.isfinite(found).all()
    assert_array_equal(found, np.asarray(score(ranker)))


def test_a_file_of_another_ranker_raises_an_error_that_names_the_file(tmp_path):
    sr.RankSVM().fit([[1.0], [0.0]], [1, 0]).save(tmp_path / "m")
    file = read_tensors(tmp_path / "m")
    write_tensors(tmp_path / "bad", file.kind, dict(file.settings) | {"ranker": "Magic"}, file.arrays)
    with pytest.raises(ModelError, match="bad: holds 'Magic', which is not a ranker of this version"):
        sr.load(tmp_path / "bad")
    with pytest.raises(ConfigError, match="a RankSVM has no search index"):
        sr.load(tmp_path / "m", index=tmp_path / "i")


@pytest.mark.parametrize("path", [None, 5])
def test_a_path_that_is_none_raises_config_error(path):
    with pytest.raises(ConfigError, match=f"'path' parameter must be the path of a model file. Got {path} instead"):
        sr.load(path)
