"""Settings as scikit-learn asks for them, without importing it."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import get_tags

import sparserank as sr
from sparserank import Preferences, TextRanker
from sparserank.bilinear.ranker import BilinearRanker
from sparserank.errors import ConfigError
from sparserank.optim.penalties import L1
from sparserank.spark import SparkBilinearRanker, SparkDominationRanker, SparkTextRanker

from .bilinear.test_ranker import PREFS, SETTINGS, X


def test_fitted_parts_show_counts_and_settings_without_arrays_and_addresses():
    ranker = TextRanker("bm25").fit({"d1": "red apples", "d2": "a pear"})
    lexical = f"LexicalModel(scoring={sr.BM25()!r}, analyzer={ranker.model_.lexical.analyzer!r}, n_words=3)"
    assert repr(ranker.model_.lexical) == lexical
    assert repr(ranker.model_) == f"TextModel(lexical={lexical}, n_pairs=0, pair_weight=0.0)"
    assert repr(ranker.index_) == "Index(n_documents=2, n_terms=3, n_segments=1)"
    preferences = Preferences.from_grades([2, 0, 1, 0], qid=[7, 7, 7, 8])
    assert repr(preferences) == "Preferences(n_pairs=3, n_items=4, n_queries=2, skipped=1)"
    assert "<td>n_pairs</td><td>3</td>" in preferences._repr_html_()
    for one in (ranker.model_, ranker.index_, preferences, sr.TextRanker()):
        assert not re.search("0x[0-9a-f]{6}|array", repr(one) + one._repr_html_())


def test_settings_are_the_constructors_parameters_kept_as_given():
    start = np.eye(3)
    ranker = BilinearRanker(alpha=3e-4, init=start)
    assert ranker.get_params()["init"] is start
    assert ranker.get_params(deep=False)["init"] is start
    assert ranker.set_params(eta0=5.0) is ranker
    assert ranker.eta0 == 5.0


def test_an_unknown_setting_is_rejected_and_nothing_is_changed():
    ranker = BilinearRanker()
    with pytest.raises(ConfigError, match="no parameter 'colour'; its parameters are: loss, penalty"):
        ranker.set_params(eta0=5.0, colour="red")
    assert ranker.eta0 == 200.0


def test_scikit_learn_clones_it_and_reads_its_tags():
    fitted = BilinearRanker(**SETTINGS | {"max_iter": 10}).fit(X, X, PREFS)
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "W_")
    assert get_tags(copy).estimator_type is None
    for settings in ParameterGrid({"alpha": [1e-5, 1e-4], "refit": [False, True]}):
        assert clone(fitted).set_params(**settings).get_params().items() >= settings.items()


def test_it_prints_the_settings_that_are_not_the_usual_ones():
    assert repr(BilinearRanker()) == "BilinearRanker()"
    assert repr(BilinearRanker(alpha=1e-4, refit=True)) == "BilinearRanker(alpha=0.0001, refit=True)"
    cluster = SparkBilinearRanker(BilinearRanker(alpha=1e-4), rounds=3)
    assert repr(cluster) == "SparkBilinearRanker(ranker=BilinearRanker(alpha=0.0001), rounds=3)"
    assert repr(SparkTextRanker(TextRanker("bm25"))) == "SparkTextRanker(ranker=TextRanker(ranker='bm25'))"
    assert repr(SparkDominationRanker(partitions=2)) == "SparkDominationRanker(ranker=DominationRanker(), partitions=2)"
    assert "<td>rounds</td><td>3</td>" in cluster._repr_html_()
    assert repr(BilinearRanker(init=np.eye(3))) == "BilinearRanker(init=<ndarray of shape (3, 3)>)"


def test_loading_a_model_imports_no_scikit_learn(tmp_path):
    BilinearRanker(**SETTINGS | {"max_iter": 10}).fit(X, X, PREFS).save(tmp_path / "w")
    code = "import sys, sparserank; sparserank.load(sys.argv[1]); print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "w")], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")


def test_parameters_of_parameters_are_read_and_set():
    ranker = BilinearRanker(penalty=L1(0.5))
    assert ranker.get_params()["penalty__alpha"] == 0.5
    assert "penalty__alpha" not in ranker.get_params(deep=False)
    assert ranker.set_params(penalty__alpha=0.25).penalty == L1(0.25)
    with pytest.raises(ConfigError, match="no parameter 'penalty__colour'"):
        ranker.set_params(penalty__colour=1)


def test_a_notebook_shows_a_table_of_the_parameters():
    assert "<td>alpha</td><td>0.0001</td>" in BilinearRanker(alpha=1e-4)._repr_html_()
