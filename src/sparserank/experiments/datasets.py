"""The data sets of Chen et al. (2010), prepared as in the paper: unit-length rows with one class each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data import load
from ..data.records import Stories, TrainTestSplit
from .runner import note

if TYPE_CHECKING:
    from scipy.sparse import csr_array

PAPER_DATASETS = ("20newsgroups", "mnist", "rcv1")
DATASETS = (*PAPER_DATASETS, "digits")
"""`digits` is small; the paper does not use it."""
VOCABULARY_SIZE = 10_000
MIN_CLASS_STORIES = 20
"""A topic of RCV1 is a class if it is the rarest topic of at least this many training stories."""


@dataclass(frozen=True)
class LabeledDataset:
    """Training and test rows with their classes.

    words : names of the columns, or None. density : share of W that the sparse methods keep (about 10 % for words and
    50 % for pixels, as in the paper). differences : how the data differ from the paper's. own_split : whether the split
    is not the paper's.
    """

    name: str
    train: csr_array
    train_classes: NDArray[np.int64]
    test: csr_array
    test_classes: NDArray[np.int64]
    words: tuple[str, ...] | None
    density: float
    differences: str
    own_split: bool = False

    @property
    def columns(self) -> int:
        """The dictionary size, which is the number of rows and of columns of W."""
        return int(self.train.shape[1])


def load_labeled(name: str) -> LabeledDataset:
    """Load a data set by name.

    >>> load_labeled("digits").train.shape
    (1297, 64)
    """
    validation.choice("dataset", name, DATASETS)
    loaded = load(name)
    if name == "20newsgroups":
        return _newsgroups(loaded)
    return _rcv1(loaded) if name == "rcv1" else _images(name, loaded)


def _newsgroups(split: TrainTestSplit) -> LabeledDataset:
    from ..text import TextFeatures

    features = TextFeatures("sublinear", columns=VOCABULARY_SIZE)
    train, test = features.fit_transform(split.train.items), features.transform(split.test.items)
    classes, differences = (split.train.y, split.test.y), note("data", "20newsgroups")
    words = tuple(features.words_)
    return LabeledDataset("20newsgroups", train, classes[0], test, classes[1], words, 0.095, differences)


def _images(name: str, split: TrainTestSplit) -> LabeledDataset:
    side = range(round(split.train.items.shape[1] ** 0.5))
    pixels = tuple(f"r{row}c{column}" for row in side for column in side)
    train, test = unit_rows(split.train.items), unit_rows(split.test.items)
    return LabeledDataset(name, train, split.train.y, test, split.test.y, pixels, 0.5, note("data", name))


def _rcv1(stories: Stories) -> LabeledDataset:
    in_training = stories.half == 0
    classes = _rarest_topics(stories.Y, in_training)
    sizes = np.bincount(classes[in_training & (classes >= 0)], minlength=stories.Y.shape[1])
    selected = (classes >= 0) & (sizes[classes] >= MIN_CLASS_STORIES)
    columns = _most_frequent_columns(stories.X[in_training & selected], VOCABULARY_SIZE)
    train, test = (unit_rows(stories.X[selected & (stories.half == half)][:, columns]) for half in (0, 1))
    differences = note("data", "rcv1", stories=len(stories), min_class_stories=MIN_CLASS_STORIES)
    return LabeledDataset(
        "rcv1", train, classes[selected & in_training], test, classes[selected & ~in_training], None, 0.095,
        differences, own_split=True,
    )  # fmt: skip


def _rarest_topics(topics: csr_array, in_training: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Each story's topic with the fewest training stories (the first on ties); -1 for a story without topics."""
    count = np.asarray(topics[in_training].sum(axis=0)).ravel()
    rarest = np.full(topics.shape[0], -1, np.int64)
    for story in range(topics.shape[0]):
        own = np.sort(topics.indices[topics.indptr[story] : topics.indptr[story + 1]])
        if len(own):
            rarest[story] = own[np.argmin(count[own])]
    return rarest


def _most_frequent_columns(rows: csr_array, n_columns: int) -> NDArray[np.intp]:
    frequency = np.bincount(rows.indices, minlength=rows.shape[1])
    return np.sort(np.argsort(-frequency, kind="stable")[:n_columns])


def unit_rows(rows: Any) -> csr_array:
    """Scale every row to length 1; a row of zeros stays zero."""
    from scipy.sparse import csr_array, diags_array

    matrix = csr_array(rows).astype(np.float32)
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1, dtype=np.float64)).ravel())
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return csr_array(diags_array(scale.astype(np.float32)) @ matrix)
