"""Settings chosen on validation data, and never on anything else."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparserank.data.records import Letor
from sparserank.errors import ConfigError, DataError
from sparserank.letor.base import measure_by_query
from sparserank.letor.model_selection import GRIDS, held_out, tune


def rows(seed=0, queries=15, each=8):
    random = np.random.default_rng(seed)
    X = random.random((queries * each, 4))
    y = np.floor(2.5 * X[:, 0] + random.normal(size=len(X)) * 0.4).clip(0, 2)
    return Letor(csr_array(X), y, np.repeat([f"q{i:02}" for i in range(queries)], each))


@pytest.mark.parametrize("name", list(GRIDS))
def test_the_best_setting_on_validation_rows_is_taken(name):
    train, vali = rows(0), rows(1)
    said = []
    chosen = tune(name, train, vali, measure="AP", callback=said.append)
    candidates = GRIDS[name].candidates
    assert len(said) == len(candidates)
    scores = [float(message.rsplit(" ", 1)[1]) for message in said]
    assert chosen.validation_score == pytest.approx(max(scores), abs=1e-4)
    again = measure_by_query(vali.y, chosen.ranker.predict(vali.X), qid=vali.qid, measure="AP")
    assert again == pytest.approx(chosen.validation_score)
    assert chosen.settings.items() >= candidates[int(np.argmax(scores))].items()
    assert chosen.ranker.get_params().items() >= chosen.settings.items()


def test_an_error_is_made_small():
    chosen = tune("ranksvm", rows(0), rows(1), measure="PairError")
    others = [tune("ranksvm", rows(0), fixed={"C": s["C"]}).ranker for s in GRIDS["ranksvm"].candidates]
    vali = rows(1)
    errors = [measure_by_query(vali.y, one.predict(vali.X), qid=vali.qid, measure="PairError") for one in others]
    assert chosen.validation_score == pytest.approx(min(errors))


def test_without_validation_rows_queries_are_held_out_and_all_are_learned_from_in_the_end():
    train = rows()
    part, held = held_out(train)
    assert set(held.qid) == {"q04", "q09", "q14"}
    assert not set(part.qid) & set(held.qid)
    chosen = tune("ranksvm", train)
    on_part = tune("ranksvm", part, held)
    assert chosen.settings == on_part.settings
    wanted = tune("ranksvm", train, fixed=chosen.settings).ranker
    assert chosen.ranker.coef_.tolist() == wanted.coef_.tolist()
    assert chosen.ranker.coef_.tolist() != on_part.ranker.coef_.tolist()


def test_given_settings_are_taken_and_nothing_is_held_out():
    one = Letor(csr_array([[1.0], [0.0]]), np.array([1.0, 0.0]), np.array([7, 7]))
    chosen = tune("ranksvm", one, fixed={"C": 0.5})
    assert (chosen.settings, chosen.validation_score) == ({"C": 0.5}, None)
    with pytest.raises(DataError, match="needs two queries at least"):
        tune("ranksvm", one)


def test_a_setting_that_is_not_there_is_rejected_with_those_that_are():
    with pytest.raises(ConfigError, match="RankSVM has no setting 'alpha'; it has: C, penalty"):
        tune("ranksvm", rows(), fixed={"alpha": 1})
    with pytest.raises(ConfigError, match="'ranker' parameter"):
        tune("oracle", rows())


def test_settings_to_try_may_be_given_and_must_be_settings_of_the_ranker():
    said = []
    chosen = tune("ranksvm", rows(0), rows(1), candidates=[{"C": 0.02}, {"C": 0.2}], callback=said.append)
    assert chosen.settings["C"] in (0.02, 0.2)
    assert len(said) == 2
    with pytest.raises(ConfigError, match="RankSVM has no setting 'alpha'"):
        tune("ranksvm", rows(0), rows(1), candidates=[{"alpha": 0.02}])
