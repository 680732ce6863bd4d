"""The embedded collection `pydocs`: the docstrings of the installed numpy, scipy and scikit-learn.

A document is a public object: a function, a class, a ufunc or a documented instance. Its id is its shortest public
dotted name, its text its docstring without the *See Also* section. The summary of an object with such a section is a
query; the objects that the section names are relevant with grade 1. A query has the id of its object, whose document
is excluded from its ranking. A hash of the id decides the split. Builds from equal versions are equal.
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
"""The version of the rules in this file and in `docstrings`; a change invalidates older caches."""

SKIPPED = frozenset(
    {"tests", "conftest", "testutils", "estimator_checks"}  # tests and their tools
    | {"f2py", "distutils", "externals"}  # build tools and vendored code
    | {"core", "experimental"}  # modules that warn or have side effects on import
    | {"cython_special"}  # a copy of scipy.special
)
MIN_DOCUMENTS = 1_000


EXPERIMENTAL = re.compile(r"explicitly import\s+`+enable_")
"""scikit-learn's notice for experimental objects. They are left out, because they exist only after another import."""


def load() -> Collection:
    """Load the collection of the installed versions from the cache, or build and cache it in a few seconds."""
    versions = installed_versions()
    path = cache_file(versions)
    cached = _read_cache(path, versions)
    if cached is not None:
        return cached
    collection = build(versions)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, _to_json(collection))
    except (DataError, OSError):  # without a cache the next call builds the collection again
        pass
    return collection


def installed_versions() -> dict[str, str]:
    """Return the versions of the three packages, without importing them."""
    try:
        return {name: importlib.metadata.version(name) for name in PACKAGES.values()}
    except importlib.metadata.PackageNotFoundError as error:
        raise DataError(f"pydocs is built from numpy, scipy and scikit-learn; {error.name} is not installed") from None


def cache_file(versions: Mapping[str, str]) -> Path:
    """Return the cache file for these versions."""
    tag = "-".join(f"{name}-{version}" for name, version in versions.items())
    return cache_folder() / "data" / "pydocs" / f"pydocs-{RULES}-{tag}.json.gz"


def cached_file() -> Path | None:
    """Return the cache file of the installed versions, or None if it does not exist yet."""
    try:
        path = cache_file(installed_versions())
    except DataError:
        return None
    return path if path.is_file() else None


def split_of(query_id: str) -> str:
    """Assign a query to train (70 %), dev (10 %) or test (20 %) by the sha256 of its id.

    >>> split_of("numpy.argsort"), split_of("scipy.linalg.lu_factor")
    ('train', 'train')
    """
    tenth = int.from_bytes(hashlib.sha256(query_id.encode()).digest()[:8], "big") % 10
    return "train" if tenth < 7 else "dev" if tenth == 7 else "test"


def build(versions: Mapping[str, str]) -> Collection:
    """Build the collection from the packages; deterministic and without warnings."""
    if sys.flags.optimize > 1:
        raise DataError("pydocs is built from docstrings, and Python was started with -OO, which drops them")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        objects = _public_objects()
    docs = {item.id: parse(item.doc) for item in objects}
    if len(docs) < MIN_DOCUMENTS:
        raise DataError(
            f"pydocs is built from docstrings, and only {len(docs)} objects of numpy, scipy and scikit-learn have one"
        )
    ids = tuple(sorted(docs))
    qrels = _judgments(objects, docs)
    return Collection(
        name="pydocs",
        documents=Documents(ids, ids, tuple(docs[one].text for one in ids)),
        queries={one: docs[one].summary for one in qrels},
        qrels=_split(qrels),
        exclude_self=True,
        versions=dict(versions),
    )


@dataclass
class _PublicObject:
    """A public object with its public names as (not in an `__all__`, number of dots, length, name)."""

    value: Any
    doc: str
    names: list[tuple[bool, int, int, str]] = field(default_factory=list)

    @property
    def id(self) -> str:
        return min(self.names)[-1]


def _public_objects() -> list[_PublicObject]:
    objects: dict[int, _PublicObject] = {}
    for name, module in _public_modules():
        listed = vars(module).get("__all__")
        for key in sorted(vars(module) if listed is None else set(listed)):
            value: Any = vars(module).get(key)
            if key.startswith("_") or key == "test" or not _is_documented(value):
                continue
            # Without __all__, the public names of a module are those that it defines, not those that it imports.
            if listed is None and getattr(value, "__module__", None) != name:
                continue
            dotted = f"{name}.{key}"
            item = objects.setdefault(id(value), _PublicObject(value, value.__doc__))
            item.names.append((listed is None, dotted.count("."), len(dotted), dotted))
    return sorted(objects.values(), key=lambda item: item.id)


def _public_modules() -> Iterator[tuple[str, types.ModuleType]]:
    """Yield every public module with its dotted name, and with its other names in an `__all__`."""
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
        # A module with an uninstalled dependency has no documents.
        return
    yield name, module
    for entry in pkgutil.iter_modules(getattr(module, "__path__", ())):
        if not entry.name.startswith("_") and entry.name not in SKIPPED:
            yield from _walk(f"{name}.{entry.name}")


def _is_documented(value: Any) -> bool:
    """Return whether a value is an object of these packages with a docstring, not a constant or a type alias."""
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


def _judgments(objects: list[_PublicObject], docs: Mapping[str, Docstring]) -> dict[str, dict[str, float]]:
    """Return `{object: {object in its See Also: 1}}` for objects with a summary and a name that resolves."""
    home = {names[-1]: item.id for item in objects for names in item.names}
    qrels = {}
    for item in objects:
        doc = docs[item.id]
        relevant = {other for name in doc.see_also if (other := _resolve(name, item, home)) is not None}
        if relevant and doc.summary:
            qrels[item.id] = dict.fromkeys(sorted(relevant), 1.0)
    return qrels


def _resolve(name: str, item: _PublicObject, home: Mapping[str, str]) -> str | None:
    """Resolve a name relative to the modules of the object, from inner to outer, then as an absolute name."""
    if name.startswith("np."):
        name = f"numpy.{name.removeprefix('np.')}"
    # The defining module comes last, after every module in which the object is public.
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


def _split(qrels: Mapping[str, dict[str, float]]) -> dict[str, dict[str, dict[str, float]]]:
    splits: dict[str, dict[str, dict[str, float]]] = {"train": {}, "dev": {}, "test": {}}
    for query, grades in qrels.items():
        splits[split_of(query)][query] = grades
    return splits


def _to_json(collection: Collection) -> bytes:
    whole = {
        "rules": RULES,
        "versions": collection.versions,
        "ids": collection.documents.ids,
        "texts": collection.documents.texts,
        "queries": collection.queries,
        "relevant": {query: sorted(grades) for split in collection.qrels.values() for query, grades in split.items()},
    }
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def _read_cache(path: Path, versions: Mapping[str, str]) -> Collection | None:
    """Return the cached collection, or None if there is no valid cache."""
    try:
        whole = json.loads(read_bytes(path))
        if whole["rules"] != RULES or whole["versions"] != versions:
            return None
        ids, texts = tuple(whole["ids"]), tuple(whole["texts"])
        queries = whole["queries"]
        qrels = {query: dict.fromkeys(whole["relevant"][query], 1.0) for query in queries}
        documents = Documents(ids, ids, texts)
    except (DataError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Collection("pydocs", documents, queries, _split(qrels), exclude_self=True, versions=dict(versions))
