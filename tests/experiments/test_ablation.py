"""The sweep of C by the objective on training data (Chen et al., 2010, section IV-A), on a small set."""

from __future__ import annotations

import numpy as np
import pytest

from sparserank.experiments.chen_ablation import sweep_rates
from sparserank.experiments.datasets import load_labeled
from sparserank.preferences import Preferences

from .. import oracles


def test_c_is_chosen_by_the_objective_on_training_triples():
    """The same steps, penalty and triples, computed literally on a dense W."""
    sweep, given = sweep_rates("digits", steps=300, seed=0, rates=(1.0, 200.0)), load_labeled("digits")
    preferences = Preferences.from_labels(given.train_classes)
    X, triples = given.train.toarray().astype(np.float64), preferences.draw(5_000, 1)
    for told in sweep["rows"]:
        W = oracles.algorithm_1(
            X, X, preferences.draw(300, 0), np.eye(64), alpha=sweep["lambda"], eta0=told["c"], every=100
        )
        q, better, worse = (X[column] for column in triples)
        hinge = np.maximum(0, 1 - np.einsum("ti,ij,tj->t", q, W, better - worse, optimize=True)).mean()
        assert told["hinge"] == pytest.approx(hinge, rel=1e-3)
        assert told["objective"] == pytest.approx(hinge + sweep["lambda"] * np.abs(W).sum(), rel=1e-3)
    objectives = {told["c"]: told["objective"] for told in sweep["rows"]}
    assert sweep["best_c"] == min(objectives, key=objectives.get)
    assert all(told["map"] is not None for told in sweep["rows"]), "the best C and the paper's are measured"


def test_a_c_that_is_neither_the_best_nor_the_papers_is_not_measured():
    sweep = sweep_rates("digits", steps=300, seed=0, rates=(1.0, 5.0, 200.0, 1e6))
    measured = {told["c"] for told in sweep["rows"] if told["map"] is not None}
    assert measured == {sweep["best_c"], 200.0}
    assert sweep["rows"][3]["objective"] > sweep["rows"][2]["objective"]
