"""One contract for all rankers: a file holds every parameter, and a second fit forgets the first one."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from inspect import signature

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse

import sparserank as sr
from sparserank.data.formats.tensors import read_tensors, write_tensors
from sparserank.errors import ConfigError, ModelError
from sparserank.optim.losses import Domination, Hinge
from sparserank.optim.penalties import L1, L2, ElasticNet, GroupL1, NoPenalty

from ..text_ranker.test_learning import world

RNG = np.random.default_rng(5)
ROWS = RNG.random((40, 6))
GRADES = RNG.integers(0, 3, 40)
QIDS = np.repeat(np.arange(8), 5)
TOPICS = (RNG.random((40, 3)) < 0.4).astype(float)
LABELS = np.arange(40) % 3
PREFS = sr.Preferences.from_labels(LABELS)
BY_QUERY = {
    sr.AdaRank: {"max_iter": 3},
    sr.DominationRanker: {"alpha": 0.1},
    sr.PAMIR: {"max_iter": 50, "random_state": 0},
    sr.RBFRegressionRanker: {"n_basis": 4, "random_state": 0},
    sr.RankBoost: {"max_iter": 3},
    sr.RankSVM: {"C": 0.1},
}
BILINEAR = {"eta0": 1.0, "max_iter": 60, "random_state": 0, "curve_points": 2}
VALUES = [
    None, True, 7, 0.25, -1.5e-300, "téxt", np.float32(0.1), np.int64(3), (1, "a", (2.5, None)), [1.5, [2]],
    {"the", "a"}, frozenset({("car", "boat")}), {0.0: 0.1, 2.0: 3.5}, {"high": (1, 2)},
    np.arange(6.0).reshape(2, 3), np.arange(3), np.array([True, False]), np.array(["a", "b"]), csr_array(np.eye(3)),
    Hinge(0.5), Domination("base", 0.5), NoPenalty(), L1(0.1), L2(0.2), ElasticNet(0.1, 0.2),
    GroupL1(0.1, "columns", ["a", "b", "a"]), sr.Constraints({("car", "boat"): 0.5}, {("car", "red")}, {"green"}),
    sr.BM25(1.2), sr.Cosine(2.0), sr.Analyzer("english", ngrams=2), sr.Analyzer(stop_words=("of",)),
]  # fmt: skip
"""Every kind of value that some ranker takes."""


def fitted(kind):
    """A ranker of the kind, fitted in a moment."""
    if kind is sr.TextRanker:
        return sr.TextRanker(loss="squared").fit(world()[0])
    if kind is sr.LabelRanker:
        return sr.LabelRanker(max_pairs=9, random_state=0).fit(ROWS, LABELS)
    if kind is sr.BilinearRanker:
        return sr.BilinearRanker(**BILINEAR).fit(ROWS, ROWS, PREFS)
    return kind(**BY_QUERY[kind]).fit(ROWS, GRADES, QIDS)


def same(one, other):
    """Equality that looks into arrays, and does not take 1 for True."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and one.dtype == other.dtype and np.array_equal(one, other)
    if issparse(one):
        return issparse(other) and one.shape == other.shape and (one != other).nnz == 0
    if is_dataclass(one):
        return type(one) is type(other) and all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    return one == other and (isinstance(one, np.generic) or type(one) is type(other))


KINDS = [*BY_QUERY, sr.BilinearRanker, sr.LabelRanker, sr.TextRanker]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_parameter_of_every_ranker_comes_back_from_a_file_as_it_was_given(kind, tmp_path):
    ranker, path = fitted(kind), tmp_path / "m"
    names = list(signature(kind).parameters)
    for shift in range(len(VALUES)):  # in turn, every parameter has every value
        params = {name: VALUES[(shift + i) % len(VALUES)] for i, name in enumerate(names)}
        ranker.set_params(**params).save(path)
        found = sr.load(path).get_params(deep=False)
        assert found.keys() == params.keys()
        for name, given in params.items():
            assert same(given, found[name]), f"{name}: {given!r} was read as {found[name]!r}"


def test_a_ranker_that_is_loaded_has_the_parameters_of_the_one_that_was_saved(tmp_path):
    params = {"max_pairs": 40, "loss": "squared", "nonnegative": True, "random_state": 3, "n_jobs": 1}
    params |= {"lexical": sr.BM25(k1=1.2), "analyzer": sr.Analyzer("english", ngrams=2)}
    for ranker in (
        sr.TextRanker(**params).fit(*world()),
        sr.TextRanker(**params).fit(world()[0]),  # without pairs
        sr.TextRanker("cosine", analyzer=sr.Analyzer(stop_words=["of"])).fit(world()[0]),
    ):
        ranker.save(tmp_path / "m")
        assert sr.load(tmp_path / "m").get_params() == ranker.get_params()


