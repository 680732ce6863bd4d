"""Checkpoints of the training of a text ranker: a stage that was completed is not computed again.

The stages are those of `learn_pairs`. A training that continues from a checkpoint gives the same bits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..data.files import PathLike
from ..data.formats.tensors import pack_csr, read_tensors, write_tensors
from ..errors import ConfigError, ModelError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .training_data import TrainingMatrices

KIND = "text checkpoint"


@dataclass
class Checkpoint:
    """A file with the completed stages of one training; without a path, nothing is stored."""

    path: Path | None = None
    fingerprint: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    matrices: dict[str, csr_array] = field(default_factory=dict)

    @classmethod
    def open(cls, path: PathLike | None, params: Mapping[str, Any], data: TrainingMatrices) -> Checkpoint:
        """Read the stages of this training, if there are any. A checkpoint of another training raises ModelError."""
        if path is None:
            return cls()
        out = cls(Path(path), _fingerprint(params, data))
        if out.path is not None and out.path.exists():
            file = read_tensors(out.path, KIND)
            if file.settings.get("fingerprint") != out.fingerprint:
                raise ModelError(f"{path}: a checkpoint of other parameters or data; remove it, or give another file")
            shape = data.lists.shape
            out.facts = file.setting("facts", dict)
            out.matrices = {name: file.csr(name, shape) for name in file.setting("matrices", list)}
        return out

    def max_size(self, fitting: int) -> int:
        """Return the largest Gram matrix of the training: that of the stored stages, if it fits the memory of today."""
        size = int(self.fact("max_size", lambda: fitting))
        if size > fitting:
            raise ConfigError(
                f"{self.path}: its stages need more memory than there is now: Gram matrices of {size:,} rows, and "
                f"{fitting:,} fit; raise memory_limit (--memory), or remove the checkpoint"
            )
        return size

    def fact(self, name: str, compute: Callable[[], Any]) -> Any:
        """Return a stage whose result is JSON, computed now or before."""
        if name not in self.facts:
            self.facts[name] = compute()
            self._write()
        return self.facts[name]

    def matrix(self, name: str, compute: Callable[[], csr_array]) -> csr_array:
        """Return a stage whose result is a W, computed now or before."""
        if name not in self.matrices:
            W = compute()
            if self.path is None:
                return W
            self.matrices[name] = W
            self._write()
        return self.matrices[name]

    def _write(self) -> None:
        if self.path is None:
            return
        arrays: dict[str, NDArray[Any]] = {}
        for name, W in self.matrices.items():
            arrays |= pack_csr(name, W)
        names = {"fingerprint": self.fingerprint, "facts": self.facts, "matrices": list(self.matrices)}
        write_tensors(self.path, KIND, names, arrays)

    def remove(self) -> None:
        """Remove the file after the training has ended."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)


def _fingerprint(params: Mapping[str, Any], data: TrainingMatrices) -> str:
    digest = hashlib.sha256(json.dumps(params, sort_keys=True, default=repr).encode())
    for X in (data.lists.Q, data.lists.D, data.lists.grades, *data.lexical):
        for part in (X.indptr, X.indices, X.data):
            digest.update(np.ascontiguousarray(part).tobytes())
    digest.update(data.lists.query_weights.tobytes() + data.excluded.tobytes() + data.group_numbers.tobytes())
    return digest.hexdigest()
