"""The dense part of a model as its file has it: the vectors that it needs, and their weight."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..data.formats.tensors import Tensors
from ..errors import ModelError


@dataclass(frozen=True)
class DenseScore:
    """The dense part of a model: which vectors it needs, and how much their cosine counts.

    held_out, held_out_dense : nDCG@10 of held-out queries without and with the dense score.
    """

    name: str
    dimension: int
    weight: float
    held_out: float
    held_out_dense: float
    p_value: float

    def __str__(self) -> str:
        return f"{self.name or 'dense vectors'} ({self.dimension} dimensions)"

    def to_dict(self) -> dict[str, Any]:
        """Return the setting of a model file."""
        return asdict(self)

    @classmethod
    def stored(cls, file: Tensors) -> DenseScore | None:
        """Return what a model file holds, None if it has no dense score."""
        if "dense" not in file.settings:
            return None
        found = file.setting("dense", dict)
        numbers = [found.get(name) for name in ("weight", "held_out", "held_out_dense", "p_value")]
        are_numbers = all(isinstance(one, float | int) and 0.0 <= one < np.inf for one in numbers)
        if not isinstance(found.get("name"), str) or not isinstance(found.get("dimension"), int) or not are_numbers:
            raise ModelError(f"{file.path}: its setting 'dense' is not that of a dense score")
        return cls(found["name"], found["dimension"], *map(float, numbers))