def test_more_judgments_after_loading_keep_to_the_size_and_the_sign(tmp_path):
    docs, queries, qrels = world()
    first = {q: of for q, of in qrels.items() if not q.startswith("ship")}
    ranker = sr.TextRanker(max_pairs=20, nonnegative=True, loss="squared", n_jobs=1).fit(docs, queries, first)
    assert ranker.model_.n_pairs > 0
    ranker.save(tmp_path / "m")
    more = {q: of | {"bicycle-red": -1} for q, of in qrels.items() if q.startswith("ship")}
    loaded = sr.load(tmp_path / "m").partial_fit(None, queries, more)
    assert loaded.model_.n_pairs <= 20
    assert (loaded.model_.W.data >= 0).all()
    assert (loaded.model_.W != ranker.partial_fit(None, queries, more).model_.W).nnz == 0


def test_a_parameter_that_no_file_can_hold_is_named_when_it_is_saved(tmp_path):
    ranker = fitted(sr.RankSVM).set_params(loss=len)
    with pytest.raises(ConfigError, match="the parameter 'loss' is a builtin_function_or_method"):
        ranker.save(tmp_path / "m")


@pytest.mark.parametrize(
    "damage", [{"type": "Popen", "fields": {}}, {"type": "L1"}, {"type": "array", "array": "gone"}, {"type": ["x"]}]
)
@pytest.mark.parametrize("kind", [sr.RankSVM, sr.BilinearRanker, sr.TextRanker])
def test_damaged_parameters_raise_an_error_that_names_the_file(kind, damage, tmp_path):
    fitted(kind).save(tmp_path / "m")
    file = read_tensors(tmp_path / "m")
    params = dict(file.settings["params"]) | {"loss": damage}
    write_tensors(tmp_path / "bad", file.kind, dict(file.settings) | {"params": params}, file.arrays)
    with pytest.raises(ModelError, match="bad"):
        sr.load(tmp_path / "bad")


# ---- files of 0.1


def test_a_text_model_of_0_1_loads_with_defaults_for_what_it_does_not_say(tmp_path):
    ranker = sr.TextRanker(max_pairs=50, lexical=sr.BM25(k1=1.4), loss="squared").fit(*world()).pin("car", "sail", 1.0)
    ranker.save(tmp_path / "m")
    file = read_tensors(tmp_path / "m")
    settings = {name: value for name, value in file.settings.items() if name != "params"}
    write_tensors(tmp_path / "old", "text", settings, file.arrays)
    old = sr.load(tmp_path / "old")
    assert (old.ranker, old.lexical, old.max_pairs, old.loss) == ("text", sr.BM25(k1=1.4), None, "domination")
    assert old.constraints == sr.Constraints({("car", "sail"): 1.0})
    assert (old.model_.W != ranker.model_.W).nnz == 0


def test_a_bilinear_model_of_0_1_loads_with_its_loss_and_penalty(tmp_path):
    ranker = sr.BilinearRanker(**BILINEAR).fit(ROWS, ROWS, PREFS)
    ranker.save(tmp_path / "m")
    file = read_tensors(tmp_path / "m")
    old = {"loss": {"margin": 2.0}, "penalty": {"kind": "GroupL1", "alpha": 0.1, "over": "rows"}, "eta0": 3.0}
    groups = {"groups": np.array([0, 1, 0, 1, 0, 1])}
    write_tensors(tmp_path / "old", "bilinear", dict(file.settings) | {"params": old}, dict(file.arrays) | groups)
    loaded = sr.load(tmp_path / "old")
    assert (loaded.loss, loaded.eta0, loaded.verbose) == (Hinge(2.0), 3.0, False)
    assert loaded.penalty._group_of(6).tolist() == [0, 1, 0, 1, 0, 1]


# ---- fit twice


def earlier_fits(kind):
    """(parameters, fit) of all that a ranker of the kind may have learned before."""
    rows, few = lambda r: r.fit(ROWS, GRADES, QIDS), lambda r: r.fit(ROWS[:20, :3], GRADES[:20], QIDS[:20])
    fits = [({}, rows), ({}, few)]
    if kind in (sr.DominationRanker, sr.PAMIR):
        fits.append(({}, lambda r: r.fit(ROWS, TOPICS)))
    if kind is sr.PAMIR:
        fits.append(({}, lambda r: r.fit_bilinear(ROWS, ROWS, PREFS)))
    if kind is sr.RBFRegressionRanker:
        fits.append(({"solver": "sgd", "max_iter": 5}, rows))
    return fits


def saved_bytes(ranker, path):
    ranker.save(path)
    return path.read_bytes()


