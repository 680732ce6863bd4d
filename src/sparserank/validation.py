"""Validation of parameters, for the whole package.

Each function returns the value in canonical form, or raises a `ConfigError` that names the parameter, its range and the
invalid value.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

from .errors import ConfigError, NotInstalled

T = TypeVar("T")


def _error(name: str, expected: str, value: object) -> ConfigError:
    return ConfigError(f"The {name!r} parameter must be {expected}. Got {value!r} instead.")


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False) -> float:
    """Validate a real number in [low, high], or in (low, high] if `open_low`; NaN and bools raise ConfigError.

    >>> number("alpha", 1, low=0)
    1.0
    """
    expected = (
        f"a number in {'(' if open_low or math.isinf(low) else '['}{low:g}, {high:g}{')' if math.isinf(high) else ']'}"
    )
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _error(name, expected, value)
    try:
        converted = float(value)
    except OverflowError:
        converted = math.inf
    if not (low <= converted <= high) or (open_low and converted == low) or math.isinf(converted):
        raise _error(name, expected, value)
    return converted


def count(name: str, value: Any, low: int = 0, high: int | None = None) -> int:
    """Validate an integer in [low, high].

    >>> count("k", 10, low=1)
    10
    """
    converted = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if converted is None or converted < low or (high is not None and converted > high):
        raise _error(name, f"a whole number in [{low}, {'inf)' if high is None else f'{high}]'}", value)
    return converted


def flag(name: str, value: Any) -> bool:
    """Validate a bool; other truthy or falsy values raise ConfigError.

    >>> flag("lowercase", True)
    True
    """
    if not isinstance(value, bool):
        raise _error(name, "True or False", value)
    return value


def choice(name: str, value: T, options: Collection[T]) -> T:
    """Validate that a value is one of the options.

    >>> choice("penalty", "l1", ["l1", "l2"])
    'l1'
    """
    if value not in options:
        raise _error(name, "one of " + ", ".join(map(repr, options)), value)
    return value


def threads(n_jobs: int | None) -> int:
    """Return the number of threads: None and -1 mean every core that this process may use.

    >>> threads(2)
    2
    """
    if n_jobs is None or n_jobs == -1:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return count("n_jobs", n_jobs, low=1)


def installed(module: str, extra: str) -> None:
    """Raise NotInstalled, with the install command, if an optional library is missing.

    >>> installed("math", extra="plot")
    """
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise NotInstalled(f"this needs {module}; install it with: pip install 'sparserank[{extra}]'")


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Validate a mapping of texts.

    >>> mapping("field_weights", {"title": 2.0})
    {'title': 2.0}
    """
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _error(name, "a mapping of names to values", value)
    return value
