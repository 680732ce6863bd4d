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
STANDARD_ERRORS = 2.0
"""A weight changes if the mean improvement is larger than this many standard errors."""
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
    start: Sequence[float],
    ndcg: Callable[[tuple[float, ...]], NDArray[np.float64]],
    baseline: NDArray[np.float64] | None = None,
) -> tuple[tuple[float, ...], NDArray[np.float64]]:
    """Return the weights with the best mean nDCG, and the nDCG of each query.

    A change is taken only if its mean improvement over the baseline, by default the start, is more than STANDARD_ERRORS
    standard errors, and if a field keeps a positive weight.
    """
    best = tuple(start)
    values = ndcg(best)
    baseline = values if baseline is None else baseline
    for _ in range(PASSES):
        before = best
        for field in range(len(best)):
            for weight in WEIGHTS:
                trial = (*best[:field], weight, *best[field + 1 :])
                if weight == best[field] or not any(trial):
                    continue
                found = ndcg(trial)
                if found.mean() > values.mean() and improves(found, baseline):
                    best, values = trial, found
        if best == before:
            break
    return best, values


def improves(ndcg: NDArray[np.float64], baseline: NDArray[np.float64]) -> bool:
    """Return whether the mean improvement is more than STANDARD_ERRORS standard errors.

    >>> improves(np.array([0.5, 0.6]), np.array([0.4, 0.4])), improves(np.array([0.5, 0.3]), np.array([0.4, 0.4]))
    (True, False)
    """
    gain = ndcg - baseline
    return bool(gain.mean() > STANDARD_ERRORS * gain.std() / max(len(gain), 1) ** 0.5)
