"""SparseSGD: Algorithm 1 of Chen et al., *Learning Preferences with Millions of Parameters by Enforcing Sparsity*.

    W⁰ given. At step t draw (q, d⁺, d⁻). If qᵀW(d⁺ − d⁻) < 1:  W += η_t q (d⁺ − d⁻)ᵀ.
    At every multiple of T:  shrink W by alpha · (η_{t−T+1} + … + η_t).

It is exact and never forms W: see `_kernels.pair_batch` for the batched form and `_kernels.pair_rows` for the storage.
With a prior C, the solver stores and shrinks V = W − C, and adds qᵀC(d⁺ − d⁻) to every margin.

With a target number of nonzeros, alpha is adapted so that W has about `slack` times as many, and the last shrinkage is
delayed until more triples come: W then has more nonzeros than the target, and the caller prunes it to the largest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..deprecated import renamed_parameters
from ..errors import ConfigError
from ..preferences import Triples
from .losses import Hinge
from .pair_batch import Grams, Sides, Slots, compute_center_margins, renumber_columns, sort_by_frequency, to_arrays
from .pair_rows import PairRows, Pool
from .pattern_sgd import PatternTraining
from .penalties import L1, GroupL1, NoPenalty, Penalty
from .problems import BilinearProblem
from .pruning import DensityController
from .scores import Bilinear
from .solver import Solution, Solver, TrainingState

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SETTLE_EVERY = 16, 32
"""Batches after which the pending threshold is applied, for up to MANY_ROWS rows of W and for more. Applying it reads
every row of W; until then the right vectors of all these batches are stored."""
MANY_ROWS = 30_000


@dataclass(frozen=True)
class SparseSGD(Solver):
    """The settings of Algorithm 1.

    Parameters
    ----------
    eta0 : float, default=200.0
        The first learning rate.
    rate : {'decay', 'fixed', 'linear'}, default='decay'
        η_t = eta0 / √t; η_t = eta0; or η_t = eta0 (1 − (t − 1) / horizon).
    shrink_every : int, default=100
        Steps between two shrinkings, the paper's T.
    n_jobs : int or None, default=None
        Threads; any number gives the same bits. None uses all cores.
    horizon : int or None, default=None
        The number of steps over which 'linear' falls to 0.
    """

    eta0: float = 200.0
    rate: str = "decay"
    shrink_every: int = 100
    n_jobs: int | None = None
    horizon: int | None = None
    losses: ClassVar[tuple[type, ...]] = (Hinge,)
    penalties: ClassVar[tuple[type, ...]] = (NoPenalty, L1, GroupL1)

    def __post_init__(self) -> None:
        validation.number("eta0", self.eta0, low=0, open_low=True)
        validation.choice("rate", self.rate, ("decay", "fixed", "linear"))
        validation.count("shrink_every", self.shrink_every, low=1)
        validation.threads(self.n_jobs)
        if self.rate == "linear":
            validation.count("horizon", self.horizon, low=1)

    def rates(self, first: int, count: int) -> NDArray[np.float64]:
        """Return η of steps first + 1 … first + count.

        Parameters
        ----------
        first, count : int
            Steps before the first one, and the number of steps.
        """
        if self.rate == "fixed":
            return np.full(count, self.eta0)
        step = np.arange(first + 1, first + count + 1, dtype=np.float64)
        if self.rate == "linear":
            return self.eta0 * np.maximum(0.0, 1.0 - (step - 1.0) / float(self.horizon or 1))
        return self.eta0 / np.sqrt(step)

    def solve(self, problem: BilinearProblem, penalty: Penalty, init: csr_array) -> Solution:
        """Take the triples of a problem once, in their order.

        Parameters
        ----------
        problem : BilinearProblem
            The score, the triples and their loss.
        penalty : Penalty
            The penalty of W.
        init : csr_array
            W before the first step.
        """
        training = self.training(problem.score, problem.loss, penalty, init)
        training.advance(problem.triples, every=max(len(problem.triples.query), 1))
        return Solution(training.weights(), tuple(training.curve.points), {"n_iter": training.steps})

    @renamed_parameters({"wanted": "max_pairs"})
    def training(
        self, score: Bilinear, loss: Hinge, penalty: Penalty, start: csr_array, centre: csr_array | None = None,
        *, pattern: bool = False, max_pairs: int | None = None, slack: float = 1.0,
    ) -> Training | PatternTraining:  # fmt: skip
        """Return a training before its first step, for triples that come piece by piece.

        Parameters
        ----------
        score : Bilinear
            The vectors of queries and items.
        loss, penalty : Hinge, Penalty
            The loss of a triple, and the penalty of W.
        start, centre : csr_array, csr_array or None
            W before the first step, and the prior that the penalty shrinks W towards; None is zero.
        pattern : bool, default=False
            Whether W keeps the entries that `start` has.
        max_pairs : int or None, default=None
            The number of nonzeros that alpha is adjusted to.
        slack : float, default=1.0
            The largest size of W during training, as a multiple of `max_pairs`.
        """
        self.check(loss, penalty)
        if isinstance(penalty, GroupL1) and (pattern or max_pairs is not None):
            raise ConfigError(
                "GroupL1 works neither on a fixed pattern nor with a target density; use L1, or give alpha"
            )
        if pattern:
            return PatternTraining(self, score, loss, penalty, start, centre)
        return Training(self, score, loss, penalty, start, centre, max_pairs, slack)


class Training(TrainingState):
    """A training of W: it takes triples at any time and keeps its state."""

    def __init__(
        self, solver: SparseSGD, score: Bilinear, loss: Hinge, penalty: Penalty, start: csr_array,
        centre: csr_array | None, max_pairs: int | None = None, slack: float = 1.0,
    ) -> None:  # fmt: skip
        super().__init__(solver, loss, penalty, centre)
        self.transposed = isinstance(penalty, GroupL1) and penalty.over == "columns"
        self._held = 0.0
        self.max_pairs, self.controller = max_pairs, None
        if max_pairs is not None:
            self.controller = DensityController(round(max_pairs * slack), self.alpha or _first_alpha(score))
            self.alpha = self.controller.alpha
        self.holds_back = self.controller is not None
        self._order = sort_by_frequency(score.queries if self.transposed else score.items)
        stored = start if centre is None else start - centre
        stored = (stored.T if self.transposed else stored).tocsr()
        stored = renumber_columns(stored, np.argsort(self._order)).astype(np.float32)
        self.rows = PairRows(stored)
        self.bind(score)

    def bind(self, score: Bilinear) -> None:
        """Set the vectors of the next triples; their columns must be those of W."""
        place = np.argsort(self._order)
        queries = renumber_columns(score.queries, place) if self.transposed else score.queries
        items = score.items if self.transposed else renumber_columns(score.items, place)
        n_left, n_right = self.rows.shape
        self.sides = Sides(to_arrays(queries), to_arrays(items), n_left, n_right, self.transposed)
        T = self.solver.shrink_every
        self._settle_every = SETTLE_EVERY[n_left > MANY_ROWS]
        self._slots, self._pending = Slots(self.sides, self._settle_every + 2, T, self.rows.head_sizes), list[int]()
        self._grams, self._next_grams = (Grams(self.sides, T) for _ in range(2))
        self._score = score
        self._query_center = None if self.centre is None else (score.queries @ self.centre).tocsr()

    def advance(
        self, triples: Triples, *, held_out: Triples | None = None, every: int | None = None,
        on_settle: Callable[[Training], None] | None = None,
    ) -> None:  # fmt: skip
        """Train on triples, in order; every `every` steps, rounded to batches, add a point to the learning curve.

        on_settle : called with the training whenever the pending threshold has been applied.
        """
        started, pool = perf_counter(), Pool(validation.threads(self.solver.n_jobs))
        try:
            self._catch_up(pool)
            self._first = self.steps
            slot, first, n = self._prepare(triples, 0), 0, len(triples.query)
            while first < n:
                margin, ahead = self._margins(pool, triples, first, slot)
                first += len(margin)
                self._shrink(pool, self._update(slot, margin), last=first == n)
                if self._settle_if_due(pool, last=first == n) and on_settle is not None:
                    self.seconds += perf_counter() - started
                    started = perf_counter()
                    on_settle(self)
                if every and (self.steps % every < len(margin) or first == n):
                    self._flush(pool)
                    self.seconds += perf_counter() - started
                    started = perf_counter()
                    self.add_point(None if held_out is None else self._objective(pool, held_out, ahead))
                slot = ahead
            self._flush(pool)
        finally:
            pool.close()
            self.seconds += perf_counter() - started

    def _prepare(self, triples: Triples, first: int, *taken: int) -> int:
        """Prepare the batch from triple `first` on, with its Gram matrices; return its slot, or -1 at the end."""
        T = self.solver.shrink_every
        count = min(T - (self._first + first) % T, len(triples.query) - first)
        if count <= 0:
            return -1
        slot = self._free(*taken)
        self._slots.load(slot, Triples(*(column[first : first + count] for column in triples)))
        self._next_grams.compute(self._slots, slot)
        return slot

    def _free(self, *taken: int) -> int:
        """Return a free slot."""
        used = {*self._pending, *taken}
        return next(slot for slot in range(len(used) + 1) if slot not in used)

    def _margins(self, pool: Pool, triples: Triples, first: int, slot: int) -> tuple[NDArray[np.float64], int]:
        """Return the margins of the batch by the current W; prepare the next batch in parallel."""
        self._grams, self._next_grams = self._next_grams, self._grams
        count = int(self._slots.steps[slot])
        ahead = pool.submit(lambda: self._prepare(triples, first + count, slot))
        margin = self.rows.products(pool, self._slots, self._pending, slot)
        if self._query_center is not None:
            margin += compute_center_margins(self._query_center, self._score, triples, first, count)
        return margin, ahead()

    def _update(self, slot: int, margin: NDArray[np.float64]) -> float:
        """Find the steps of the batch and make them pending; return the threshold to apply after it."""
        T, count = self.solver.shrink_every, len(margin)
        eta = self.solver.rates(self.steps, count)
        violated, loss, change = self._grams.find_violations(self._slots, slot, margin, eta, self.loss.margin)
        self._slots.threshold[slot] = self.rows.pending_threshold
        self._pending.append(slot)
        self.steps += count
        self.curve.record(count, violated, loss, change)
        if self.steps % T or isinstance(self.penalty, NoPenalty):
            return 0.0
        return self.alpha * float(self.solver.rates(self.steps - T, T).sum())

    def _shrink(self, pool: Pool, tau: float, last: bool) -> None:
        """Shrink W by tau; for L1, lazily."""
        if isinstance(self.penalty, GroupL1):
            self._flush(pool)
            if tau:
                self._shrink_groups(pool, self.penalty, tau)
        elif self.holds_back and last:
            self._held = tau
        else:
            self.rows.pending_threshold += tau

    def _flush(self, pool: Pool) -> None:
        """Apply the pending updates to W."""
        self.rows.apply_updates(pool, self._slots, self._pending)
        self._pending.clear()

    def _shrink_groups(self, pool: Pool, penalty: GroupL1, tau: float) -> None:
        """Shorten the norm of every group by tau; shorter groups become zero."""
        self.rows.apply_threshold(pool, self._slots, self._pending)
        self.rows.scale(pool, penalty.shrink_factors(self.rows.squared_norms(pool), tau))

    def _settle_if_due(self, pool: Pool, last: bool) -> bool:
        """Apply the pending threshold if it is time; return whether it was."""
        T, is_delayed = self.solver.shrink_every, self.holds_back and last
        if self.steps % T == 0 and self._settles() and not is_delayed:
            self._settle(pool)
            return True
        if len(self._pending) == self._settle_every:
            self._flush(pool)
        return False

    def _settles(self) -> bool:
        """Return whether to apply the threshold now: after 1, 2, 4 and 8 batches, while W grows fast, then evenly."""
        batches = self.steps // self.solver.shrink_every
        return batches % self._settle_every == 0 or batches in (1, 2, 4, 8)

    def _settle(self, pool: Pool) -> None:
        self.rows.apply_threshold(pool, self._slots, self._pending)
        self._pending.clear()
        self.peak_bytes = max(self.peak_bytes, self.rows.nbytes)
        self.peak_nonzeros = max(self.peak_nonzeros, self.rows.nonzeros)
        if self.controller is not None:
            self.alpha = self.controller.update(self.rows.nonzeros)

    def _catch_up(self, pool: Pool) -> None:
        """Apply the shrinking that was delayed after the last triples."""
        if self._held:
            self.rows.pending_threshold += self._held
            self._held = 0.0
            if self._settles():
                self._settle(pool)

    @property
    def delayed_threshold(self) -> float:
        """The delayed threshold, by which W is shrunk before the next triples."""
        return self._held

    @property
    def nonzeros(self) -> int:
        """The number of nonzero entries of W."""
        return self.rows.nonzeros

    @property
    def nbytes(self) -> int:
        """The bytes of W."""
        return self.rows.nbytes

    def _objective(self, pool: Pool, triples: Triples, ahead: int) -> float:
        """Return the mean loss of triples by the current W, without training on them."""
        total, T, slot = 0.0, self.solver.shrink_every, self._free(ahead)
        for first in range(0, len(triples.query), T):
            self._slots.load(slot, Triples(*(column[first : first + T] for column in triples)))
            margin = self.rows.products(pool, self._slots, self._pending, slot)
            if self._query_center is not None:
                margin = margin + compute_center_margins(self._query_center, self._score, triples, first, T)
            total += float(np.maximum(0.0, self.loss.margin - margin).sum())
        return total / len(triples.query)

    def settle(self) -> None:
        """Apply all lazy shrinking, so that `state` is complete."""
        pool = Pool(1)
        self._catch_up(pool)
        self.rows.apply_threshold(pool, self._slots, self._pending)
        pool.close()

    def summary(self) -> dict[str, Any]:
        """The state as JSON values, with that of the controller."""
        return super().summary() | {"last": 0.0 if self.controller is None else self.controller.last_error}

    def restore(self, summary: Mapping[str, Any]) -> None:
        """Restore a stored state."""
        super().restore(summary)
        if self.controller is not None:
            self.controller.alpha, self.controller.last_error = self.alpha, summary["last"]

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the state from which `resume` continues exactly; call `settle` before."""
        ptr, idx, val = to_arrays(self.rows.to_csr())
        return self.summary(), {
            "ptr": ptr,
            "idx": idx.astype(np.int32),
            "val": val,
            "level": self.rows.rows["level"].copy(),
        }

    def resume(self, summary: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Continue from a state of the same training."""
        from scipy.sparse import csr_array

        stored = csr_array((arrays["val"], arrays["idx"], arrays["ptr"]), shape=self.rows.shape)
        self.rows = PairRows(stored, arrays["level"])
        self.restore(summary)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W."""
        n_left, n_right = self.rows.shape
        return (n_right, n_left) if self.transposed else (n_left, n_right)

    def weights(self) -> csr_array:
        """Return the current W, with columns in their original order."""
        pool = Pool(validation.threads(self.solver.n_jobs))
        stored = self.rows.to_csr(pool, self._order)
        pool.close()
        W = stored.T.tocsr() if self.transposed else stored
        if self.centre is not None:
            W = (W + self.centre).tocsr()
            W.eliminate_zeros()
        return W.astype(np.float32, copy=False)


AnyTraining: TypeAlias = Training | PatternTraining


def _first_alpha(score: Bilinear) -> float:
    """Return a first alpha for the controller: small relative to what one step adds to an entry."""
    typical = [float(np.abs(side.data).mean()) if side.nnz else 1.0 for side in (score.queries, score.items)]
    return 1e-3 * typical[0] * typical[1]
