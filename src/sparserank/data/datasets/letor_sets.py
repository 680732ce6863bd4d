"""The LETOR sets: MQ2007 (a part of it), and MQ2008 and OHSUMED in five folds."""

from __future__ import annotations

from collections.abc import Sequence

from ... import validation
from ..formats.letor import parse_letor, read_letor
from ..formats.letor_folds import FOLDS, fold_of_subsets
from ..records import Fold, Letor
from .download import LocalFiles

LETOR4_FEATURES, OHSUMED_FEATURES = 46, 45
OHSUMED_FILES = {"QueryLevelNorm": "test.txt", "Feature-min": "testset.txt"}


def mq2007(files: LocalFiles) -> Letor:
    """Load 59,135 of MQ2007's 69,623 rows; documents are missing at random, so do not compare with published scores."""
    (path,) = files.paths.values()
    return read_letor(path, n_features=LETOR4_FEATURES, zero_based=False)


def mq2008(files: LocalFiles, fold: int | None = None) -> Fold | tuple[Fold, ...]:
    """Load one fold, or all five."""
    return _folds(files, [f"S{number}.txt" for number in FOLDS], LETOR4_FEATURES, fold)


def ohsumed(files: LocalFiles, fold: int | None = None, norm: str = "QueryLevelNorm") -> Fold | tuple[Fold, ...]:
    """Load one fold, or all five; `norm` is "QueryLevelNorm" or "Feature-min"."""
    validation.choice("norm", norm, tuple(OHSUMED_FILES))
    # The files are the test parts of folds 1 to 5; fold 1 is tested on S5, fold 2 on S1, and so on.
    names = [f"{norm}/Fold{number}/{OHSUMED_FILES[norm]}" for number in (2, 3, 4, 5, 1)]
    return _folds(files, names, OHSUMED_FEATURES, fold)


def _folds(files: LocalFiles, names: Sequence[str], width: int, fold: int | None) -> Fold | tuple[Fold, ...]:
    if fold is not None:
        validation.choice("fold", fold, FOLDS)
    raw = files.contents()
    subsets = [parse_letor(raw[name], f"{files.folder}/{name}", n_features=width, zero_based=False) for name in names]
    if fold is not None:
        return fold_of_subsets(subsets, fold)
    return tuple(fold_of_subsets(subsets, number) for number in FOLDS)
