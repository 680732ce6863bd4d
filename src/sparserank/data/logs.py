"""Triples and click logs: tables that may be larger than memory, as TSV (`.tsv`) or Parquet (`.parquet`).

    triples   query, better, worse and, where it is there, weight    "for this query, that beats this"
    clicks    session, query, document, position, clicked            what was shown where, and taken or not

Columns are found by name, in any order; others are left alone. Ids are text in TSV, text or whole numbers in Parquet.
`weight` is finite and not negative, `position` counts from 1, `clicked` is 0 or 1. A TSV file names its columns in its
first line and has no quoting. Every table handed on has been checked; a packed file (.gz, .xz, .zst) is unpacked whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import check
from ..errors import DataError
from .files import PathLike, read_bytes

if TYPE_CHECKING:
    import polars as pl

_TRIPLES = {"query": "id", "better": "id", "worse": "id", "weight": "weight"}
_CLICKS = {"session": "id", "query": "id", "document": "id", "position": "position", "clicked": "clicked"}
_WANTED = {
    "id": "text or a whole number",
    "weight": "a finite number, 0 or more",
    "position": "a whole number, counted from 1",
    "clicked": "0 or 1",
}
_ROW = "row number"


@dataclass(frozen=True)
class Triples:
    """For query[i], better[i] should beat worse[i], and it matters weight[i].

    Ids are whole numbers (int64) or Python strings (object arrays).
    """

    query: NDArray[Any]
    better: NDArray[Any]
    worse: NDArray[Any]
    weight: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.query)


def scan_triples(path: PathLike) -> pl.LazyFrame:
    """A lazy frame of `query, better, worse` and, where the file has it, `weight`.

    The file is run through once, piece by piece, to check it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.tsv").write_text("query\\tbetter\\tworse\\nq1\\td1\\td2\\nq1\\td1\\td3\\n")
    ...     scan_triples(f"{folder}/t.tsv").collect().rows()
    [('q1', 'd1', 'd2'), ('q1', 'd1', 'd3')]
    """
    return _scan(_Table(Path(path), _TRIPLES))


def scan_clicks(path: PathLike) -> pl.LazyFrame:
    """A lazy frame of `session, query, document, position, clicked`, the last true or false; checked as triples are.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     header = "session\\tquery\\tdocument\\tposition\\tclicked\\n"
    ...     _ = Path(folder, "c.tsv").write_text(header + "s1\\tq1\\td1\\t1\\t0\\n")
    ...     scan_clicks(f"{folder}/c.tsv").collect().rows()
    [('s1', 'q1', 'd1', 1, False)]
    """
    return _scan(_Table(Path(path), _CLICKS))


def read_triples(path: PathLike) -> Triples:
    """All triples of a file; a file without weights weighs them all 1.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.tsv").write_text("query\\tbetter\\tworse\\tweight\\nq1\\td1\\td2\\t0.5\\n")
    ...     read_triples(f"{folder}/t.tsv").weight.tolist()
    [0.5]
    """
    return _record(scan_triples(path).collect())


def stream_triples(path: PathLike, batch_size: int = 65_536) -> Iterator[Triples]:
    """The triples of a file larger than memory, at most `batch_size` at a time, in file order.

    Rows are checked as they come: a wrong row is an error when its batch is reached.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.tsv").write_text("query\\tbetter\\tworse\\nq\\ta\\tb\\nq\\ta\\tc\\nr\\tc\\ta\\n")
    ...     [len(batch) for batch in stream_triples(f"{folder}/t.tsv", batch_size=2)]
    [2, 1]
    """
    check.count("batch_size", batch_size, low=1)
    batches = _checked_batches(_Table(Path(path), _TRIPLES), batch_size)
    # The first batch is read here and now, so that a file of the wrong kind is refused by this call.
    first = next(batches, None)
    if first is None:
        raise DataError(f"{path}: no row in it")
    return chain([first], batches)


def _record(frame: pl.DataFrame) -> Triples:
    query, better, worse = (frame[name].to_numpy() for name in ("query", "better", "worse"))
    weight = frame["weight"].to_numpy() if "weight" in frame.columns else np.ones(len(frame))
    return Triples(query, better, worse, weight)


@dataclass(frozen=True)
class _Table:
    """A file of one of the two kinds: what its columns hold, and how a row of it is named."""

    path: Path
    kinds: dict[str, str]

    def __post_init__(self) -> None:
        if not self.path.is_file():
            raise DataError(f"{self.path}: no such file")
        if self.path.name.removesuffix(self.packed).endswith((".tsv", ".parquet")):
            return
        raise DataError(f"{self.path}: a table must be named .tsv or .parquet (and may be packed as .gz, .xz or .zst)")

    @property
    def packed(self) -> str:
        return self.path.suffix if self.path.suffix in (".gz", ".xz", ".zst") else ""

    @property
    def is_parquet(self) -> bool:
        return self.path.name.removesuffix(self.packed).endswith(".parquet")

    def source(self) -> Path | BytesIO:
        """What polars and pyarrow can open: the file itself, or what is packed in it."""
        return BytesIO(read_bytes(self.path)) if self.packed else self.path

    def place(self, row: int) -> str:
        """Row `row`, counted from 1; row 0 is the header."""
        line = "" if self.is_parquet else f":{row + 1}"
        return f"{self.path}{line}: " + (f"row {row}, " if row else "")


def _scan(table: _Table) -> pl.LazyFrame:
    import polars as pl

    with _foreign_errors(table):
        source = table.source()
        frame = pl.scan_parquet(source) if table.is_parquet else _lazy_tsv(source)
        typed, rows = _checked(table, frame, 0)
    if not rows:
        raise DataError(f"{table.path}: no row in it")
    return typed


def _lazy_tsv(source: Path | BytesIO) -> pl.LazyFrame:
    import polars as pl

    return pl.scan_csv(source, separator="\t", quote_char=None, infer_schema=False)


def _opened(table: _Table) -> IO[bytes]:
    source = table.source()
    return source.open("rb") if isinstance(source, Path) else source


def _checked_batches(table: _Table, batch_size: int) -> Iterator[Triples]:
    done = 0
    with _foreign_errors(table):
        for frame, rows in (_parquet_batches if table.is_parquet else _tsv_batches)(table, batch_size):
            typed, kept = _checked(table, frame, done)
            done += rows
            if kept:
                yield _record(typed.collect())


def _parquet_batches(table: _Table, batch_size: int) -> Iterator[tuple[pl.LazyFrame, int]]:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(table.source()) as file:
        columns = [name for name in file.schema_arrow.names if name in table.kinds]
        for batch in file.iter_batches(batch_size, columns=columns):
            yield pl.DataFrame(pl.from_arrow(pa.Table.from_batches([batch]))).lazy(), len(batch)


def _tsv_batches(table: _Table, batch_size: int) -> Iterator[tuple[pl.LazyFrame, int]]:
    with _opened(table) as file:
        header = file.readline()
        while lines := list(islice(file, batch_size)):
            yield _lazy_tsv(BytesIO(header + b"".join(lines))), len(lines)


def _checked(table: _Table, frame: pl.LazyFrame, done: int) -> tuple[pl.LazyFrame, int]:
    """The wanted columns in their types, and the number of rows; `done` rows of the file came before these."""
    import polars as pl

    schema = frame.collect_schema()
    kinds = _present(table, schema)
    frame = frame.with_row_index(_ROW, offset=done + 1)
    if not table.is_parquet:
        blank = pl.all_horizontal(pl.exclude(_ROW).is_null())
        frame = frame.filter(~blank)
    problems = _problems(kinds, schema)
    firsts = [pl.col(_ROW).filter(problem.bad).min().alias(str(k)) for k, problem in enumerate(problems)]
    rows, *found = frame.select(pl.len(), *firsts).collect(engine="streaming").row(0)
    wrong = [(row, k) for k, row in enumerate(found) if row is not None]
    if wrong:
        row, k = min(wrong)
        column = problems[k].column
        value = frame.filter(pl.col(_ROW) == row).select(column).collect().item()
        raise DataError(f"{table.place(row)}column {column!r} {problems[k].sentence}; got {value!r}")
    return frame.select(_typed(name, kind, schema[name]) for name, kind in kinds.items()), rows


def _present(table: _Table, schema: pl.Schema) -> dict[str, str]:
    """The wanted columns that are there, each of a type that can hold what is wanted of it."""
    for name, kind in table.kinds.items():
        if name not in schema and kind != "weight":
            raise DataError(
                f"{table.place(0)}no column {name!r}; the columns must be {', '.join(table.kinds)}"
                f"{' (weight may be left out)' if 'weight' in table.kinds else ''}; got {', '.join(schema)}"
            )
        if name in schema and table.is_parquet and not _can_hold(schema[name], kind):
            raise DataError(f"{table.place(0)}column {name!r} must be {_WANTED[kind]}; its type is {schema[name]}")
    if "better" in schema and "worse" in schema and _is_text(schema["better"]) != _is_text(schema["worse"]):
        raise DataError(f"{table.place(0)}columns 'better' and 'worse' must both be text or both be whole numbers")
    return {name: kind for name, kind in table.kinds.items() if name in schema}


def _is_text(dtype: pl.DataType) -> bool:
    import polars as pl

    return dtype == pl.String or dtype == pl.Categorical or dtype == pl.Enum


def _can_hold(dtype: pl.DataType, kind: str) -> bool:
    import polars as pl

    return (
        dtype.is_integer()
        or (kind == "id" and _is_text(dtype))
        or (kind == "weight" and dtype.is_float())
        or (kind == "clicked" and dtype == pl.Boolean)
    )


def _typed(name: str, kind: str, dtype: pl.DataType) -> pl.Expr:
    """Column `name` in the type it is handed on in; null where a text does not say such a value."""
    import polars as pl

    column = pl.col(name)
    if kind == "id":
        return column.cast(pl.String if _is_text(dtype) else pl.Int64)
    if kind == "weight":
        return column.cast(pl.Float64, strict=False)
    if kind == "clicked":
        number = column.cast(pl.Int64, strict=False)
        return pl.when(number.is_in([0, 1])).then(number == 1).alias(name)
    return column.cast(pl.Int64, strict=False)


@dataclass(frozen=True)
class _Problem:
    """Rows for which `bad` holds are refused with this sentence about this column."""

    column: str
    sentence: str
    bad: pl.Expr


def _problems(kinds: dict[str, str], schema: pl.Schema) -> list[_Problem]:
    import polars as pl

    problems = [_Problem(name, "must not be empty", pl.col(name).is_null()) for name in kinds]
    for name, kind in kinds.items():
        value = _typed(name, kind, schema[name])
        good = value.is_not_null()
        if kind == "weight":
            good = good & value.is_finite() & (value >= 0)
        elif kind == "position":
            good = good & (value >= 1)
        if kind != "id":
            problems.append(_Problem(name, f"must be {_WANTED[kind]}", ~good.fill_null(False)))
    if "worse" in kinds:
        better, worse = (_typed(name, "id", schema[name]) for name in ("better", "worse"))
        problems.append(_Problem("worse", "must not name the item that is 'better' too", better == worse))
    return problems


@contextmanager
def _foreign_errors(table: _Table) -> Iterator[None]:
    """Turn what polars and pyarrow raise into an error that names the file and, in TSV, the line."""
    import polars as pl
    import pyarrow as pa

    try:
        yield
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError) as error:
        if not table.is_parquet:
            _refuse_first_odd_line(table)
        kind = "Parquet" if table.is_parquet else "TSV"
        raise DataError(f"{table.path}: not a whole {kind} file: {str(error).splitlines()[0]}") from None


def _refuse_first_odd_line(table: _Table) -> None:
    """Name the first line that is not UTF-8 or has more fields than the header."""
    with _opened(table) as file:
        wanted = None
        for number, line in enumerate(file, start=1):
            fields = line.count(b"\t") + 1
            wanted = wanted or fields
            if fields > wanted:
                raise DataError(f"{table.path}:{number}: {fields} fields; the first line names {wanted} columns")
            try:
                line.decode()
            except UnicodeDecodeError as error:
                byte = line[error.start]
                raise DataError(f"{table.path}:{number}: not UTF-8 text (byte 0x{byte:02x})") from None
