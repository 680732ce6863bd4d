"""Tables as CSV (`.csv`), TSV (`.tsv`) or Parquet (`.parquet`), checked before they are handed on.

Columns are found by name, in any order; others are left alone. Ids are text in CSV and TSV, text or whole numbers in
Parquet. CSV and TSV files name their columns in the first line; CSV quotes with `"`, TSV has no quoting. A Parquet
table may be a folder of its parts. A packed file (.gz, .xz, .zst) is unpacked whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ...errors import DataError
from ..files import PathLike, read_bytes

if TYPE_CHECKING:
    import polars as pl

_WANTED = {
    "id": "text or a whole number",
    "text": "text",
    "title": "text",
    "grade": "a finite number",
    "weight": "a finite number, 0 or more",
    "position": "a whole number, counted from 1",
    "clicked": "0 or 1",
}
"""What a column may be asked to hold; a title may be empty, and in TSV a text too."""
_ROW = "row number"


@dataclass(frozen=True)
class Table:
    """A file of one kind: what its columns hold, those it may lack, two that never hold the same."""

    path: Path
    kinds: dict[str, str]
    may_lack: str = ""
    unlike: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if not is_table(self.path):
            raise DataError(
                f"{self.path}: a table must be named .csv, .tsv or .parquet (and may be packed as .gz, .xz or .zst)"
                if self.path.is_file()
                else f"{self.path}: no such file"
            )

    @property
    def packed(self) -> str:
        """How the file is packed, by its ending, or nothing."""
        return _packed(self.path)

    @property
    def is_csv(self) -> bool:
        """Whether the file is comma-separated."""
        return self.path.name.removesuffix(self.packed).endswith(".csv")

    @property
    def is_parquet(self) -> bool:
        """Parquet, or text: CSV or TSV."""
        return self.path.name.removesuffix(self.packed).endswith(".parquet")

    def sources(self) -> list[Path | BytesIO]:
        """What polars and pyarrow can open: the file itself, what is packed in it, or the parts of a folder."""
        if self.path.is_dir():
            return [*sorted(self.path.glob("*.parquet"))]
        return [BytesIO(read_bytes(self.path)) if self.packed else self.path]

    def place(self, row: int) -> str:
        """Row `row`, counted from 1; row 0 is the header."""
        line = "" if self.is_parquet or self.is_csv else f":{row + 1}"
        return f"{self.path}{line}: " + (f"row {row}, " if row else "")


def is_table(path: Path) -> bool:
    """Whether a file or a folder is there that has the name of a table."""
    if path.is_dir():
        return path.name.endswith(".parquet")
    return path.is_file() and path.name.removesuffix(_packed(path)).endswith((".csv", ".tsv", ".parquet"))


def columns_of(path: PathLike) -> tuple[str, ...]:
    """The names of a table's columns."""
    table = Table(Path(path), {})
    with _foreign_errors(table):
        return tuple(_lazy(table).collect_schema())


def scan(table: Table) -> pl.LazyFrame:
    """The columns that are wanted, in their types; the file is run through once, piece by piece, to check it."""
    with _foreign_errors(table):
        typed, rows = _checked(table, _lazy(table), 0)
    if not rows:
        raise DataError(f"{table.path}: no row in it")
    return typed


def batches(table: Table, batch_size: int) -> Iterator[pl.DataFrame]:
    """The same, at most `batch_size` rows at a time, in the order of the file; rows are checked as they come."""
    done = 0
    with _foreign_errors(table):
        for frame, rows in (_parquet_batches if table.is_parquet else _text_batches)(table, batch_size):
            typed, kept = _checked(table, frame, done)
            done += rows
            if kept:
                yield typed.collect()


def _packed(path: Path) -> str:
    return path.suffix if path.suffix in (".gz", ".xz", ".zst") else ""


def _lazy(table: Table) -> pl.LazyFrame:
    import polars as pl

    sources = table.sources()
    if not table.is_parquet:
        return _lazy_text(table, sources[0])
    if not sources:
        raise DataError(f"{table.path}: a folder without a part named .parquet")
    return pl.scan_parquet(sources)  # type: ignore[arg-type]  # a list is of paths only, or of one of bytes


def _lazy_text(table: Table, source: Path | BytesIO) -> pl.LazyFrame:
    import polars as pl

    separator, quote = (",", '"') if table.is_csv else ("\t", None)
    return pl.scan_csv(source, separator=separator, quote_char=quote, infer_schema=False)


