"""PatternAdagrad: a listwise loss on the pairs of a pattern, by Adagrad on batches of queries.

Adagrad gives every pair a step size of its own, so that a pair of frequent words does not decide how fast a rare one
learns. The number of epochs and the learning rate are the regularization: W starts from weights that are good already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import validation
from .candidate_lists import RerankingProblem
from .document_source import DocumentSource
from .losses import Domination, Hinge, Softmax
from .penalties import NoPenalty
from .problems import csr_arrays
from .solver import Solution, Solver

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BATCH = 256
"""Queries in a batch, unless a tenth of the queries is less."""
PARTS = 4
"""Parts of a batch. Each has a gradient of its own, and they are added in order, so threads do not change the bits."""


@dataclass(frozen=True)
class PatternAdagrad(Solver):
    """Adagrad on the entries that W has.

    initial_squares : the initial sum of squared gradients; larger values make the first steps of a pair smaller.
    """

    epochs: int = 1
    rate: float = 0.1
    initial_squares: float = 0.0
    seed: int = 0
    n_jobs: int | None = None
    losses: ClassVar[tuple[type, ...]] = (Domination, Softmax, Hinge)
    penalties: ClassVar[tuple[type, ...]] = (NoPenalty,)

    def __post_init__(self) -> None:
        validation.count("epochs", self.epochs, low=1)
        validation.number("rate", self.rate, low=0.0, open_low=True)
        validation.threads(self.n_jobs)

    def solve(self, problem: RerankingProblem, penalty: NoPenalty, init: csr_array, **options: Any) -> Solution:
        """W's entries after the last epoch; the options are those of `iterate`."""
        history, W = [], init
        for loss, weights in self.iterate(problem, penalty, init, **options):
            history.append(loss)
            W = weights
        return Solution(W, tuple(history), {"epochs": self.epochs})

    def iterate(
        self,
        problem: RerankingProblem,
        penalty: NoPenalty,
        init: csr_array,
        fixed: Any = None,
        nonnegative: bool = False,
        report: Callable[[float], None] | None = None,
    ) -> Iterator[tuple[float, csr_array]]:
        """The loss of each epoch, and W after it.

        fixed : marks the entries that stay. nonnegative : whether a weight below 0 becomes 0.
        report : called with the fraction of the batches so far.
        """
        from scipy.sparse import csr_array

        from .._kernels.candidate_lists import adagrad_step

        self.check(problem.loss, penalty)
        W = csr_array(init, copy=True)
        W.sort_indices()
        W.data = W.data.astype(np.float32)
        free = np.ones(W.nnz, np.bool_) if fixed is None else ~np.asarray(fixed, np.bool_)
        squares = np.full(W.nnz, np.float32(self.initial_squares))
        threads = validation.threads(self.n_jobs)
        cuts = np.linspace(0, W.nnz, 4 * threads + 1).astype(np.int64)
        queries = np.flatnonzero(problem.candidates.lengths > 1)
        batch = max(1, min(BATCH, len(queries) // 10))
        rng, D = np.random.default_rng(self.seed), problem.D
        is_here = not isinstance(D, DocumentSource)
        gradient = ListGradient(problem, W) if is_here else D.list_gradient(problem, W)
        with ThreadPoolExecutor(threads) as pool:

            def step(at: int) -> None:
                adagrad_step(
                    cuts[at], cuts[at + 1], W.data, squares, gradient.parts, np.float32(self.rate), free, nonnegative
                )

            for epoch in range(self.epochs):
                order, total = rng.permutation(queries), 0.0
                for at in range(0, len(order), batch):
                    if report is not None:
                        report((epoch + at / len(order)) / self.epochs)
                    total += gradient.add(order[at : at + batch], W.data, pool)
                    list(pool.map(step, range(len(cuts) - 1)))
                yield total / max(len(order), 1), W.copy()


def loss_arguments(loss: Any) -> tuple[int, float]:
    """The kind and the margin of a loss, for the kernel."""
    from .._kernels.candidate_lists import DOMINATION, HINGE, SOFTMAX

    kind = {Domination: DOMINATION, Softmax: SOFTMAX, Hinge: HINGE}[type(loss)]
    return kind, float(loss.margin) if isinstance(loss, Hinge) else 0.0


class ListGradient:
    """The loss of a reranking problem and its gradient by the weights of a pattern, in `PARTS` parts to be added.

    It has the documents of the lists and the columns of the pattern only: the others change no score.
    """

    def __init__(self, problem: RerankingProblem, pattern: csr_array) -> None:
        candidates = problem.candidates
        documents, document = np.unique(candidates.document, return_inverse=True)
        columns, column = np.unique(pattern.indices, return_inverse=True)
        self._Q, self._D = csr_arrays(problem.Q), csr_arrays(problem.D[documents][:, columns])
        self._start, self._column = pattern.indptr.astype(np.int64), column.astype(np.int32)
        lists = candidates.start, document.astype(np.int32), candidates.base, candidates.share
        self._lists = (*lists, *loss_arguments(problem.loss))
        self._work = np.zeros((PARTS, 2, len(columns)), np.float32)
        self.parts = np.zeros((PARTS, pattern.nnz), np.float32)

    def add(self, queries: NDArray[np.intp], weight: NDArray[np.float32], pool: ThreadPoolExecutor) -> float:
        """Add the gradient of some queries to `parts`; return their loss."""
        from .._kernels.candidate_lists import evaluate

        def run(part: int) -> float:
            some = queries[part * len(queries) // PARTS : (part + 1) * len(queries) // PARTS]
            pattern = self._start, self._column, weight
            loss: float = evaluate(
                some, *self._Q, *pattern, *self._D, *self._lists, *self._work[part], self.parts[part]
            )
            return loss

        return float(sum(pool.map(run, range(PARTS))))
