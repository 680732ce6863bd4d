"""The model file of a learned W: its entries, its words and the learning curve."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.ranker import Ranker, State
from ..data.formats.tensors import Tensors, pack_csr, pack_strings
from ..errors import ModelError
from ..optim.solver import CurvePoint, Solution
from .word_pairs import WordPairs


def solution_info(key: str) -> Any:
    """A fitted attribute that is an entry of `solution_.info`."""
    return property(lambda ranker: ranker.solution_.info[key])


class PairMatrixRanker(WordPairs, Ranker):
    """A ranker with s(q, d) = qᵀ W d and a learned W."""

    _file_kind = "bilinear"

    solution_: Solution
    seed_: int
    n_iter_, alpha_, converged_ = solution_info("steps"), solution_info("alpha"), solution_info("converged")
    n_empty_queries_, n_empty_documents_ = solution_info("empty_queries"), solution_info("empty_documents")

    def _state(self) -> State:
        arrays = pack_csr("W", self._fitted())
        for name, words in (("query_words", self.query_words_), ("document_words", self.document_words_)):
            if words is not None:
                arrays |= pack_strings(name, words)
        info = self.solution_.info
        settings = {
            **{name: info[name] for name in ("steps", "alpha", "converged", "message")},
            "shape": list(self.W_.shape),
            "seed": self.seed_,
            "peak": [info["peak_bytes"], info["peak_nonzeros"]],
            "empty": [info["empty_queries"], info["empty_documents"]],
            "curve": [point.to_dict() for point in self.solution_.history],
        }
        return settings, arrays

    def _restore(self, file: Tensors) -> None:
        shape = file_shape(file)
        self.W_ = file.csr("W", shape)
        (self.seed_,), (steps,) = _counts(file, "seed"), _counts(file, "steps")
        alpha = float(file.setting("alpha", (int, float)))
        if not 0 <= alpha < np.inf:
            raise ModelError(f"{file.path}: the setting 'alpha' cannot be {alpha}")
        info = {
            "steps": steps,
            "alpha": alpha,
            "converged": file.setting("converged", bool),
            "message": file.setting("message", str),
        }
        for names, values in (
            (("peak_bytes", "peak_nonzeros"), _counts(file, "peak", 2)),
            (("empty_queries", "empty_documents"), _counts(file, "empty", 2) if "empty" in file.settings else (0, 0)),
        ):
            info |= dict(zip(names, values, strict=True))
        curve = tuple(CurvePoint(**point) for point in file.setting("curve", list))
        self.solution_ = Solution(self.W_, curve, info)
        self.query_words_ = _words(file, "query_words", shape[0])
        self.document_words_ = _words(file, "document_words", shape[1])


def file_shape(file: Tensors) -> tuple[int, int]:
    """The shape of W in a file."""
    shape = file.setting("shape", list)
    if len(shape) != 2 or not all(type(n) is int and 0 <= n < 2**31 for n in shape):
        raise ModelError(f"{file.path}: the shape of W cannot be {shape!r}")
    return shape[0], shape[1]


def _counts(file: Tensors, name: str, length: int | None = None) -> list[int]:
    """A setting that is a whole number, or a list of `length` of them; none is below 0."""
    counts = [file.setting(name, int)] if length is None else file.setting(name, list)
    if len(counts) != (length or 1) or any(type(n) is not int or n < 0 for n in counts):
        raise ModelError(f"{file.path}: the setting {name!r} cannot be {file.settings[name]!r}")
    return list(counts)


def _words(file: Tensors, name: str, width: int) -> tuple[str, ...] | None:
    if f"{name}.utf8" not in file.arrays:
        return None
    words = file.strings(name)
    if len(words) != width:
        raise ModelError(f"{file.path}: {len(words)} {name.replace('_', ' ')} for {width} columns")
    return words
