"""The named data sets, as a user asks for them: `load` one, or list all that are `known`."""

from __future__ import annotations

import difflib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError, DataError
from .fetch import DataSet, Progress, locate, named, obtain
from .registry import REGISTRY


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

    >>> [row.name for row in known()][:3]
    ['20newsgroups', 'mnist', 'digits']
    """
    return tuple(Known(row.name, row.what, row.size, row.terms, _path(row), row.how) for row in REGISTRY.values())


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

    `download=False` never goes to the network; `progress(file, bytes so far, bytes in all)` is called on the way.

    >>> len(load("digits").test)
    500
    """
    if name not in tuple(REGISTRY):  # not a look-up: whatever is given need not be hashable
        close = difflib.get_close_matches(str(name).lower(), REGISTRY, n=3, cutoff=0.5)
        guess = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
        raise DataError(f"no data set is called {name!r}; {guess}There are: {', '.join(REGISTRY)}")
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