@pytest.mark.parametrize("kind", list(BY_QUERY), ids=lambda kind: kind.__name__)
def test_a_second_fit_of_graded_rows_is_the_fit_of_a_new_ranker(kind, tmp_path):
    usual = kind(**BY_QUERY[kind]).get_params()
    for _, last in earlier_fits(kind):
        once = saved_bytes(last(kind(**usual)), tmp_path / "once")
        for params, first in earlier_fits(kind):
            ranker = first(kind(**usual | params)).set_params(**usual)
            assert saved_bytes(last(ranker), tmp_path / "twice") == once


@pytest.mark.parametrize("kind", list(BY_QUERY), ids=lambda kind: kind.__name__)
def test_a_fit_that_raises_an_error_leaves_the_previous_one(kind):
    ranker = fitted(kind)
    before = ranker.predict(ROWS)
    with pytest.raises(ValueError, match="inf"):
        ranker.fit(np.full((40, 2), np.inf), GRADES, QIDS)
    np.testing.assert_array_equal(ranker.predict(ROWS), before)


def test_a_second_fit_of_w_is_the_fit_of_a_new_ranker():
    other = sr.Preferences.from_labels(LABELS[::-1])
    once = sr.BilinearRanker(**BILINEAR).fit(ROWS, ROWS, PREFS)
    words = [f"w{i}" for i in range(6)]
    for earlier in ({"refit": True}, {"diagonal": True, "density": None}):
        settings = BILINEAR | {"density": 0.5, **earlier}
        twice = sr.BilinearRanker(**settings).fit(ROWS, ROWS, other, query_words=words, document_words=words)
        twice.set_params(**sr.BilinearRanker(**BILINEAR).get_params(deep=False)).fit(ROWS, ROWS, PREFS)
        learned, wanted = ({name: v for name, v in vars(r).items() if name.endswith("_")} for r in (twice, once))
        assert learned.keys() == wanted.keys()
        for name in learned.keys() - {"solution_"}:  # which has seconds in it
            assert same(learned[name], wanted[name]), name


def test_a_second_fit_of_texts_is_the_fit_of_a_new_ranker(tmp_path):
    docs, queries, qrels = world()
    settings = {"max_pairs": 50, "loss": "squared", "constraints": sr.Constraints({("car", "sail"): 1.0}), "n_jobs": 1}
    once = sr.TextRanker(**settings).fit(docs, queries, qrels)
    twice = sr.TextRanker(max_pairs=30, loss="squared").fit(docs, queries, qrels)
    twice.forbid("car", "automobile").forbid_word("chain").pin("bike", "sail", 9.0)
    twice.set_params(**sr.TextRanker(**settings).get_params(deep=False)).fit(docs, queries, qrels)
    assert saved_bytes(twice, tmp_path / "twice") == saved_bytes(once, tmp_path / "once")
    assert (tmp_path / "twice.index").read_bytes() == (tmp_path / "once.index").read_bytes()
    assert dict(once.related("car", 50))["sail"] == pytest.approx(1.0, rel=1e-5)


# ---- constraints


def test_constraints_are_a_parameter_that_pin_forbid_and_free_update(tmp_path):
    ranker = sr.TextRanker(max_pairs=50, loss="squared").fit(*world())
    assert ranker.constraints is None
    ranker.pin("cars", "sails", 1.0).forbid("car", "automobile").forbid_word("chain").pin("bike", "wheel", 2.0)
    ranker.free("bike", "wheel")
    wanted = sr.Constraints({("car", "sail"): 1.0}, {("car", "automobil")}, {"chain"})
    assert ranker.get_params()["constraints"] == wanted == ranker.model_.constraints
    ranker.save(tmp_path / "m")
    assert sr.load(tmp_path / "m").constraints == wanted
    ranker.set_params(constraints=None).fit(*world())
    assert ranker.model_.constraints == sr.Constraints()
    assert "automobil" in dict(ranker.related("car", 50))


def test_constraints_that_were_set_after_a_fit_hold_for_more_judgments():
    docs, queries, qrels = world()
    ranker = sr.TextRanker(max_pairs=50, loss="squared").fit(docs, queries, qrels)
    ranker.set_params(constraints=sr.Constraints(forbidden=[("car", "automobil")]))
    ranker.partial_fit(None, queries, {"bike-red": qrels["bike-red"]})
    assert "automobil" not in dict(ranker.related("car", 50))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sr.Constraints({"car": 1.0}), "a pair"),
        (lambda: sr.Constraints({("car", "boat"): float("nan")}), "weight"),
        (lambda: sr.Constraints([("car", "boat")]), "mapping"),
        (lambda: sr.Constraints(words="car"), "collection of words"),
        (lambda: sr.TextRanker(constraints={"pinned": {}}).fit(world()[0]), "must be an sr.Constraints or None"),
    ],
)
def test_constraints_of_another_form_raise(make, message):
    with pytest.raises(ConfigError, match=message):
        make()
