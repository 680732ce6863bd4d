"""The LETOR sets: MQ2007 (in part), MQ2008 and OHSUMED, the last two in their five folds.

A set is cut into five subsets S1 to S5. Fold f trains on S_f, S_{f+1} and S_{f+2}, chooses on S_{f+3} and tests on
S_{f+4}, counted in a circle, so that every row is tested once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ... import validation
from ..records import Fold, Letor
from .download import Found

FOLDS = (1, 2, 3, 4, 5)
LETOR4_FEATURES, OHSUMED_FEATURES = 46, 45
OHSUMED_FILES = {"QueryLevelNorm": "test.txt", "Feature-min": "testset.txt"}


def mq2007(found: Found) -> Letor:
    """59,135 of MQ2007's 69,623 rows, documents missing at random: not comparable with published scores."""
    from ..formats.letor import read_letor

    (path,) = found.paths.values()
    return read_letor(path, n_features=LETOR4_FEATURES, zero_based=False)


def mq2008(found: Found, fold: int | None = None) -> Fold | tuple[Fold, ...]:
    """One fold, or the tuple of the five."""
    return _folds(found, [f"S{number}.txt" for number in FOLDS], LETOR4_FEATURES, fold)


def ohsumed(found: Found, fold: int | None = None, norm: str = "QueryLevelNorm") -> Fold | tuple[Fold, ...]:
    """One fold, or the tuple of the five; `norm` is "QueryLevelNorm" or "Feature-min"."""
    validation.choice("norm", norm, tuple(OHSUMED_FILES))
    # The files are the test parts of folds 1 to 5, and fold 1 is tested on S5, fold 2 on S1, and so on.
    names = [f"{norm}/Fold{number}/{OHSUMED_FILES[norm]}" for number in (2, 3, 4, 5, 1)]
    return _folds(found, names, OHSUMED_FEATURES, fold)


def _folds(found: Found, names: Sequence[str], width: int, fold: int | None) -> Fold | tuple[Fold, ...]:
    from ..formats.letor import parse_letor

    if fold is not None:
        validation.choice("fold", fold, FOLDS)
    raw = found.contents()
    subsets = [parse_letor(raw[name], f"{found.folder}/{name}", n_features=width, zero_based=False) for name in names]
    if fold is not None:
        return fold_of(subsets, fold)
    return tuple(fold_of(subsets, number) for number in FOLDS)


def fold_of(subsets: Sequence[Letor], fold: int) -> Fold:
    """Fold 1 to 5 of five subsets."""
    around = [subsets[(fold - 1 + step) % len(subsets)] for step in range(len(subsets))]
    return Fold(_together(around[:3]), around[3], around[4])


def _together(parts: Sequence[Letor]) -> Letor:
    from scipy.sparse import csr_array, vstack

    return Letor(
        X=csr_array(vstack([part.X for part in parts], format="csr")),
        y=np.concatenate([part.y for part in parts]),
        qid=np.concatenate([part.qid for part in parts]),
        comments=tuple(comment for part in parts for comment in part.comments),
        zero_based=parts[0].zero_based,
    )
