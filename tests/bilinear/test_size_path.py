"""Accuracy against size: what is kept, what is measured, and which size is chosen."""

from __future__ import annotations

import json

import numpy as np
import pytest

import sparserank as sr
from sparserank.bilinear.ranker import BilinearRanker
from sparserank.bilinear.size_path import HELD_OUT_TRIPLES, SizePath, SizePoint, size_path
from sparserank.errors import ConfigError, DataError
from sparserank.preferences import Preferences

from .. import oracles
from .test_ranker import PREFS, SETTINGS, X, labelled

TEST, TEST_Y = labelled(seed=1)
HELD = (TEST, TEST, Preferences.from_labels(TEST_Y))
RANKER = BilinearRanker(**SETTINGS | {"max_iter": 2_000}, density=0.3)
WORDS = [f"w{i}" for i in range(60)]


@pytest.fixture(scope="module")
def path():
    return size_path(RANKER, X, X, PREFS, [1_000, 30, 0.05, 100], held_out=HELD, query_words=WORDS)


def test_sizes_rise_and_are_what_was_asked_for(path):
    assert isinstance(path, sr.SizePath)
    assert [point.pairs for point in path] == [30, 100, 180, 1_000]
    assert [point.ranker.W_.nnz for point in path] == [30, 100, 180, 1_000]
    assert [point.ranker.max_pairs for point in path] == [30, 100, 180, 1_000]
    assert path[0].density == pytest.approx(30 / 3600)
    assert path[0].megabytes == path[0].ranker.megabytes_
    assert len(path) == 4


def test_every_size_is_the_largest_entries_of_one_W(path):
    learned = BilinearRanker(**RANKER.get_params()).fit(X, X, PREFS)
    entries = np.sort(np.abs(learned.W_.data))[::-1]
    for point in path:
        W = point.ranker.W_
        assert point.alpha == learned.alpha_
        assert np.array_equal(np.sort(np.abs(W.data))[::-1], entries[: point.pairs])
        kept = W.toarray() != 0
        assert np.array_equal(W.toarray()[kept], learned.W_.toarray()[kept])


def test_accuracy_is_the_share_of_held_out_triples_in_order(path):
    triples = HELD[2].draw(HELD_OUT_TRIPLES, SETTINGS["random_state"] + 2)
    for point in path:
        scores = point.ranker.scores(TEST, TEST)
        in_order = scores[triples.query, triples.better] > scores[triples.query, triples.worse]
        assert point.measures["accuracy"] == pytest.approx(in_order.mean(), abs=2 / HELD_OUT_TRIPLES)


def test_a_size_is_refitted_on_its_own_entries():
    ranker = BilinearRanker(**SETTINGS, density=0.3, refit=True)
    path = size_path(ranker, X, X, PREFS, [100, 500], held_out=HELD)
    plain = size_path(ranker.set_params(refit=False), X, X, PREFS, [100, 500], held_out=HELD)
    for refitted, cut in zip(path, plain, strict=True):
        start = cut.ranker.W_.toarray()
        expected = oracles.algorithm_1(
            X.toarray(),
            X.toarray(),
            PREFS.draw(1_000, random_state=3),
            start,
            alpha=0,
            eta0=5.0,
            every=20,
            omega=start != 0,
        )
        assert np.abs(refitted.ranker.W_.toarray() - expected).max() <= 1e-4 * np.abs(expected).max()
        assert refitted.ranker.refit_curve_
        assert refitted.ranker.refit
        assert (refitted.ranker.solution_.weights != refitted.ranker.W_).nnz == 0


def test_a_ranker_of_the_path_is_a_ranker_like_any_other(path, tmp_path):
    small = path[1].ranker
    small.save(tmp_path / "w")
    again = sr.load(tmp_path / "w")
    assert (again.W_ != small.W_).nnz == 0
    assert again.related("w3") == small.related("w3")
    going_on = BilinearRanker(**small.get_params())
    going_on.__dict__.update(small.__dict__)
    going_on.partial_fit(X, X, PREFS)
    assert going_on.n_iter_ == 4_000
    assert going_on.W_.nnz <= 100


def test_the_given_ranker_is_left_as_it_is(path):
    assert not hasattr(RANKER, "W_")
    assert RANKER.density == 0.3


