"""SparseSGD: Algorithm 1 of Chen et al., *Learning Preferences with Millions of Parameters by Enforcing Sparsity*.

    W⁰ given. At step t draw (q, d⁺, d⁻). If qᵀW(d⁺ − d⁻) < 1:  W += η_t q (d⁺ − d⁻)ᵀ.
    At every multiple of T:  shrink W by alpha · (η_{t−T+1} + … + η_t).

It is exact and never forms W: see `kernels.pair_batch` for the batched form and `kernels.pair_rows` for the storage.
A centre C is learned around: V = W − C is what is stored and shrunk, and qᵀC(d⁺ − d⁻) is added to every margin.

Where a number of nonzeros is wanted, the last shrinking is held back until more triples come: W then has more nonzeros
than are wanted, and is cut to the largest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import check
from ..errors import ConfigError
from ..losses import Hinge
from ..penalties import L1, GroupL1, NoPenalty, Penalty
from ..preferences import Triples
from ..scores import Bilinear
from .columns import arrays, centre_margins, falling_frequency, renumbered
from .density import Thermostat
from .pair_batch import Batch, Grams, Plan, Sides
from .pair_rows import PairRows, Pool
from .pattern_sgd import PatternTraining
from .solution import Curve, Told

if TYPE_CHECKING:
    from scipy.sparse import csr_array

SETTLE_EVERY = 8
"""Batches between two settlings: debts stay small against the entries, and dead entries go."""


@dataclass(frozen=True)
class SparseSGD:
    """The settings of Algorithm 1. rate='decay' is η_t = eta0 / √t, 'fixed' is η_t = eta0."""

    eta0: float = 200.0
    rate: str = "decay"
    shrink_every: int = 100
    n_jobs: int | None = None

    def __post_init__(self) -> None:
        check.number("eta0", self.eta0, low=0, open_low=True)
        check.choice("rate", self.rate, ("decay", "fixed"))
        check.count("shrink_every", self.shrink_every, low=1)
        check.threads(self.n_jobs)

    def rates(self, first: int, count: int) -> NDArray[np.float64]:
        """η of steps first + 1 … first + count."""
        if self.rate == "fixed":
            return np.full(count, self.eta0)
        return self.eta0 / np.sqrt(np.arange(first + 1, first + count + 1, dtype=np.float64))

    def training(
        self, score: Bilinear, loss: Hinge, penalty: Penalty, start: csr_array, centre: csr_array | None = None,
        *, pattern: bool = False, wanted: int | None = None,
    ) -> Training | PatternTraining:  # fmt: skip
        """A training that has not taken a step yet; a combination that this solver cannot take is refused."""
        if not isinstance(loss, Hinge):
            raise ConfigError(f"sparse-sgd takes the hinge loss on triples; got {type(loss).__name__}")
        if not isinstance(penalty, NoPenalty | L1 | GroupL1):
            raise ConfigError(f"sparse-sgd takes no penalty, L1 or group L1; got {type(penalty).__name__}")
        if isinstance(penalty, GroupL1) and (pattern or wanted is not None):
            raise ConfigError(
                "group L1 goes neither with a fixed pattern nor with a wanted density; use L1, or give alpha"
            )
        if pattern:
            return PatternTraining(self, score, loss, penalty, start, centre)
        return Training(self, score, loss, penalty, start, centre, wanted)


class Training(Told):
    """W on its way: takes triples, at any time, and remembers how far it is."""

    def __init__(
        self,
        solver: SparseSGD,
        score: Bilinear,
        loss: Hinge,
        penalty: Penalty,
        start: csr_array,
        centre: csr_array | None,
        wanted: int | None = None,
        level: NDArray[np.int64] | None = None,
    ) -> None:
        self.solver, self.loss, self.penalty, self.centre = solver, loss, penalty, centre
        self.turned = isinstance(penalty, GroupL1) and penalty.over == "columns"
        self.steps, self.alpha = 0, penalty.alpha
        self.seconds, self.peak_bytes, self.peak_nonzeros = 0.0, 0, 0
        self.curve = Curve()
        self._held = 0.0
        self.thermostat = None if wanted is None else Thermostat(wanted, self.alpha or _first_alpha(score))
        if self.thermostat is not None:
            self.alpha = self.thermostat.alpha
        self._order = falling_frequency(score.queries if self.turned else score.items)
        stored = start if centre is None else start - centre
        stored = (stored.T if self.turned else stored).tocsr()
        stored = renumbered(stored, np.argsort(self._order)).astype(np.float32)
        self.rows = PairRows(stored, level)
        self.bind(score)

    def bind(self, score: Bilinear) -> None:
        """Take the vectors of the triples to come; their columns must be those of W."""
        place = np.argsort(self._order)
        queries = renumbered(score.queries, place) if self.turned else score.queries
        items = score.items if self.turned else renumbered(score.items, place)
        n_left, n_right = self.rows.shape
        self.sides = Sides(arrays(queries), arrays(items), n_left, n_right, self.turned)
        T = self.solver.shrink_every
        self._old, self._new = (Batch(self.sides, T, self.rows.sizes) for _ in range(2))
        self._none = Batch(self.sides, 0, self.rows.sizes)
        self._plan, self._grams = Plan(n_left), Grams(self.sides, T)
        self._score = score
        self._still = None if self.centre is None else (score.queries @ self.centre).tocsr()

    def advance(
        self, triples: Triples, *, held_out: Triples | None = None, every: int | None = None,
        on_settle: Callable[[Training], None] | None = None,
    ) -> None:  # fmt: skip
        """Take these triples, in order. `every` so many steps (rounded to batches) a point is added to the curve."""
        T, started, pool = self.solver.shrink_every, perf_counter(), Pool(check.threads(self.solver.n_jobs))
        try:
            done, tau = 0, 0.0
            self._catch_up(pool)
            self._old.clear()
            while done < len(triples.query):
                count = min(T - self.steps % T, len(triples.query) - done)
                self._new.take(Triples(*(column[done : done + count] for column in triples)))
                margin = self._visit(pool, tau, triples, done, count)
                tau = self._decide(margin, count)
                done += count
                self._old, self._new = self._new, self._old
                if self.thermostat is not None and done == len(triples.query):
                    tau, self._held = 0.0, tau
                elif self.steps % T == 0 and _settles(self.steps // T):
                    self._settle(pool, tau)
                    tau = 0.0
                    if on_settle is not None:
                        self.seconds += perf_counter() - started
                        started = perf_counter()
                        on_settle(self)
                if every and (self.steps % every < count or done == len(triples.query)):
                    self._flush(pool, tau)
                    tau = 0.0
                    self.seconds += perf_counter() - started
                    started = perf_counter()
                    self._note(pool, held_out)
            self._flush(pool, tau)
        finally:
            pool.close()
            self.seconds += perf_counter() - started

    def _visit(self, pool: Pool, tau: float, triples: Triples, done: int, count: int) -> NDArray[np.float64]:
        """The new batch's margins by W as it stands after the old batch."""
        if isinstance(self.penalty, GroupL1):
            self._flush(pool, tau)
            tau = 0.0
        self._plan.make(self._old, self._new)
        grams = pool.beside(lambda: self._grams.make(self._new))
        margin = self.rows.visit(pool, self._plan, self._old, self._new, tau)
        grams()
        if self._still is not None:
            margin[:count] += centre_margins(self._still, self._score, triples, done, count)
        return margin

    def _decide(self, margin: NDArray[np.float64], count: int) -> float:
        """Set the new batch's rates; returns the threshold to shrink by once it has been added."""
        T, eta = self.solver.shrink_every, self.solver.rates(self.steps, count)
        violated, loss, change = self._grams.decide(self._new, margin, eta, self.loss.margin)
        self.steps += count
        self.curve.saw(count, violated, loss, change)
        if self.steps % T or isinstance(self.penalty, NoPenalty):
            return 0.0
        return self.alpha * float(self.solver.rates(self.steps - T, T).sum())

    def _flush(self, pool: Pool, tau: float) -> None:
        """Add the old batch now."""
        if self._old.steps == 0:
            return
        self._plan.make(self._old, self._none)
        group = isinstance(self.penalty, GroupL1)
        self.rows.visit(pool, self._plan, self._old, self._none, 0.0 if group else tau)
        self._old.clear()
        if isinstance(self.penalty, GroupL1) and tau:
            self._shrink_groups(pool, self.penalty, tau)

    def _shrink_groups(self, pool: Pool, penalty: GroupL1, tau: float) -> None:
        """Every group's length less tau; groups shorter than that vanish."""
        self.rows.settle(pool)
        code = penalty.codes(self.rows.shape[0])
        length = np.sqrt(np.bincount(code, weights=self.rows.squared_lengths(pool)))
        factor = np.maximum(0.0, 1.0 - np.divide(tau, length, out=np.ones_like(length), where=length > 0))
        self.rows.scale(pool, factor[code])

    def _settle(self, pool: Pool, tau: float) -> None:
        self._flush(pool, tau)
        self.rows.settle(pool)
        self.peak_bytes = max(self.peak_bytes, self.rows.nbytes)
        self.peak_nonzeros = max(self.peak_nonzeros, self.rows.nonzeros)
        if self.thermostat is not None:
            self.alpha = self.thermostat.feel(self.rows.nonzeros)

    def _catch_up(self, pool: Pool) -> None:
        """Do the shrinking that was held back when the last triples had been taken."""
        if self._held:
            self.rows.debt += self._held
            self._held = 0.0
            if _settles(self.steps // self.solver.shrink_every):
                self._settle(pool, 0.0)

    def _note(self, pool: Pool, held_out: Triples | None) -> None:
        """Add a point to the curve."""
        self.curve.note(
            steps=self.steps,
            objective=None if held_out is None else self._objective(pool, held_out),
            nonzeros=self.rows.nonzeros,
            megabytes=self.rows.nbytes / 1e6,
            alpha=self.alpha,
            seconds=self.seconds,
        )

    def _objective(self, pool: Pool, triples: Triples) -> float:
        """Mean loss of these triples by W as it stands; nothing is learned from them."""
        total, T = 0.0, self.solver.shrink_every
        for first in range(0, len(triples.query), T):
            self._new.take(Triples(*(column[first : first + T] for column in triples)))
            self._plan.make(self._none, self._new)
            margin = self.rows.visit(pool, self._plan, self._none, self._new, 0.0)[: self._new.steps]
            if self._still is not None:
                margin = margin + centre_margins(self._still, self._score, triples, first, T)
            total += float(np.maximum(0.0, self.loss.margin - margin).sum())
        return total / len(triples.query)

    def settle(self) -> None:
        """Let every entry pay what it owes, so that what `state` gives is all there is to know."""
        pool = Pool(1)
        self._catch_up(pool)
        self.rows.settle(pool)
        pool.close()

    def summary(self) -> dict[str, Any]:
        """What is told of the training so far, the thermostat's memory included."""
        return super().summary() | {"last": 0.0 if self.thermostat is None else self.thermostat.last}

    def recall(self, told: Mapping[str, Any]) -> None:
        """Take over what was told."""
        super().recall(told)
        if self.thermostat is not None:
            self.thermostat.alpha, self.thermostat.last = self.alpha, told["last"]

    def state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is needed to go on exactly from here; call `settle` before."""
        ptr, idx, val = arrays(self.rows.to_csr())
        return self.summary(), {"ptr": ptr, "idx": idx.astype(np.int32), "val": val, "level": self.rows.level}

    def resume(self, told: Mapping[str, Any], held: Mapping[str, NDArray[Any]]) -> None:
        """Go on from a state of the same training."""
        from scipy.sparse import csr_array

        stored = csr_array((held["val"], held["idx"], held["ptr"]), shape=self.rows.shape)
        self.rows = PairRows(stored, held["level"])
        self.recall(told)

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of W."""
        n_left, n_right = self.rows.shape
        return (n_right, n_left) if self.turned else (n_left, n_right)

    def weights(self) -> csr_array:
        """W as it stands, columns in their own order."""
        stored = renumbered(self.rows.to_csr(), self._order)
        W = stored.T.tocsr() if self.turned else stored
        if self.centre is not None:
            W = (W + self.centre).tocsr()
            W.eliminate_zeros()
        return W.astype(np.float32)


def _settles(batches: int) -> bool:
    """After 1, 2 and 4 batches, while W grows fast, then after every SETTLE_EVERY."""
    return batches % SETTLE_EVERY == 0 or batches in (1, 2, 4)


def _first_alpha(score: Bilinear) -> float:
    """A guess for a controller to start from: small against what one step adds to an entry."""
    typical = [float(np.abs(side.data).mean()) if side.nnz else 1.0 for side in (score.queries, score.items)]
    return 1e-3 * typical[0] * typical[1]
