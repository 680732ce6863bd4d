"""Weights quantized to small integers, for research engines and weighted sets: impact = ⌈weight · scale⌉.

Rounding up keeps every posting: an impact is at least 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..errors import DataError


@dataclass(frozen=True)
class Impacts:
    """A quantization of weights: `scale` is the impact of one unit of weight."""

    scale: float
    bits: int

    @classmethod
    def over(cls, largest: float, bits: int = 8) -> Impacts:
        """Map the largest weight to the largest integer of `bits` bits.

        >>> Impacts.over(2.0).of(np.array([0.001, 1.0, 2.0])).tolist()
        [1, 128, 255]
        """
        validation.count("bits", bits, low=2, high=16)
        return cls((2**bits - 1) / largest if largest > 0.0 else 1.0, bits)

    def of(self, weights: NDArray[np.float32] | NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the impacts of weights in (0, largest]."""
        scaled = np.asarray(weights, np.float64) * self.scale
        if len(scaled) and (scaled.min() <= 0.0 or scaled.max() > 2**self.bits - 1 + 1e-6):
            raise DataError("weights must be above 0 and not above the largest one")
        return np.clip(np.ceil(scaled - 1e-9), 1, 2**self.bits - 1).astype(np.int64)
