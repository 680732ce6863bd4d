"""`BilinearRanker` on class labels: what it learns, what it keeps, and what it refuses with a sentence."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

import sparserank as sr
from sparserank.data.formats.tensors import read_tensors, write_tensors
from sparserank.errors import ConfigError, DataError
from sparserank.evaluation.labels import bilinear_blocks, evaluate_classes
from sparserank.preferences import classes_of

from ..optim.test_label_ridge import words

X, CODE = words()
PREFS = sr.Preferences.from_labels(CODE)
CLOSED = {"loss": "squared", "solver": "closed-form", "max_pairs": 200, "random_state": 0}
LOW = {"loss": "softmax", "solver": "low-rank", "rank": 5, "density": 0.25, "random_state": 0}


@pytest.mark.parametrize(("settings", "pairs"), [(CLOSED, 200), (LOW, 400)], ids=["closed form", "low rank"])
def test_a_few_pairs_rank_unseen_items_far_better_than_none(settings, pairs):
    ranker = sr.BilinearRanker(**settings).fit(X, X, PREFS, query_words=[f"w{j}" for j in range(40)])
    assert ranker.W_.nnz == pairs
    test, truth = words(seed=9)
    plain, learned = (evaluate_classes(bilinear_blocks(test, W, test), truth).map.value for W in (None, ranker.W_))
    assert learned > plain + 0.05
    assert ranker.n_iter_ == ranker.solution_.info["steps"] > 0
    assert ranker.n_empty_documents_ == 0


@pytest.mark.parametrize("settings", [CLOSED, LOW], ids=["closed form", "low rank"])
def test_a_model_file_brings_back_the_same_w_and_settings(settings, tmp_path):
    names = [f"w{j}" for j in range(40)]
    ranker = sr.BilinearRanker(**settings).fit(X, X, PREFS, query_words=names, document_words=names)
    ranker.save(tmp_path / "w")
    again = sr.load(tmp_path / "w")
    assert (again.W_ != ranker.W_).nnz == 0
    assert again.get_params() == ranker.get_params()
    assert again.solution_.info["message"] == ranker.solution_.info["message"]
    assert again.related("w1") == ranker.related("w1")
    assert_array_equal(again.scores(X[:3], X), ranker.scores(X[:3], X))


def test_a_file_with_an_unknown_loss_loads_but_cannot_be_fitted_again(tmp_path):
    sr.BilinearRanker(**CLOSED).fit(X, X, PREFS).save(tmp_path / "w")
    file = read_tensors(tmp_path / "w")
    params = dict(file.settings["params"]) | {"loss": "cubed"}
    write_tensors(tmp_path / "bad", "bilinear", dict(file.settings) | {"params": params}, file.arrays)
    loaded = sr.load(tmp_path / "bad")
    assert loaded.loss == "cubed"
    with pytest.raises(ConfigError, match="needs loss='squared'; got 'cubed'"):
        loaded.fit(X, X, PREFS)


@pytest.mark.parametrize("settings", [CLOSED, LOW], ids=["closed form", "low rank"])
def test_the_same_seed_gives_the_same_bits_for_any_n_jobs(settings):
    one, three = (sr.BilinearRanker(**settings, n_jobs=n).fit(X, X, PREFS).W_ for n in (1, 3))
    assert_array_equal(one.data, three.data)
    assert_array_equal(one.indices, three.indices)


def test_a_copy_of_the_rows_and_rows_without_a_label_are_taken():
    one = sr.BilinearRanker(**CLOSED).fit(X, X, PREFS).W_
    more = csr_array(np.vstack([X.toarray(), np.zeros((1, 40), np.float32)]))
    other = sr.BilinearRanker(**CLOSED).fit(more, more.copy(), PREFS)
    assert (one != other.W_).nnz == 0
    assert other.n_empty_queries_ == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"loss": "hinge"}, "needs loss='squared'"),
        ({"solver": "low-rank"}, "needs loss='softmax'"),
        ({"solver": "sparse-sgd"}, "needs solver='closed-form'"),
        ({"solver": "newton"}, "must be one of"),
        ({"loss": "cubed", "solver": "sparse-sgd"}, "must be one of"),
        ({"max_pairs": None}, "give density or max_pairs"),
        ({"density": 0.1}, "one of them"),
        ({"max_pairs": 0}, "'max_pairs'"),
        ({"max_pairs": None, "density": 1.5}, "'density'"),
        ({"start": "zero"}, "start is a setting of solver='sparse-sgd'"),
        ({"centre": "identity"}, "centre is a setting"),
        ({"penalty": "none"}, "penalty is a setting"),
        ({"refit": True}, "refit is a setting"),
        ({"max_iter": 10}, "max_iter is a setting"),
        ({"rank": 3}, "rank is a setting of solver='low-rank'"),
        ({"random_state": -1}, "'random_state'"),
        ({"n_jobs": 0}, "'n_jobs'"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_by_name(change, says):
    ranker = sr.BilinearRanker(**CLOSED | change)
    with pytest.raises(ConfigError, match=re.escape(says)):
        ranker.fit(X, X, PREFS)
    assert not hasattr(ranker, "W_")


def test_a_rank_is_refused_by_algorithm_1():
    with pytest.raises(ConfigError, match="rank is a setting of solver='low-rank'"):
        sr.BilinearRanker(rank=4).fit(X, X, PREFS)
    with pytest.raises(ConfigError, match="'rank'"):
        sr.BilinearRanker(**LOW | {"rank": 0}).fit(X, X, PREFS)


def test_going_on_and_checkpoints_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="has no partial_fit"):
        sr.BilinearRanker(**CLOSED).partial_fit(X, X, PREFS)
    with pytest.raises(ConfigError, match="has no checkpoint"):
        sr.BilinearRanker(**LOW).fit(X, X, PREFS, checkpoint=tmp_path / "c")


@pytest.mark.parametrize(
    ("Q", "D", "prefs", "says"),
    [
        (X, X, sr.Preferences.from_triples([0], [1], [2]), "TextRanker"),
        (X, X, sr.Preferences.from_grades([1, 0, 2]), "loss='hinge'"),
        (X, X, CODE, "preferences are wanted"),
        (X, X[:, :30], PREFS, "not square"),
        (X, 2 * X, PREFS, "two sides that differ"),
        (X, X[:150], PREFS, "two sides that differ"),
        (X[:150], X[:150], PREFS, "speak of 200 rows of D; it has 150"),
        (0 * X, 0 * X, PREFS, "nothing to learn from"),
    ],
)
def test_data_that_cannot_be_learned_from_is_refused_with_what_would_work(Q, D, prefs, says):
    with pytest.raises(DataError, match=re.escape(says)):
        sr.BilinearRanker(**CLOSED).fit(Q, D, prefs)


def test_labels_of_one_class_and_too_few_words_are_refused():
    with pytest.raises(DataError, match="at least two classes"):
        sr.Preferences.from_labels([1] * 200)
    with pytest.raises(DataError, match="40 query columns need 40 words"):
        sr.BilinearRanker(**CLOSED).fit(X, X, PREFS, query_words=["a"])


def test_a_path_of_sizes_is_cut_from_one_w_and_refused_a_refit_by_triples():
    path = sr.size_path(sr.BilinearRanker(**CLOSED), X, X, PREFS, [20, 200], held_out=(X, X, PREFS))
    assert [point.pairs for point in path] == [20, 200]
    with pytest.raises(ConfigError, match="means nothing to 'closed-form'"):
        sr.size_path(sr.BilinearRanker(**CLOSED, refit=True), X, X, PREFS, [20], held_out=(X, X, PREFS))


def test_learning_by_triples_goes_on_from_a_w_of_class_labels():
    ranker = sr.BilinearRanker(max_iter=50, random_state=0).fit(X, X, PREFS)
    W = ranker.set_params(**CLOSED, max_iter=100_000).fit(X, X, PREFS).W_
    ranker.set_params(loss="hinge", solver="sparse-sgd", max_pairs=None, max_iter=0).partial_fit(X, X, PREFS)
    assert (ranker.W_ != W).nnz == 0


def test_classes_come_back_from_preferences_as_they_went_in():
    y = np.array(["c", "a", "z", "a", "c", "b", "a"])
    assert_array_equal(np.unique(y)[classes_of(sr.Preferences.from_labels(y))], y)
    assert classes_of(sr.Preferences.from_grades([1, 0], qid=[3, 3])) is None


@pytest.mark.data
@pytest.mark.slow
def test_a_thousandth_of_all_pairs_of_words_goes_past_the_paper_on_20_newsgroups(real):
    real("20newsgroups")
    from sparserank.experiments.datasets import load_labeled

    news = load_labeled("20newsgroups")
    prefs = sr.Preferences.from_labels(news.train_classes)
    ranker = sr.BilinearRanker(**CLOSED | {"max_pairs": 100_000}).fit(news.train, news.train, prefs)
    found = evaluate_classes(bilinear_blocks(news.test, ranker.W_, news.test), news.test_classes)
    assert ranker.W_.nnz == 100_000
    assert found.map.value >= 0.64
    assert found.error.value <= 0.075