def test_any_measure_can_be_taken_and_the_first_is_compared():
    def measure(ranker):
        return {"size": ranker.W_.nnz, "words": len(ranker.query_words_)}

    path = size_path(RANKER, X, X, PREFS, [10, 500, 1_000], measure=measure, lower_is_better=True, query_words=WORDS)
    assert path.by == "size"
    assert path.best().pairs == 10
    assert path[0].measures == {"size": 10.0, "words": 60.0}
    assert json.loads(json.dumps(path.to_dict()))["points"][1]["measures"]["size"] == 500
    both = size_path(RANKER, X, X, PREFS, [10], held_out=HELD, measure=lambda ranker: 0.5)
    assert list(both[0].measures) == ["accuracy", "measure"]


def test_sizes_need_not_be_given():
    path = size_path(RANKER, X, X, PREFS, measure=lambda ranker: 1.0)
    assert [point.pairs for point in path] == [1080 // 3**k for k in range(6, -1, -1)]
    assert path.best().pairs == 1


def test_a_size_beyond_what_alpha_leaves_is_all_there_is():
    ranker = BilinearRanker(**SETTINGS | {"alpha": 1e-3})
    path = size_path(ranker, X, X, PREFS, [10, 3_600], held_out=HELD)
    assert path[-1].pairs == BilinearRanker(**SETTINGS | {"alpha": 1e-3}).fit(X, X, PREFS).W_.nnz < 3_600


def points(*values):
    ranker = BilinearRanker()
    return tuple(SizePoint(10**i, 0.1, 1.0, 1e-5, {"accuracy": v}, ranker) for i, v in enumerate(values))


@pytest.mark.parametrize(
    ("values", "lower", "within", "pairs"),
    [
        ((0.5, 0.8, 0.805, 0.81), False, 0.01, 10),
        ((0.5, 0.8, 0.805, 0.81), False, 0.0, 1000),
        ((0.5, 0.8, 0.81, 0.7), False, 0.0, 100),
        ((0.5, 0.2, 0.195, 0.19), True, 0.011, 10),
        ((0.5, 0.2, 0.195, 0.19), True, 1.0, 1),
    ],
)
def test_the_best_is_the_smallest_within_the_tolerance(values, lower, within, pairs):
    assert SizePath(points(*values), "accuracy", lower).best(within).pairs == pairs


def test_the_plot_has_a_logarithmic_axis_of_pairs_and_shows_the_chosen_one(path, tmp_path):
    from sparserank.base import plots as pictures

    path.plot(tmp_path / "a.png")
    path.plot(tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    panel = pictures._size_curve([(10, 0.5), (1_000, 0.8)], "accuracy", 1, 0.01).axes[0]
    assert panel.get_xscale() == "log"
    line, chosen = panel.lines
    assert line.get_xydata().tolist() == [[10, 0.5], [1_000, 0.8]]
    assert chosen.get_xydata().tolist() == [[1_000, 0.8]]
    assert panel.get_ylabel() == "accuracy"
    assert "1,000 pairs: 0.800" in panel.get_legend().get_texts()[0].get_text()


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"held_out": None}, ConfigError, "give held_out="),
        ({"sizes": []}, ConfigError, "at least one size"),
        ({"sizes": [0]}, ConfigError, "'sizes'"),
        ({"sizes": [1.5]}, ConfigError, "'sizes'"),
        ({"sizes": [2_000]}, ConfigError, "learned with 1080 pairs, so it cannot be pruned to 2000"),
        ({"ranker": "sparse"}, ConfigError, "must be a BilinearRanker. Got str"),
        ({"held_out": (TEST, TEST)}, DataError, "must be a tuple"),
        ({"held_out": (TEST, TEST, TEST_Y)}, DataError, "must be a tuple"),
        ({"held_out": (TEST[:, :5], TEST, HELD[2])}, DataError, "W is \\(60, 60\\)"),
        ({"held_out": (TEST[:5], TEST, HELD[2])}, DataError, "80 rows of Q"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_learned(monkeypatch, changes, error, says):
    monkeypatch.setattr(BilinearRanker, "fit", lambda *given, **more: pytest.fail("it has begun to learn"))
    given = {"ranker": RANKER, "Q": X, "D": X, "preferences": PREFS, "sizes": [10], "held_out": HELD} | changes
    with pytest.raises(error, match=says):
        size_path(**given)


@pytest.mark.parametrize(("found", "says"), [(float("nan"), "is nan"), ({}, "no number")])
def test_a_measure_that_is_no_number_is_named(found, says):
    with pytest.raises(DataError, match=says):
        size_path(RANKER, X, X, PREFS, [10], measure=lambda ranker: found)


def test_the_best_needs_a_tolerance_that_is_one():
    with pytest.raises(ConfigError, match="'within'"):
        SizePath(points(0.5), "accuracy").best(-1)
