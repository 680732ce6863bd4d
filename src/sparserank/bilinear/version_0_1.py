"""Parameters and files of `BilinearRanker` of release 0.1, which had the solvers of `LabelRanker` too."""

from __future__ import annotations

from functools import wraps
from inspect import signature
from typing import Any, Self, TypeVar

from .. import deprecated, validation
from ..data.formats.tensors import Tensors
from ..errors import ConfigError
from ..optim.losses import Hinge
from ..optim.penalties import L1, GroupL1, NoPenalty
from .label_ranker import METHODS_OF_0_1, LabelRanker
from .persistence import file_shape

C = TypeVar("C", bound=type)

LOSSES = {"closed-form": "squared", "low-rank": "softmax"}
"""The loss that each solver of class labels needed."""
RENAMED = {"start": "init", "rate": "schedule", "centre": "prior", "watch": "curve_points"}


def accept_old_parameters(cls: C) -> C:
    """Accept the parameters of 0.1; for solvers of class labels, `__new__` returns a `LabelRanker`."""
    init = deprecated.renamed_parameters(RENAMED)(cls.__init__)  # type: ignore[misc]
    parameters = list(signature(init).parameters.values())[1:]

    @wraps(init)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> None:
        if "solver" in kwargs:
            validation.choice("solver", kwargs.pop("solver"), ("sparse-sgd", *METHODS_OF_0_1))
            deprecated.warn("The 'solver' parameter of BilinearRanker", "no parameter")
        if kwargs.pop("rank", None) is not None:
            raise ConfigError("'rank' is a parameter of LabelRanker(method='low-rank'); BilinearRanker has none")
        init(self, *args, **kwargs)

    cls.__init__ = wrapper  # type: ignore[misc]
    cls.__signature__ = signature(init).replace(parameters=parameters)  # type: ignore[attr-defined]
    return cls  # inspect would show the signature of __new__


class LabelRankerOf01(LabelRanker):
    """What `BilinearRanker(solver="closed-form" | "low-rank")` of 0.1 returns: `fit` takes Q, D and preferences."""

    @classmethod
    def from_parameters(cls, solver: str, loss: Any = None, **params: Any) -> LabelRankerOf01:
        """Return the ranker for the parameters of 0.1; those that the solver has no use for raise ConfigError."""
        method = METHODS_OF_0_1[solver]
        deprecated.warn(f"BilinearRanker(solver={solver!r})", f"LabelRanker(method={method!r})")
        if loss != LOSSES[solver]:
            raise ConfigError(f"solver={solver!r} needs loss={LOSSES[solver]!r}; got {loss!r}")
        for name in params.keys() - set(cls._names()):
            raise ConfigError(f"The {name!r} parameter is not one of LabelRanker, which solver={solver!r} is now")
        return cls(method, **params)

    def fit(self, Q: Any, D: Any, prefs: Any = None, **words: Any) -> Self:  # type: ignore[override]
        """Fit as `BilinearRanker` of 0.1 did."""
        for name in words.keys() - {"query_words", "document_words"}:
            raise ConfigError(f"LabelRanker uses all pairs at once and has no {name}; BilinearRanker has")
        return self._fit_preferences(Q, D, prefs, **words)


def holds_label_ranker(file: Tensors) -> bool:
    """Whether a file holds a `BilinearRanker` of 0.1 with a solver of class labels."""
    return file.setting("params", dict).get("solver") in METHODS_OF_0_1


def convert_file_params(params: dict[str, Any], file: Tensors) -> dict[str, Any]:
    """The parameters of today for those that a file of either release holds."""
    params = {name: value for name, value in params.items() if name not in ("solver", "rank")}
    stored = file.settings["params"]
    loss, penalty = stored["loss"], stored["penalty"]
    if isinstance(loss, dict) and "type" not in loss:
        params["loss"] = Hinge(**loss)
    if isinstance(penalty, dict) and "type" not in penalty:
        classes: dict[str, Any] = {one.__name__: one for one in (NoPenalty, L1, GroupL1)}
        groups = {"groups": file.array("groups", "int64")} if "groups" in file.arrays else {}
        settings = {name: value for name, value in penalty.items() if name != "kind"}
        params["penalty"] = classes[penalty["kind"]](**settings, **groups)
    if "centre.data" in file.arrays:
        params["prior"] = file.csr("centre", file_shape(file))
    return params
