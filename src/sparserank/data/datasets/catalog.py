"""The catalog of named data sets, read from `catalog.toml`."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Edition:
    """One form in which a data set may be in a folder.

    parts : {file name without .gz, .xz or .zst: accepted digests}; see `checksum`.
    sources : {file name: public addresses in order}; without sources the edition is not downloaded.
    assemble : "module:function" that makes the parts, `function(folder of sources, empty folder)`; without it, the
    sources are the parts.
    """

    parts: Mapping[str, tuple[str, ...]]
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    assemble: str = ""


@dataclass(frozen=True)
class DataSet:
    """One entry of the catalog.

    loader : "module:function" that takes `LocalFiles` and the options of the set.
    folder : another folder in `$SPARSERANK_DATA` to look in.
    location : for a set without editions, which comes with a package: "module:function" that returns its path or None.
    Its loader takes the options only.
    """

    name: str
    what: str
    size: str
    terms: str
    how: str
    loader: str
    folder: str = ""
    editions: tuple[Edition, ...] = ()
    location: str = ""


def import_function(reference: str) -> Any:
    """Import the function behind "module:function"."""
    module, _, function = reference.partition(":")
    return getattr(importlib.import_module(module), function)


def _read_catalog() -> dict[str, DataSet]:
    content = tomllib.loads(Path(__file__).with_name("catalog.toml").read_text("utf-8"))
    return {name: _data_set(name, row) for name, row in content.items()}


def _data_set(name: str, row: dict[str, Any]) -> DataSet:
    here = __package__
    editions = tuple(
        Edition(
            {part: tuple(digests) for part, digests in edition["parts"].items()},
            {source: tuple(urls) for source, urls in edition.get("sources", {}).items()},
            f"{here}.{edition['assemble']}" if "assemble" in edition else "",
        )
        for edition in row.pop("editions", ())
    )
    functions = {key: f"{here}.{row[key]}" for key in ("loader", "location") if key in row}
    return DataSet(name, **row | functions, editions=editions)


CATALOG = _read_catalog()
"""Every named data set by its name, in the order of the list."""
