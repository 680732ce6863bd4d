"""A sparse W from class labels without triples: squared loss on all pairs of items at once.

    min over W with `wanted` entries   ½‖XWXᵀ - YYᵀ‖² + ½ ridge (‖XW‖² + ‖WXᵀ‖² + ridge ‖W‖²)

X : the items, each column scaled by how much it tells of the class. Y : the classes, one column each, less its mean.
Without a limit the answer is W = BBᵀ, B the ridge regression of Y on X. With one:

1. B itself is made sparse: its largest entries (by impact), as many as let BBᵀ have about `wider` times the pairs that
   are wanted, fitted again on these places only;
2. BBᵀ is cut to the entries with the largest impact, a few rows at a time;
3. these are fitted again to the objective above (`ClassRefit`); a small W first with more entries than it keeps.

Memory grows with the entries of X, with D · classes and with `wanted`; never with D² or n². The settings were chosen
on 20 Newsgroups, on the last third (by date) of each class's training documents: benchmarks/class_defaults.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .label_refit import ClassRefit
from .low_rank_pruning import Floats, cut_product, largest, mean_sizes
from .solution import Solution

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Ints = NDArray[np.int64]

LEAST_KL, SMOOTH = 0.05, 0.1
"""What a column that tells nothing of the class still counts; how many unseen items each column is thought to have."""


@dataclass(frozen=True)
class ClassRidge:
    """The solver and its settings.

    ridge : how far weights are held back. kl_power : columns are scaled by (the Kullback-Leibler divergence of the
        classes of the items that have it from those of all items, + .05) to this power.
    wider : times the wanted pairs that a sparse B may have. first_pattern : times the wanted pairs that are fitted
        before the last cut, where that is no more than `most_first`.
    """

    ridge: float = 1.5
    kl_power: float = 0.25
    wider: float = 20.0
    first_pattern: float = 3.0
    most_first: int = 3_000_000
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        validation.number("ridge", self.ridge, low=0, open_low=True)
        validation.number("kl_power", self.kl_power, low=0)
        validation.number("wider", self.wider, low=1)
        validation.number("first_pattern", self.first_pattern, low=1)
        validation.count("most_first", self.most_first)

    def solve(self, X: csr_array, code: Ints, wanted: int, seed: int) -> Solution:
        """W for items X of classes `code` (0, 1, …), with no more than `wanted` entries."""
        scale = column_scale(X, code, self.kl_power)
        items, targets = scaled(X, scale), centred(code)
        sizes = mean_sizes(items)
        B, settled = ridge_regression(items, targets, self.ridge)
        if self.wider * wanted < float((B.any(axis=1)).sum()) ** 2:
            B, settled = self._sparser(items, targets, B, sizes, wanted)
        refit, steps = ClassRefit(self.ridge, n_jobs=self.n_jobs), 0
        first = int(self.first_pattern * wanted)
        W = cut_product(B, sizes, first if first <= self.most_first else wanted, self.n_jobs)
        if W.nnz > wanted:
            steps = refit.steps_for(W)
            W = cut_by_impact(refit.fitted(items, targets, W, seed), sizes, wanted)
        steps += refit.steps_for(W)
        W = refit.fitted(items, targets, W, seed + 1)
        W.data *= np.repeat(scale, np.diff(W.indptr)) * scale[W.indices]
        message = "the ridge regression has come to rest" if settled else "the ridge regression was still moving"
        held = W.data.nbytes + W.indices.nbytes + W.indptr.nbytes
        return Solution(W, steps, settled, message, self.ridge, (), held, W.nnz)

    def _sparser(self, X: csr_array, Y: Floats, B: Floats, sizes: Floats, wanted: int) -> tuple[Floats, bool]:
        """B on the largest of its entries that let BBᵀ have no more than wider · wanted pairs, fitted again there."""
        impact = np.abs(B) * sizes[:, None]
        place = np.argsort(-impact, axis=None, kind="stable")[: np.count_nonzero(impact)]
        # a class with n words makes n² pairs, its n-th word 2n - 1 of them; pairs of two classes count twice
        nth = np.empty(len(place), np.int64)
        for c in range(B.shape[1]):
            own = np.flatnonzero(place % B.shape[1] == c)
            nth[own] = np.arange(1, len(own) + 1)
        fits = np.cumsum(2 * nth - 1) <= self.wider * wanted
        support = np.zeros(B.shape, np.float32)
        support.ravel()[place[fits]] = 1.0
        return ridge_regression(X, Y, self.ridge, B * support, support)


def column_scale(X: csr_array, code: Ints, power: float) -> Floats:
    """How much each column counts: (divergence + .05) ** power, such that rows have a mean squared length of 1."""
    classes = int(code.max()) + 1
    row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    place = X.indices.astype(np.int64) * classes + code[row]
    having = np.bincount(place, minlength=X.shape[1] * classes).reshape(X.shape[1], classes)
    usual = np.bincount(code, minlength=classes) / len(code)
    total = having.sum(axis=1)
    share = (having + SMOOTH * usual) / (total[:, None] + SMOOTH)
    divergence = np.maximum((share * np.log(share / usual)).sum(axis=1), 0.0)
    scale = np.where(total > 0, (divergence + LEAST_KL) ** power, 0.0).astype(np.float32)
    length = np.sqrt(np.sum(np.square(X.data * scale[X.indices], dtype=np.float64)) / X.shape[0])
    return np.asarray(scale / np.float32(length or 1.0), dtype=np.float32)


def scaled(X: csr_array, scale: Floats) -> csr_array:
    """X with column j times scale[j]."""
    from scipy.sparse import csr_array

    return csr_array((X.data * scale[X.indices], X.indices, X.indptr), shape=X.shape)


def centred(code: Ints) -> Floats:
    """One column a class: 1 for its items, less the column's mean."""
    Y = (code[:, None] == np.arange(code.max() + 1)).astype(np.float32)
    return np.asarray(Y - Y.mean(axis=0, dtype=np.float64).astype(np.float32))


