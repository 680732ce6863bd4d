"""Tables that a user names in place of a BEIR folder: documents, queries, and what is known of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import ConfigError, DataError
from .collections import open_collection
from .output import working

if TYPE_CHECKING:
    from ..data.formats.logs import Triples
    from ..data.records import Collection, Qrels

    Told: TypeAlias = Qrels | Triples

_TOLD = {"judgments": "grade", "clicks": "clicked", "triples": "better"}
"""The tables that say what is relevant, and the column each is known by."""
LEFT_OUT = "{:,} rows left out: they name documents or queries that are not there"


@dataclass(frozen=True)
class Tables:
    """DATA, and the tables named beside it.

    texts : where the documents are, if DATA itself says what is relevant; else DATA has the documents.
    drop : rows about documents and queries that are not there are left out; else they are an error.
    """

    data: str
    texts: str | None = None
    queries: str | None = None
    judgments: str | None = None
    clicks: str | None = None
    triples: str | None = None
    drop: bool = False

    @property
    def told(self) -> dict[str, str]:
        """The tables given that say what is relevant, by kind."""
        return {kind: path for kind in _TOLD if (path := getattr(self, kind)) is not None}

    @property
    def documents(self) -> str:
        """Where the documents are."""
        return self.data if self.texts is None else self.texts

    @property
    def in_parquet(self) -> bool:
        """Whether the documents are a table that Spark reads, rather than what this machine does."""
        return self.documents.rstrip("/").endswith(".parquet") or "://" in self.documents

    def judge(self, ranker: str, learns: bool, split: str | None) -> None:
        """Refuse tables that do not go together, before anything is read."""
        from ..data.formats.tables import is_table

        options = [f"--{kind}" for kind in (*(("texts",) if self.texts else ()), *self.told)]
        if len(options) > 1:
            raise ConfigError(f"{' and '.join(options)} all say what is relevant; give one of them")
        if options and not learns:
            raise ConfigError(f"--ranker {ranker} learns from no judgments; leave out {options[0]}")
        if options and split is not None:
            raise ConfigError(f"--split {split} names a split of a folder; {options[0]} is in its place")
        if self.queries and not self.in_parquet and not is_table(Path(self.documents)):
            raise ConfigError("--queries go with documents in a table; a folder has its own")

    def settled(self, columns: Callable[[str], Sequence[str]]) -> Tables:
        """With the documents as DATA; `columns` tells the names of a table's columns."""
        if self.texts is None:
            return self
        names = columns(self.data)
        for kind, mark in _TOLD.items():
            if mark in names:
                told: dict[str, Any] = {kind: self.data}
                return replace(self, data=self.texts, texts=None, **told)
        raise DataError(
            f"{self.data}: with --texts it must be a table of clicks (session, query, document, position, clicked), "
            f"triples (query, better, worse) or judgments (query, document, grade); its columns are {', '.join(names)}"
        )

    def kept(self, told: Told, collection: Collection) -> tuple[Told, int]:
        """What is learned from of what a table says, and how many rows are left out."""
        from ..data.formats.logs import Triples

        if not self.drop:
            return told, 0
        queries, documents = collection.queries, set(collection.documents.ids)
        if isinstance(told, Triples):
            return told.of(queries, documents)
        known = {q: {d: grade for d, grade in of.items() if d in documents} for q, of in told.items() if q in queries}
        kept = {q: of for q, of in known.items() if of}
        return kept, sum(map(len, told.values())) - sum(map(len, kept.values()))


def open_tables(tables: Tables, learns: bool) -> tuple[Collection, Told | None, int]:
    """The documents and queries; what the tables say is relevant, None where none is named; the rows left out of it."""
    from ..data.formats.tables import columns_of
    from ..data.formats.text_tables import read_query_texts

    for path in (tables.data, tables.texts, tables.queries, *tables.told.values()):
        if path is not None and "://" in path:
            raise ConfigError(f"{path}: only --engine spark reads from there")
    if learns and tables == Tables(tables.data, drop=tables.drop) and (carried := _carried(tables.data)) is not None:
        return *carried, 0
    settled = tables.settled(columns_of)
    _refuse_told(settled.data)
    collection = open_collection(settled.data)
    if settled.queries:
        collection = replace(collection, queries=read_query_texts(settled.queries))
    for kind, path in settled.told.items():
        with working(f"reading {path}"):
            told = _read(kind, path)
        if not collection.queries:
            collection = replace(collection, queries=asked_in_words(told, path))
        return collection, *tables.kept(told, collection)
    return collection, None, 0


def asked_in_words(told: Told, path: str) -> dict[str, str]:
    """Queries that a table names by their texts; ids are refused: of them a blank tells texts."""
    from ..data.formats.logs import Triples

    asked = dict.fromkeys(map(str, told.query if isinstance(told, Triples) else told))
    if not any(len(one.split()) > 1 for one in asked):
        raise DataError(f"{path}: names queries by their ids; say where their texts are with --queries")
    return {one: one for one in asked}


def _refuse_told(data: str) -> None:
    """Refuse a table that says what is relevant where documents are wanted."""
    from ..data.formats.tables import columns_of, is_table

    if is_table(Path(data)):
        names = columns_of(data)
        for kind, mark in _TOLD.items():
            if mark in names and "text" not in names:
                raise DataError(f"{data}: a table of {kind}; say where the documents are with --texts")


def _carried(data: str) -> tuple[Collection, Triples] | None:
    """Triples whose columns hold texts instead of ids, as documents, queries and triples; None for anything else."""
    import numpy as np

    from ..data.formats.logs import Triples, read_triples
    from ..data.formats.tables import columns_of, is_table
    from ..data.records import Collection, Documents

    path = Path(data)
    if not is_table(path) or _TOLD["triples"] not in columns_of(path):
        return None
    with working(f"reading {data}"):
        told = read_triples(path).named()
    query = {text: f"q{n}" for n, text in enumerate(dict.fromkeys(told.query), 1)}
    document = {text: f"d{n}" for n, text in enumerate(dict.fromkeys([*told.better, *told.worse]), 1)}
    if not any(len(text.split()) > 1 for text in document):
        raise DataError(f"{data}: its triples hold ids, not texts; say where the texts are with --texts")
    named = ((told.query, query), (told.better, document), (told.worse, document))
    ids = [np.array([name[text] for text in column], object) for column, name in named]
    triples = Triples(ids[0], ids[1], ids[2], told.weight)
    documents = Documents(tuple(document.values()), ("",) * len(document), tuple(document))
    return Collection(path.name, documents, {name: text for text, name in query.items()}, {}), triples


def _read(kind: str, path: str) -> Told:
    from ..data.formats.logs import read_triples
    from ..data.formats.text_tables import read_judgments

    readers: dict[str, Callable[[str], Told]] = {
        "judgments": read_judgments,
        "clicks": _clicks,
        "triples": read_triples,
    }
    return readers[kind](path)


def _clicks(path: str) -> Qrels:
    from ..data.formats.logs import scan_clicks
    from ..preferences import ClickLog

    log = scan_clicks(path).collect()
    columns = (log[name].to_numpy() for name in ("session", "query", "document", "position", "clicked"))
    grades = ClickLog.of(*columns).grades()
    return {str(query): {str(document): grade for document, grade in of.items()} for query, of in grades.items()}
