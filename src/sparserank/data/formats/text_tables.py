"""A search experiment as tables, CSV, TSV or Parquet, instead of a BEIR folder.

    documents   id, text and, where it is there, title
    queries     id, text
    judgments   query, document, grade

Ids are text: a whole number is taken as its digits. How a table is read is told in `tables`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...errors import DataError
from ..files import PathLike
from ..records import Documents, Qrels
from .tables import Table, scan

_DOCUMENTS = {"id": "id", "title": "title", "text": "text"}
_QUERIES = {"id": "id", "text": "text"}
_JUDGMENTS = {"query": "id", "document": "id", "grade": "grade"}


def read_documents(path: PathLike) -> Documents:
    """All documents of a table, in its order.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "docs.tsv").write_text("id\\ttext\\nd1\\theat in slabs\\n")
    ...     read_documents(f"{folder}/docs.tsv").texts
    ('heat in slabs',)
    """
    rows = _rows(Table(Path(path), _DOCUMENTS, may_lack="title"))
    ids = rows["id"]
    try:
        return Documents(tuple(ids), tuple(rows.get("title", [""] * len(ids))), tuple(rows["text"]))
    except DataError as error:  # an id that is there twice
        raise DataError(f"{path}: {error}") from None


def read_query_texts(path: PathLike) -> dict[str, str]:
    """{query id: text} of a table."""
    rows = _rows(Table(Path(path), _QUERIES))
    return texts_of(path, zip(rows["id"], rows["text"], strict=True))


def read_judgments(path: PathLike) -> Qrels:
    """{query id: {document id: grade}} of a table; a document may be judged twice, as long as both say the same."""
    rows = _rows(Table(Path(path), _JUDGMENTS))
    return grades_of(path, zip(rows["query"], rows["document"], rows["grade"], strict=True))


def texts_of(path: PathLike, rows: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Queries of a table by their ids, each once."""
    out: dict[str, str] = {}
    for query, text in rows:
        if query in out:
            raise DataError(f"{path}: query id {query!r} occurs more than once")
        out[query] = text
    return out


def grades_of(path: PathLike, rows: Iterable[tuple[str, str, float]]) -> Qrels:
    """Grades of a table by query and document; two that disagree are refused."""
    out: dict[str, dict[str, float]] = {}
    for query, document, grade in rows:
        first = out.setdefault(query, {}).setdefault(document, grade)
        if first != grade:
            raise DataError(
                f"{path}: document {document!r} has the grades {min(first, grade):g} and {max(first, grade):g} for "
                f"query {query!r}; leave one of them"
            )
    return out


def _rows(table: Table) -> dict[str, list]:  # type: ignore[type-arg]  # of texts or of numbers, by column
    import polars as pl

    ids = [name for name, kind in table.kinds.items() if kind == "id"]
    return scan(table).with_columns(pl.col(ids).cast(pl.String)).collect().to_dict(as_series=False)
