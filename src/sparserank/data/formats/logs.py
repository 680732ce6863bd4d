"""Triples and click logs: tables that may be larger than memory, as CSV (`.csv`), TSV (`.tsv`) or Parquet (`.parquet`).

    triples   query, better, worse and, where it is there, weight    "for this query, that beats this"
    clicks    session, query, document, position, clicked            what was shown where, and taken or not

`weight` is finite and not negative, `position` counts from 1, `clicked` is 0 or 1. How a table is read is told in
`tables`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ... import validation
from ...errors import DataError
from ..files import PathLike
from .tables import Table, batches, scan

if TYPE_CHECKING:
    import polars as pl

_TRIPLES = {"query": "id", "better": "id", "worse": "id", "weight": "weight"}
_CLICKS = {"session": "id", "query": "id", "document": "id", "position": "position", "clicked": "clicked"}


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

    def of(self, queries: Container[str], items: Container[str]) -> tuple[Triples, int]:
        """Those whose ids, as text, are all among these; and how many are not."""
        told = self.named()
        rows = zip(told.query, told.better, told.worse, strict=True)
        there = np.array([q in queries and b in items and w in items for q, b, w in rows], np.bool_)
        kept = Triples(told.query[there], told.better[there], told.worse[there], told.weight[there])
        return kept, len(self) - len(kept)

    def named(self) -> Triples:
        """The same with ids as text: a whole number as its digits."""
        columns = [np.array([str(one) for one in ids], object) for ids in (self.query, self.better, self.worse)]
        return Triples(columns[0], columns[1], columns[2], self.weight)


def scan_triples(path: PathLike) -> pl.LazyFrame:
    """A lazy frame of `query, better, worse` and, where the file has it, `weight`.

    The file is run through once, piece by piece, to check it.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.tsv").write_text("query\\tbetter\\tworse\\nq1\\td1\\td2\\nq1\\td1\\td3\\n")
    ...     scan_triples(f"{folder}/t.tsv").collect().rows()
    [('q1', 'd1', 'd2'), ('q1', 'd1', 'd3')]
    """
    return scan(_triples(path))


def scan_clicks(path: PathLike) -> pl.LazyFrame:
    """A lazy frame of `session, query, document, position, clicked`, the last true or false; checked as triples are.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     header = "session\\tquery\\tdocument\\tposition\\tclicked\\n"
    ...     _ = Path(folder, "c.tsv").write_text(header + "s1\\tq1\\td1\\t1\\t0\\n")
    ...     scan_clicks(f"{folder}/c.tsv").collect().rows()
    [('s1', 'q1', 'd1', 1, False)]
    """
    return scan(Table(Path(path), _CLICKS))


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
    validation.count("batch_size", batch_size, low=1)
    records = map(_record, batches(_triples(path), batch_size))
    # The first batch is read here and now, so that a file of the wrong kind is refused by this call.
    first = next(records, None)
    if first is None:
        raise DataError(f"{path}: no row in it")
    return chain([first], records)


def _triples(path: PathLike) -> Table:
    return Table(Path(path), _TRIPLES, may_lack="weight", unlike=("better", "worse"))


def _record(frame: pl.DataFrame) -> Triples:
    query, better, worse = (frame[name].to_numpy() for name in ("query", "better", "worse"))
    weight = frame["weight"].to_numpy() if "weight" in frame.columns else np.ones(len(frame))
    return Triples(query, better, worse, weight)
