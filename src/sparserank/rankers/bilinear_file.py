"""A learned W as one model file: its entries, its words, its settings and its curve."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.files import PathLike
from ..data.tensors import Tensors, pack_strings, write_tensors
from ..errors import ModelError, SparseRankError
from ..losses import Hinge
from ..penalties import L1, GroupL1, NoPenalty
from ..solvers.solution import Point, Solution

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .bilinear import BilinearRanker

KIND = "bilinear"


def save(ranker: BilinearRanker, path: PathLike) -> None:
    """Write the ranker, atomically."""
    arrays = _matrix_arrays("W", ranker.W_)
    for name, words in (("query_words", ranker.query_words_), ("document_words", ranker.document_words_)):
        if words is not None:
            arrays |= pack_strings(name, words)
    params = ranker.get_params()
    plain = str | bool | int | float | None
    told: dict[str, Any] = {name: value for name, value in params.items() if isinstance(value, plain)}
    told["loss"] = {"margin": ranker._loss().margin}
    told["penalty"], groups = _told_penalty(params["penalty"])
    if groups is not None:
        arrays["groups"] = groups
    if params["centre"] is not None and "centre" not in told:
        arrays |= _matrix_arrays("centre", ranker._matrix("centre", params["centre"], ranker.W_.shape))
    solution = ranker.solution_
    settings = {
        "params": told,
        "shape": list(ranker.W_.shape),
        "seed": ranker.seed_,
        "steps": solution.steps,
        "alpha": solution.alpha,
        "converged": solution.converged,
        "message": solution.message,
        "peak": [solution.peak_bytes, solution.peak_nonzeros],
        "curve": [point.to_dict() for point in solution.curve],
    }
    write_tensors(path, KIND, settings, arrays)


def load(file: Tensors) -> BilinearRanker:
    """The ranker that `save` wrote; a file that is not consistent is refused by name."""
    from .bilinear import BilinearRanker

    shape = file.setting("shape", list)
    if len(shape) != 2 or not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**31 for n in shape):
        raise ModelError(f"{file.path}: the shape of W cannot be {shape!r}")
    W = _matrix(file, "W", shape)
    told = dict(file.setting("params", dict))
    try:
        told["loss"] = Hinge(**told["loss"])
        told["penalty"] = _penalty(told["penalty"], file)
        if "centre.data" in file.arrays:
            told["centre"] = _matrix(file, "centre", shape)
        ranker = BilinearRanker(**told)
        curve = tuple(Point(**point) for point in file.setting("curve", list))
    except (SparseRankError, TypeError, KeyError) as error:
        raise ModelError(f"{file.path}: its settings do not fit: {error}") from None
    ranker.W_, ranker.seed_, ranker.n_iter_ = W, file.setting("seed", int), file.setting("steps", int)
    ranker.alpha_, ranker.converged_ = float(file.setting("alpha", (int, float))), file.setting("converged", bool)
    peak_bytes, peak_nonzeros = file.setting("peak", list)
    ranker.solution_ = Solution(
        W,
        ranker.n_iter_,
        ranker.converged_,
        file.setting("message", str),
        ranker.alpha_,
        curve,
        peak_bytes,
        peak_nonzeros,
    )
    ranker.query_words_ = _words(file, "query_words", shape[0])
    ranker.document_words_ = _words(file, "document_words", shape[1])
    return ranker


def _matrix_arrays(name: str, matrix: csr_array) -> dict[str, NDArray[Any]]:
    return {
        f"{name}.indptr": matrix.indptr.astype(np.int64),
        f"{name}.indices": matrix.indices.astype(np.int32),
        f"{name}.data": matrix.data.astype(np.float32),
    }


def _matrix(file: Tensors, name: str, shape: list[int]) -> csr_array:
    from scipy.sparse import csr_array

    data = file.array(f"{name}.data", "float32")
    indices = file.indices(f"{name}.indices", shape[1], len(data))
    indptr = file.windows(f"{name}.indptr", len(data), shape[0])
    row_starts = np.zeros(len(indices), bool)
    row_starts[indptr[:-1][indptr[:-1] < len(indices)]] = True
    if not (row_starts[1:] | (np.diff(indices) > 0)).all():
        raise ModelError(f"{file.path}: the columns of {name} do not rise within a row")
    return csr_array((data, indices, indptr.astype(np.int32) if len(data) < 2**31 else indptr), shape=tuple(shape))


def _words(file: Tensors, name: str, width: int) -> tuple[str, ...] | None:
    if f"{name}.utf8" not in file.arrays:
        return None
    words = file.strings(name)
    if len(words) != width:
        raise ModelError(f"{file.path}: {len(words)} {name.replace('_', ' ')} for {width} columns")
    return words


def _told_penalty(penalty: Any) -> tuple[Any, NDArray[Any] | None]:
    """A penalty as JSON, and its groups as numbers."""
    if isinstance(penalty, str):
        return penalty, None
    told = {f.name: getattr(penalty, f.name) for f in fields(penalty) if f.name != "groups"}
    groups = getattr(penalty, "groups", None)
    codes = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.int64)
    return {"kind": type(penalty).__name__} | told, codes


def _penalty(told: Any, file: Tensors) -> Any:
    if isinstance(told, str):
        return told
    kinds = {kind.__name__: kind for kind in (NoPenalty, L1, GroupL1)}
    settings = dict(told)
    kind = kinds[settings.pop("kind")]
    if "groups" in file.arrays:
        settings["groups"] = file.array("groups", "int64")
    return kind(**settings)
