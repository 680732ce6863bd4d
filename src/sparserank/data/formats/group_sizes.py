"""Group sizes beside a LETOR file without query ids, as LightGBM has them: `train.txt.query`, one number per line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...errors import DataError
from ..files import COMPRESSION_SUFFIXES, PathLike
from .lines import read_fields


def group_path(rows: PathLike) -> Path:
    """Return the path of the group sizes of a LETOR file.

    >>> group_path("train.txt.gz").name
    'train.txt.query'
    """
    path = Path(rows)
    return Path(f"{path.with_suffix('') if path.suffix in COMPRESSION_SUFFIXES[1:] else path}.query")


def read_group_sizes(path: PathLike, rows: PathLike, n_rows: int) -> NDArray[np.int64]:
    """Return the query of each of the `n_rows` rows of the file `rows`; queries are numbered from 0."""
    sizes = []
    for where, (size,) in read_fields(path, "rows"):
        if not (size.isascii() and size.isdecimal() and int(size) > 0):
            raise DataError(f"{where}: the number of rows of a query must be a positive whole number; got {size!r}")
        sizes.append(int(size))
    if sum(sizes) != n_rows:
        raise DataError(f"{path}: its queries have {sum(sizes):,} rows, but {rows} has {n_rows:,}")
    return np.repeat(np.arange(len(sizes)), sizes)
