"""A W of low rank from class labels: W = AAᵀ, the loss of ranking every item's batch for it, and then a cut.

Every step takes a batch of items, scores all pairs of them, s_ij = x_iᵀ A Aᵀ x_j, and moves A by Adam against the loss
of `kernels.contrast`: supervised contrast and the domination loss, mixed. A begins with the ridge regression of the
classes on the items. In the end AAᵀ is cut to the entries that move scores most, a few rows at a time. Memory grows
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

ROWS_A_TASK = 50
FIRST_STEPS, SMALL = 20, 0.01
"""Of conjugate gradients for the start; the size of A's further columns beside those that begin with the classes."""
AT_REST = 0.01
"""The loss has come to rest where its mean over the last tenth of the steps is this near to the tenth before."""


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

    def solve(self, X: csr_array, code: Ints, wanted: int, seed: int) -> Solution:
        """W for items X of classes `code` (0, 1, …), with no more than `wanted` entries."""
        rng = np.random.default_rng(seed)
        A = self._start(X, code, rng)
        with ThreadPoolExecutor(validation.threads(self.n_jobs)) as pool:
            losses = self._learn(X, code, A, rng, pool)
        W = prune_product(A, compute_column_rms(X), wanted, self.n_jobs)
        tenth = max(1, len(losses) // 10)
        last, before = (
            float(np.mean(part)) if len(part) else 0.0 for part in (losses[-tenth:], losses[-2 * tenth : -tenth])
        )
        settled = abs(last - before) <= AT_REST * max(abs(before), 1e-12)
        message = f"the loss of a batch {'has come to rest at' if settled else 'was still moving, at'} {last:.4f}"
        info = {"steps": self.steps, "converged": settled, "message": message, "alpha": self.ridge}
        return Solution(W, info={**info, "peak_bytes": 3 * A.nbytes, "peak_nonzeros": W.nnz})

    def _start(self, X: csr_array, code: Ints, rng: np.random.Generator) -> Matrix:
        """The ridge regression of the classes – its main directions, where the rank is less than that – and noise."""
        B, _ = fit_ridge(X, center_labels(code), self.ridge, max_iter=FIRST_STEPS)
        B *= np.float32(self.sharpness)
        if B.shape[1] > self.rank:
            _, ways = np.linalg.eigh((B.T @ B).astype(np.float64))
            B = B @ ways[:, ::-1][:, : self.rank].astype(np.float32)
        noise = rng.normal(size=(len(B), self.rank - B.shape[1])) * SMALL * float(np.abs(B).mean())
        noise[~B.any(axis=1)] = 0.0  # a column that no item has stays out of W
        return np.ascontiguousarray(np.hstack([B, noise.astype(np.float32)]))

    def _learn(self, X: csr_array, code: Ints, A: Matrix, rng: np.random.Generator, pool: Executor) -> list[float]:
        """All steps, A in place; the mean loss of each batch."""
        from .._kernels.contrast import adam

        n, size = X.shape[0], min(self.batch, X.shape[0])
        mean, square, losses = np.zeros_like(A), np.zeros_like(A), []
        unit = self.rate * float(np.abs(A[:, : code.max() + 1]).mean())
        order, at = rng.permutation(n), 0
        for step in range(1, self.steps + 1):
            if at + size > n:
                order, at = rng.permutation(n), 0
            batch = order[at : at + size]
            at += size
            x = X[batch]
            pull, loss = self._pull(np.ascontiguousarray(x @ A), code[batch], pool)
            losses.append(loss)
            rate = unit * (0.01 + 0.99 * (1.0 - step / self.steps))
            adam(A, np.ascontiguousarray(x.T @ pull), mean, square, rate, step)
        return losses

    def _pull(self, Z: Matrix, code: Ints, pool: Executor) -> tuple[Matrix, float]:
        """The gradient of the batch's mean loss by the items' places Z, and that loss."""
        from .._kernels.contrast import contrast_rows, pulled_rows

        n = len(Z)
        turned, slope, loss = np.ascontiguousarray(Z.T), np.empty((n, n), np.float32), np.empty(n)
        starts = range(0, n, ROWS_A_TASK)

        def slopes(start: int) -> None:
            contrast_rows(Z, turned, code, self.mix, start, min(start + ROWS_A_TASK, n), slope, loss)

        for _ in pool.map(slopes, starts):
            pass
        both, pull = (slope + slope.T) / np.float32(n), np.empty_like(Z)

        def pulls(start: int) -> None:
            pulled_rows(both, Z, start, min(start + ROWS_A_TASK, n), pull)

        for _ in pool.map(pulls, starts):
            pass
        return pull, float(loss.mean())
