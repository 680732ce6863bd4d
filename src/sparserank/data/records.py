"""The records that readers return. They are frozen: no later code writes into a record.

Judgments and runs are nested mappings, as in other tools of this field: `{query id: {document id: number}}`.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..deprecated import renamed_attribute, renamed_parameters
from ..errors import DataError
from .frames import frame_records, is_frame
from .metadata import Metadata, normalize_column
from .text_fields import field_text, split_records

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Qrels: TypeAlias = Mapping[str, Mapping[str, float]]
"""{query id: {document id: grade}}"""
Run: TypeAlias = Mapping[str, Mapping[str, float]]
"""{query id: {document id: score}}"""


@dataclass(frozen=True)
class Documents:
    """Documents in a fixed order: columns of equal length with unique ids.

    Parameters
    ----------
    ids, titles, texts : tuple of str
        One entry per document; a document without a title has the title "".
    metadata : tuple of mappings, default ()
        For each document {field: value}; empty if no document has metadata. A value is text, a number, a boolean, a
        date (ISO text, or a `date` or `datetime`, which becomes ISO text), or a list of these. A value of None is left
        out.
    fields : tuple of str, default ()
        The fields of the metadata that are searched as text, beside title and text.
    text_field : str, default "text"
        The name of the field in `texts`.

    Examples
    --------
    >>> Documents.of({"d1": "some words", "d2": {"title": "T", "text": "more words"}}).titles
    ('', 'T')
    """

    ids: tuple[str, ...]
    titles: tuple[str, ...]
    texts: tuple[str, ...]
    metadata: tuple[Metadata, ...] = ()
    fields: tuple[str, ...] = ()
    text_field: str = "text"

    def __post_init__(self) -> None:
        if not len(self.ids) == len(self.titles) == len(self.texts):
            raise DataError(
                f"documents need one title and one text per id; got {len(self.ids)} ids, "
                f"{len(self.titles)} titles and {len(self.texts)} texts"
            )
        if len(set(self.ids)) < len(self.ids):
            seen: set[str] = set()
            duplicate = next(i for i in self.ids if i in seen or seen.add(i))  # type: ignore[func-returns-value]
            raise DataError(f"document id {duplicate!r} occurs more than once")
        if self.metadata:
            if len(self.metadata) != len(self.ids):
                raise DataError(f"{len(self.ids)} documents need as many metadata, or none; got {len(self.metadata)}")
            object.__setattr__(self, "metadata", normalize_column(self.ids, self.metadata))

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    def of(cls, docs: Any, fields: Sequence[str] | None = None) -> Documents:
        """Convert a mapping or a table to documents.

        Parameters
        ----------
        docs : Documents, mapping, or table of pandas, polars or Arrow
            `{id: text}` or `{id: {"title": …, "text": …, "metadata": {field: value}}}`, or a table with a column `id`.
            Other keys and columns are text fields or metadata. Documents are returned unchanged, unless `fields` is
            given.
        fields : sequence of str or None, default None
            The text fields beside title and text. None takes every field of strings, some with several words, and every
            field of lists of strings. If no document has a `text`, one of them takes its place: `body`, `content`, …,
            or else the longest.

        Returns
        -------
        Documents
            The documents in the order of the mapping.

        Examples
        --------
        >>> docs = Documents.of({"d1": {"title": "Pears", "body": "green and sour", "tags": ["fruit"], "year": 1999}})
        >>> docs.texts, docs.fields, docs.metadata
        (('green and sour',), ('tags',), ({'tags': ['fruit'], 'year': 1999},))
        """
        if isinstance(docs, Documents):
            named = tuple(name for name in fields or () if name not in ("title", docs.text_field))
            return docs if fields is None else replace(docs, fields=named)
        if is_frame(docs):
            docs = frame_records(docs)
        if not isinstance(docs, Mapping):
            raise DataError(f"documents must be a mapping of ids to texts, or a table; got {type(docs).__name__}")
        records = []
        for key, value in docs.items():
            if not isinstance(key, str):
                raise DataError(f"document ids must be text; got {key!r}")
            if not isinstance(value, str | Mapping):
                raise DataError(f"document {key!r} must be a text or a mapping with 'title' and 'text'; got {value!r}")
            record = {"text": value} if isinstance(value, str) else value
            for name in ("title", "text"):
                if not isinstance(record.get(name) or "", str):
                    raise DataError(f"document {key!r}: {name!r} must be text; got {record[name]!r:.60}")
            records.append(record)
        return cls(tuple(docs), *split_records(records, fields))

    def column(self, name: str) -> tuple[str, ...]:
        """Return a text field of every document; a list is joined with blanks.

        Parameters
        ----------
        name : str
            "title", the name of the text, or a field of the metadata.
        """
        if name == "title":
            return self.titles
        if name in ("text", self.text_field):
            return self.texts
        return tuple(field_text(one.get(name)) for one in self.metadata) or ("",) * len(self)

    def take(self, places: Iterable[int]) -> Documents:
        """Select documents.

        Parameters
        ----------
        places : iterable of int
            Their positions, in the order of the result.
        """
        at = list(places)
        ids, titles, texts = (tuple(column[i] for i in at) for column in (self.ids, self.titles, self.texts))
        metadata = tuple(self.metadata[i] for i in at) if self.metadata else ()
        return Documents(ids, titles, texts, metadata, self.fields, self.text_field)

    def updated(self, other: Documents) -> Documents:
        """Return these documents and those of `other`, which replace documents of the same id.

        Parameters
        ----------
        other : Documents
            New documents.

        Examples
        --------
        >>> Documents.of({"a": "old", "b": "x"}).updated(Documents.of({"c": "y", "a": "new"})).texts
        ('new', 'x', 'y')
        """
        rows = self.rows() | other.rows()
        titles, texts, metadata = zip(*rows.values(), strict=True) if rows else ((), (), ())
        fields = tuple(dict.fromkeys(self.fields + other.fields))
        return Documents(tuple(rows), titles, texts, metadata, fields, self.text_field)

    def rows(self) -> dict[str, tuple[str, str, Metadata]]:
        """Return {id: (title, text, metadata)}."""
        metadata = self.metadata or ({},) * len(self)
        return dict(zip(self.ids, zip(self.titles, self.texts, metadata, strict=True), strict=True))


@renamed_parameters({"drop_self": "exclude_self"})
@dataclass(frozen=True)
class Collection:
    """Documents, queries and the judgments of each split.

    Parameters
    ----------
    name : str
        The name of the data set.
    documents : Documents
        The documents.
    queries : mapping
        `{query id: text}`.
    qrels : mapping
        `{split: {query id: {document id: grade}}}`.
    exclude_self : bool, default False
        If True, a query's id is also a document's id, and that document is left out of the query's ranking.
    versions : mapping, default {}
        The versions of the packages or the edition that the collection was made from.
    n_dropped : int, default 0
        The number of judgments that were left out, because they name unknown documents or queries.

    Examples
    --------
    >>> docs = Documents.of({"d1": "heat in slabs"})
    >>> Collection("tiny", docs, {"q1": "heat"}, {"train": {"q1": {"d1": 1.0}}}).split("train")
    {'q1': {'d1': 1.0}}
    """

    name: str
    documents: Documents
    queries: Mapping[str, str]
    qrels: Mapping[str, Qrels]
    exclude_self: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    n_dropped: int = field(default=0, compare=False)

    drop_self = renamed_attribute("drop_self", "exclude_self")

    def split(self, name: str) -> Qrels:
        """Return the judgments of one split.

        Parameters
        ----------
        name : str
            The name of the split. A split that does not exist or is empty raises DataError.

        Returns
        -------
        mapping
            `{query id: {document id: grade}}`, with at least one judgment.
        """
        if name not in self.qrels:
            raise DataError(f"{self.name} has no split {name!r}; it has: {', '.join(self.qrels) or 'none'}")
        if not any(self.qrels[name].values()):
            raise DataError(f"the split {name!r} of {self.name} has no judgments")
        return self.qrels[name]


def split_known(
    qrels: Qrels, queries: Container[str], documents: Container[str]
) -> tuple[dict[str, dict[str, float]], list[tuple[str, str]]]:
    """Return the judgments of known queries and documents, and the (query, document) pairs of all others.

    >>> split_known({"q": {"d": 1.0, "e": 2.0}}, {"q"}, {"d"})
    ({'q': {'d': 1.0}}, [('q', 'e')])
    """
    known: dict[str, dict[str, float]] = {}
    unknown = []
    for query, grades in qrels.items():
        for document, grade in grades.items():
            if query in queries and document in documents:
                known.setdefault(query, {})[document] = grade
            else:
                unknown.append((query, document))
    return known, unknown


@dataclass(frozen=True)
class Letor:
    """Query-document rows with features: row X[i] has grade y[i] for query qid[i].

    Parameters
    ----------
    X : csr_array of shape (n_rows, n_features)
        The features.
    y : array of float
        The grades.
    qid : array
        The query ids: integers if every id in the file is one, else strings.
    comments : tuple of str, default ()
        The text after '#' in each row.
    zero_based : bool, default False
        Whether the file counts features from 0.
    has_qid : bool, default True
        Whether the query ids were given; without them every row has qid 0.
    """

    X: csr_array
    y: NDArray[np.float64]
    qid: NDArray[Any]
    comments: tuple[str, ...] = ()
    zero_based: bool = False
    has_qid: bool = True

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class LabeledData:
    """Items with one class each.

    Parameters
    ----------
    items : sequence
        Texts, or an array with one item per row.
    y : array of int
        `classes[y[i]]` is the class of item i.
    classes : tuple of str
        The names of the classes.
    ids : tuple of str, default ()
        The names of the items, if they have names.
    """

    items: Any
    y: NDArray[np.int64]
    classes: tuple[str, ...]
    ids: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class TrainTestSplit:
    """Labeled items in the two parts that the authors of the data set made.

    Parameters
    ----------
    train, test : LabeledData
        The parts.
    """

    train: LabeledData
    test: LabeledData


@dataclass(frozen=True)
class Fold:
    """One fold of a LETOR set.

    Parameters
    ----------
    train, vali, test : Letor
        Rows to learn from, to select settings on, and to report.
    """

    train: Letor
    vali: Letor
    test: Letor


@dataclass(frozen=True)
class Stories:
    """News stories with several topics each.

    Parameters
    ----------
    X : csr_array of shape (n_stories, n_features)
        The features.
    Y : csr_array of shape (n_stories, n_topics)
        Y[i, t] is 1 if story i has topic `topics[t]`.
    half : array of int
        0 for a training story, 1 for a test story.
    topics : tuple of str
        The codes of the topics.
    """

    X: csr_array
    Y: csr_array
    half: NDArray[np.int8]
    topics: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.half)
