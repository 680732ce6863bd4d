"""LabelContrast: W = AAᵀ of low rank from class labels, by a ranking loss over batches of items, then pruned.

Each step scores all pairs of a batch, s_ij = x_iᵀ A Aᵀ x_j, and moves A by Adam along the gradient of the loss of
`_kernels.contrast`, a mixture of the supervised contrastive loss and the domination loss. A starts with the ridge
regression of the classes on the items. At the end AAᵀ is pruned to the entries with the largest impact, a few rows at a
time. Memory grows with the entries of X, rank · D, batch² and `max_pairs`, never with D². The settings were chosen on
5,000 images held out of the training part of MNIST: benchmarks/class_defaults.py.
"""

from __future__ import annotations

from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .label_ridge import center_labels, fit_ridge, iterate_batches, share_work
from .penalties import NoPenalty
from .problems import LabelProblem, Matrix
from .pruning import DEFAULT_MAX_PAIRS, compute_column_rms, prune_product
from .solver import Solution, Solver

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

TASK_ROWS = 50
FIRST_STEPS, SMALL = 20, 0.01
"""Steps of conjugate gradient for the start; the relative size of the noise in the columns of A beyond the classes."""
CONVERGED = 0.01
"""The largest relative difference of the mean losses of the last two tenths of the steps."""


@dataclass(frozen=True)
class LabelContrast(Solver):
    """The solver and its settings. Rank and steps limit W; there is no penalty.

    max_pairs : the most entries of W.
    rank : columns of A. mix : the share of the domination loss, the rest is supervised contrast.
    ridge, sharpness : A starts as the ridge regression with this strength, times `sharpness`.
    steps, batch, rate : of Adam; the rate is relative to the mean size of A's first entries, and falls to 0.
    """

    max_pairs: int = DEFAULT_MAX_PAIRS
    seed: int = 0
    rank: int = 40
    mix: float = 0.2
    ridge: float = 10.0
    sharpness: float = 4.0
    steps: int = 900
    batch: int = 1000
    rate: float = 0.1
    n_jobs: int | None = None
    losses: ClassVar[tuple[type, ...]] = (object,)
    takes_init: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, low in (("rank", 1), ("steps", 0), ("batch", 2)):
            validation.count(name, getattr(self, name), low=low)
        validation.number("mix", self.mix, low=0, high=1)
        for name in ("ridge", "sharpness"):
            validation.number(name, getattr(self, name), low=0, open_low=True)
        validation.number("rate", self.rate, low=0)

    def solve(self, problem: LabelProblem, penalty: NoPenalty, init: None = None) -> Solution:
        """W with at most `max_pairs` entries."""
        self.check(problem.loss, penalty, init)
        X, labels, rng = problem.X, problem.labels, np.random.default_rng(self.seed)
        A = self._start(X, labels, rng)
        with ThreadPoolExecutor(validation.threads(self.n_jobs)) as pool:
            losses = self._learn(X, labels, A, rng, pool)
        W = prune_product(A, compute_column_rms(X), self.max_pairs, self.n_jobs)
        tenth = max(1, len(losses) // 10)
        last, before = (
            float(np.mean(part)) if len(part) else 0.0 for part in (losses[-tenth:], losses[-2 * tenth : -tenth])
        )
        settled = abs(last - before) <= CONVERGED * max(abs(before), 1e-12)
        message = f"the loss of a batch {'converged at' if settled else 'did not converge, at'} {last:.4f}"
        info = {"steps": self.steps, "converged": settled, "message": message, "alpha": self.ridge}
        return Solution(W, info={**info, "peak_bytes": 3 * A.nbytes, "peak_nonzeros": W.nnz})

    def _start(self, X: csr_array, labels: Ints, rng: np.random.Generator) -> Matrix:
        """The ridge regression of the classes, or its principal directions if the rank is smaller, and noise."""
        B, _ = fit_ridge(X, center_labels(labels), self.ridge, max_iter=FIRST_STEPS)
        B *= np.float32(self.sharpness)
        if B.shape[1] > self.rank:
            _, vectors = np.linalg.eigh((B.T @ B).astype(np.float64))
            B = B @ vectors[:, ::-1][:, : self.rank].astype(np.float32)
        noise = rng.normal(size=(len(B), self.rank - B.shape[1])) * SMALL * float(np.abs(B).mean())
        noise[~B.any(axis=1)] = 0.0  # a column that occurs in no item gets no entry of W
        return np.ascontiguousarray(np.hstack([B, noise.astype(np.float32)]))

    def _learn(self, X: csr_array, labels: Ints, A: Matrix, rng: np.random.Generator, pool: Executor) -> list[float]:
        """Take all steps, on A in place; returns the mean loss of each batch."""
        from .._kernels.contrast import adam

        mean, square, losses = np.zeros_like(A), np.zeros_like(A), []
        unit = self.rate * float(np.abs(A[:, : labels.max() + 1]).mean())
        batches = iterate_batches(rng, X.shape[0], min(self.batch, X.shape[0]))
        for step, batch in zip(range(1, self.steps + 1), batches, strict=False):
            x = X[batch]
            gradient, loss = self._evaluate(np.ascontiguousarray(x @ A), labels[batch], pool)
            losses.append(loss)
            rate = unit * (0.01 + 0.99 * (1.0 - step / self.steps))
            adam(A, np.ascontiguousarray(x.T @ gradient), mean, square, rate, step)
        return losses

    def _evaluate(self, Z: Matrix, labels: Ints, pool: Executor) -> tuple[Matrix, float]:
        """The gradient of the mean loss of a batch with respect to Z, the projected items, and that loss."""
        from .._kernels.contrast import contrast_rows, multiply_rows

        n = len(Z)
        transposed, by_score, loss = np.ascontiguousarray(Z.T), np.empty((n, n), np.float32), np.empty(n)
        share_work(
            pool, n, TASK_ROWS, lambda a, b: contrast_rows(Z, transposed, labels, self.mix, a, b, by_score, loss)
        )
        symmetric, out = (by_score + by_score.T) / np.float32(n), np.empty_like(Z)
        share_work(pool, n, TASK_ROWS, lambda a, b: multiply_rows(symmetric, Z, a, b, out))
        return out, float(loss.mean())
