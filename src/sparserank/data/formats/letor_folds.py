"""The five-fold protocol of LETOR, from a folder: Fold1/train.txt, vali.txt, test.txt, …; or S1.txt to S5.txt."""

from __future__ import annotations

from pathlib import Path

from ...errors import DataError
from ..datasets.letor_sets import FOLDS, fold_of
from ..files import PathLike
from ..records import Fold
from .letor import read_letor

PARTS = {
    "train": ("train.txt", "trainingset.txt"),
    "vali": ("vali.txt", "validationset.txt"),
    "test": ("test.txt", "testset.txt"),
}
"""The names that LETOR 4.0 and LETOR 3.0 give the files of a fold."""


def read_folds(folder: PathLike) -> tuple[Fold, ...]:
    """The folds in a folder, one after the other; rows of a fold have the columns of its training part.

    A vali or test file with a larger feature index than the training file is a DataError that names the line.
    """
    place = Path(folder)
    if not place.is_dir():
        raise DataError(f"{place}: no such folder; --folds wants one with Fold1/train.txt, vali.txt and test.txt, …")
    named = sorted((one for one in place.iterdir() if one.is_dir() and one.name.lower().startswith("fold")), key=str)
    if named:
        return tuple(_fold(one) for one in named)
    subsets = [place / f"S{number}.txt" for number in FOLDS]
    missing = next((path for path in subsets if not path.exists()), None)
    if missing is not None:
        raise DataError(
            f"{place}: neither folders Fold1 to Fold5 nor files S1.txt to S5.txt ({missing.name} is missing)"
        )
    read = [read_letor(path) for path in subsets]
    from_zero = any(one.zero_based for one in read)
    width = max(one.X.shape[1] + (from_zero and not one.zero_based) for one in read)
    read = [
        one
        if (one.X.shape[1], one.zero_based) == (width, from_zero)
        else read_letor(path, n_features=width, zero_based=from_zero)
        for one, path in zip(read, subsets, strict=True)
    ]
    return tuple(fold_of(read, number) for number in FOLDS)


def _fold(folder: Path) -> Fold:
    train = read_letor(_part(folder, "train"))
    width = train.X.shape[1]
    vali, test = (
        read_letor(_part(folder, part), n_features=width, zero_based=train.zero_based) for part in ("vali", "test")
    )
    return Fold(train, vali, test)


def _part(folder: Path, part: str) -> Path:
    for name in PARTS[part]:
        if (folder / name).exists():
            return folder / name
    raise DataError(f"{folder}: there is no {PARTS[part][0]} in it")
