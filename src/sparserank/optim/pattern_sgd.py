"""Algorithm 1 on a fixed pattern: the paper's refit, and a diagonal W."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._kernels import pair_pattern as kernel
from ..preferences import Triples
from .losses import Hinge
from .pair_batch import compute_center_margins, renumber_columns, sort_by_frequency, to_arrays
from .pair_rows import head_sizes
from .penalties import NoPenalty, Penalty
from .scores import Bilinear
from .solver import TrainingState

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .sparse_sgd import SparseSGD

CHUNK = 1_000
"""Triples per kernel call, and between two calls of the callback."""
FILL = 0.3
"""The part of a row that is filled at least this much is stored dense."""


class PatternTraining(TrainingState):
    """A training of W on the pattern of `start`, step by step, with the interface of `Training`."""

    controller = max_pairs = None

    def __init__(
        self, solver: SparseSGD, score: Bilinear, loss: Hinge, penalty: Penalty, start: csr_array,
        centre: csr_array | None,
    ) -> None:  # fmt: skip
        super().__init__(solver, loss, penalty, centre)
        self._order = sort_by_frequency(score.items)
        pattern = renumber_columns(start, np.argsort(self._order)).astype(np.float32)
        value = pattern if centre is None else renumber_columns((start - centre).tocsr(), np.argsort(self._order))
        self.shape = start.shape
        self._ptr, self._idx, val = to_arrays(pattern)
        if centre is not None:
            val = np.asarray(value[np.repeat(np.arange(self.shape[0]), np.diff(self._ptr)), self._idx]).ravel()
        self._lay_out(val.astype(np.float32))
        self.peak_bytes, self.peak_nonzeros = self.nbytes, len(self._idx)
        self.bind(score)

    def _lay_out(self, val: NDArray[np.float32]) -> None:
        self._sizes = head_sizes(self.shape[1])
        self._level, self._place, self._start, self._size = (np.zeros(self.shape[0], np.int64) for _ in range(4))
        where = (self._ptr, self._idx, val, self._sizes, FILL, self._level, self._place, self._start, self._size)
        nothing = np.empty(0, np.float32)
        n_head, n_tail = kernel.lay_out(*where, nothing, nothing, np.empty(0, np.uint32), nothing)
        self._heads, self._inside = np.zeros(n_head, np.float32), np.zeros(n_head, np.float32)
        self._tail_idx, self._tail_val = np.empty(n_tail, np.uint32), np.empty(n_tail, np.float32)
        kernel.lay_out(*where, self._heads, self._inside, self._tail_idx, self._tail_val)

    def bind(self, score: Bilinear) -> None:
        """Set the vectors of the next triples; their columns must be those of W."""
        self._score = score
        self._queries = to_arrays(score.queries)
        self._items = to_arrays(renumber_columns(score.items, np.argsort(self._order)))
        longest = 2 * int(np.diff(self._items[0]).max(initial=0))
        self._right = np.empty(longest, np.uint32), np.empty(longest, np.float32)
        self._split = np.zeros(len(self._sizes), np.int64)
        self._still = None if self.centre is None else (score.queries @ self.centre).tocsr()

    def advance(
        self, triples: Triples, *, held_out: Triples | None = None, every: int | None = None,
        on_settle: Callable[[PatternTraining], None] | None = None,
    ) -> None:  # fmt: skip
        """Train on triples, in order; every `every` steps, add a point to the learning curve."""
        done, n = 0, len(triples.query)
        while done < n:
            count = min(every - self.steps % every if every else CHUNK, CHUNK, n - done)
            started = perf_counter()
            violated, loss = self._take(triples, done, count, learn=True)
            self.curve.record(count, violated, loss)
            self.steps += count
            done += count
            self.seconds += perf_counter() - started
            if every and (self.steps % every == 0 or done == n):
                self.add_point(None if held_out is None else self._objective(held_out))
            if on_settle is not None:
                on_settle(self)

    def _take(self, triples: Triples, first: int, count: int, learn: bool) -> tuple[int, float]:
        part = Triples(*(np.ascontiguousarray(column[first : first + count]) for column in triples))
        still = np.zeros(count)
        if self._still is not None:
            still = compute_center_margins(self._still, self._score, triples, first, count)
        eta, T = self.solver.rates(self.steps, count), self.solver.shrink_every
        shrink = np.zeros(count)
        if learn and not isinstance(self.penalty, NoPenalty):
            for t in range(T - self.steps % T - 1, count, T):
                shrink[t] = self.alpha * float(self.solver.rates(self.steps + t + 1 - T, T).sum())
        out: tuple[int, float] = kernel.steps(
            self.steps, eta, shrink, T, still, self.loss.margin, learn, *part, *self._queries, *self._items,
            self._sizes, self._level, self._place, self._start, self._size,
            self._heads, self._inside, self._tail_idx, self._tail_val, *self._right, self._split,
        )  # fmt: skip
        return out

    def _objective(self, triples: Triples) -> float:
        """Return the mean loss of triples by the current W, without training on them."""
        return self._take(triples, 0, len(triples.query), learn=False)[1] / len(triples.query)

    @property
    def nonzeros(self) -> int:
        """The number of nonzero entries."""
        return int(np.count_nonzero(self._heads) + np.count_nonzero(self._tail_val))

    @property
    def nbytes(self) -> int:
        """The bytes of W."""
        where = self._level, self._place, self._start, self._size
        return sum(array.nbytes for array in (self._heads, self._inside, self._tail_idx, self._tail_val, *where))

    def _values(self) -> NDArray[np.float32]:
        """The pattern's values, in its order."""
        row = np.repeat(np.arange(self.shape[0]), np.diff(self._ptr))
        in_head = self._idx < self._sizes[self._level[row]]
        val = np.empty(len(self._idx), np.float32)
        val[in_head] = self._heads[self._place[row[in_head]] + self._idx[in_head]]
        val[~in_head] = self._tail_val
        return val

    def settle(self) -> None:
        """Do nothing: no shrinking is lazy here."""

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the state from which `resume` continues exactly."""
        return self.summary(), {"ptr": self._ptr, "idx": self._idx.astype(np.int32), "val": self._values()}

    def resume(self, summary: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state of the same training."""
        self._ptr, self._idx = arrays["ptr"], arrays["idx"].astype(np.uint32)
        self._lay_out(arrays["val"])
        self.restore(summary)

    def weights(self) -> csr_array:
        """Return the current W without zeros, with columns in their original order."""
        from scipy.sparse import csr_array

        stored = csr_array((self._values(), self._idx.astype(np.int64), self._ptr), shape=self.shape)
        W = renumber_columns(stored, self._order)
        if self.centre is not None:
            W = (W + self.centre).tocsr()
        W.eliminate_zeros()
        return W.astype(np.float32)
