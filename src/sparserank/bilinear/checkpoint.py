"""Checkpoints of a training: a crash loses at most the steps since the last one, and continuing gives the same bits.

W settles at every checkpoint whether the training is interrupted or not, so checkpoints do not change the result.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.files import PathLike
from ..data.formats.tensors import Tensors, read_tensors, write_tensors
from ..errors import ModelError

if TYPE_CHECKING:
    from ..optim.scores import Bilinear
    from ..optim.sparse_sgd import AnyTraining
    from ..preferences import Preferences

KIND = "checkpoint"


class Checkpoint:
    """A file with the state of a training, for these parameters, rows and preferences only."""

    def __init__(
        self, path: PathLike, every: int, params: Mapping[str, Any], score: Bilinear, preferences: Preferences
    ) -> None:
        self.path, self.every = Path(path), every
        digest = hashlib.sha256(json.dumps(params, sort_keys=True, default=repr).encode())
        for matrix in (score.queries, score.items):
            for part in (matrix.indptr, matrix.indices, matrix.data):
                digest.update(np.ascontiguousarray(part).tobytes())
        for part in (preferences.query, preferences.order, preferences.better, preferences.worse):
            digest.update(part.tobytes())
        self.fingerprint = digest.hexdigest()

    def read(self) -> Tensors | None:
        """Read the state; None if there is no checkpoint yet. One of another training raises ModelError."""
        if not self.path.exists():
            return None
        file = read_tensors(self.path, KIND)
        if file.settings.get("fingerprint") != self.fingerprint:
            raise ModelError(f"{self.path}: a checkpoint of other parameters or data; remove it, or give another file")
        return file

    def write(self, phase: str, training: AnyTraining, more: Mapping[str, Any]) -> None:
        """Write the state atomically."""
        state, arrays = training.state()
        write_tensors(self.path, KIND, {"fingerprint": self.fingerprint, "phase": phase, "told": state, **more}, arrays)

    def remove(self) -> None:
        """Remove the file after the training has ended."""
        self.path.unlink(missing_ok=True)
