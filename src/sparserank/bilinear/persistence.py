"""A learned W as one model file: its entries, its words, its settings and its curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.ranker import State
from ..data.formats.tensors import Tensors, pack_csr, pack_strings
from ..errors import ModelError
from ..optim.losses import Hinge
from ..optim.penalties import L1, GroupL1, NoPenalty
from ..optim.solver import CurvePoint, Solution

if TYPE_CHECKING:
    from .ranker import BilinearRanker


def state(ranker: BilinearRanker) -> State:
    """What is learned, for a model file."""
    arrays = pack_csr("W", ranker.W_)
    for name, words in (("query_words", ranker.query_words_), ("document_words", ranker.document_words_)):
        if words is not None:
            arrays |= pack_strings(name, words)
    info = ranker.solution_.info
    settings = {
        "shape": list(ranker.W_.shape),
        "seed": ranker.seed_,
        "steps": info["steps"],
        "alpha": info["alpha"],
        "converged": info["converged"],
        "message": info["message"],
        "peak": [info["peak_bytes"], info["peak_nonzeros"]],
        "empty": [info["empty_queries"], info["empty_documents"]],
        "curve": [point.to_dict() for point in ranker.solution_.history],
    }
    return settings, arrays


def restore(ranker: BilinearRanker, file: Tensors) -> None:
    """Set what `state` returned."""
    shape = _shape(file)
    W = file.csr("W", shape)
    curve = tuple(CurvePoint(**point) for point in file.setting("curve", list))
    (ranker.seed_,), (ranker.n_iter_,) = _counts(file, "seed"), _counts(file, "steps")
    ranker.W_, ranker.converged_ = W, file.setting("converged", bool)
    ranker.alpha_ = float(file.setting("alpha", (int, float)))
    if not 0 <= ranker.alpha_ < np.inf:
        raise ModelError(f"{file.path}: the setting 'alpha' cannot be {ranker.alpha_}")
    empty = _counts(file, "empty", 2) if "empty" in file.settings else [0, 0]
    ranker.n_empty_queries_, ranker.n_empty_documents_ = empty
    peak_bytes, peak_nonzeros = _counts(file, "peak", 2)
    info = {
        "steps": ranker.n_iter_,
        "converged": ranker.converged_,
        "message": file.setting("message", str),
        "alpha": ranker.alpha_,
        "peak_bytes": peak_bytes,
        "peak_nonzeros": peak_nonzeros,
        "empty_queries": empty[0],
        "empty_documents": empty[1],
    }
    ranker.solution_ = Solution(W, curve, info)
    ranker.query_words_ = _words(file, "query_words", shape[0])
    ranker.document_words_ = _words(file, "document_words", shape[1])


def _shape(file: Tensors) -> tuple[int, int]:
    shape = file.setting("shape", list)
    if len(shape) != 2 or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise ModelError(f"{file.path}: the shape of W cannot be {shape!r}")
    return shape[0], shape[1]


def _counts(file: Tensors, name: str, length: int | None = None) -> list[int]:
    """A setting that is a whole number, or a list of `length` of them; none below 0."""
    found = [file.setting(name, int)] if length is None else file.setting(name, list)
    if len(found) != (length or 1) or any(type(n) is not int or n < 0 for n in found):
        raise ModelError(f"{file.path}: the setting {name!r} cannot be {file.settings[name]!r}")
    return list(found)


def _words(file: Tensors, name: str, width: int) -> tuple[str, ...] | None:
    if f"{name}.utf8" not in file.arrays:
        return None
    words = file.strings(name)
    if len(words) != width:
        raise ModelError(f"{file.path}: {len(words)} {name.replace('_', ' ')} for {width} columns")
    return words


def read_0_1(params: dict[str, Any], file: Tensors) -> dict[str, Any]:
    """Turn what files of 0.1 have in another form into parameters: a loss, a penalty, a centre."""
    stored = file.settings["params"]
    loss, penalty = stored["loss"], stored["penalty"]
    if isinstance(loss, dict) and "type" not in loss:
        params["loss"] = Hinge(**loss)
    if isinstance(penalty, dict) and "type" not in penalty:
        kinds = {kind.__name__: kind for kind in (NoPenalty, L1, GroupL1)}
        groups = {"groups": file.array("groups", "int64")} if "groups" in file.arrays else {}
        params["penalty"] = kinds[penalty["kind"]](**{k: v for k, v in penalty.items() if k != "kind"} | groups)
    if "centre.data" in file.arrays:
        params["centre"] = file.csr("centre", _shape(file))
    return params
