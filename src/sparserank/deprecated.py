"""Names of release 0.1 that still work: each use emits a `DeprecationWarning` that says what to write instead.

Four tools cover everything that can be renamed: `MODULES` (a module), `renamed_names` (a name in a module),
`renamed_attribute` (a method or an attribute) and `renamed_parameters` (a keyword of a function or constructor).
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, TypeVar

from .errors import ConfigError

REMOVED_IN = "0.3"

MODULES = {
    "sparserank.check": "sparserank.validation",
    "sparserank.data.sets": "sparserank.data.datasets.load",
    "sparserank.engine": "sparserank.text_ranker",
    "sparserank.engine.versions": "sparserank.versions",
    "sparserank.evaluate": "sparserank.evaluation",
    "sparserank.losses": "sparserank.optim.losses",
    "sparserank.measures": "sparserank.evaluation.measures",
    "sparserank.penalties": "sparserank.optim.penalties",
    "sparserank.rankers": "sparserank.letor",
    "sparserank.rankers.bilinear": "sparserank.bilinear.ranker",
    "sparserank.rankers.by_query": "sparserank.letor.base",
    "sparserank.rankers.pair_edits": "sparserank.text_ranker.constraints",
    "sparserank.rankers.size_path": "sparserank.bilinear.size_path",
    "sparserank.rankers.text_path": "sparserank.text_ranker.size_path",
    "sparserank.search.compare": "sparserank.search.comparison",
    "sparserank.search.explain": "sparserank.text_ranker.explain",
    "sparserank.solvers": "sparserank.optim",
    "sparserank.solvers.fewer_weights": "sparserank.optim.feature_pruning",
}
"""Old module names and where the module is now; the longest match counts, so submodules move with their package."""

F = TypeVar("F", bound=Callable[..., Any])


def warn(old: str, new: str) -> None:
    """Emit the warning at the line of the user's code: the first one outside this package and the import system."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in ("sparserank", "importlib"):
        frame = frame.f_back
    warnings.warn_explicit(
        f"{old} is deprecated and will be removed in release {REMOVED_IN}; use {new} instead",
        DeprecationWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=frame.f_globals.get("__name__"),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )


def renamed_parameters(renamed: Mapping[str, str]) -> Callable[[F], F]:
    """Decorator: accept old keyword arguments of a function, an `__init__` or a dataclass under their new names.

    Parameters
    ----------
    renamed : mapping of str to str
        {old name: new name}.

    Returns
    -------
    decorator : callable
        A decorated function keeps its signature; the mapping is its attribute `renamed_parameters`.

    Examples
    --------
    >>> @renamed_parameters({"prefs": "preferences"})
    ... def fit(preferences):
    ...     return preferences
    >>> fit(preferences=3)
    3
    """

    def decorate(function: F) -> F:
        if isinstance(function, type):
            function.__init__ = decorate(function.__init__)  # type: ignore[misc]
            return function
        name = function.__qualname__.removesuffix(".__init__")

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            for old in renamed.keys() & kwargs:
                new = renamed[old]
                if new in kwargs:
                    raise ConfigError(f"{name} got both {new!r} and its old name {old!r}; give {new!r} only")
                warn(f"The {old!r} parameter of {name}", repr(new))
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        wrapper.renamed_parameters = dict(renamed)  # type: ignore[attr-defined]
        return wrapper  # type: ignore[return-value]

    return decorate


def renamed_names(module: str, renamed: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` that finds old names.

    Parameters
    ----------
    module : str
        `__name__` of the module.
    renamed : mapping of str to str
        {old name: new name in the same module, or "other.module:name"}.

    Returns
    -------
    function
        Assign it to `__getattr__`.

    Examples
    --------
    >>> __getattr__ = renamed_names("math", {"squareroot": "sqrt"})
    """

    def find(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = renamed[name].rpartition(":")
        home = home or module
        warn(f"{module}.{name}", f"{home}.{new}")
        return getattr(importlib.import_module(home), new)

    return find


def renamed_attribute(old: str, new: str) -> Any:
    """A property that returns the attribute or method `new` under its old name.

    Examples
    --------
    >>> class Ranker:
    ...     words_ = ("a",)
    ...     terms_ = renamed_attribute("terms_", "words_")
    """

    def get(self: Any) -> Any:
        warn(f"{type(self).__name__}.{old}", f"{type(self).__name__}.{new}")
        return getattr(self, new)

    return property(get, doc=f"Deprecated name of `{new}`.")


class _OldModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import the modules of `MODULES`: `sys.modules` holds the new module under the old name too."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(fullname, self) if new_module(fullname) else None

    def exec_module(self, module: ModuleType) -> None:
        old = module.__name__
        new = new_module(old)
        assert new is not None
        sys.modules[old] = importlib.import_module(new)  # the import system returns what is found here
        warn(old, new)


def new_module(old: str) -> str | None:
    """Return where an old module is now; None if this is not the name of an old module.

    Examples
    --------
    >>> new_module("sparserank.rankers.pamir")
    'sparserank.letor.pamir'
    """
    if not old.startswith("sparserank."):
        return None
    package, rest = old, ""
    while package not in MODULES:
        package, dot, last = package.rpartition(".")
        if not dot:
            return None
        rest = f".{last}{rest}"
    return MODULES[package] + rest


def install() -> None:
    """Let `import` find old modules."""
    if not any(isinstance(finder, _OldModules) for finder in sys.meta_path):
        sys.meta_path.insert(0, _OldModules())
