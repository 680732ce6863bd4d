"""The tables of Stevens, Bengio and Singer: what is in them, on rows made here and on some of the real ones."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from sparserank.cli import main
from sparserank.data.formats.letor_folds import fold_of_subsets
from sparserank.data.records import Letor
from sparserank.errors import ConfigError
from sparserank.experiments import peers, published, report, stevens2010, stevens_topics


def subset(number):
    random = np.random.default_rng(number)
    X = random.random((60, 3))
    y = np.floor(2.6 * X[:, 0] + random.normal(size=60) * 0.4).clip(0, 2)
    return Letor(csr_array(X), y, np.repeat(np.arange(5) + 10 * number, 12))


@pytest.fixture(scope="module")
def found():
    subsets = [subset(number) for number in range(5)]
    rows = stevens2010._evaluate_folds(
        "mq2008", [fold_of_subsets(subsets, 1), fold_of_subsets(subsets, 2)], 0, lambda message: None
    )
    measured = {"mq2008": rows, "mq2007": rows}
    told = {"letor": measured, "table1_1": stevens2010.average_ranks(measured)}
    return told | {"differs": stevens2010._differences(list(measured), told)}


def test_every_method_learns_on_every_fold(found):
    methods = [row["method"] for row in found["letor"]["mq2008"]]
    assert methods[:7] == list(published.TABLE_1_1_METHODS)
    for row in found["letor"]["mq2008"]:
        assert row["AP"] > 0.8, row["method"]
        assert len(row["settings"]) == 2


def test_every_method_of_a_table_tries_as_many_settings(found):
    assert {row["settings_tried"] for row in found["letor"]["mq2008"]} == {12}
    assert {len(grid) for grid in stevens2010.GRIDS.values()} == {12}
    assert stevens2010.GRIDS.keys() == {*published.TABLE_1_1_METHODS.values(), stevens2010.LAMBDAMART}
    for rows in (found["letor"]["mq2008"], found["letor"]["mq2007"]):
        for row in rows:
            if row["method"] == stevens2010.LAMBDAMART:
                assert all(one.keys() == {"learning_rate", "num_leaves", "rounds"} for one in row["settings"])


def test_lambdamart_s_settings_are_the_best_on_the_validation_part(monkeypatch):
    pytest.importorskip("lightgbm", reason="LambdaMART needs LightGBM: pip install 'sparserank[bench]'")
    fold = fold_of_subsets([subset(number) for number in range(5)], 1)
    values = iter(np.linspace(0.1, 0.6, 12)[[3, 1, 0, 2, 4, 11, 5, 6, 7, 8, 9, 10]])
    seen = []

    def value(y, scores, *, qid, measure):
        seen.append((y, measure))
        return next(values)

    monkeypatch.setattr(peers, "measure_by_query", value)
    scores, settings = peers.lambdamart(
        fold, 0, stevens2010.GRIDS[stevens2010.LAMBDAMART], stevens2010.SELECTION_MEASURE
    )
    assert scores.shape == fold.test.y.shape
    assert len(seen) == 12
    assert all(y is fold.vali.y and measure == stevens2010.SELECTION_MEASURE for y, measure in seen)
    assert settings.items() >= stevens2010.GRIDS[stevens2010.LAMBDAMART][5].items()


def test_average_ranks_of_the_six_sum_to_21(found):
    for measure, printed in published.TABLE_1_1.items():
        ranks = [row for row in found["table1_1"] if row["measure"] == measure and row["paper_rank"] is not None]
        assert sum(row["rank"] for row in ranks) == pytest.approx(21)
        assert [row["paper_rank"] for row in ranks] == list(printed)


def test_topics_are_averaged_and_those_without_relevant_items_left_out():
    scores = np.array([[3.0, 1.0, 9.0], [2.0, 2.0, 9.0], [1.0, 3.0, 9.0]])
    Y = csr_array([[1, 1, 0], [0, 0, 0], [0, 0, 0]])
    found = stevens_topics.mean_over_topics(scores, Y, "AP DominationError PairError")
    assert found == {"AP": pytest.approx((1 + 1 / 3) / 2), "DominationError": 0.5, "PairError": 0.5}


def test_the_files_hold_the_tables_and_what_is_partial_is_said(found, tmp_path):
    sections = stevens2010.sections(found)
    report.write_report("stevens2010", stevens2010.TITLE, found, sections, tmp_path)
    text = (tmp_path / "stevens2010.md").read_text()
    assert "## Table 1.1" in text
    assert "settings tried" in text
    assert "site" not in text
    assert "partial: 59,135 of 69,623 rows" in text


def test_an_unknown_data_set_raises_an_error():
    with pytest.raises(ConfigError, match="'dataset'"):
        stevens2010.reproduce(["cifar"])


@pytest.mark.data
def test_mq2007_is_cut_in_folds_by_query(real):
    real("letor/mq2007")
    folds = stevens2010.load_folds("mq2007")
    tested = [set(fold.test.qid.tolist()) for fold in folds]
    assert sum(map(len, tested)) == len(set.union(*tested)) == 1692
    assert all(not set(fold.train.qid.tolist()) & tested[k] for k, fold in enumerate(folds))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dataset", "key", "items", "least"),
    [
        ("mnist", "table1_2", 600, (0.86, 0.88, 0.83, 0.82, 0.77)),
        ("rcv1", "table1_3", 700, (0.64, 0.52, 0.66, 0.65, 0.64, 0.66, 0.52)),
    ],
)
def test_the_command_on_some_items_of_topics(real, capsys, tmp_path, dataset, key, items, least, monkeypatch):
    real(dataset)
    monkeypatch.setattr(stevens_topics, "PAMIR_STEPS", 2000)
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "reproduce",
                "stevens2010",
                "--dataset",
                dataset,
                "--items",
                str(items),
                "--output",
                str(tmp_path),
                "--json",
            ]
        )
    assert ended.value.code == 0
    rows = {row["method"]: row for row in json.loads(capsys.readouterr().out)[key]["rows"]}
    for row, bound in zip(rows.values(), least, strict=True):
        assert bound < row["average_precision"] < bound + 0.04, row["method"]
    assert {row["settings_tried"] for row in rows.values()} == {6}
    sparse = next(row for name, row in rows.items() if "L1" in name)
    assert sparse["zero_percent"] > rows["PAMIR"]["zero_percent"]
    assert sparse["paper_zero_percent"] > 90
