"""The five-fold protocol of LETOR: folders Fold1 to Fold5, or subsets S1.txt to S5.txt.

Fold f trains on S_f, S_{f+1} and S_{f+2}, selects settings on S_{f+3} and tests on S_{f+4}, cyclically, so that every
row is tested once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ...errors import DataError
from ..files import PathLike
from ..records import Fold, Letor
from .letor import read_letor

FOLDS = (1, 2, 3, 4, 5)
_FILE_NAMES = {
    "train": ("train.txt", "trainingset.txt"),
    "vali": ("vali.txt", "validationset.txt"),
    "test": ("test.txt", "testset.txt"),
}
"""The names of a fold's files in LETOR 4.0 and LETOR 3.0."""


def read_folds(folder: PathLike) -> tuple[Fold, ...]:
    """Read the folds in a folder.

    Parameters
    ----------
    folder : path
        A folder with Fold1/train.txt, vali.txt, test.txt and so on, or with S1.txt to S5.txt.

    Returns
    -------
    tuple of Fold
        The folds. All parts of a fold have the columns of its training part; a larger feature index raises DataError
        with the line.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for n in FOLDS:
    ...         _ = Path(folder, f"S{n}.txt").write_text(f"1 qid:{n} 1:0.5\\n")
    ...     [len(fold.train) for fold in read_folds(folder)]
    [3, 3, 3, 3, 3]
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder; --folds needs one with Fold1/train.txt, vali.txt and test.txt, …")
    folders = sorted((one for one in folder.iterdir() if one.is_dir() and one.name.lower().startswith("fold")), key=str)
    if folders:
        return tuple(_read_fold(one) for one in folders)
    paths = [folder / f"S{number}.txt" for number in FOLDS]
    missing = next((path for path in paths if not path.exists()), None)
    if missing is not None:
        raise DataError(
            f"{folder}: neither folders Fold1 to Fold5 nor files S1.txt to S5.txt ({missing.name} is missing)"
        )
    subsets = [read_letor(path) for path in paths]
    zero_based = any(subset.zero_based for subset in subsets)
    width = max(subset.X.shape[1] + (zero_based and not subset.zero_based) for subset in subsets)
    subsets = [
        subset
        if (subset.X.shape[1], subset.zero_based) == (width, zero_based)
        else read_letor(path, n_features=width, zero_based=zero_based)
        for subset, path in zip(subsets, paths, strict=True)
    ]
    return tuple(fold_of_subsets(subsets, number) for number in FOLDS)


def fold_of_subsets(subsets: Sequence[Letor], fold: int) -> Fold:
    """Return fold 1 to 5 of the five subsets."""
    cycle = [subsets[(fold - 1 + step) % len(subsets)] for step in range(len(subsets))]
    return Fold(_concatenate(cycle[:3]), cycle[3], cycle[4])


def _concatenate(parts: Sequence[Letor]) -> Letor:
    from scipy.sparse import csr_array, vstack

    return Letor(
        X=csr_array(vstack([part.X for part in parts], format="csr")),
        y=np.concatenate([part.y for part in parts]),
        qid=np.concatenate([part.qid for part in parts]),
        comments=tuple(comment for part in parts for comment in part.comments),
        zero_based=parts[0].zero_based,
    )


def _read_fold(folder: Path) -> Fold:
    train = read_letor(_part_path(folder, "train"))
    same = {"n_features": train.X.shape[1], "zero_based": train.zero_based}
    return Fold(train, *(read_letor(_part_path(folder, part), **same) for part in ("vali", "test")))


def _part_path(folder: Path, part: str) -> Path:
    for name in _FILE_NAMES[part]:
        if (folder / name).exists():
            return folder / name
    raise DataError(f"{folder}: contains no {_FILE_NAMES[part][0]}")
