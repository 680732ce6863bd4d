"""The registry of rankers: a new ranker is one file and one line here.

The line gives its name on the command line and its class, which is imported when it is needed. A model file holds the
name of the class.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, ModelError

if TYPE_CHECKING:
    from ..data.files import PathLike
    from ..data.formats.tensors import Tensors
    from .ranker import Ranker

RANKERS: dict[str, dict[str, str]] = {
    "texts": {
        "text": "sparserank.text_ranker:TextRanker",
        "bilinear": "sparserank.text_ranker:TextRanker",
        "bm25": "sparserank.text_ranker:TextRanker",
        "cosine": "sparserank.text_ranker:TextRanker",
    },
    "letor": {
        "domination": "sparserank.letor.domination:DominationRanker",
        "domination-base": "sparserank.letor.domination:DominationRanker",
        "domination-margin": "sparserank.letor.domination:DominationRanker",
        "pamir": "sparserank.letor.pamir:PAMIR",
        "ranksvm": "sparserank.letor.ranksvm:RankSVM",
        "adarank": "sparserank.letor.adarank:AdaRank",
        "adarank-ndcg": "sparserank.letor.adarank:AdaRank",
        "rankboost": "sparserank.letor.rankboost:RankBoost",
        "rbf": "sparserank.letor.rbf:RBFRegressionRanker",
    },
    "matrices": {
        "bilinear": "sparserank.bilinear.ranker:BilinearRanker",
        "label": "sparserank.bilinear.label_ranker:LabelRanker",
    },
}
"""{what a ranker learns from: {name: "module:class"}}; the command line trains those of texts and of LETOR files."""

CLASSES_OF_0_1 = {"text": "TextRanker", "bilinear": "BilinearRanker"}
"""The class of a model file of 0.1, which names only its kind."""


def ranker_class(data: str, name: str) -> type[Any]:
    """Import and return the class of a ranker.

    Parameters
    ----------
    data : {"texts", "letor", "matrices"}
        What it learns from.
    name : str
        Its name on the command line.

    Returns
    -------
    type
        A subclass of `Ranker`.

    Raises
    ------
    ConfigError
        There is no such ranker.

    Examples
    --------
    >>> ranker_class("letor", "rankboost").__name__
    'RankBoost'
    """
    if name not in RANKERS[data]:
        raise ConfigError(f"There is no ranker {name!r} for {data}; there are: {', '.join(RANKERS[data])}")
    return _import(RANKERS[data][name])


def class_of_file(file: Tensors) -> type[Ranker]:
    """Return the class of the ranker that a model file holds.

    Parameters
    ----------
    file : Tensors
        The content of the file.

    Returns
    -------
    type
        A subclass of `Ranker`.

    Raises
    ------
    ModelError
        The file holds no ranker, or one that is not in the registry.
    """
    name = file.settings.get("ranker", CLASSES_OF_0_1.get(file.kind))
    for rankers in RANKERS.values():
        for target in rankers.values():
            if target.partition(":")[2] == name and (found := _import(target))._file_kind == file.kind:
                return found
    raise ModelError(f"{file.path}: holds {name or file.kind!r}, which is not a ranker of this version")


def registered_name(ranker: type[Ranker]) -> str:
    """The name of a class for a model file: its own, or that of the first registered class that it inherits from."""
    names = {target.partition(":")[2] for rankers in RANKERS.values() for target in rankers.values()}
    return next((one.__name__ for one in ranker.__mro__ if one.__name__ in names), ranker.__name__)


def _import(target: str) -> type[Any]:
    module, _, name = target.partition(":")
    return getattr(import_module(module), name)  # type: ignore[no-any-return]


def load(path: PathLike, index: PathLike | None = None) -> Any:
    """Read a saved ranker of any class.

    Parameters
    ----------
    path : path-like
        A file that `save` wrote.
    index : path-like or None, default=None
        The search index of a `TextRanker`; None takes the index beside the model if there is one.

    Returns
    -------
    Ranker
        The ranker, with the parameters that it had when it was saved.

    Raises
    ------
    ModelError
        The file is truncated, damaged or no model of SparseRank, or the index belongs to another model.

    Examples
    --------
    >>> import sparserank as sr, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
    >>> sr.RankSVM(C=0.1).fit([[1.0], [0.0]], [1, 0]).save(path)
    >>> sr.load(path)
    RankSVM(C=0.1)
    """
    from ..data.formats.tensors import read_tensors

    if not isinstance(path, str | os.PathLike):
        raise ConfigError(f"The 'path' parameter must be the path of a model file. Got {path!r} instead.")
    file = read_tensors(path)
    ranker = class_of_file(file).from_file(file)
    ranker._load_index(path, index)
    return ranker
