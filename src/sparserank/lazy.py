"""Packages whose names are imported on first use, so that `import` of the package costs nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(
    package: str, modules: Mapping[str, str], other: Callable[[str], Any] | None = None
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package whose names are imported on first use.

    Parameters
    ----------
    package : str
        `__name__` of the package.
    modules : mapping of str to str
        {name: the module of the package that defines it}. A name without a module, "", is a module itself.
    other : callable or None, default=None
        Called with a name that is not in `modules`, for example `deprecated.renamed_names(…)`. None raises
        AttributeError.

    Examples
    --------
    >>> find, _ = lazy_names("concurrent.futures", {"ThreadPoolExecutor": "thread"})
    >>> find("ThreadPoolExecutor").__module__
    'concurrent.futures.thread'
    """

    def find(name: str) -> Any:
        if name in modules:
            module = importlib.import_module(f"{package}.{modules[name] or name}")
            value = getattr(module, name) if modules[name] else module
            vars(sys.modules[package])[name] = value
            return value
        if other is not None:
            return other(name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def list_names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return find, list_names
