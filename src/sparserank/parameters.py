"""The scikit-learn API for constructor parameters, without importing scikit-learn, which is slow to import.

`clone`, pipelines and grid searches need `get_params` and `set_params`: every constructor parameter is an attribute of
the same name, stored as it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from html import escape
from inspect import Parameter, signature
from typing import TYPE_CHECKING, Any, Self

from . import deprecated
from .errors import ConfigError


class Parameters:
    """Base class: `get_params`, `set_params`, a readable `repr` and an HTML table in notebooks."""

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return tuple(signature(cls).parameters)

    @classmethod
    def _old_names(cls) -> dict[str, str]:
        """{old parameter: new parameter}, as `deprecated.renamed_parameters` declares it for the constructor."""
        return getattr(cls.__init__, "renamed_parameters", {})

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor parameters.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include the parameters of parameters, such as `lexical__k1`.

        Returns
        -------
        dict of str to object
            The parameters by name.
        """
        params = {name: getattr(self, name) for name in self._names()}
        if deep:
            for name, value in list(params.items()):
                params |= {f"{name}__{inner}": one for inner, one in _inner(value).items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Change constructor parameters; if one of the names is unknown, nothing changes.

        Parameters
        ----------
        **params : object
            New values by name; `lexical__k1` changes the parameter `k1` of the parameter `lexical`.

        Returns
        -------
        self : object
            This object.
        """
        changed: dict[str, Any] = {}
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name in self._old_names():
                name = self._new_name(name)
            if name not in self._names() or (inner and inner not in _inner(getattr(self, name))):
                names = ", ".join(self._names())
                raise ConfigError(f"{type(self).__name__} has no parameter {key!r}; its parameters are: {names}")
            if inner:
                value = replace(changed.get(name, getattr(self, name)), **{inner: value})
            changed[name] = value
        for name, value in changed.items():
            setattr(self, name, value)
        return self

    def _new_name(self, old: str) -> str:
        new = self._old_names()[old]
        deprecated.warn(f"The {old!r} parameter of {type(self).__name__}", repr(new))
        return new

    if not TYPE_CHECKING:  # for a type checker, every attribute would exist

        def __getattr__(self, name: str) -> Any:
            if name not in self._old_names():
                return object.__getattribute__(self, name)  # raises the error of a property, such as NotFitted
            return getattr(self, self._new_name(name))

    def __repr__(self) -> str:
        """Show the parameters that differ from their defaults."""
        defaults = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        params = self.get_params(deep=False)
        shown = [f"{name}={_brief(value)}" for name, value in params.items() if not _same(value, defaults[name])]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        rows = [(name, _brief(value)) for name, value in self.get_params(deep=False).items()]
        return html_table(("parameter", "value"), rows, type(self).__name__)

    def __sklearn_tags__(self) -> Any:
        """Return the default tags of a scikit-learn estimator."""
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


class Summary:
    """Base class of fitted parts: a readable `repr` and an HTML table of the counts and settings in `_summary`."""

    def _summary(self) -> dict[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        """Show counts and settings, no arrays."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._summary().items())})"

    def _repr_html_(self) -> str:
        return html_table(("part", "value"), self._summary().items(), type(self).__name__)


def html_table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """Return an HTML table for notebooks; every cell is escaped.

    Examples
    --------
    >>> html_table(["word"], [["<b>"]])
    '<table><thead><tr><th>word</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    header = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def _inner(value: Any) -> dict[str, Any]:
    """The parameters of a parameter that is a dataclass, such as a penalty."""
    if not is_dataclass(value) or isinstance(value, type):
        return {}
    return {field.name: getattr(value, field.name) for field in fields(value) if field.init}


def _same(value: Any, default: Any) -> bool:
    if value is default or default is Parameter.empty:
        return value is default
    return isinstance(value, str | int | float) and bool(value == default)


def _brief(value: Any) -> str:
    """A matrix by its shape, everything else by its repr."""
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"<{type(value).__name__} of shape {shape}>"
