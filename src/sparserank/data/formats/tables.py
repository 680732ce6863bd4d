"""Tables as CSV (`.csv`), TSV (`.tsv`) or Parquet (`.parquet`), validated on reading.

Columns are found by name, in any order; other columns are metadata in a table of documents and ignored elsewhere. Ids
are text in CSV and TSV, text or whole numbers in Parquet. CSV and TSV have a header line; CSV quotes with `"`, TSV has
no quoting. A Parquet table may be a folder of parts. A compressed file (.gz, .xz, .zst) is decompressed in memory.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ...errors import DataError
from ..files import COMPRESSION_SUFFIXES, PathLike, decode_utf8, read_bytes

if TYPE_CHECKING:
    import polars as pl

_EXPECTED = {
    "id": "text or a whole number",
    "text": "text",
    "title": "text",
    "grade": "a finite number",
    "weight": "a finite number, 0 or more",
    "position": "a whole number, counted from 1",
    "clicked": "0 or 1",
}
"""The kinds of columns and what each contains; a title may be empty, and in TSV also a text."""
_ROW = "row number"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Table:
    """A file and its schema.

    kinds : {column: kind}. optional : columns that may be missing. different : two columns that never have equal ids.
    keep_others : read the other columns too, except vectors, structures and bytes of a Parquet file.
    """

    path: Path
    kinds: dict[str, str]
    optional: tuple[str, ...] = ()
    different: tuple[str, str] | None = None
    keep_others: bool = False

    def __post_init__(self) -> None:
        if not is_table(self.path):
            raise DataError(
                f"{self.path}: the name of a table must end in .csv, .tsv or .parquet (and optionally .gz, .xz, .zst)"
                if self.path.is_file()
                else f"{self.path}: no such file"
            )

    @property
    def is_csv(self) -> bool:
        """Whether the file is comma-separated."""
        return self.path.name.removesuffix(_compression(self.path)).endswith(".csv")

    @property
    def is_parquet(self) -> bool:
        """True for Parquet, False for CSV and TSV."""
        return self.path.name.removesuffix(_compression(self.path)).endswith(".parquet")

    def sources(self) -> list[Path | BytesIO]:
        """Return what polars and pyarrow can open: the file, its decompressed content, or the parts of a folder."""
        if self.path.is_dir():
            return [*sorted(self.path.glob("*.parquet"))]
        return [BytesIO(read_bytes(self.path)) if _compression(self.path) else self.path]

    def place(self, row: int) -> str:
        """Return the start of an error message about a row, counted from 1; row 0 is the header."""
        line = "" if self.is_parquet or self.is_csv else f":{row + 1}"
        return f"{self.path}{line}: " + (f"row {row}, " if row else "")


def is_table(path: Path) -> bool:
    """Return whether the path exists and has the name of a table."""
    if path.is_dir():
        return path.name.endswith(".parquet")
    return path.is_file() and path.name.removesuffix(_compression(path)).endswith((".csv", ".tsv", ".parquet"))


def columns_of(path: PathLike) -> tuple[str, ...]:
    """Return the names of a table's columns."""
    table = Table(Path(path), {})
    with _translate_errors(table):
        return tuple(_lazy(table).collect_schema())


def scan(table: Table) -> pl.LazyFrame:
    """Validate a table in one streaming pass and return its columns with their types."""
    with _translate_errors(table):
        typed, rows = _validate(table, _lazy(table), 0)
    if not rows:
        raise DataError(f"{table.path}: contains no rows")
    return typed


def batches(table: Table, batch_size: int) -> Iterator[pl.DataFrame]:
    """Yield a table in file order, at most `batch_size` rows at a time; each batch is validated when it is reached."""
    rows_before = 0
    with _translate_errors(table):
        for frame, rows in (_parquet_batches if table.is_parquet else _text_batches)(table, batch_size):
            typed, n_valid = _validate(table, frame, rows_before)
            rows_before += rows
            if n_valid:
                yield typed.collect()


def _compression(path: Path) -> str:
    return path.suffix if path.suffix in COMPRESSION_SUFFIXES else ""


