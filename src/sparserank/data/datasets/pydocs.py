"""The collection that every installation has: the docstrings of numpy, scipy and scikit-learn.

A document is a public object: a function, a class, a ufunc or a documented instance. It has one id, its shortest
public dotted name. Its text is its docstring without the *See Also* section; the summary of an object with such a
section is a query, and the objects the section names are relevant to it with grade 1. A query's id is its object's
id, and that document is left out of its own ranking. The split goes by a hash of the id: it never depends on what
else is in the collection. Two builds from the same versions give the same collection.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import inspect
import json
import pkgutil
import re
import sys
import types
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import DataError
from ..files import read_bytes, write_bytes
from ..records import Collection, Documents
from .docstrings import Docstring, parse
from .download import cache_folder

PACKAGES = {"numpy": "numpy", "scipy": "scipy", "sklearn": "scikit-learn"}
RULES = 1
"""Counted up whenever the rules of this file or of `docstrings` change, so that no older cache is taken."""

SKIPPED = frozenset(
    {"tests", "conftest", "testutils", "estimator_checks"}  # tests and what only tests need
    | {"f2py", "distutils", "externals"}  # build tools and vendored code
    | {"core", "experimental"}  # modules that warn or change others when they are imported
    | {"cython_special"}  # scipy.special once more
)
FEWEST_DOCUMENTS = 1_000


EXPERIMENTAL = re.compile(r"explicitly import\s+`+enable_")
"""What scikit-learn says of objects that are only there once something has switched them on: they are left out, so that
the collection does not depend on what else a process has imported."""


def load() -> Collection:
    """The collection of the versions installed, from the cache or built in a few seconds and cached."""
    versions = installed_versions()
    path = cache_file(versions)
    cached = _read(path, versions)
    if cached is not None:
        return cached
    collection = build(versions)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, _as_json(collection))
    except (DataError, OSError):
        # A cache that cannot be written costs the next caller a few seconds, and this one nothing.
        pass
    return collection


def installed_versions() -> dict[str, str]:
    """The version of each package the collection is built from, without importing it."""
    try:
        return {name: importlib.metadata.version(name) for name in PACKAGES.values()}
    except importlib.metadata.PackageNotFoundError as error:
        raise DataError(f"pydocs is built from numpy, scipy and scikit-learn; {error.name} is not installed") from None


def cache_file(versions: Mapping[str, str]) -> Path:
    """The one file that holds the collection of these versions."""
    tag = "-".join(f"{name}-{version}" for name, version in versions.items())
    return cache_folder() / "data" / "pydocs" / f"pydocs-{RULES}-{tag}.json.gz"


def cached_file() -> Path | None:
    """Where the collection of the installed versions is kept, or None where it has not been built yet."""
    try:
        path = cache_file(installed_versions())
    except DataError:
        return None
    return path if path.is_file() else None


def split_of(query_id: str) -> str:
    """Train for 70 of 100 queries, dev for 10, test for 20, by the sha256 of the id alone.

    >>> split_of("numpy.argsort"), split_of("scipy.linalg.lu_factor")
    ('train', 'train')
    """
    tenth = int.from_bytes(hashlib.sha256(query_id.encode()).digest()[:8], "big") % 10
    return "train" if tenth < 7 else "dev" if tenth == 7 else "test"


def build(versions: Mapping[str, str]) -> Collection:
    """Walk the packages and put the collection together; silent, and the same every time."""
    if sys.flags.optimize > 1:
        raise DataError("pydocs is built from docstrings, and Python was started with -OO, which drops them")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        objects = _public_objects()
    docs = {item.id: parse(item.doc) for item in objects}
    if len(docs) < FEWEST_DOCUMENTS:
        raise DataError(
            f"pydocs is built from docstrings, and only {len(docs)} objects of numpy, scipy and scikit-learn have one"
        )
    ids = tuple(sorted(docs))
    judged = _judgments(objects, docs)
    return Collection(
        name="pydocs",
        documents=Documents(ids, ids, tuple(docs[one].text for one in ids)),
        queries={one: docs[one].summary for one in judged},
        qrels=_split(judged),
        drop_self=True,
        versions=dict(versions),
    )


@dataclass
class _Public:
    """A public object with all its public names: (not in an `__all__`, number of dots, length, name)."""

    value: Any
    doc: str
    names: list[tuple[bool, int, int, str]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return min(self.names)[-1]


def _public_objects() -> list[_Public]:
    found: dict[int, _Public] = {}
    for name, module in _public_modules():
        listed = vars(module).get("__all__")
        for key in sorted(vars(module) if listed is None else set(listed)):
            value: Any = vars(module).get(key)
            if key.startswith("_") or key == "test" or not _is_documented(value):
                continue
            # Without __all__ a module's public names are those it defines, not those it imports.
            if listed is None and getattr(value, "__module__", None) != name:
                continue
            dotted = f"{name}.{key}"
            item = found.setdefault(id(value), _Public(value, value.__doc__))
            item.names.append((listed is None, dotted.count("."), len(dotted), dotted))
    return sorted(found.values(), key=lambda item: item.id)


def _public_modules() -> Iterator[tuple[str, types.ModuleType]]:
    """Every public module under its dotted name, and under the other names that an `__all__` gives it."""
    try:
        for package in PACKAGES:
            importlib.import_module(package)
    except ImportError as error:
        raise DataError(f"pydocs is built from numpy, scipy and scikit-learn; {error}") from None
    for package in PACKAGES:
        for name, module in _walk(package):
            yield name, module
            for key in vars(module).get("__all__") or ():
                other = vars(module).get(key)
                if not isinstance(other, types.ModuleType) or key.startswith("_") or key in SKIPPED:
                    continue
                if other.__name__.startswith(f"{package}.") and other.__name__ != f"{name}.{key}":
                    yield f"{name}.{key}", other


def _walk(name: str) -> Iterator[tuple[str, types.ModuleType]]:
    try:
        module = importlib.import_module(name)
    except Exception:
        # A module that wants something which is not installed has no documents here.
        return
    yield name, module
    for entry in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not entry.name.startswith("_") and entry.name not in SKIPPED:
            yield from _walk(f"{name}.{entry.name}")


def _is_documented(value: Any) -> bool:
    """Whether a value is an object of these packages with a docstring; constants and aliases of types are not."""
    if isinstance(value, types.ModuleType | types.GenericAlias | np.ndarray | np.generic):
        return False
    doc = getattr(value, "__doc__", None)
    if isinstance(doc, str) and EXPERIMENTAL.search(doc):
        return False
    if not isinstance(doc, str) or not doc.strip():
        return False
    home = getattr(value, "__module__", None)
    if home is None and inspect.isroutine(value):
        return True
    kind = value if isinstance(value, type) else type(value)
    return any(str(module).split(".")[0] in PACKAGES for module in (home, kind.__module__))


def _judgments(objects: list[_Public], docs: Mapping[str, Docstring]) -> dict[str, dict[str, float]]:
    """{object: {object its See Also names: 1}} for every object with a summary and a name that leads somewhere."""
    home = {names[-1]: item.id for item in objects for names in item.names}
    judged = {}
    for item in objects:
        doc = docs[item.id]
        found = {other for name in doc.see_also if (other := _resolve(name, item, home)) is not None}
        if found and doc.summary:
            judged[item.id] = dict.fromkeys(sorted(found), 1.0)
    return judged


def _resolve(name: str, item: _Public, home: Mapping[str, str]) -> str | None:
    """The id behind a name, read from the object's module outwards to its package, then as it stands."""
    if name.startswith("np."):
        name = f"numpy.{name.removeprefix('np.')}"
    # Where the object is defined counts last, after every module in which it is public.
    places = [names[-1] for names in sorted(item.names)] + [f"{getattr(item.value, '__module__', None)}."]
    for place in places:
        module = place.rpartition(".")[0]
        while module:
            found = home.get(f"{module}.{name}")
            if found is not None and found != item.id:
                return found
            module = module.rpartition(".")[0]
    found = home.get(name)
    return None if found == item.id else found


def _split(judged: Mapping[str, dict[str, float]]) -> dict[str, dict[str, dict[str, float]]]:
    splits: dict[str, dict[str, dict[str, float]]] = {"train": {}, "dev": {}, "test": {}}
    for query, grades in judged.items():
        splits[split_of(query)][query] = grades
    return splits


def _as_json(collection: Collection) -> bytes:
    whole = {
        "rules": RULES,
        "versions": collection.versions,
        "ids": collection.documents.ids,
        "texts": collection.documents.texts,
        "queries": collection.queries,
        "relevant": {query: sorted(grades) for split in collection.qrels.values() for query, grades in split.items()},
    }
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def _read(path: Path, versions: Mapping[str, str]) -> Collection | None:
    """What is cached, or None where there is nothing that can be used."""
    try:
        whole = json.loads(read_bytes(path))
        if whole["rules"] != RULES or whole["versions"] != versions:
            return None
        ids, texts = tuple(whole["ids"]), tuple(whole["texts"])
        queries = whole["queries"]
        judged = {query: dict.fromkeys(whole["relevant"][query], 1.0) for query in queries}
        documents = Documents(ids, ids, texts)
    except (DataError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Collection("pydocs", documents, queries, _split(judged), drop_self=True, versions=dict(versions))
