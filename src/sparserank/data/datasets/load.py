"""Load named data sets, and list them.

The names are those of the catalog and of every BEIR folder in `$SPARSERANK_DATA`.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...deprecated import renamed_names
from ...errors import ConfigError, DataError
from ..formats.beir import is_beir, read_beir, split_names
from ..records import Collection
from .catalog import CATALOG, DataSet, import_function
from .download import Progress, locate, obtain


@dataclass(frozen=True)
class DatasetInfo:
    """A named data set in the list of all.

    Parameters
    ----------
    name, what, size, terms : str
        Its name, a description, its size and its licence.
    path : path or None
        Where it is on this machine, if it is.
    how : str
        How to get it.
    """

    name: str
    what: str
    size: str
    terms: str
    path: Path | None
    how: str


def list_datasets() -> tuple[DatasetInfo, ...]:
    """List every named data set: what it is, where it is on this machine (not verified), and how to get it.

    Returns
    -------
    tuple of DatasetInfo
        The sets of the catalog, then the BEIR folders in `$SPARSERANK_DATA` in alphabetical order.

    Examples
    --------
    >>> [info.name for info in list_datasets()][:3]
    ['20newsgroups', 'mnist', 'digits']
    """
    catalog = (DatasetInfo(row.name, row.what, row.size, row.terms, _path(row), row.how) for row in CATALOG.values())
    return *catalog, *(_folder_info(folder) for folder in beir_folders().values())


def beir_folders() -> dict[str, Path]:
    """Return the BEIR folders in `$SPARSERANK_DATA` by name, except those with a name of the catalog."""
    root = os.environ.get("SPARSERANK_DATA")
    if not root or not Path(root).is_dir():
        return {}
    return {path.name: path for path in sorted(Path(root).iterdir()) if path.name not in CATALOG and is_beir(path)}


def _folder_info(folder: Path) -> DatasetInfo:
    splits = ", ".join(split_names(folder)) or "none"
    return DatasetInfo(folder.name, "a collection in BEIR's format;", f"splits: {splits}", "", folder, "")


def _path(data_set: DataSet) -> Path | None:
    if data_set.location:
        path: Path | None = import_function(data_set.location)()
        return path
    location = locate(data_set)
    return None if location is None else location[0].folder


def load(name: str, *, download: bool = True, progress: Progress | None = None, **options: Any) -> Any:
    """Load a named data set from `$SPARSERANK_DATA`, from the cache, or from its public home; files are verified.

    | name | returns | options |
    |---|---|---|
    | 20newsgroups | `TrainTestSplit` of raw texts | |
    | mnist, digits | `TrainTestSplit` of uint8 arrays, one image per row | |
    | rcv1 | `Stories` | `unique=True` |
    | mq2007 | `Letor` | |
    | mq2008 | tuple of five `Fold`s, or one | `fold=None` |
    | ohsumed | tuple of five `Fold`s, or one | `fold=None, norm="QueryLevelNorm"` |
    | nfcorpus, cranfield, pydocs, wands | `Collection` | |
    | esci | `Collection` | `locale="us", small=True` |
    | a BEIR folder in `$SPARSERANK_DATA` | `Collection`, by `read_beir`, without a checksum | `missing="error"` |

    Parameters
    ----------
    name : str
        A name of the table.
    download : bool, default True
        Whether to download missing files.
    progress : callable, optional
        Called as `progress(file, bytes so far, bytes in total or None)` during a download.
    **options
        The options of the data set.

    Returns
    -------
    record
        The type is in the table.

    Examples
    --------
    >>> len(load("digits").test)
    500
    """
    if name not in tuple(CATALOG):  # `name` may be unhashable
        return _load_folder(name, options)
    data_set = CATALOG[name]
    loader = import_function(data_set.loader)
    allowed = [key for key in inspect.signature(loader).parameters if key != "files"]
    for option in options:
        if option not in allowed:
            raise ConfigError(
                f"The data set {name!r} has no option {option!r}; its options: {', '.join(allowed) or 'none'}."
            )
    if not data_set.editions:
        return loader(**options)
    return loader(obtain(data_set, download=download, progress=progress), **options)


def dataset_names() -> list[str]:
    """Return the names of all data sets."""
    return [*CATALOG, *beir_folders()]


def find_folder(name: str) -> Path | None:
    """Return the folder of a named data set on this machine, None without one; reads and verifies nothing."""
    row = CATALOG.get(name)
    return beir_folders().get(name) if row is None else None if row.location else _path(row)


def closest_names(name: object, names: Sequence[str]) -> str:
    """Return "did you mean 'mnist'? " for a misspelled name, or ""."""
    close = difflib.get_close_matches(str(name).lower(), names, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(map(repr, close))}? " if close else ""


def _load_folder(name: str, options: dict[str, Any]) -> Collection:
    folders = beir_folders()
    if name not in tuple(folders):
        names = dataset_names()
        raise DataError(
            f"unknown data set {name!r}; {closest_names(name, names)}the names are: {', '.join(names)}, "
            "and those of BEIR folders in $SPARSERANK_DATA"
        )
    if unknown := [option for option in options if option != "missing"]:
        raise ConfigError(f"The data set {name!r} has no option {unknown[0]!r}; its options: missing.")
    return read_beir(folders[name], **options)


__getattr__ = renamed_names(__name__, {"Known": "DatasetInfo", "known": "list_datasets"})
