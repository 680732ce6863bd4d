"""A learned W as one model file: its entries, its words, its settings and its curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.parameters_file import pack, unpack
from ..data.files import PathLike
from ..data.formats.tensors import Tensors, pack_strings, write_tensors
from ..errors import ModelError, SparseRankError
from ..optim.losses import Hinge
from ..optim.penalties import L1, GroupL1, NoPenalty
from ..optim.solver import CurvePoint, Solution

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .ranker import BilinearRanker

KIND = "bilinear"


def save(ranker: BilinearRanker, path: PathLike) -> None:
    """Write the ranker, atomically."""
    arrays = matrix_arrays("W", ranker.W_)
    for name, words in (("query_words", ranker.query_words_), ("document_words", ranker.document_words_)):
        if words is not None:
            arrays |= pack_strings(name, words)
    params, more = pack(ranker.get_params(deep=False))
    arrays |= more
    info = ranker.solution_.info
    settings = {
        "params": params,
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
    write_tensors(path, KIND, settings, arrays)


def load(file: Tensors) -> BilinearRanker:
    """The ranker that `save` wrote; a file that is not consistent is refused by name."""
    from .ranker import BilinearRanker

    shape = file.setting("shape", list)
    if len(shape) != 2 or not all(isinstance(n, int) and not isinstance(n, bool) and 0 <= n < 2**31 for n in shape):
        raise ModelError(f"{file.path}: the shape of W cannot be {shape!r}")
    W = matrix(file, "W", shape)
    params = unpack(file.setting("params", dict), file)
    try:
        _read_0_1(params, shape, file)
        ranker = BilinearRanker(**params)
        curve = tuple(CurvePoint(**point) for point in file.setting("curve", list))
    except (SparseRankError, TypeError, KeyError) as error:
        raise ModelError(f"{file.path}: its settings do not fit: {error}") from None
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
    return ranker


def _counts(file: Tensors, name: str, length: int | None = None) -> list[int]:
    """A setting that is a whole number, or a list of `length` of them; none below 0."""
    found = [file.setting(name, int)] if length is None else file.setting(name, list)
    if len(found) != (length or 1) or any(type(n) is not int or n < 0 for n in found):
        raise ModelError(f"{file.path}: the setting {name!r} cannot be {file.settings[name]!r}")
    return list(found)


def matrix_arrays(name: str, matrix: csr_array) -> dict[str, NDArray[Any]]:
    """A sparse matrix as three arrays."""
    return {
        f"{name}.indptr": matrix.indptr.astype(np.int64),
        f"{name}.indices": matrix.indices.astype(np.int32),
        f"{name}.data": matrix.data.astype(np.float32),
    }


def matrix(file: Tensors, name: str, shape: list[int]) -> csr_array:
    """The sparse matrix that `matrix_arrays` described; one that is not consistent is refused by the file's name."""
    from scipy.sparse import csr_array

    data = file.array(f"{name}.data", "float32")
    indices = file.indices(f"{name}.indices", shape[1], len(data))
    indptr = file.windows(f"{name}.indptr", len(data), shape[0])
    falls = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
    if (indptr[np.searchsorted(indptr, falls)] != falls).any():
        raise ModelError(f"{file.path}: the columns of {name} do not rise within a row")
    return csr_array((data, indices, indptr.astype(np.int32) if len(data) < 2**31 else indptr), shape=tuple(shape))


def _words(file: Tensors, name: str, width: int) -> tuple[str, ...] | None:
    if f"{name}.utf8" not in file.arrays:
        return None
    words = file.strings(name)
    if len(words) != width:
        raise ModelError(f"{file.path}: {len(words)} {name.replace('_', ' ')} for {width} columns")
    return words


def _read_0_1(params: dict[str, Any], shape: list[int], file: Tensors) -> None:
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
        params["centre"] = matrix(file, "centre", shape)
