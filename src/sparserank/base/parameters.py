"""scikit-learn's manners for settings, without scikit-learn: importing it takes longer than loading a large model.

`clone`, pipelines and searches ask for no more than this: settings are the constructor's parameters, kept as given.
"""

from __future__ import annotations

from inspect import signature
from typing import Any, Self

from ..errors import ConfigError


class Parameters:
    """The constructor's parameters, each an attribute of its own name."""

    @classmethod
    def _names(cls) -> tuple[str, ...]:
        return tuple(signature(cls).parameters)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings by name; none of them has settings of its own, so `deep` changes nothing."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **changes: Any) -> Self:
        """Change settings by name; one that there is not is refused, and then none is changed."""
        for name in changes:
            if name not in self._names():
                raise ConfigError(f"{type(self).__name__} has no setting {name!r}; it has: {', '.join(self._names())}")
        for name, value in changes.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        """The settings that are not the constructor's own."""
        usual = {name: parameter.default for name, parameter in signature(type(self)).parameters.items()}
        told = {name: value for name, value in self.get_params().items() if not _same(value, usual[name])}
        return f"{type(self).__name__}({', '.join(f'{name}={_brief(value)}' for name, value in told.items())})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn asks about an estimator; nothing is out of the ordinary here."""
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()


def _same(value: Any, usual: Any) -> bool:
    return value is usual or (isinstance(value, str | int | float) and value == usual)


def _brief(value: Any) -> str:
    """A matrix by its shape, all else as it prints itself."""
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"<{type(value).__name__} of shape {shape}>"
