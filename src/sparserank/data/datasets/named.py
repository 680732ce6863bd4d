"""The named data sets, as a user asks for them: `load` one, or list all that are `known`.

Besides those of the registry, every BEIR folder in `$SPARSERANK_DATA` is a data set by its folder's name.
"""

from __future__ import annotations

import difflib
import inspect
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...errors import ConfigError, DataError
from ..formats.beir import is_beir, read_beir, split_names
from ..records import Collection
from .catalog import REGISTRY
from .download import DataSet, Progress, locate, named, obtain


@dataclass(frozen=True)
class Known:
    """One set as a list of all would show it; `path` is None where the set is not on this machine."""

    name: str
    what: str
    size: str
    terms: str
    path: Path | None
    how: str


def known() -> tuple[Known, ...]:
    """Every named set: what it is, where it is on this machine (not yet verified), and how to get it.

    Returns
    -------
    tuple of Known
        The sets of the registry, then the BEIR folders in `$SPARSERANK_DATA` in alphabetical order.

    Examples
    --------
    >>> [row.name for row in known()][:3]
    ['20newsgroups', 'mnist', 'digits']
    """
    registered = (Known(row.name, row.what, row.size, row.terms, _path(row), row.how) for row in REGISTRY.values())
    return *registered, *(_listed(folder) for folder in beir_folders().values())


def beir_folders() -> dict[str, Path]:
    """The BEIR folders in `$SPARSERANK_DATA` by name, without those that the registry names."""
    root = os.environ.get("SPARSERANK_DATA")
    if not root or not Path(root).is_dir():
        return {}
    return {path.name: path for path in sorted(Path(root).iterdir()) if path.name not in REGISTRY and is_beir(path)}


def _listed(folder: Path) -> Known:
    splits = ", ".join(split_names(folder)) or "none"
    return Known(folder.name, "a collection in BEIR's format;", f"splits: {splits}", "", folder, "")


def _path(row: DataSet) -> Path | None:
    if row.here:
        path: Path | None = named(row.here)()
        return path
    here = locate(row)
    return None if here is None else here[0].folder


def load(name: str, *, download: bool = True, progress: Progress | None = None, **options: Any) -> Any:
    """A named data set: from `$SPARSERANK_DATA`, from the cache, or fetched from its public home; always verified.

    | name | what comes back | options |
    |---|---|---|
    | 20newsgroups | `Split` of raw texts | |
    | mnist, digits | `Split` of uint8 arrays, one image a row | |
    | rcv1 | `Stories` | `unique=True` |
    | mq2007 | `Letor` | |
    | mq2008 | tuple of five `Fold`s, or one | `fold=None` |
    | ohsumed | tuple of five `Fold`s, or one | `fold=None, norm="QueryLevelNorm"` |
    | nfcorpus, cranfield, pydocs | `Collection` | |
    | a BEIR folder in `$SPARSERANK_DATA` | `Collection`, as `read_beir` reads it; no checksum is known | |

    `download=False` never goes to the network; `progress(file, bytes so far, bytes in all)` is called on the way.

    >>> len(load("digits").test)
    500
    """
    if name not in tuple(REGISTRY):  # not a look-up: whatever is given need not be hashable
        return _load_folder(name, options)
    row = REGISTRY[name]
    loader = named(row.loader)
    takes = [key for key in inspect.signature(loader).parameters if key != "found"]
    for option in options:
        if option not in takes:
            there = ", ".join(takes) or "none"
            raise ConfigError(f"The data set {name!r} has no option {option!r}; its options: {there}.")
    if not row.editions:
        return loader(**options)
    return loader(obtain(row, download=download, progress=progress), **options)


def _load_folder(name: str, options: dict[str, Any]) -> Collection:
    """The BEIR folder of this name; an unknown name raises DataError with the names there are."""
    folders = beir_folders()
    if name not in tuple(folders):
        names = [*REGISTRY, *folders]
        close = difflib.get_close_matches(str(name).lower(), names, n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        raise DataError(
            f"no data set is called {name!r}; {guess}There are: {', '.join(names)}; "
            "a BEIR folder in $SPARSERANK_DATA is one by its name"
        )
    if options:
        raise ConfigError(f"The data set {name!r} has no option {next(iter(options))!r}; its options: none.")
    return read_beir(folders[name])
