"""Folds from folders."""

from __future__ import annotations

import pytest

from sparserank.data.formats.letor_folds import read_folds
from sparserank.errors import DataError


def lines(qid, features=2):
    return "".join(f"{grade} qid:{qid} 1:{grade}.5 {features}:{qid}\n" for grade in (1, 0))


def test_fold_folders_are_read_in_order_under_either_letor_s_names(tmp_path):
    for number, names in (
        (1, ("train.txt", "vali.txt", "test.txt")),
        (2, ("trainingset.txt", "validationset.txt", "testset.txt")),
    ):
        (tmp_path / f"Fold{number}").mkdir()
        for k, name in enumerate(names):
            (tmp_path / f"Fold{number}" / name).write_text(lines(10 * number + k))
    first, second = read_folds(tmp_path)
    assert [set(part.qid.tolist()) for part in (first.train, first.vali, first.test)] == [{10}, {11}, {12}]
    assert set(second.test.qid.tolist()) == {22}


def test_five_subsets_rotate_and_have_equal_columns(tmp_path):
    for number in range(1, 6):
        (tmp_path / f"S{number}.txt").write_text(lines(number, features=2 + number % 2))
    folds = read_folds(tmp_path)
    assert len(folds) == 5
    assert {part.X.shape[1] for fold in folds for part in (fold.train, fold.vali, fold.test)} == {3}
    assert set(folds[0].train.qid.tolist()) == {1, 2, 3}
    assert (set(folds[1].vali.qid.tolist()), set(folds[1].test.qid.tolist())) == ({5}, {1})


def test_files_that_happen_to_have_no_feature_0_count_from_0_with_those_that_have(tmp_path):
    """Read alone, `1:5 2:6` would be columns 0 and 1."""
    for number in range(1, 6):
        (tmp_path / f"S{number}.txt").write_text(f"1 qid:{number} {'0:4 ' * (number == 3)}1:5 2:6\n")
    for fold in read_folds(tmp_path):
        for part in (fold.train, fold.vali, fold.test):
            assert part.zero_based
            assert {tuple(row[1:]) for row in part.X.toarray().tolist()} == {(5.0, 6.0)}
    (tmp_path / "Fold1").mkdir()
    for name, text in (("train", "1 qid:1 0:4 1:5 2:6\n"), ("vali", "1 qid:2 1:5\n"), ("test", "1 qid:3 2:6\n")):
        (tmp_path / "Fold1" / f"{name}.txt").write_text(text)
    (fold,) = read_folds(tmp_path)
    assert fold.vali.X.toarray().tolist() == [[0, 5, 0]]
    assert fold.test.X.toarray().tolist() == [[0, 0, 6]]
    (tmp_path / "Fold1" / "train.txt").write_text("1 qid:1 1:5 2:6\n")
    (tmp_path / "Fold1" / "test.txt").write_text("1 qid:3 0:6\n")
    with pytest.raises(DataError, match=r"test\.txt:1: feature index 0 in a file that counts from 1"):
        read_folds(tmp_path)


def test_a_test_file_with_more_features_than_the_training_file_is_rejected_by_its_line(tmp_path):
    (tmp_path / "Fold1").mkdir()
    for name, text in (("train.txt", lines(1)), ("vali.txt", lines(2)), ("test.txt", lines(3) + "0 qid:3 1:1 7:2\n")):
        (tmp_path / "Fold1" / name).write_text(text)
    with pytest.raises(DataError, match=r"test\.txt:3: feature index beyond n_features=2"):
        read_folds(tmp_path)


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        read_folds(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"S1\.txt is missing"):
        read_folds(tmp_path)
    (tmp_path / "Fold1").mkdir()
    with pytest.raises(DataError, match=r"contains no train\.txt"):
        read_folds(tmp_path)
