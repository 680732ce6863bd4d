"""The regression report's figures, on rows made here and on MQ2007."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge

from sparserank.cli import main
from sparserank.data.records import Letor
from sparserank.experiments import letor_regression, report
from sparserank.letor.rbf import RBFRegressionRanker


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.random((600, 5))
    X[:, 4] = 0.5
    y = np.round(np.sin(6 * X[:, 0]) + X[:, 1] + random.normal(size=600) * 0.3).clip(0, 2)
    return Letor(csr_array(X), y, np.zeros(600, np.int64))


@pytest.fixture(scope="module")
def found(rows):
    patched = pytest.MonkeyPatch()
    patched.setattr(letor_regression, "LONG_STEPS", 2000)
    yield letor_regression.reproduce(letor=rows)
    patched.undo()


def test_every_figure_has_every_part_of_the_rows(found):
    assert list(found["figures"]) == ["1", "2", "3", "4", "width"]
    for figure in found["figures"].values():
        for curve in figure["curves"].values():
            assert list(curve) == ["train", "validation", "test"]
            assert all(len(values) == len(figure["values"]) for values in curve.values())
    assert found["rows"] == {"train": 480, "validation": 60, "test": 60}


def test_the_basis_beats_the_constant_and_the_width_is_the_best_on_validation_rows(found):
    width = found["figures"]["width"]
    errors = width["curves"]["closed form"]["validation"]
    assert found["width"] == width["values"][int(np.argmin(errors))]
    assert found["best"]["closed form"]["test"] < found["linear"]["test"] < found["constant"]["test"]
    assert found["best"]["closed form"]["width"] == found["width"]


def test_every_predictor_chooses_among_as_many_settings_on_validation_rows(found, rows):
    tuned = [found["linear"], *found["best"].values()]
    assert [one["settings_tried"] for one in tuned] == [len(letor_regression.WIDTHS)] * 3
    order = np.random.default_rng(0).permutation(600)
    data = letor_regression.RegressionData.split(rows.X.toarray(), rows.y, order, 0)
    train = data.rows["train"]
    errors = []
    for alpha in letor_regression.RIDGES:
        ridge = Ridge(alpha=alpha).fit(data.X[train], data.y[train])
        errors.append(data.rmse(ridge.predict)["validation"])
    assert found["linear"]["validation"] == pytest.approx(min(errors), rel=1e-9)
    assert found["linear"]["lambda"] == letor_regression.RIDGES[int(np.argmin(errors))]


def test_a_point_of_a_curve_is_what_the_ranker_gives(found, rows):
    order = np.random.default_rng(0).permutation(600)
    train, test = order[:480], order[540:]
    ranker = RBFRegressionRanker(100, 10.0, 0.03, random_state=0).fit(rows.X.toarray()[train], rows.y[train])
    at = found["figures"]["width"]["values"].index(10.0)
    told = found["figures"]["width"]["curves"]["closed form"]["test"][at]
    assert ranker.rmse(rows.X.toarray()[test], rows.y[test]) == pytest.approx(told, rel=1e-9)


def test_the_files_hold_the_figures_and_the_same_numbers_give_the_same_bytes(found, tmp_path):
    sections = letor_regression.sections(found)
    files = report.write_report("letor-regression", letor_regression.TITLE, found, sections, tmp_path)
    assert {path.suffix for path in files} == {".json", ".md", ".html", ".png"}
    assert json.loads((tmp_path / "letor-regression.json").read_text()) == json.loads(json.dumps(found))
    page = (tmp_path / "letor-regression.html").read_text()
    assert page.count("data:image/png;base64,") == 5
    assert "http" not in page
    before = (tmp_path / "figure-1.png").read_bytes()
    report.write_report("letor-regression", letor_regression.TITLE, found, letor_regression.sections(found), tmp_path)
    assert (tmp_path / "figure-1.png").read_bytes() == before


def test_people_get_the_table_and_where_the_files_are(found, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(letor_regression, "reproduce", lambda **settings: found)
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "letor-regression", "--output", str(tmp_path)])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert "constant" in out
    assert "figure-width.png" in out


@pytest.mark.data
@pytest.mark.slow
def test_the_command_on_some_rows_of_mq2007(real, capsys, tmp_path):
    real("letor/mq2007")
    with pytest.raises(SystemExit) as ended:
        main(["reproduce", "letor-regression", "--items", "2000", "--output", str(tmp_path), "--json"])
    assert ended.value.code == 0
    said = json.loads(capsys.readouterr().out)
    assert said["rows"]["train"] == 1600
    assert said["best"]["closed form"]["validation"] < said["constant"]["validation"]
