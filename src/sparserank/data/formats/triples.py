"""Triples "for this query, `better` beats `worse`", as CSV, TSV or Parquet, possibly larger than memory.

The columns are `query`, `better`, `worse` and, optionally, `weight` (finite, 0 or more). See `tables` for the format.
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
from ...deprecated import renamed_attribute
from ...errors import DataError
from ..files import PathLike
from .tables import Table, batches, scan

if TYPE_CHECKING:
    import polars as pl

_COLUMNS = {"query": "id", "better": "id", "worse": "id", "weight": "weight"}


@dataclass(frozen=True)
class Triples:
    """For query[i], better[i] should rank above worse[i], with importance weight[i].

    Parameters
    ----------
    query, better, worse : array
        Ids: whole numbers (int64) or Python strings (object arrays).
    weight : array of float
        The weight of each triple.

    Examples
    --------
    >>> ids = [np.array([name], object) for name in ("q1", "d1", "d2")]
    >>> len(Triples(*ids, np.ones(1)))
    1
    """

    query: NDArray[Any]
    better: NDArray[Any]
    worse: NDArray[Any]
    weight: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.query)

    def restrict(self, queries: Container[str], documents: Container[str]) -> tuple[Triples, int]:
        """Keep the triples whose ids are all in these containers.

        Parameters
        ----------
        queries, documents : container of str
            The ids to keep.

        Returns
        -------
        triples : Triples
            The triples that remain, with ids as text.
        dropped : int
            How many were dropped.
        """
        text = self.with_text_ids()
        rows = zip(text.query, text.better, text.worse, strict=True)
        keep = np.array([q in queries and b in documents and w in documents for q, b, w in rows], np.bool_)
        triples = Triples(text.query[keep], text.better[keep], text.worse[keep], text.weight[keep])
        return triples, len(self) - len(triples)

    def with_text_ids(self) -> Triples:
        """Return the same triples with ids as text: a whole number becomes its digits."""
        columns = [np.array([str(one) for one in ids], object) for ids in (self.query, self.better, self.worse)]
        return Triples(columns[0], columns[1], columns[2], self.weight)

    named = renamed_attribute("named", "with_text_ids")
    of = renamed_attribute("of", "restrict")


def scan_triples(path: PathLike) -> pl.LazyFrame:
    """Check a file of triples in one streaming pass and return it as a lazy frame.

    Parameters
    ----------
    path : path
        A .csv, .tsv or .parquet file.

    Returns
    -------
    polars.LazyFrame
        The columns `query`, `better`, `worse` and, if the file has it, `weight`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.tsv").write_text("query\\tbetter\\tworse\\nq1\\td1\\td2\\nq1\\td1\\td3\\n")
    ...     scan_triples(f"{folder}/t.tsv").collect().rows()
    [('q1', 'd1', 'd2'), ('q1', 'd1', 'd3')]
    """
    return scan(_table(path))


def read_triples(path: PathLike) -> Triples:
    """Read all triples of a file.

    Parameters
    ----------
    path : path
        A .csv, .tsv or .parquet file. Without a column `weight` every triple has weight 1.

    Returns
    -------
    Triples
        The triples in file order.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.tsv").write_text("query\\tbetter\\tworse\\tweight\\nq1\\td1\\td2\\t0.5\\n")
    ...     read_triples(f"{folder}/t.tsv").weight.tolist()
    [0.5]
    """
    return _triples(scan_triples(path).collect())


def stream_triples(path: PathLike, batch_size: int = 65_536) -> Iterator[Triples]:
    """Read a file of triples in batches; each batch is checked when it is reached.

    Parameters
    ----------
    path : path
        A .csv, .tsv or .parquet file.
    batch_size : int, default 65,536
        The largest number of triples in a batch.

    Returns
    -------
    iterator of Triples
        The batches in file order.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.tsv").write_text("query\\tbetter\\tworse\\nq\\ta\\tb\\nq\\ta\\tc\\nr\\tc\\ta\\n")
    ...     [len(batch) for batch in stream_triples(f"{folder}/t.tsv", batch_size=2)]
    [2, 1]
    """
    validation.count("batch_size", batch_size, low=1)
    records = map(_triples, batches(_table(path), batch_size))
    first = next(records, None)  # read now, so that this call raises if the file is of the wrong kind
    if first is None:
        raise DataError(f"{path}: contains no rows")
    return chain([first], records)


def _table(path: PathLike) -> Table:
    return Table(Path(path), _COLUMNS, optional=("weight",), different=("better", "worse"))


def _triples(frame: pl.DataFrame) -> Triples:
    query, better, worse = (frame[name].to_numpy() for name in ("query", "better", "worse"))
    weight = frame["weight"].to_numpy() if "weight" in frame.columns else np.ones(len(frame))
    return Triples(query, better, worse, weight)
