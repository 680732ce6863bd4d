"""Checkpoints of a training: `kill -9` at any moment loses at most the interval, and going on gives the same bits.

A checkpoint is taken where the training has settled, and the training settles there whether it is killed or not.
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
    from ..optim.pattern_sgd import PatternTraining
    from ..optim.scores import Bilinear
    from ..optim.sparse_sgd import Training
    from ..preferences import Preferences

KIND = "checkpoint"


class Checkpoint:
    """One file that holds how far a training is; made for these settings, these rows and these preferences."""

    def __init__(
        self, path: PathLike, every: int, settings: Mapping[str, Any], score: Bilinear, prefs: Preferences
    ) -> None:
        self.path, self.every = Path(path), every
        digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=repr).encode())
        for matrix in (score.queries, score.items):
            for part in (matrix.indptr, matrix.indices, matrix.data):
                digest.update(np.ascontiguousarray(part).tobytes())
        for part in (prefs.query, prefs.order, prefs.better, prefs.worse):
            digest.update(part.tobytes())
        self.fingerprint = digest.hexdigest()

    def read(self) -> Tensors | None:
        """The state to go on from; None where there is no checkpoint yet. One of another training is refused."""
        if not self.path.exists():
            return None
        file = read_tensors(self.path, KIND)
        if file.settings.get("fingerprint") != self.fingerprint:
            raise ModelError(f"{self.path}: a checkpoint of other settings or data; remove it, or name another file")
        return file

    def write(self, phase: str, training: Training | PatternTraining, more: Mapping[str, Any]) -> None:
        """Take a checkpoint, atomically."""
        told, arrays = training.state()
        about = {"fingerprint": self.fingerprint, "phase": phase, "told": told} | dict(more)
        write_tensors(self.path, KIND, about, arrays)

    def done(self) -> None:
        """The training has ended: its checkpoint is no longer needed."""
        self.path.unlink(missing_ok=True)
