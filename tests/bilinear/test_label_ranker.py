"""LabelRanker: what it learns and stores, its errors, and the names of 0.1."""

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
WORDS = [f"w{j}" for j in range(40)]
RIDGE = {"method": "ridge", "max_pairs": 200, "random_state": 0}
LOW = {"method": "low-rank", "rank": 5, "density": 0.25, "random_state": 0}
OLD = {"loss": "squared", "solver": "closed-form", "max_pairs": 200, "random_state": 0}
OLD_LOW = {"loss": "softmax", "solver": "low-rank", "rank": 5, "density": 0.25, "random_state": 0}


@pytest.mark.parametrize(("settings", "pairs"), [(RIDGE, 200), (LOW, 400)], ids=["ridge", "low rank"])
def test_a_few_pairs_rank_unseen_items_far_better_than_none(settings, pairs):
    ranker = sr.LabelRanker(**settings).fit(X, CODE)
    assert ranker.W_.nnz == pairs
    test, truth = words(seed=9)
    plain, learned = (evaluate_classes(bilinear_blocks(test, W, test), truth).map.value for W in (None, ranker.W_))
    assert learned > plain + 0.05
    assert ranker.n_iter_ == ranker.solution_.info["steps"] > 0
    assert ranker.n_empty_documents_ == 0


@pytest.mark.parametrize("settings", [RIDGE, LOW], ids=["ridge", "low rank"])
def test_a_model_file_brings_back_the_same_w_and_settings(settings, tmp_path):
    ranker = sr.LabelRanker(**settings).fit(X, CODE, words=WORDS)
    ranker.save(tmp_path / "w")
    again = sr.load(tmp_path / "w")
    assert type(again) is sr.LabelRanker
    assert (again.W_ != ranker.W_).nnz == 0
    assert again.get_params() == ranker.get_params()
    assert again.solution_.info["message"] == ranker.solution_.info["message"]
    assert again.related("w1") == ranker.related("w1")
    assert_array_equal(again.scores(X[:3], X), ranker.scores(X[:3], X))


def test_a_file_with_an_unknown_method_loads_but_cannot_be_fitted_again(tmp_path):
    sr.LabelRanker(**RIDGE).fit(X, CODE).save(tmp_path / "w")
    file = read_tensors(tmp_path / "w")
    params = dict(file.settings["params"]) | {"method": "cubed"}
    write_tensors(tmp_path / "bad", "bilinear", dict(file.settings) | {"params": params}, file.arrays)
    loaded = sr.load(tmp_path / "bad")
    assert loaded.method == "cubed"
    with pytest.raises(ConfigError, match="'method' parameter must be one of 'ridge', 'low-rank'"):
        loaded.fit(X, CODE)


@pytest.mark.parametrize("settings", [RIDGE, LOW], ids=["ridge", "low rank"])
def test_the_same_seed_gives_the_same_bits_for_any_n_jobs(settings):
    one, three = (sr.LabelRanker(**settings, n_jobs=n).fit(X, CODE).W_ for n in (1, 3))
    assert_array_equal(one.data, three.data)
    assert_array_equal(one.indices, three.indices)


def old_ranker(**params):
    with pytest.warns(DeprecationWarning, match=r"BilinearRanker\(solver='.*'\) .* use LabelRanker\(method="):
        return sr.BilinearRanker(**params)


@pytest.mark.parametrize(("old", "new"), [(OLD, RIDGE), (OLD_LOW, LOW)], ids=["ridge", "low rank"])
def test_the_solvers_of_0_1_warn_and_learn_the_same_w(old, new, tmp_path):
    ranker = old_ranker(**old).fit(X, X, PREFS, query_words=WORDS, document_words=WORDS)
    assert isinstance(ranker, sr.LabelRanker)
    assert ranker.get_params() == sr.LabelRanker(**new).get_params()
    expected = sr.LabelRanker(**new).fit(X, CODE, words=WORDS)
    assert (ranker.W_ != expected.W_).nnz == 0
    ranker.save(tmp_path / "w")
    again = sr.load(tmp_path / "w")
    assert type(again) is sr.LabelRanker
    assert again.related("w1") == expected.related("w1")


def test_a_file_of_0_1_with_such_a_solver_is_a_label_ranker(tmp_path):
    ranker = sr.LabelRanker(**LOW).fit(X, CODE)
    ranker.save(tmp_path / "w")
    file = read_tensors(tmp_path / "w")
    params = {"solver": "low-rank", "loss": "softmax", "alpha": 1e-5, "rank": 5, "density": 0.25, "random_state": 0}
    settings = {name: value for name, value in file.settings.items() if name != "ranker"} | {"params": params}
    write_tensors(tmp_path / "old", "bilinear", settings, file.arrays)
    old = sr.load(tmp_path / "old")
    assert old.get_params() == ranker.get_params()
    assert_array_equal(old.scores(X[:3], X), ranker.scores(X[:3], X))


