"""What every ranker of graded rows keeps, each on data whose answer is known; a new one is one more line of RANKERS."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
import sklearn
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils.estimator_checks import check_estimator

import sparserank as sr
from sparserank.data.formats.tensors import pack_strings, read_tensors, write_tensors
from sparserank.errors import DataError, ModelError, NotFitted
from sparserank.letor.base import LetorRanker, measure_by_query

RANKERS = {
    "Domination": lambda: sr.DominationRanker(alpha=0.1, tol=1e-6),
    "Domination l2": lambda: sr.DominationRanker(penalty="l2", alpha=0.1, tol=1e-6),
    "Domination path": lambda: sr.DominationRanker(max_features=2, tol=1e-6),
    "PAMIR": lambda: sr.PAMIR(max_iter=2000, random_state=0),
    "PAMIR averaged": lambda: sr.PAMIR(max_iter=2000, average=True, random_state=0),
    "RankSVM": lambda: sr.RankSVM(C=0.1),
    "RankSVM l1": lambda: sr.RankSVM(C=0.1, penalty="l1"),
    "RankSVM hinge": lambda: sr.RankSVM(C=0.01, loss="hinge", tol=1e-2),
    "AdaRank AP": lambda: sr.AdaRank("AP", max_iter=5),
    "AdaRank nDCG": lambda: sr.AdaRank("nDCG", max_iter=5),
    "RankBoost": lambda: sr.RankBoost(max_iter=20),
    "RBF": lambda: sr.RBFRegressionRanker(n_basis=20, random_state=0),
    "RBF sgd": lambda: sr.RBFRegressionRanker(n_basis=20, solver="sgd", rate=0.05, random_state=0),
}
POINTWISE = {"RBF", "RBF sgd"}
DRAWING = {"PAMIR", "PAMIR averaged", "RBF", "RBF sgd"}
"""The order of rows decides what a seed draws."""

each = pytest.mark.parametrize("name", list(RANKERS))


def world(seed=0, queries=12, rows=10):
    """Grades rise with the first feature; three more are noise, one is constant, about half of the numbers are 0."""
    random = np.random.default_rng(seed)
    X = random.random((queries * rows, 5)) * (random.random((queries * rows, 5)) < 0.6)
    X[:, 0] = random.random(len(X))
    X[:, 4] = 1.0
    y = np.floor(X[:, 0] * 3 + random.normal(size=len(X)) * 0.2).clip(0, 2)
    X = X.astype(np.float32).astype(np.float64)  # the same numbers in 32 bits
    return X, y, np.repeat(np.arange(queries), rows)


@each
def test_it_learns_what_decides_the_grade(name):
    X, y, qid = world()
    ranker = RANKERS[name]().fit(X, y, qid)
    X, y, qid = world(seed=1)
    assert ranker.score(X, y, qid) > 0.93
    assert measure_by_query(y, np.zeros(len(y)), qid=qid) < 0.85


@each
@pytest.mark.parametrize(
    "form", ["csr_array", "csc_array", "csr_matrix", "csc_matrix", "float32", "fortran", "rows twice"]
)
def test_every_form_of_a_matrix_teaches_the_same(name, form):
    X, y, qid = world()
    plain = RANKERS[name]().fit(X, y, qid).predict(X)
    if form == "float32":
        given = X.astype(np.float32)
    elif form == "fortran":
        given = np.asfortranarray(X)
    elif form == "rows twice":  # every number as the sum of two entries in one place
        half = sparse.coo_array(X / 2)
        given = sparse.csr_array((len(X), 5))
        order = np.argsort(np.concatenate([half.row, half.row]), kind="stable")
        given = sparse.csr_array(
            (
                np.concatenate([half.data, half.data])[order],
                np.concatenate([half.col, half.col])[order],
                np.concatenate([[0], np.cumsum(2 * np.bincount(half.row, minlength=len(X)))]),
            ),
            shape=X.shape,
        )
    else:
        given = getattr(sparse, form)(X)
    ranker = RANKERS[name]().fit(given, y, qid)
    assert_allclose(ranker.predict(given), plain, rtol=1e-3, atol=2e-3)
    assert ranker.predict(given).dtype == np.float64


@each
def test_qids_of_any_kind_and_any_order_of_rows_teach_the_same(name):
    X, y, qid = world()
    plain = RANKERS[name]().fit(X, y, qid).predict(X)
    # names that sort as the numbers do, and numbers no 32 bits hold
    for other in (np.array([f"query {q:03}" for q in qid]), qid.astype(np.uint64) + np.uint64(2**60), list(qid * 1.5)):
        assert_allclose(RANKERS[name]().fit(X, y, other).predict(X), plain)
    if name not in DRAWING:
        shuffled = np.random.default_rng(0).permutation(len(X))
        assert_allclose(RANKERS[name]().fit(X[shuffled], y[shuffled], qid[shuffled]).predict(X), plain, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in RANKERS if name not in POINTWISE and "AdaRank" not in name])
def test_only_the_order_of_grades_within_a_query_counts_and_floats_are_grades(name):
    X, y, qid = world()
    assert_allclose(RANKERS[name]().fit(X, y / 7 - 3, qid).predict(X), RANKERS[name]().fit(X, y, qid).predict(X))


@each
def test_queries_that_prefer_nothing_are_counted_and_change_nothing(name):
    X, y, qid = world()
    more = np.vstack([X, X[:3]])
    ranker = RANKERS[name]().fit(more, np.append(y, [1, 1, 0]), np.append(qid, [98, 98, 99]))
    assert ranker.skipped_queries_ == 2
    if name not in DRAWING:
        assert_allclose(ranker.predict(X), RANKERS[name]().fit(X, y, qid).predict(X), atol=1e-6)


@each
def test_without_qid_all_rows_are_one_query(name):
    X, y, _ = world(rows=6)
    assert_allclose(RANKERS[name]().fit(X, y).predict(X), RANKERS[name]().fit(X, y, np.zeros(len(y))).predict(X))


@each
def test_weights_of_one_are_no_weights_and_others_count(name):
    X, y, qid = world()
    plain = RANKERS[name]().fit(X, y, qid).predict(X)
    assert_allclose(RANKERS[name]().fit(X, y, qid, sample_weight=np.ones(len(y))).predict(X), plain, atol=1e-9)
    weight = np.where(qid < 3, 1.0, 0.0)
    some = RANKERS[name]().fit(X, y, qid, sample_weight=weight)
    # where no winner of a query counts, the query does not
    if name not in DRAWING:
        few = RANKERS[name]().fit(X[qid < 3], y[qid < 3], qid[qid < 3])
        assert_allclose(some.predict(X[qid < 3]), few.predict(X[qid < 3]), atol=1e-4)
    assert not np.allclose(some.predict(X), plain)


@each
def test_all_equal_grades_are_an_error_where_grades_are_compared(name):
    X, _, qid = world()
    if name in POINTWISE:
        ranker = RANKERS[name]().fit(X, np.ones(len(X)), qid)
        phi = np.concatenate([block for _, block in ranker.basis_.blocks(X)])
        # the least of Σ (1 - w·φ)² + λ‖w‖²; in SGD every row pays λ, and the last steps leave some noise
        rows, noise = (len(X), 0.02) if name == "RBF sgd" else (1, 1e-9)
        inverse = np.linalg.inv(ranker.alpha * rows * np.eye(phi.shape[1]) + phi.T @ phi)
        assert_allclose(ranker.predict(X), phi @ inverse @ phi.sum(axis=0), atol=noise)
        return
    with pytest.raises(DataError, match="no query has rows of two different grades"):
        RANKERS[name]().fit(X, np.ones(len(X)), qid)


@each
def test_features_that_are_all_constant_give_equal_scores(name):
    _, y, qid = world()
    scores = RANKERS[name]().fit(np.ones((len(y), 2)), y, qid).predict(np.ones((4, 2)))
    assert np.ptp(scores) == 0
    assert np.isfinite(scores).all()


@each
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_of_1e30_give_finite_scores_or_a_clear_error(name, dtype):
    X, y, qid = world()
    X[:, 1] *= 1e30
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        scores = RANKERS[name]().fit(X.astype(dtype), y, qid).predict(X.astype(dtype))
    assert np.isfinite(scores).all()


@each
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e101])
def test_numbers_that_are_none_are_rejected_by_their_place(name, bad):
    X, y, qid = world()
    ranker = RANKERS[name]().fit(X, y, qid)
    X[7, 2] = bad
    for given in (X, sparse.csr_array(X), sparse.csc_array(X)):
        for act in (lambda given=given: RANKERS[name]().fit(given, y, qid), lambda given=given: ranker.predict(given)):
            with pytest.raises(DataError, match=r"X\[7, 2\] is "):
                act()
    y[3] = np.nan
    with pytest.raises(DataError, match=r"y\[3\] is nan"):
        RANKERS[name]().fit(world()[0], y, qid)


@each
def test_a_matrix_with_other_columns_than_were_learned_raises(name):
    X, y, qid = world()
    ranker = RANKERS[name]().fit(X, y, qid)
    for width in (4, 6):
        with pytest.raises(DataError, match=f"X has {width} features, but .* is expecting 5 features"):
            ranker.predict(np.ones((2, width)))


@each
def test_before_fit_it_says_so(name):
    for act in (lambda: RANKERS[name]().predict([[1.0]]), lambda: RANKERS[name]().save("nowhere")):
        with pytest.raises(NotFitted, match="call fit first"):
            act()


@each
def test_a_saved_ranker_comes_back_the_same(name, tmp_path):
    X, y, qid = world()
    ranker = RANKERS[name]().fit(sparse.csr_array(X), y, qid)
    ranker.save(tmp_path / "model.safetensors")
    again = sr.load(tmp_path / "model.safetensors")
    assert type(again) is type(ranker)
    assert again.get_params() == ranker.get_params()
    assert again.predict(X).tolist() == ranker.predict(X).tolist()
    assert again.skipped_queries_ == 0
    again.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == (tmp_path / "model.safetensors").read_bytes()


def test_names_of_features_are_kept(tmp_path):
    X, y, qid = world()
    frame = pl.DataFrame({name: X[:, k] for k, name in enumerate(["bm25", "idf", "tf", "länge", "eins"])})
    sr.RankSVM().fit(frame, y, qid).save(tmp_path / "m")
    again = sr.load(tmp_path / "m")
    assert again.feature_names_in_.tolist() == frame.columns
    file = read_tensors(tmp_path / "m")
    few = dict(file.arrays) | pack_strings("feature_names", ["bm25"])
    write_tensors(tmp_path / "m", file.kind, file.settings, few)
    with pytest.raises(ModelError, match="1 feature names for 5 features"):
        sr.load(tmp_path / "m")


@each
def test_a_damaged_model_file_raises(name, tmp_path):
    X, y, qid = world()
    path = tmp_path / "model.safetensors"
    RANKERS[name]().fit(X, y, qid).save(path)
    file = read_tensors(path)
    damages = [
        *([({"features": 3}, {})] if "coef" in file.arrays and "centres" not in file.arrays else []),
        ({"features": 0}, {}),
        ({"ranker": "Oracle"}, {}),
        ({"params": {"nonsense": 1}}, {}),
        *(({}, {array: file.arrays[array][:-1]}) for array in file.arrays if len(file.arrays[array])),
        *(({}, {array: None}) for array in file.arrays),
    ]
    for settings, arrays in damages:
        kept = {k: v for k, v in (dict(file.arrays) | arrays).items() if v is not None}
        write_tensors(path, file.kind, dict(file.settings) | settings, kept)
        with pytest.raises(ModelError, match=r"model\.safetensors"):
            sr.load(path)


@each
def test_scikit_learn_takes_it_for_one_of_its_own(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(RANKERS[name](), on_fail=None)
    assert {result["check_name"]: result["exception"] for result in results if result["status"] == "failed"} == {}


@each
def test_qids_go_through_pipelines_and_searches_by_metadata_routing(name):
    X, y, qid = world()
    names = np.array([f"q{q}" for q in qid])
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = RANKERS[name]().set_fit_request(qid=True).set_score_request(qid=True)
        steps = make_pipeline(MaxAbsScaler(), ranker)
        steps.fit(X, y, qid=names)
        assert steps.score(X, y, qid=names) > 0.9
        scorer = sr.ranking_scorer("AP").set_score_request(qid=True)
        for scoring in (None, scorer):
            search = GridSearchCV(steps, {}, cv=GroupKFold(3), scoring=scoring, error_score="raise")
            search.fit(sparse.csr_array(X), y, qid=names, groups=names)
            assert search.best_score_ > 0.85


def test_cross_validation_without_query_ids_warns():
    X, y, qid = np.random.default_rng(0).random((40, 3)), np.tile([0, 1], 20), np.repeat(np.arange(8), 5)
    for scoring in (None, sr.ranking_scorer("AP")):
        with pytest.warns(UserWarning, match="no query ids, so all rows count as one query; give qid"):
            cross_val_score(sr.RankSVM(), X, y, cv=GroupKFold(2), groups=qid, scoring=scoring)
    assert 0.0 < sr.RankSVM().fit(X, y, qid).score(X, y, qid) <= 1.0


class Echo(LetorRanker):
    """Scores a row by its first feature."""

    def _train(self, X, queries):
        pass

    def _scores(self, X):
        return X[:, 0]

    def _arrays(self):
        return {}

    def _restore_arrays(self, file):
        pass


def test_a_scorer_is_the_measure_and_the_negative_of_an_error():
    X, y, qid = np.array([[2.0], [1.0], [1.0], [2.0]]), [1, 0, 1, 0], ["a", "a", "b", "b"]
    ranker = Echo().fit(X, y, qid)
    with sklearn.config_context(enable_metadata_routing=True):
        for measure, wanted in (("AP", 0.75), ("PairError", -0.5), ("P@1", 0.5), ("RR", 0.75)):
            scorer = sr.ranking_scorer(measure).set_score_request(qid=True, sample_weight=True)
            assert scorer(ranker, X, y, qid=qid) == wanted
        assert scorer(ranker, X, y, qid=qid, sample_weight=[3, 1, 0, 0]) == 1.0
        assert scorer(ranker, X, y, qid=qid, sample_weight=[1, 1, 1, 2]) == pytest.approx((1.0 + 1.5 * 0.5) / 2.5)


def test_what_fit_does_not_know_raises():
    with pytest.raises(TypeError, match="unexpected keyword argument 'weight'"):
        Echo().fit([[1.0], [2.0]], [0, 1], weight=[1, 1])


@pytest.mark.parametrize(
    ("y", "match"),
    [
        (None, "requires y to be passed"),
        ([1, 0, 1], "a grade for each of the 2 rows"),
        ([[1], [0]], "y should be a 1d array"),
        (["good", "bad"], "grades must be numbers"),
        ([1j, 0], "Complex data not supported"),
    ],
)
def test_grades_that_are_none_raise(y, match):
    with pytest.raises(DataError, match=match):
        Echo().fit([[1.0], [2.0]], y)


def test_an_int_matrix_and_a_list_are_matrices_too():
    assert Echo().fit([[1], [2]], [0, 1]).predict(np.array([[3], [4]], dtype=np.int8)).tolist() == [3.0, 4.0]


def test_one_hundred_million_numbers_need_no_copy(monkeypatch):
    # a matrix that refuses to be copied or written out
    X = sparse.random_array((50, 8), density=0.5, format="csr", random_state=0)
    for method in ("copy", "toarray", "todense", "astype"):
        monkeypatch.setattr(type(X), method, lambda self, *a, **k: pytest.fail("copied"))
    assert Echo()._rows(X, reset=True).data is X.data
