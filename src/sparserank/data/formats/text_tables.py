"""Tables of a search experiment, CSV, TSV or Parquet, instead of a BEIR folder.

    documents   id, text and title, one of which may be missing; other columns are text fields or metadata
    queries     id, text
    judgments   query, document, grade
    clicks      session, query, document, position, clicked

Ids are text; a whole number becomes its digits. See `tables` for the format.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import DataError
from ..files import PathLike
from ..records import Documents, Qrels
from ..text_fields import split_records
from .lines import qrels_from_rows
from .tables import Table, scan

if TYPE_CHECKING:
    import polars as pl

_DOCUMENTS = {"id": "id", "title": "title", "text": "text"}
_QUERIES = {"id": "id", "text": "text"}
_JUDGMENTS = {"query": "id", "document": "id", "grade": "grade"}
_CLICKS = {"session": "id", "query": "id", "document": "id", "position": "position", "clicked": "clicked"}


def read_documents(path: PathLike, fields: Sequence[str] | None = None) -> Documents:
    """Read a table of documents.

    Parameters
    ----------
    path : path
        A .csv, .tsv or .parquet file with the column id, and text or title or both.
    fields : sequence of str or None, default None
        The text fields beside title and text, as in `Documents.of`.

    Returns
    -------
    Documents
        The documents in the order of the table. Other columns are text fields or metadata; an empty cell is no value.
        Vectors, structures and bytes of a Parquet file are left out.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "docs.tsv").write_text("id\\ttext\\nd1\\theat in slabs\\n")
    ...     read_documents(f"{folder}/docs.tsv").texts
    ('heat in slabs',)
    """
    columns = _columns(Table(Path(path), _DOCUMENTS, optional=("title", "text"), keep_others=True))
    ids, names = columns.pop("id"), list(columns)
    records = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    try:
        documents = Documents(tuple(ids), *split_records(records or [{}] * len(ids), fields))
    except DataError as error:  # a duplicate id
        raise DataError(f"{path}: {error}") from None
    if not {"title", documents.text_field} & set(names):
        raise DataError(
            f"{path}: no column 'text' or 'title', and no other column with texts; got {', '.join(['id', *names])}"
        )
    return documents


def read_query_texts(path: PathLike) -> dict[str, str]:
    """Read a table of queries.

    Parameters
    ----------
    path : path
        A .csv, .tsv or .parquet file with the columns id and text.

    Returns
    -------
    dict
        `{query id: text}`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "queries.tsv").write_text("id\\ttext\\nq1\\theat\\n")
    ...     read_query_texts(f"{folder}/queries.tsv")
    {'q1': 'heat'}
    """
    columns = _columns(Table(Path(path), _QUERIES))
    return queries_from_rows(path, zip(columns["id"], columns["text"], strict=True))


def read_judgments(path: PathLike) -> Qrels:
    """Read a table of judgments.

    Parameters
    ----------
    path : path
        A .csv, .tsv or .parquet file with the columns query, document and grade. A document may be judged twice for a
        query if both grades are equal.

    Returns
    -------
    mapping
        `{query id: {document id: grade}}`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "qrels.tsv").write_text("query\\tdocument\\tgrade\\nq1\\td1\\t2\\n")
    ...     read_judgments(f"{folder}/qrels.tsv")
    {'q1': {'d1': 2.0}}
    """
    columns = _columns(Table(Path(path), _JUDGMENTS))
    return qrels_from_rows(zip(repeat(path), columns["query"], columns["document"], columns["grade"]))


def scan_clicks(path: PathLike) -> pl.LazyFrame:
    """Check a click log in one streaming pass and return it as a lazy frame.

    Parameters
    ----------
    path : path
        A .csv, .tsv or .parquet file with the columns session, query, document, position (counted from 1) and clicked
        (0 or 1).

    Returns
    -------
    polars.LazyFrame
        The same columns; `clicked` is boolean.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     header = "session\\tquery\\tdocument\\tposition\\tclicked\\n"
    ...     _ = Path(folder, "c.tsv").write_text(header + "s1\\tq1\\td1\\t1\\t0\\n")
    ...     scan_clicks(f"{folder}/c.tsv").collect().rows()
    [('s1', 'q1', 'd1', 1, False)]
    """
    return scan(Table(Path(path), _CLICKS))


def queries_from_rows(path: PathLike, rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Collect (id, text) rows; a duplicate id raises DataError with the path."""
    queries: dict[str, str] = {}
    for query, text in rows:
        if query in queries:
            raise DataError(f"{path}: query id {query!r} occurs more than once")
        queries[query] = text
    return queries


def _columns(table: Table) -> dict[str, list]:  # type: ignore[type-arg]  # strings or numbers, by column
    import polars as pl

    ids = [name for name, kind in table.kinds.items() if kind == "id"]
    return scan(table).with_columns(pl.col(ids).cast(pl.String)).collect().to_dict(as_series=False)
