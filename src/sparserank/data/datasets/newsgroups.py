"""20 Newsgroups, split by date: complete posts with headers, decoded as latin-1.

Posts are sorted by group, then by their number as text, as scikit-learn's reader does before it shuffles.
"""

from __future__ import annotations

import numpy as np

from ...errors import DataError
from ..records import LabeledData, TrainTestSplit
from .download import LocalFiles


def load(files: LocalFiles) -> TrainTestSplit:
    """Load both parts; `ids` are "group/number", `classes` the groups in alphabetical order."""
    posts = {tuple(name.split("/")): raw for name, raw in files.contents().items()}
    if any(len(name) != 3 for name in posts):
        raise DataError(f"{files.folder}: members must be named <part>/<group>/<number>")
    classes = tuple(sorted({name[1] for name in posts}))
    return TrainTestSplit(_part(posts, "20news-bydate-train", classes), _part(posts, "20news-bydate-test", classes))


def _part(posts: dict[tuple[str, ...], bytes], part: str, classes: tuple[str, ...]) -> LabeledData:
    names = sorted(name for name in posts if name[0] == part)
    index = {group: number for number, group in enumerate(classes)}
    return LabeledData(
        items=tuple(posts[name].decode("latin-1") for name in names),
        y=np.array([index[name[1]] for name in names], dtype=np.int64),
        classes=classes,
        ids=tuple(f"{group}/{number}" for _, group, number in names),
    )