def _lazy(table: Table) -> pl.LazyFrame:
    import polars as pl

    sources = table.sources()
    if not table.is_parquet:
        return _lazy_text(table, sources[0])
    if not sources:
        raise DataError(f"{table.path}: the folder contains no .parquet file")
    return pl.scan_parquet(sources)  # type: ignore[arg-type]  # a list is of paths only, or of one of bytes


def _lazy_text(table: Table, source: Path | BytesIO) -> pl.LazyFrame:
    import polars as pl

    separator, quote = (",", '"') if table.is_csv else ("\t", None)
    return pl.scan_csv(source, separator=separator, quote_char=quote, infer_schema=False)


def _open_tsv(table: Table) -> IO[bytes]:
    source = table.sources()[0]
    return source.open("rb") if isinstance(source, Path) else source


def _parquet_batches(table: Table, batch_size: int) -> Iterator[tuple[pl.LazyFrame, int]]:
    import polars as pl
    import pyarrow as pa
    import pyarrow.parquet as pq

    for source in table.sources():
        with pq.ParquetFile(source) as file:
            columns = [name for name in file.schema_arrow.names if name in table.kinds]
            for batch in file.iter_batches(batch_size, columns=columns):
                yield pl.DataFrame(pl.from_arrow(pa.Table.from_batches([batch]))).lazy(), len(batch)


def _text_batches(table: Table, batch_size: int) -> Iterator[tuple[pl.LazyFrame, int]]:
    if table.is_csv:  # a quoted field may contain line breaks, so CSV is read at once
        for frame in _lazy(table).collect().iter_slices(batch_size):
            yield frame.lazy(), len(frame)
        return
    with _open_tsv(table) as file:
        header = file.readline()
        while lines := list(islice(file, batch_size)):
            yield _lazy_text(table, BytesIO(header + b"".join(lines))), len(lines)


def _validate(table: Table, frame: pl.LazyFrame, rows_before: int) -> tuple[pl.LazyFrame, int]:
    """Return the typed columns and the number of rows; the first bad row raises DataError."""
    import polars as pl

    schema = frame.collect_schema()
    kinds = _check_schema(table, schema)
    frame = frame.with_row_index(_ROW, offset=rows_before + 1)
    if not table.is_parquet:
        blank = pl.all_horizontal(pl.exclude(_ROW).is_null())
        frame = frame.filter(~blank)
    checks = _checks(table, kinds, schema)
    firsts = [pl.col(_ROW).filter(bad).min().alias(str(k)) for k, (_, _, bad) in enumerate(checks)]
    rows, *first_bad_rows = frame.select(pl.len(), *firsts).collect(engine="streaming").row(0)
    wrong = [(row, k) for k, row in enumerate(first_bad_rows) if row is not None]
    if wrong:
        row, k = min(wrong)
        column, sentence, _ = checks[k]
        value = frame.filter(pl.col(_ROW) == row).select(column).collect().item()
        raise DataError(f"{table.place(row)}column {column!r} {sentence}; got {value!r}")
    return frame.select(_typed(name, kind, schema[name]) for name, kind in kinds.items()), rows


def _check_schema(table: Table, schema: pl.Schema) -> dict[str, str]:
    """Return the columns of the schema that the table has; a missing one or a wrong type raises DataError."""
    for name, kind in table.kinds.items():
        if name not in schema and name not in table.optional:
            names = " and ".join(table.optional)
            raise DataError(
                f"{table.place(0)}no column {name!r}; the columns must be {', '.join(table.kinds)}"
                f"{f' ({names} may be left out)' if table.optional else ''}; got {', '.join(schema)}"
            )
        if name in schema and table.is_parquet and not _can_hold(schema[name], kind):
            raise DataError(f"{table.place(0)}column {name!r} must be {_EXPECTED[kind]}; its type is {schema[name]}")
    if table.different and len({_is_text(schema[name]) for name in table.different}) > 1:
        one, other = table.different
        raise DataError(f"{table.place(0)}columns {one!r} and {other!r} must both be text or both be whole numbers")
    others = [name for name in schema if table.keep_others and name not in table.kinds]
    for name in others:
        if not _is_metadata(schema[name]):
            log.warning(
                "%s: the column %r of type %s holds neither text nor metadata and is left out",
                table.path, name, schema[name],
            )  # fmt: skip
    kept = [name for name in others if _is_metadata(schema[name])]
    return {name: kind for name, kind in table.kinds.items() if name in schema} | dict.fromkeys(kept, "metadata")


