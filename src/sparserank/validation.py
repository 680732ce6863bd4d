"""The one place where parameters are judged.

Every function returns the value it was given, made canonical, or raises a `ConfigError` that names the parameter,
the range and what came instead.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from numbers import Integral, Real
from typing import Any, TypeVar

from .errors import ConfigError, NotInstalled

T = TypeVar("T")


def _refuse(name: str, wanted: str, value: object) -> ConfigError:
    return ConfigError(f"The {name!r} parameter must be {wanted}. Got {value!r} instead.")


def number(name: str, value: Any, low: float = -math.inf, high: float = math.inf, *, open_low: bool = False) -> float:
    """A real number in [low, high], or in (low, high] where `open_low`; NaN and bools are refused.

    >>> number("alpha", 1, low=0)
    1.0
    """
    wanted = (
        f"a number in {'(' if open_low or math.isinf(low) else '['}{low:g}, {high:g}{')' if math.isinf(high) else ']'}"
    )
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _refuse(name, wanted, value)
    try:
        given = float(value)
    except OverflowError:
        given = math.inf
    if not (low <= given <= high) or (open_low and given == low) or math.isinf(given):
        raise _refuse(name, wanted, value)
    return given


def count(name: str, value: Any, low: int = 0, high: int | None = None) -> int:
    """A whole number in [low, high].

    >>> count("k", 10, low=1)
    10
    """
    given = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if given is None or given < low or (high is not None and given > high):
        raise _refuse(name, f"a whole number in [{low}, {'inf)' if high is None else f'{high}]'}", value)
    return given


def flag(name: str, value: Any) -> bool:
    """True or False, and nothing that merely counts as one of them.

    >>> flag("lowercase", True)
    True
    """
    if not isinstance(value, bool):
        raise _refuse(name, "True or False", value)
    return value


def choice(name: str, value: T, options: Collection[T]) -> T:
    """One of the options.

    >>> choice("penalty", "l1", ["l1", "l2"])
    'l1'
    """
    if value not in options:
        raise _refuse(name, "one of " + ", ".join(map(repr, options)), value)
    return value


def threads(n_jobs: int | None) -> int:
    """How many threads to use: None means every core this process may run on, -1 the same, n means n.

    >>> threads(2)
    2
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if n_jobs is None or n_jobs == -1:
        return cores
    return count("n_jobs", n_jobs, low=1)


def installed(module: str, extra: str) -> None:
    """Refuse, with the install command, where an optional library is missing.

    >>> installed("math", extra="plot")
    """
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise NotInstalled(f"this needs {module}; install it with: pip install 'sparserank[{extra}]'")