def _opened(table: Table) -> IO[bytes]:
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
    if table.is_csv:  # a quoted field may hold line breaks, so CSV is read whole
        for frame in _lazy(table).collect().iter_slices(batch_size):
            yield frame.lazy(), len(frame)
        return
    with _opened(table) as file:
        header = file.readline()
        while lines := list(islice(file, batch_size)):
            yield _lazy_text(table, BytesIO(header + b"".join(lines))), len(lines)


def _checked(table: Table, frame: pl.LazyFrame, done: int) -> tuple[pl.LazyFrame, int]:
    """The wanted columns in their types, and the number of rows; `done` rows of the file came before these."""
    import polars as pl

    schema = frame.collect_schema()
    kinds = _present(table, schema)
    frame = frame.with_row_index(_ROW, offset=done + 1)
    if not table.is_parquet:
        blank = pl.all_horizontal(pl.exclude(_ROW).is_null())
        frame = frame.filter(~blank)
    problems = _problems(table, kinds, schema)
    firsts = [pl.col(_ROW).filter(problem.bad).min().alias(str(k)) for k, problem in enumerate(problems)]
    rows, *found = frame.select(pl.len(), *firsts).collect(engine="streaming").row(0)
    wrong = [(row, k) for k, row in enumerate(found) if row is not None]
    if wrong:
        row, k = min(wrong)
        column = problems[k].column
        value = frame.filter(pl.col(_ROW) == row).select(column).collect().item()
        raise DataError(f"{table.place(row)}column {column!r} {problems[k].sentence}; got {value!r}")
    return frame.select(_typed(name, kind, schema[name]) for name, kind in kinds.items()), rows


def _present(table: Table, schema: pl.Schema) -> dict[str, str]:
    """The wanted columns that are there, each of a type that can hold what is wanted of it."""
    for name, kind in table.kinds.items():
        if name not in schema and name != table.may_lack:
            raise DataError(
                f"{table.place(0)}no column {name!r}; the columns must be {', '.join(table.kinds)}"
                f"{f' ({table.may_lack} may be left out)' if table.may_lack else ''}; got {', '.join(schema)}"
            )
        if name in schema and table.is_parquet and not _can_hold(schema[name], kind):
            raise DataError(f"{table.place(0)}column {name!r} must be {_WANTED[kind]}; its type is {schema[name]}")
    if table.unlike and len({_is_text(schema[name]) for name in table.unlike}) > 1:
        one, other = table.unlike
        raise DataError(f"{table.place(0)}columns {one!r} and {other!r} must both be text or both be whole numbers")
    return {name: kind for name, kind in table.kinds.items() if name in schema}


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
    """Column `name` in the type it is handed on in; null where a text does not say such a value."""
    import polars as pl

    column = pl.col(name)
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


@dataclass(frozen=True)
class _Problem:
    """Rows for which `bad` holds are refused with this sentence about this column."""

    column: str
    sentence: str
    bad: pl.Expr


def _problems(table: Table, kinds: dict[str, str], schema: pl.Schema) -> list[_Problem]:
    import polars as pl

    may_be_empty = ("title",) if table.is_parquet else ("title", "text")
    problems = [
        _Problem(name, "must not be empty", pl.col(name).is_null())
        for name, kind in kinds.items()
        if kind not in may_be_empty
    ]
    for name, kind in kinds.items():
        value = _typed(name, kind, schema[name])
        good = value.is_not_null()
        if kind in ("weight", "grade"):
            good = good & value.is_finite()
        if kind == "weight":
            good = good & (value >= 0)
        elif kind == "position":
            good = good & (value >= 1)
        if kind not in ("id", "text", "title"):
            problems.append(_Problem(name, f"must be {_WANTED[kind]}", ~good.fill_null(False)))
    if table.unlike:
        one, other = (_typed(name, "id", schema[name]) for name in table.unlike)
        sentence = f"must not name the item that is {table.unlike[0]!r} too"
        problems.append(_Problem(table.unlike[1], sentence, one == other))
    return problems


@contextmanager
def _foreign_errors(table: Table) -> Iterator[None]:
    """Turn what polars and pyarrow raise into an error that names the file and, in TSV, the line."""
    import polars as pl
    import pyarrow as pa

    try:
        yield
    except (pl.exceptions.PolarsError, pa.ArrowException, OSError) as error:
        if not table.is_parquet and not table.is_csv:
            _refuse_first_odd_line(table)
        kind = "Parquet" if table.is_parquet else "CSV" if table.is_csv else "TSV"
        raise DataError(f"{table.path}: not a whole {kind} file: {str(error).splitlines()[0]}") from None


def _refuse_first_odd_line(table: Table) -> None:
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
