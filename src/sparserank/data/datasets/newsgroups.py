"""20 Newsgroups, split by date: posts as their authors sent them, headers and all, decoded as latin-1.

Posts are ordered by group, then by their number as text: the order of scikit-learn's reader before it shuffles.
"""

from __future__ import annotations

import numpy as np

from ...errors import DataError
from ..records import Labelled, Split
from .download import Found


def load(found: Found) -> Split:
    """Both parts; `ids` are "group/number", `classes` the groups in alphabetical order."""
    posts = {tuple(name.split("/")): raw for name, raw in found.contents().items()}
    if any(len(name) != 3 for name in posts):
        raise DataError(f"{found.folder}: members must be named <part>/<group>/<number>")
    classes = tuple(sorted({name[1] for name in posts}))
    return Split(_part(posts, "20news-bydate-train", classes), _part(posts, "20news-bydate-test", classes))


def _part(posts: dict[tuple[str, ...], bytes], part: str, classes: tuple[str, ...]) -> Labelled:
    names = sorted(name for name in posts if name[0] == part)
    index = {group: number for number, group in enumerate(classes)}
    return Labelled(
        items=tuple(posts[name].decode("latin-1") for name in names),
        y=np.array([index[name[1]] for name in names], dtype=np.int64),
        classes=classes,
        ids=tuple(f"{group}/{number}" for _, group, number in names),
    )
