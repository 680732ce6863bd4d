"""LabelContrast: W = AAᵀ of low rank from class labels, by a ranking loss over batches of items, then pruned.

Every step takes a batch of items, scores all pairs of them, s_ij = x_iᵀ A Aᵀ x_j, and moves A by Adam against the loss
of `_kernels.contrast`: supervised contrast and the domination loss, mixed. A starts with the ridge regression of the
classes on the items. In the end AAᵀ is pruned to the entries that move scores most, a few rows at a time. Memory grows
with the entries of X, with rank · D, batch² and the pairs that are kept; never with D². The settings were chosen on
5,000 images held out of MNIST's training part: benchmarks/class_defaults.py.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .label_ridge import center_labels, fit_ridge
from .problems import Matrix
from .pruning import compute_column_rms, prune_product
from .solver import Solution

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

TASK_ROWS = 50
FIRST_STEPS, SMALL = 20, 0.01
"""Of conjugate gradients for the start; the size of A's further columns beside those that begin with the classes."""
CONVERGED = 0.01
"""The largest relative difference of the mean losses of the last two tenths of the steps."""


@dataclass(frozen=True)
class LabelContrast:
    """The solver and its settings.

    rank : columns of A. mix : the share of the domination loss, the rest is supervised contrast.
    ridge, sharpness : A begins with this ridge regression times `sharpness`.
    steps, batch, rate : of Adam; the rate is relative to the mean size of A's first entries, and falls to 0.
    """

    rank: int = 40
    mix: float = 0.2
    ridge: float = 10.0
    sharpness: float = 4.0
    steps: int = 900
    batch: int = 1000
    rate: float = 0.1
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        for name, low in (("rank", 1), ("steps", 0), ("batch", 2)):
            validation.count(name, getattr(self, name), low=low)
        validation.number("mix", self.mix, low=0, high=1)
        for name in ("ridge", "sharpness"):
            validation.number(name, getattr(self, name), low=0, open_low=True)
        validation.number("rate", self.rate, low=0)

    def solve(self, X: csr_array, labels: Ints, max_pairs: int, seed: int) -> Solution:
        """W for items X with labels 0, 1, …, with at most `max_pairs` entries."""
        rng = np.random.default_rng(seed)
        A = self._start(X, labels, rng)
        with ThreadPoolExecutor(validation.threads(self.n_jobs)) as pool:
            losses = self._learn(X, labels, A, rng, pool)
        W = prune_product(A, compute_column_rms(X), max_pairs, self.n_jobs)
        tenth = max(1, len(losses) // 10)
        last, before = (
            float(np.mean(part)) if len(part) else 0.0 for part in (losses[-tenth:], losses[-2 * tenth : -tenth])
        )
        settled = abs(last - before) <= CONVERGED * max(abs(before), 1e-12)
        message = f"the loss of a batch {'converged at' if settled else 'did not converge, at'} {last:.4f}"
        info = {"steps": self.steps, "converged": settled, "message": message, "alpha": self.ridge}
        return Solution(W, info={**info, "peak_bytes": 3 * A.nbytes, "peak_nonzeros": W.nnz})

    def _start(self, X: csr_array, labels: Ints, rng: np.random.Generator) -> Matrix:
        """The ridge regression of the classes – its main directions, where the rank is less than that – and noise."""
        B, _ = fit_ridge(X, center_labels(labels), self.ridge, max_iter=FIRST_STEPS)
        B *= np.float32(self.sharpness)
        if B.shape[1] > self.rank:
            _, vectors = np.linalg.eigh((B.T @ B).astype(np.float64))
            B = B @ vectors[:, ::-1][:, : self.rank].astype(np.float32)
        noise = rng.normal(size=(len(B), self.rank - B.shape[1])) * SMALL * float(np.abs(B).mean())
        noise[~B.any(axis=1)] = 0.0  # a column that no item has stays out of W
        return np.ascontiguousarray(np.hstack([B, noise.astype(np.float32)]))

    def _learn(self, X: csr_array, labels: Ints, A: Matrix, rng: np.random.Generator, pool: Executor) -> list[float]:
        """All steps, A in place; the mean loss of each batch."""
        from .._kernels.contrast import adam

        n, size = X.shape[0], min(self.batch, X.shape[0])
        mean, square, losses = np.zeros_like(A), np.zeros_like(A), []
        unit = self.rate * float(np.abs(A[:, : labels.max() + 1]).mean())
        order, at = rng.permutation(n), 0
        for step in range(1, self.steps + 1):
            if at + size > n:
                order, at = rng.permutation(n), 0
            batch = order[at : at + size]
            at += size
            x = X[batch]
            gradient, loss = self._evaluate(np.ascontiguousarray(x @ A), labels[batch], pool)
            losses.append(loss)
            rate = unit * (0.01 + 0.99 * (1.0 - step / self.steps))
            adam(A, np.ascontiguousarray(x.T @ gradient), mean, square, rate, step)
        return losses

    def _evaluate(self, Z: Matrix, labels: Ints, pool: Executor) -> tuple[Matrix, float]:
        """The gradient of the batch's mean loss by Z, the projected items, and that loss."""
        from .._kernels.contrast import contrast_rows, multiply_rows

        n = len(Z)
        transposed, by_score, loss = np.ascontiguousarray(Z.T), np.empty((n, n), np.float32), np.empty(n)
        starts = range(0, n, TASK_ROWS)

        def compute_gradients(start: int) -> None:
            contrast_rows(Z, transposed, labels, self.mix, start, min(start + TASK_ROWS, n), by_score, loss)

        for _ in pool.map(compute_gradients, starts):
            pass
        symmetric, out = (by_score + by_score.T) / np.float32(n), np.empty_like(Z)

        def project(start: int) -> None:
            multiply_rows(symmetric, Z, start, min(start + TASK_ROWS, n), out)

        for _ in pool.map(project, starts):
            pass
        return out, float(loss.mean())