def _is_metadata(dtype: pl.DataType) -> bool:
    """Whether values are text, numbers, booleans, dates, or lists of them; a list of floats is an embedding."""
    import polars as pl

    if isinstance(dtype, pl.List) and isinstance(dtype.inner, pl.DataType):
        return not dtype.inner.is_float() and not dtype.inner.is_nested() and _is_metadata(dtype.inner)
    return _is_text(dtype) or dtype.is_numeric() or dtype in (pl.Boolean, pl.Date, pl.Datetime)


def _is_text(dtype: pl.DataType) -> bool:
    import polars as pl

    return dtype == pl.String or dtype == pl.Categorical or dtype == pl.Enum


def _can_hold(dtype: pl.DataType, kind: str) -> bool:
    import polars as pl

    if kind in ("text", "title"):
        return _is_text(dtype) or (kind == "title" and dtype == pl.Null)
    return (
        dtype.is_integer()
        or (kind == "id" and _is_text(dtype))
        or (kind in ("weight", "grade") and dtype.is_float())
        or (kind == "clicked" and dtype == pl.Boolean)
    )


def _typed(name: str, kind: str, dtype: pl.DataType) -> pl.Expr:
    """Cast column `name` to its type; a text that does not parse becomes null."""
    import polars as pl

    column = pl.col(name)
    if kind == "metadata":
        return column.cast(pl.String) if _is_text(dtype) else column.cast(pl.Float64) if dtype.is_decimal() else column
    if kind == "id":
        return column.cast(pl.String if _is_text(dtype) else pl.Int64)
    if kind in ("text", "title"):
        return column.cast(pl.String).fill_null("")
    if kind in ("weight", "grade"):
        return column.cast(pl.Float64, strict=False)
    if kind == "clicked":
        number = column.cast(pl.Int64, strict=False)
        return pl.when(number.is_in([0, 1])).then(number == 1).alias(name)
    return column.cast(pl.Int64, strict=False)


def _checks(table: Table, kinds: dict[str, str], schema: pl.Schema) -> list[tuple[str, str, pl.Expr]]:
    """Return checks (column, sentence, bad): a row where `bad` is true raises DataError with the sentence."""
    import polars as pl

    may_be_empty = ("title", "metadata") if table.is_parquet else ("title", "text", "metadata")
    required = [name for name, kind in kinds.items() if kind not in may_be_empty]
    checks = [(name, "must not be empty", pl.col(name).is_null()) for name in required]
    for name, kind in kinds.items():
        value = _typed(name, kind, schema[name])
        good = value.is_not_null()
        if kind in ("weight", "grade"):
            good = good & value.is_finite()
        if kind == "weight":
            good = good & (value >= 0)
        elif kind == "position":
            good = good & (value >= 1)
        if kind not in ("id", "text", "title", "metadata"):
            checks.append((name, f"must be {_EXPECTED[kind]}", ~good.fill_null(False)))
    if table.different:
        one, other = (_typed(name, "id", schema[name]) for name in table.different)
        sentence = f"must differ from column {table.different[0]!r}"
        checks.append((table.different[1], sentence, one == other))
    return checks


@contextmanager
def _translate_errors(table: Table) -> Iterator[None]:
    """Convert errors of polars and pyarrow to DataError with the file and, in TSV, the line."""
    import polars as pl
    import pyarrow as pa

    try:
        yield
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError) as error:
        if not table.is_parquet and not table.is_csv:
            _raise_for_bad_line(table)
        kind = "Parquet" if table.is_parquet else "CSV" if table.is_csv else "TSV"
        raise DataError(f"{table.path}: not a complete {kind} file: {str(error).splitlines()[0]}") from None


def _raise_for_bad_line(table: Table) -> None:
    """Raise DataError for the first line that is not UTF-8 or has more fields than the header."""
    with _open_tsv(table) as file:
        columns = None
        for number, line in enumerate(file, start=1):
            fields = line.count(b"\t") + 1
            columns = columns or fields
            if fields > columns:
                raise DataError(f"{table.path}:{number}: {fields} fields; the first line names {columns} columns")
            decode_utf8(line, table.path, number)
