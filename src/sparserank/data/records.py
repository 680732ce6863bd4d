"""What the readers hand on. Frozen; nothing downstream writes into a record.

Judgments and runs are the nested mappings that every tool of this field understands:
`{query id: {document id: number}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Qrels: TypeAlias = Mapping[str, Mapping[str, float]]
"""{query id: {document id: grade}}"""
Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""{query id: {document id: score}}"""


@dataclass(frozen=True)
class Documents:
    """Documents in a fixed order: three columns of equal length, ids without repetition.

    >>> Documents.of({"d1": "some words", "d2": {"title": "T", "text": "more words"}}).titles
    ('', 'T')
    """

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    texts: tuple[str, ...]

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.titles) == len(self.texts):
            raise DataError(
                f"documents need one title and one text an id; got {len(self.ids)} ids, "
                f"{len(self.titles)} titles and {len(self.texts)} texts"
            )
        if len(set(self.ids)) < len(self.ids):
            seen: set[str] = set()
            twice = next(i for i in self.ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise DataError(f"document id {twice!r} occurs more than once")

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, docs: Documents | Mapping[str, str | Mapping[str, str]]) -> Documents:
        """Take what a user has at hand: Documents, {id: text} or {id: {"title": …, "text": …}}."""
        if isinstance(docs, Documents):
            return docs
        if not isinstance(docs, Mapping):
            raise DataError(f"documents must be a mapping of ids to texts; got {type(docs).__name__}")
        titles, texts = [], []
        for key, value in docs.items():
            if not isinstance(key, str):
                raise DataError(f"document ids must be text; got {key!r}")
            if isinstance(value, str):
                title, text = "", value
            elif isinstance(value, Mapping):
                title, text = value.get("title") or "", value.get("text") or ""
            else:
                raise DataError(f"document {key!r} must be a text or a mapping with 'title' and 'text'; got {value!r}")
            titles.append(title)
            texts.append(text)
        return cls(tuple(docs), tuple(titles), tuple(texts))


@dataclass(frozen=True)
class Collection:
    """Documents, queries and the judgments of each split: all that a search experiment needs.

    `drop_self`: a query's id is also a document's id, and that document is left out of the query's ranking.
    """

    name: str
    documents: Documents
    queries: Mapping[str, str]
    qrels: Mapping[str, Qrels]
    drop_self: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)

    def split(self, name: str) -> Qrels:
        """The judgments of one split, at least one, or an error that lists the splits there are."""
        if name not in self.qrels:
            there = ", ".join(self.qrels) or "none"
            raise DataError(f"{self.name} has no split {name!r}; it has: {there}")
        if not any(self.qrels[name].values()):
            raise DataError(f"the split {name!r} of {self.name} has no judgments")
        return self.qrels[name]


@dataclass(frozen=True)
class Letor:
    """Query-document rows with features: X[i] has grade y[i] for query qid[i].

    `qid` holds integers where every id in the file is one, else strings; `comments` what follows '#', row by row.
    `zero_based`: the file counts features from 0.
    """

    X: csr_array
    y: NDArray[np.float64]
    qid: NDArray[Any]
    comments: tuple[str, ...] = ()
    zero_based: bool = False

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Labelled:
    """Items with one class each: `items` are texts or the rows of an array; `classes[y[i]]` names item i's class.

    `ids[i]` names item i where the items have names of their own, else `ids` is empty.
    """

    items: Any
    y: NDArray[np.int64]
    classes: tuple[str, ...]
    ids: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Split:
    """Labelled items in the two parts that their authors made."""

    train: Labelled
    test: Labelled


@dataclass(frozen=True)
class Fold:
    """One fold of a LETOR set: rows to learn from, to choose settings on, and to report."""

    train: Letor
    vali: Letor
    test: Letor


@dataclass(frozen=True)
class Stories:
    """News stories with several topics each: story i has features X[i], and topic `topics[t]` where Y[i, t] is 1.

    `half[i]` is 0 where the story is for training and 1 where it is for testing.
    """

    X: csr_array
    Y: csr_array
    half: NDArray[np.int8]
    topics: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.half)
