"""The settings that were tuned are those that the tuning script chose, and it reads no test item."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import tune_word_pairs as tuning

from sparserank.bilinear import config as settings
from sparserank.experiments.chen_methods import PLUS_SETTINGS
from sparserank.experiments.datasets import PAPER_DATASETS, load_labeled

FOUND = json.loads((Path(tuning.__file__).with_suffix(".json")).read_text())


def test_the_constants_are_what_the_script_chose():
    assert FOUND["chosen"]["plus"] == PLUS_SETTINGS._asdict()
    assert (FOUND["chosen"]["full_enough"], FOUND["chosen"]["most_slack"]) == (
        settings.WORKING_DENSITY,
        settings.MAX_SLACK,
    )
    assert (FOUND["steps"], FOUND["seed"]) == (tuning.STEPS, tuning.SEED)


def test_the_script_chose_the_best_mean_over_all_sets():
    rules = FOUND["tables"]["slack"]
    assert rules.keys() == {tuning.rule_name(rule) for rule in tuning.RULES}
    assert tuning.chosen(rules) == tuning.rule_name((settings.WORKING_DENSITY, settings.MAX_SLACK))
    for title, rows in FOUND["tables"].items():
        if title != "slack":
            assert all(row.keys() == set(PAPER_DATASETS) for row in rows.values()), title
    last = FOUND["tables"]["Sparse-R+: refit_scale"]
    assert float(tuning.chosen(last)) == PLUS_SETTINGS.refit_scale


def test_the_default_slack_follows_the_rule():
    shape = (1_000, 1_000)
    for density in (0.5, 0.2, 0.095, 0.0095, 0.001):
        rule = (settings.WORKING_DENSITY, settings.MAX_SLACK)
        held = settings.slack_factor(None, round(density * 1_000_000), shape) * density
        assert held == pytest.approx(tuning.held_density(rule, density))
    assert settings.slack_factor(3, 10, shape) == 3


def test_held_out_items_are_training_items_that_nothing_is_learned_from():
    given, held = load_labeled("digits"), tuning.held_out("digits", items=300)
    assert held.test.shape[0] == 300
    assert held.train.shape[0] == given.train.shape[0] - 300
    together = np.vstack([held.train.toarray(), held.test.toarray()])
    assert sorted(map(bytes, together)) == sorted(map(bytes, given.train.toarray()))
    assert sorted([*held.train_classes, *held.test_classes]) == sorted(given.train_classes)


def test_groups_are_held_out_whole():
    groups = np.random.default_rng(0).integers(0, 40, 400)
    out = tuning.hold_out(groups, 100)
    assert 100 <= out.sum() < 130
    assert not set(groups[out]) & set(groups[~out])


def test_posts_of_one_subject_are_one_thread():
    posts = [
        "Subject: Brakes\n\na",
        "From: b\nSubject: RE: re: brakes \n\nb",
        "Subject: Bikes\n\nc",
        "no subject",
        "none",
    ]
    threads = [tuning.thread(post) for post in posts]
    assert threads[0] == threads[1] == "brakes"
    assert len(set(threads)) == 4
