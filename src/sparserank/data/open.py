"""Open DATA as users name it: a BEIR folder, a table, a LETOR file, a folder of folds, or the name of a data set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..errors import ConfigError, DataError
from .datasets.catalog import CATALOG
from .datasets.load import closest_names, dataset_names, find_folder, load
from .files import PathLike, unpacked_size
from .formats.beir import corpus_path, is_beir, read_beir, stream_corpus
from .formats.letor import ZeroBased, read_letor
from .formats.letor_folds import read_folds
from .formats.tables import columns_of, is_table
from .formats.text_tables import read_documents, read_judgments, read_query_texts
from .formats.triples import Triples, read_triples
from .records import Collection, Documents, Fold, Letor, Qrels, split_known

Relevance: TypeAlias = Qrels | Triples
"""What a ranker learns from."""
_MARKER_COLUMNS = {"judgments": "grade", "clicks": "clicked", "triples": "better"}
"""The kinds of relevance tables, each with the column that identifies it."""


Missing: TypeAlias = Literal["error", "drop"]
"""What to do with judgments of unknown documents and queries."""


def open_data(data: PathLike, fields: Sequence[str] | None = None, missing: Missing = "error") -> Any:
    """Open a data set by path or by name.

    Parameters
    ----------
    data : path or str
        A BEIR folder, a table of documents (.csv, .tsv or .parquet), a LETOR / svmlight file, a folder of LETOR folds,
        or a name that `sparserank.data.list_datasets` lists.
    fields : sequence of str or None, default None
        The text fields of documents in a folder or a table, beside title and text, as in `Documents.of`.
    missing : {"error", "drop"}, default "error"
        What to do with judgments of a BEIR folder that name unknown documents or queries, as in `read_beir`.

    Returns
    -------
    Collection, Letor, tuple of Fold, or what `sparserank.data.load` returns for the name
        The data set.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rows.txt").write_text("1 qid:7 1:0.5\\n")
    ...     open_data(f"{folder}/rows.txt").qid.tolist()
    [7]
    >>> len(open_data("digits").test)
    500
    """
    path = Path(data)
    if is_table(path):
        return Collection(path.name, read_documents(path, fields), {}, {})
    if path.is_dir():
        has_folds = (path / "S1.txt").exists() or any(path.glob("[Ff]old*"))
        return read_folds(path) if has_folds and not is_beir(path) else read_beir(path, missing=missing, fields=fields)
    return read_letor(path) if path.exists() else _load_named(str(data), missing)


def _load_named(name: str, missing: Missing = "error") -> Any:
    if name not in (names := dataset_names()):
        guess = closest_names(name, names) if Path(name).name == name else ""
        raise DataError(
            f"no such file or folder, and no data set of that name: {name!r}; {guess}`sparserank datasets` lists the "
            "names"
        )
    return load(name) if name in CATALOG else load(name, missing=missing)


def open_collection(data: PathLike, fields: Sequence[str] | None = None, missing: Missing = "error") -> Collection:
    """Open documents, queries and judgments; anything else raises DataError that says what to give."""
    if Path(data).is_file() and not is_table(Path(data)):
        raise DataError(
            f"{data}: a file, but text rankers need a BEIR folder with corpus.jsonl and queries.jsonl, or tables "
            "(.csv, .tsv, .parquet); to learn from a LETOR file use --ranker domination (or ranksvm, …)"
        )
    opened = open_data(data, fields, missing)
    if not isinstance(opened, Collection):
        raise DataError(f"{str(data)!r} is not a text collection with queries; try pydocs, nfcorpus or cranfield")
    return opened


def measure_corpus(data: PathLike) -> int:
    """Return about how many bytes the documents of DATA have, at least, without reading them; 0 if that is unknown."""
    path = Path(data)
    if not is_table(path):
        folder = path if path.exists() else find_folder(str(data))
        path = (folder and corpus_path(folder)) or path
    return unpacked_size(path) if path.is_file() else 0


def stream_documents(data: PathLike, size: int) -> Iterator[Documents]:
    """Yield documents of a text collection, `size` at a time; a BEIR folder is not held in memory as a whole."""
    if Path(data).is_dir() and is_beir(data):
        yield from stream_corpus(data, size)
        return
    documents = open_collection(data).documents
    for at in range(0, max(len(documents), 1), size):
        yield documents.take(range(at, min(at + size, len(documents))))


def open_letor(data: PathLike, *, n_features: int | None = None, zero_based: ZeroBased = "auto") -> Letor:
    """Open a LETOR file, or a named set of LETOR rows; a file without query ids raises DataError."""
    if Path(data).exists():
        return read_letor(data, n_features=n_features, zero_based=zero_based, require_qid=True)
    opened = _load_named(str(data))
    if not isinstance(opened, Letor):
        raise DataError(f"{str(data)!r} is not a single set of LETOR rows; for one in folds use --folds {data}")
    return opened


def open_folds(folder: PathLike) -> tuple[Fold, ...]:
    """Open a folder of LETOR folds, or a named set that comes in folds."""
    if not Path(folder).exists() and str(folder) in CATALOG:
        opened = load(str(folder))
        if isinstance(opened, tuple):
            return opened
    return read_folds(folder)


@dataclass(frozen=True)
class Sources:
    """DATA and the tables that a user names beside it.

    data : the documents, unless `texts` names them; then `data` is a table of clicks, triples or judgments.
    missing : what to do with rows about unknown documents and queries, "error" or "drop".
    fields : the text fields of documents beside title and text; None detects them.
    """

    data: str
    texts: str | None = None
    queries: str | None = None
    judgments: str | None = None
    clicks: str | None = None
    triples: str | None = None
    missing: Missing = "error"
    fields: tuple[str, ...] | None = None

    @property
    def relevance_tables(self) -> dict[str, str]:
        """The named tables of judgments, clicks or triples, by kind."""
        return {kind: path for kind in _MARKER_COLUMNS if (path := getattr(self, kind)) is not None}

    @property
    def documents(self) -> str:
        """Where the documents are."""
        return self.data if self.texts is None else self.texts

    @property
    def on_spark(self) -> bool:
        """Whether the documents are a table that Spark reads."""
        return self.documents.rstrip("/").endswith(".parquet") or "://" in self.documents

    def validate(self, ranker: str, learns: bool, split: str | None) -> None:
        """Raise ConfigError for tables that do not go together; reads nothing."""
        options = [f"--{kind}" for kind in (*(("texts",) if self.texts else ()), *self.relevance_tables)]
        if len(options) > 1:
            raise ConfigError(f"{' and '.join(options)} all say what is relevant; give one of them")
        if options and not learns:
            raise ConfigError(f"--ranker {ranker} does not learn from judgments; remove {options[0]}")
        if options and split is not None:
            raise ConfigError(f"--split {split} names a split of a folder; {options[0]} replaces it")
        if self.queries and not self.on_spark and not is_table(Path(self.documents)):
            raise ConfigError("--queries needs documents in a table; a folder has its own queries")

    def resolve(self, columns: Callable[[str], Sequence[str]]) -> Sources:
        """Return sources whose `data` are the documents; `columns` returns the columns of a table."""
        if self.texts is None:
            return self
        names = columns(self.data)
        if kind := _table_kind(names):
            table: dict[str, Any] = {kind: self.data}
            return replace(self, data=self.texts, texts=None, **table)
        raise DataError(
            f"{self.data}: with --texts it must be a table of clicks (session, query, document, position, clicked), "
            f"triples (query, better, worse) or judgments (query, document, grade); its columns are {', '.join(names)}"
        )

    def restrict(self, relevance: Relevance, collection: Collection) -> tuple[Relevance, int]:
        """With missing="drop", drop unknown documents and queries; return the rest and the number of dropped rows."""
        if self.missing == "error":
            return relevance, 0
        queries, documents = collection.queries, set(collection.documents.ids)
        if isinstance(relevance, Triples):
            return relevance.restrict(queries, documents)
        known, unknown = split_known(relevance, queries, documents)
        return known, len(unknown)


class OpenedSources(NamedTuple):
    """A collection, the judgments or triples of its tables (None without any), and the number of dropped rows."""

    collection: Collection
    relevance: Relevance | None
    n_dropped: int


def open_sources(
    sources: Sources, learns: bool, read_click_grades: Callable[[str], Qrels] | None = None
) -> OpenedSources:
    """Open the documents, queries and relevance that the sources name; a click log needs `read_click_grades`."""
    for path in (sources.data, sources.texts, sources.queries, *sources.relevance_tables.values()):
        if path is not None and "://" in path:
            raise ConfigError(f"{path}: only --engine spark reads this address")
    if learns and sources == Sources(sources.data, missing=sources.missing):
        columns = columns_of(sources.data) if is_table(Path(sources.data)) else ()
        if _MARKER_COLUMNS["triples"] in columns:
            return OpenedSources(*_open_text_triples(sources.data), 0)
    resolved = sources.resolve(columns_of)
    columns = columns_of(resolved.data) if is_table(Path(resolved.data)) else ("text",)
    if "text" not in columns and (kind := _table_kind(columns)):
        raise DataError(f"{resolved.data}: a table of {kind}; give the documents with --texts")
    collection = open_collection(resolved.data, resolved.fields, resolved.missing)
    if resolved.queries:
        collection = replace(collection, queries=read_query_texts(resolved.queries))
    for kind, path in resolved.relevance_tables.items():
        readers = {"judgments": read_judgments, "triples": read_triples, "clicks": read_click_grades}
        relevance = readers[kind](path)  # type: ignore[misc]  # `learns` without a reader of clicks is a programming error
        if not collection.queries:
            collection = replace(collection, queries=queries_as_texts(relevance, path))
        return OpenedSources(collection, *resolved.restrict(relevance, collection))
    return OpenedSources(collection, None, collection.n_dropped)


def queries_as_texts(relevance: Relevance, path: str) -> dict[str, str]:
    """Use the query column itself as query texts; if no entry has two words, they are ids: DataError."""
    queries = dict.fromkeys(map(str, relevance.query if isinstance(relevance, Triples) else relevance))
    if not any(len(query.split()) > 1 for query in queries):
        raise DataError(f"{path}: names queries by their ids; give their texts with --queries")
    return {query: query for query in queries}


def _table_kind(columns: Sequence[str]) -> str | None:
    return next((kind for kind, column in _MARKER_COLUMNS.items() if column in columns), None)


def _open_text_triples(data: str) -> tuple[Collection, Triples]:
    """Open triples whose columns contain texts instead of ids."""
    texts = read_triples(data).with_text_ids()
    query_ids = {text: f"q{n}" for n, text in enumerate(dict.fromkeys(texts.query), 1)}
    doc_ids = {text: f"d{n}" for n, text in enumerate(dict.fromkeys([*texts.better, *texts.worse]), 1)}
    if not any(len(text.split()) > 1 for text in doc_ids):
        raise DataError(f"{data}: its triples contain ids, not texts; give the texts with --texts")
    columns = ((texts.query, query_ids), (texts.better, doc_ids), (texts.worse, doc_ids))
    ids = [np.array([names[text] for text in column], object) for column, names in columns]
    documents = Documents(tuple(doc_ids.values()), ("",) * len(doc_ids), tuple(doc_ids))
    queries = {name: text for text, name in query_ids.items()}
    return Collection(Path(data).name, documents, queries, {}), Triples(ids[0], ids[1], ids[2], texts.weight)
