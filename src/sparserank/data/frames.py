"""Tables in memory: pandas, polars and Arrow tables as documents, queries and judgments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import DataError

if TYPE_CHECKING:
    import polars as pl

_ID_NAMES = ("id", "_id", "docno", "qid")


def is_frame(value: object) -> bool:
    """Return whether a value is a table of pandas, polars or Arrow, without importing any of them."""
    return type(value).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow") and hasattr(
        type(value), "columns"
    )


def frame_records(table: Any) -> dict[str, dict[str, Any]]:
    """Return {id: record} of a table with a column `id`; empty cells are left out.

    >>> import polars as pl
    >>> frame_records(pl.DataFrame({"id": [1], "text": ["red apples"], "year": [1999]}))
    {'1': {'text': 'red apples', 'year': 1999}}
    """
    frame = _as_polars(table)
    name = next((name for name in _ID_NAMES if name in frame.columns), None)
    if name is None:
        raise DataError(f"the table has no column 'id'; its columns are {', '.join(frame.columns)}")
    out: dict[str, dict[str, Any]] = {}
    for row in frame.iter_rows(named=True):
        key = row.pop(name)
        if key is None or str(key) in out:
            raise DataError(f"column {name!r} must hold a different id in every row; got {key!r}")
        out[str(key)] = {column: value for column, value in row.items() if value is not None}
    return out


def frame_queries(table: Any) -> dict[str, str]:
    """Return {query id: text} of a table with the columns id and text."""
    return {key: str(record.get("text", "")) for key, record in frame_records(table).items()}


def frame_qrels(table: Any) -> dict[str, dict[str, float]]:
    """Return judgments of a table with the columns query, document and grade."""
    from .formats.lines import qrels_from_rows

    frame, columns = _as_polars(table), ("query", "document", "grade")
    if missing := [name for name in columns if name not in frame.columns]:
        raise DataError(f"judgments need the columns {', '.join(columns)}; missing: {', '.join(missing)}")
    rows = frame.select(columns).rows()
    return qrels_from_rows((f"row {n}", str(query), str(doc), grade) for n, (query, doc, grade) in enumerate(rows, 1))


def as_queries(queries: Any) -> Any:
    """Return a table of queries as {id: text}, and anything else unchanged."""
    return frame_queries(queries) if is_frame(queries) else queries


def as_qrels(qrels: Any) -> Any:
    """Return a table of judgments as {query id: {document id: grade}}, and anything else unchanged."""
    return frame_qrels(qrels) if is_frame(qrels) else qrels


def _as_polars(table: Any) -> pl.DataFrame:
    import polars as pl

    module = type(table).__module__.partition(".")[0]
    if module == "pandas":
        return pl.DataFrame({str(name): table[name].tolist() for name in table.columns}, strict=False).fill_nan(None)
    if module == "pyarrow":
        return pl.DataFrame(pl.from_arrow(table))
    return table.collect() if isinstance(table, pl.LazyFrame) else table
