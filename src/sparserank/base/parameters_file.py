"""Constructor parameters in a model file: every value that a ranker takes is read back as it was given.

Numbers, texts and None are JSON. Everything else is an object with a `type`: lists, tuples, sets, mappings, losses,
penalties and constraints by their class name, arrays and sparse matrices as arrays of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..data.formats.tensors import Tensors, pack_csr
from ..errors import ConfigError, ModelError, NotInstalled, SparseRankError

Arrays = dict[str, NDArray[Any]]
T = TypeVar("T")

CLASSES: dict[str, Any] = {}
"""The dataclasses that a parameter may be; a file can name no other class."""


def storable(kind: type[T]) -> type[T]:
    """Let a model file hold values of this dataclass; use it as a decorator above `@dataclass`."""
    CLASSES[kind.__name__] = kind
    return kind


SEQUENCES: dict[str, type[Any]] = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}


def pack(params: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Parameters as JSON values, and the arrays that some of them need.

    Parameters
    ----------
    params : mapping of str to object
        What `get_params(deep=False)` returns.

    Returns
    -------
    settings : dict
        One JSON value for each parameter.
    arrays : dict of str to ndarray
        Arrays that go into the same file.

    Raises
    ------
    ConfigError
        A parameter has a type that no model file can hold, such as a function.
    """
    arrays: Arrays = {}
    return {name: _packed(f"params.{name}", value, arrays) for name, value in params.items()}, arrays


def _packed(name: str, value: Any, arrays: Arrays) -> Any:
    from scipy.sparse import csr_array, issparse

    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in CLASSES.values():
        stored = {f.name: _packed(f"{name}.{f.name}", getattr(value, f.name), arrays) for f in fields(value)}
        return {"type": type(value).__name__, "fields": stored}
    if isinstance(value, Mapping):
        pairs = [[_packed(name, key, arrays), _packed(name, one, arrays)] for key, one in value.items()]
        return {"type": "dict", "items": pairs}
    if isinstance(value, set | frozenset):
        return {"type": type(value).__name__, "items": [_packed(name, one, arrays) for one in sorted(value, key=repr)]}
    if isinstance(value, list | tuple):
        return {"type": type(value).__name__, "items": [_packed(name, one, arrays) for one in value]}
    if issparse(value):
        arrays |= pack_csr(name, csr_array(value))
        return {"type": "sparse", "array": name, "shape": list(value.shape)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays[name] = value
        return {"type": "array", "array": name}
    if isinstance(value, np.ndarray):
        return {"type": "texts", "items": _packed(name, value.tolist(), arrays)}
    parameter = name.removeprefix("params.")
    raise ConfigError(f"the parameter {parameter!r} is a {type(value).__name__}, which a model file cannot hold")


def unpack(stored: Mapping[str, Any], file: Tensors) -> dict[str, Any]:
    """The parameters that `pack` wrote.

    Parameters
    ----------
    stored : mapping of str to object
        The JSON values.
    file : Tensors
        The file that they were read from, which has their arrays.

    Returns
    -------
    dict of str to object
        The constructor's parameters.

    Raises
    ------
    ModelError
        A value is not what `pack` writes; the message names the file.
    NotInstalled
        A parameter needs a package that is not there, such as a segmenter.
    """
    try:
        return {name: _unpacked(value, file) for name, value in stored.items()}
    except ModelError:
        raise
    except NotInstalled as error:
        raise NotInstalled(f"{file.path}: {error}") from None
    except (SparseRankError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ModelError(f"{file.path}: its settings do not fit: {error}") from None


def _unpacked(value: Any, file: Tensors) -> Any:
    if not isinstance(value, dict) or "type" not in value:
        return value  # also what files of 0.1 hold in another form
    kind = value["type"]
    if kind in CLASSES:
        return CLASSES[kind](**{name: _unpacked(one, file) for name, one in value["fields"].items()})
    if kind == "dict":
        return {_unpacked(key, file): _unpacked(one, file) for key, one in value["items"]}
    if kind in SEQUENCES:
        return SEQUENCES[kind](_unpacked(one, file) for one in value["items"])
    if kind == "sparse":
        return file.csr(value["array"], tuple(value["shape"]), dtype=None)
    if kind == "array":
        return file.arrays[value["array"]]
    if kind == "texts":
        return np.array(_unpacked(value["items"], file))
    raise ModelError(f"{file.path}: holds a parameter of the unknown type {kind!r}")