def ridge_regression(
    X: csr_array, Y: Floats, ridge: float, start: Floats | None = None, support: Floats | None = None,
    steps: int = 60, tolerance: float = 1e-3,
) -> tuple[Floats, bool]:  # fmt: skip
    """B = (XᵀX + ridge)⁻¹XᵀY where `support` is 1, by conjugate gradients from `start`; and whether it came to rest."""
    turned = X.T.tocsr()

    def kept(G: Floats) -> Floats:
        return G if support is None else G * support

    B = np.zeros((X.shape[1], Y.shape[1]), np.float32) if start is None else start.copy()
    rest = kept(turned @ Y)
    enough = tolerance**2 * (rest * rest).sum(axis=0)
    rest = rest - kept(turned @ (X @ B) + np.float32(ridge) * B)
    way, left = rest.copy(), (rest * rest).sum(axis=0)
    for _ in range(steps):
        if (left <= enough).all():
            break
        turn = kept(turned @ (X @ way) + np.float32(ridge) * way)
        far = left / np.maximum((way * turn).sum(axis=0), 1e-30)
        B += far * way
        rest -= far * turn
        now = (rest * rest).sum(axis=0)
        way = rest + (now / np.maximum(left, 1e-30)) * way
        left = now
    return B, bool((left <= enough).all())


def cut_by_impact(W: csr_array, sizes: Floats, wanted: int) -> csr_array:
    """Only the `wanted` entries of W with the largest impact."""
    from scipy.sparse import csr_array

    impact = W.data * np.repeat(sizes, np.diff(W.indptr)) * sizes[W.indices]
    chosen = largest(impact, wanted)
    row = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))[chosen]
    pointer = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=W.shape[0]))])
    return csr_array((W.data[chosen], W.indices[chosen], pointer), shape=W.shape)
