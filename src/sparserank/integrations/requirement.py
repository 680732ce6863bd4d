"""The check that an optional library is installed and new enough."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version

from ..errors import NotInstalled


def require(package: str, minimum: str) -> None:
    """Raise NotInstalled, with the install command, if a package is missing or too old.

    Parameters
    ----------
    package : str
        The name of the package on PyPI.
    minimum : str
        The oldest version that works.

    Examples
    --------
    >>> require("numpy", "2.0")
    >>> require("numpy", "99")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    sparserank.errors.NotInstalled: this needs numpy 99 or newer, found 2...; install it with: pip install 'numpy>=99'
    """
    try:
        found = version(package)
    except PackageNotFoundError:
        found = ""
    if _numbers(found) < _numbers(minimum):
        state = f"found {found}" if found else "which is not installed"
        command = f"pip install '{package}>={minimum}'"
        raise NotInstalled(f"this needs {package} {minimum} or newer, {state}; install it with: {command}")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", text.split("+")[0])[:3]))
