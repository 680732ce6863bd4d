"""Every public function, class and method has a numpydoc docstring with one entry for each parameter, and no other."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

from .test_docs import hooks

SECTIONS = {"Parameters", "Other Parameters", "Attributes"}
"""A record lists its fields as parameters or as attributes."""


def written_here(value: Any) -> bool:
    """Pydantic adds a method of its own to its models."""
    return value.__module__.startswith("sparserank.")


def public() -> dict[str, Any]:
    """Public callables by their full names: functions, classes, and the public methods that classes define."""
    found, made = {}, hooks()
    for package in made.public_packages():
        for value in made.public_names(package).values():
            if not callable(value):  # also None, if its library is not installed
                continue
            home = f"{value.__module__}.{value.__qualname__}"
            if not home.startswith("sparserank.") or getattr(value, "_is_protocol", False):
                continue
            found[home] = value
            if isinstance(value, type):
                for base in (base for base in value.__mro__ if base.__module__.startswith("sparserank.")):
                    for method, given in vars(base).items():
                        plain = given.__func__ if isinstance(given, (classmethod, staticmethod)) else given
                        if inspect.isfunction(plain) and not method.startswith("_") and written_here(plain):
                            found.setdefault(f"{base.__module__}.{plain.__qualname__}", plain)
    return found


def entries(docstring: str, sections: set[str] = SECTIONS) -> list[str]:
    """The names that these sections describe."""
    lines, names, within = inspect.cleandoc(docstring).splitlines(), [], False
    for number, line in enumerate(lines):
        underlined = number + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[number + 1].strip())
        if underlined:
            within = line.strip() in sections
        elif within and line and not line[0].isspace() and not re.fullmatch(r"-{3,}", line):
            names += [name.strip().lstrip("*") for name in line.split(" : ")[0].split(",")]
    return names


def parameters(value: Any) -> list[str]:
    """The parameters of a callable; models of pydantic and components of Haystack hide theirs."""
    if hasattr(value, "model_fields"):
        return list(vars(value)["__annotations__"])
    own = vars(value).get("__init__", value) if isinstance(value, type) else value
    return list(inspect.signature(own).parameters)


def faults(value: Any) -> str | None:
    """What is wrong with a docstring."""
    docstring = inspect.getdoc(value)  # that of the base class if the method has none of its own
    if not docstring:
        return "has no docstring"
    try:
        given = parameters(value)
    except ValueError:
        return None
    given = [name for name in given if name not in ("self", "cls") and not name.startswith("_")]
    described = entries(docstring)
    missing = [name for name in given if name not in described]
    if missing:
        return f"has no entry for {', '.join(missing)}"
    unknown = [name for name in entries(docstring, {"Parameters", "Other Parameters"}) if name not in given]
    if unknown:
        return f"describes {', '.join(unknown)}, which it does not take"
    return None


@pytest.mark.parametrize("name", sorted(public()))
def test_a_public_name_describes_each_parameter(name):
    found = faults(public()[name])
    assert not found, f"{name} {found}"


def test_the_check_finds_what_is_missing():
    def documented(first: int, *others: int) -> None:
        """Do it.

        Parameters
        ----------
        first : int
            The first one.
        *others : int
            More.

        Returns
        -------
        None
            Nothing.
        """

    def half(first: int, second: int) -> None:
        """Do it.

        Parameters
        ----------
        first, third : int
            Some.
        """

    def stale(first: int) -> None:
        """Do it.

        Parameters
        ----------
        first, third : int
            Some.
        """

    assert faults(documented) is None
    assert faults(half) == "has no entry for second"
    assert faults(stale) == "describes third, which it does not take"
    assert faults(lambda: None) == "has no docstring"


def shows_an_example(value: Any) -> bool:
    """Functions and estimators do; records and errors come out of functions that show them."""
    return value.__qualname__ == value.__name__ and (not isinstance(value, type) or hasattr(value, "fit"))


@pytest.mark.parametrize("name", sorted(name for name, value in public().items() if shows_an_example(value)))
def test_public_functions_and_estimators_show_an_example(name):
    assert ">>>" in (inspect.getdoc(public()[name]) or "")
