"""BM25F (Zaragoza et al., 2004; Robertson and Zaragoza, 2009): one term frequency of several fields.

    tf(t, d) = Σ_f w_f · tf_f(t, d) / (1 − b + b · length_f(d) / mean length_f)
    weight(t, d) = idf(t) · tf / (k1 + tf)

The weights of fields are tuned by coordinate search on held-out judged queries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WEIGHTS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""The weights of a field to try."""
PASSES = 2
"""How often each field's weight is tried again after the others changed."""


@dataclass(frozen=True)
class BM25F:
    """The weight and the mean length of each field, and the length normalization b."""

    weights: tuple[float, ...]
    mean_lengths: tuple[float, ...]
    b: float

    def combine(self, counts: Sequence[csr_array]) -> csr_array:
        """Return tf(t, d), given the counts of each field."""
        return self.add(self.normalize(counts))

    def normalize(self, counts: Sequence[csr_array]) -> list[csr_array]:
        """Return tf_f / (1 − b + b · length_f / mean length_f) of each field."""
        from scipy.sparse import csr_array

        out = []
        for field, mean in zip(counts, self.mean_lengths, strict=True):
            length = np.asarray(field.sum(axis=1, dtype=np.float64)).ravel()
            norm = np.maximum(1.0 - self.b + self.b * length / (mean or 1.0), np.finfo(np.float32).tiny)
            data = (field.data / np.repeat(norm, np.diff(field.indptr))).astype(np.float32)
            out.append(csr_array((data, field.indices, field.indptr), shape=field.shape))
        return out

    def add(self, normalized: Sequence[csr_array]) -> csr_array:
        """Return the weighted sum of the fields."""
        total = normalized[0] * np.float32(self.weights[0])
        for field, weight in zip(normalized[1:], self.weights[1:], strict=True):
            total = total + field * np.float32(weight)
        total.eliminate_zeros()
        total.sort_indices()
        return total


def mean_length(counts: csr_array) -> float:
    """Return the mean number of words of a field, over all documents."""
    return float(counts.sum(dtype=np.float64)) / max(int(counts.shape[0]), 1)


def coordinate_search(
    start: Sequence[float], ndcg: Callable[[tuple[float, ...]], NDArray[np.float64]]
) -> tuple[tuple[float, ...], float, float]:
    """Return the weights with the best mean nDCG, and the means before and after.

    A change is taken only if its mean improvement over the start is more than one standard error, and if a field keeps
    a positive weight.
    """
    best = tuple(start)
    first = values = ndcg(best)
    for _ in range(PASSES):
        before = best
        for field in range(len(best)):
            for weight in WEIGHTS:
                trial = (*best[:field], weight, *best[field + 1 :])
                if weight == best[field] or not any(trial):
                    continue
                found = ndcg(trial)
                gain = found - first
                error = float(gain.std()) / max(len(gain), 1) ** 0.5
                if found.mean() > values.mean() and gain.mean() > error:
                    best, values = trial, found
        if best == before:
            break
    return best, float(first.mean()), float(values.mean())