def test_a_copy_of_the_rows_and_rows_without_a_label_are_taken():
    one = sr.LabelRanker(**RIDGE).fit(X, CODE).W_
    more = csr_array(np.vstack([X.toarray(), np.zeros((1, 40), np.float32)]))
    other = old_ranker(**OLD).fit(more, more.copy(), PREFS)
    assert (one != other.W_).nnz == 0
    assert other.n_empty_queries_ == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"method": "newton"}, "'method' parameter must be one of"),
        ({"max_pairs": None}, "give either 'density' or 'max_pairs'"),
        ({"density": 0.1}, "give either 'density' or 'max_pairs'"),
        ({"max_pairs": 0}, "'max_pairs'"),
        ({"max_pairs": None, "density": 1.5}, "'density'"),
        ({"rank": 3}, "'rank' parameter needs method='low-rank'"),
        ({"method": "low-rank", "rank": 0}, "'rank'"),
        ({"random_state": -1}, "'random_state'"),
        ({"n_jobs": 0}, "'n_jobs'"),
    ],
)
def test_parameters_out_of_range_raise_an_error_that_names_them(change, says):
    ranker = sr.LabelRanker(**RIDGE | change)
    with pytest.raises(ConfigError, match=re.escape(says)):
        ranker.fit(X, CODE)
    assert not hasattr(ranker, "W_")


@pytest.mark.parametrize(
    ("change", "says"),
    [({"loss": "hinge"}, "needs loss='squared'"), ({"max_iter": 10}, "'max_iter' parameter is not one of LabelRanker")],
)
def test_parameters_of_0_1_that_such_a_solver_does_not_have_raise_an_error(change, says):
    with pytest.warns(DeprecationWarning), pytest.raises(ConfigError, match=re.escape(says)):
        sr.BilinearRanker(**OLD | change)


def test_algorithm_1_has_neither_a_rank_nor_another_loss_nor_another_solver():
    with pytest.raises(ConfigError, match=r"'rank' is a parameter of LabelRanker\(method='low-rank'\)"):
        sr.BilinearRanker(rank=4)
    with pytest.raises(ConfigError, match="Got 'squared' instead, which LabelRanker uses"):
        sr.BilinearRanker(loss="squared").fit(X, X, PREFS)
    with pytest.raises(ConfigError, match="'solver' parameter must be one of"):
        sr.BilinearRanker(solver="newton")
    with pytest.warns(DeprecationWarning, match="The 'solver' parameter of BilinearRanker"):
        sr.BilinearRanker(solver="sparse-sgd")


def test_there_is_no_partial_fit_and_no_checkpoint(tmp_path):
    assert not hasattr(sr.LabelRanker(), "partial_fit")
    with pytest.raises(ConfigError, match="has no checkpoint"):
        old_ranker(**OLD).fit(X, X, PREFS, checkpoint=tmp_path / "c")


@pytest.mark.parametrize(
    ("Q", "D", "prefs", "says"),
    [
        (X, X, sr.Preferences.from_triples([0], [1], [2]), "TextRanker"),
        (X, X, sr.Preferences.from_grades([1, 0, 2]), "use BilinearRanker"),
        (X, X, CODE, "preferences must be"),
        (X, X[:, :30], PREFS, "40 and 30 columns"),
        (X, 2 * X, PREFS, "two different sides"),
        (X, X[:150], PREFS, "two different sides"),
        (X[:150], X[:150], PREFS, "refer to 200 rows of D; it has 150"),
        (0 * X, 0 * X, PREFS, "nothing to learn from"),
    ],
)
def test_data_that_cannot_be_learned_from_is_rejected_with_what_would_work(Q, D, prefs, says):
    with pytest.raises(DataError, match=re.escape(says)):
        old_ranker(**OLD).fit(Q, D, prefs)


def test_labels_of_one_class_and_too_few_words_raise():
    with pytest.raises(DataError, match="at least two classes"):
        sr.Preferences.from_labels([1] * 200)
    with pytest.raises(DataError, match="at least two classes"):
        sr.LabelRanker(**RIDGE).fit(X, [1] * 200)
    with pytest.raises(DataError, match="40 query columns need 40 words"):
        sr.LabelRanker(**RIDGE).fit(X, CODE, words=["a"])


def test_a_path_of_sizes_is_pruned_from_one_w():
    path = sr.size_path(sr.LabelRanker(**RIDGE), X, X, PREFS, [20, 200], held_out=(X, X, PREFS))
    assert [point.pairs for point in path] == [20, 200]
    with pytest.raises(ConfigError, match="W is learned with 200 pairs, so it cannot be pruned to 300"):
        sr.size_path(sr.LabelRanker(**RIDGE), X, X, PREFS, [300], held_out=(X, X, PREFS))


def test_learning_by_triples_starts_from_a_w_of_class_labels():
    W = sr.LabelRanker(**RIDGE).fit(X, CODE).W_
    assert (sr.BilinearRanker(init=W, max_iter=0).fit(X, X, PREFS).W_ != W).nnz == 0


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
    ranker = sr.LabelRanker(**RIDGE | {"max_pairs": 100_000}).fit(news.train, news.train_classes)
    found = evaluate_classes(bilinear_blocks(news.test, ranker.W_, news.test), news.test_classes)
    assert ranker.W_.nnz == 100_000
    assert found.map.value >= 0.64
    assert found.error.value <= 0.075


@pytest.mark.parametrize("labels", [len(CODE) - 1, len(CODE) + 1])
def test_rows_and_labels_of_different_numbers_raise_with_both(labels):
    with pytest.raises(DataError, match=f"X has {len(CODE)} rows, and y has {labels} labels; give each row one label"):
        sr.LabelRanker(**RIDGE).fit(X, np.resize(CODE, labels))


def test_a_number_that_is_not_finite_is_one_of_x():
    with pytest.raises(DataError, match=r"^X: row 0 holds a number that is not finite"):
        sr.LabelRanker(max_pairs=2).fit([[np.nan, 1.0], [1.0, 0.0]], [0, 1])
