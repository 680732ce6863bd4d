"""A ranker of graded rows as one model file: its settings, what was told of its training, and its arrays."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.parameters_file import pack, unpack
from ..data.files import PathLike
from ..data.formats.tensors import Tensors, pack_strings, write_tensors
from ..errors import ModelError, SparseRankError

if TYPE_CHECKING:
    from .base import ByQueryRanker

KIND = "by-query"
HOMES = {
    "AdaRank": "adarank",
    "DominationRanker": "domination",
    "PAMIR": "pamir",
    "RBFRegressionRanker": "rbf",
    "RankBoost": "rankboost",
    "RankSVM": "ranksvm",
}
"""The module of `sparserank.base` that each ranker lives in; a file that names no such ranker is refused."""


def save(ranker: ByQueryRanker, path: PathLike) -> None:
    """Write the ranker, atomically."""
    ranker._fitted()
    params, more = pack(ranker.get_params(deep=False))
    arrays = ranker._arrays() | more
    names = getattr(ranker, "feature_names_in_", None)
    if names is not None:
        arrays |= pack_strings("feature_names", [str(name) for name in names])
    settings = {
        "ranker": type(ranker).__name__,
        "params": params,
        "features": int(ranker.n_features_in_),
        "told": {name: _plain(getattr(ranker, name)) for name in ranker._told if hasattr(ranker, name)},
    }
    write_tensors(path, KIND, settings, arrays)


def _plain(value: Any) -> Any:
    """A number, text or list of them as JSON has it."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def load(file: Tensors) -> ByQueryRanker:
    """The ranker that `save` wrote; a file that is not consistent is refused by name."""
    name = file.setting("ranker", str)
    if name not in HOMES:
        raise ModelError(f"{file.path}: holds a {name!r}, which this version does not know")
    kind = getattr(import_module(f"sparserank.letor.{HOMES[name]}"), name)
    features = file.setting("features", int)
    if features < 1:
        raise ModelError(f"{file.path}: a model of {features} features")
    try:
        ranker: ByQueryRanker = kind(**unpack(file.setting("params", dict), file))
        ranker.n_features_in_ = features
        told = file.setting("told", dict)
        for attribute in set(told) & set(ranker._told):
            setattr(ranker, attribute, told[attribute])
        ranker._restore(file)
    except ModelError:
        raise
    except (SparseRankError, TypeError, KeyError, ValueError) as error:
        raise ModelError(f"{file.path}: its settings do not fit: {error}") from None
    if "feature_names.utf8" in file.arrays:
        names = file.strings("feature_names")
        if len(names) != features:
            raise ModelError(f"{file.path}: {len(names)} feature names for {features} features")
        ranker.feature_names_in_ = np.array(names, dtype=object)
    return ranker
