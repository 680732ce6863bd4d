"""Iterative parameter mixing: what a partition does in a round, and what becomes of the sum.

    W_p = Algorithm 1 from W on the triples of partition p,    W = sum_p steps_p W_p / sum_p steps_p

Every partition counts its own steps, so its rates go on from round to round. The shrinking that follows the last batch
of a round is held back by every partition and done to the mean instead: as much is shrunk as on one machine, and what
only one partition has learned, which the mean has made small, goes. Where a number of entries is wanted, the mean is
cut to it as well. So what is sent never exceeds the entries that one machine would hold.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bilinear import config as settings
from ..bilinear.ranker import BilinearRanker
from ..optim.losses import Hinge
from ..optim.pattern_sgd import PatternTraining
from ..optim.penalties import NoPenalty
from ..optim.pruning import keep_largest
from ..optim.sparse_sgd import Training
from .blocks import WeightedSum, exact_unit
from .shards import Shard, ShardSummary

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Said(NamedTuple):
    """What a partition tells of its round: the thermostat's alpha and memory, what is still to be shrunk, and how it
    went."""

    steps: int
    alpha: float
    last: float
    held: float
    violations: int
    loss: float
    peak_bytes: int
    peak_nonzeros: int
    resident: int


@dataclass(frozen=True)
class Plan:
    """Which draws each partition takes in each round: ends[r, p] are those it has taken before round r.

    offset : where the partition's draws begin in the one sequence of all, or 0 where it has a sequence of its own.
    """

    ends: NDArray[np.int64]
    offset: NDArray[np.int64]
    seeds: tuple[int, ...]

    @classmethod
    def of(
        cls, found: Sequence[ShardSummary], partitions: int, steps: int, rounds: int, every: int, seed: int,
        together: bool, shuffle: bool,
    ) -> Plan:  # fmt: skip
        """Steps in proportion to what each partition is drawn from; rounds end at multiples of `every`."""
        if together and not shuffle:
            steps = min(steps, found[0].pairs)
        mass = np.zeros(partitions)
        for one in found:
            mass[one.partition] = one.sampling_weight
        bounds = np.floor(np.cumsum(mass) / mass.sum() * steps + 1e-9).astype(np.int64)
        count = np.diff(bounds, prepend=0)
        if not (together or shuffle):
            pairs = {one.partition: one.pairs for one in found}
            count = np.minimum(count, [pairs.get(p, 0) for p in range(partitions)])
        ends = np.stack([count * r // rounds // every * every for r in range(rounds)] + [count])
        if together:
            return cls(ends, bounds - count, (seed,) * partitions)
        own = [int(np.random.SeedSequence((seed, p)).generate_state(1, np.uint64)[0] >> 1) for p in range(partitions)]
        return cls(ends, np.zeros(partitions, np.int64), (seed, *own[1:]))

    @property
    def rounds(self) -> int:
        """How many."""
        return len(self.ends) - 1

    def steps(self, number: int) -> NDArray[np.int64]:
        """What every partition takes in that round."""
        return np.asarray(self.ends[number + 1] - self.ends[number])


@dataclass(frozen=True)
class Start:
    """What a round begins with, as it is sent to the executors."""

    W: csr_array
    number: int
    alpha: float | None
    last: float
    unit: float


@dataclass(frozen=True)
class Partitioned:
    """The work of one partition in any round. refit : without penalty, on the entries of W alone."""

    ranker: BilinearRanker
    plan: Plan
    refit: bool = False

    def __call__(self, partition: int, shard: Shard, start: Start) -> WeightedSum | None:
        """What the partition has learned; None where it has no step to take."""
        begin, end = (int(self.plan.ends[start.number + more, partition]) for more in (0, 1))
        if begin == end:
            return None
        training = self._training(shard, start)
        training.steps, offset = begin, int(self.plan.offset[partition])
        seed, shuffle = self.plan.seeds[partition], self.ranker.shuffle
        training.advance(shard.draw(seed, offset + begin, offset + end, shuffle), every=end)
        held = training.held if isinstance(training, Training) else 0.0
        last = training.controller.last_error if training.controller is not None else 0.0
        steps, loss = end - begin, training.curve.points[-1].loss
        said = Said(
            steps, training.alpha, last, held, training.curve.total_violations, steps * loss,
            max(training.peak_bytes, _bytes(training)), training.peak_nonzeros, _resident(),
        )  # fmt: skip
        return WeightedSum.of(training.weights(), steps, start.unit, {partition: said})

    def _training(self, shard: Shard, start: Start) -> Training | PatternTraining:
        W = start.W.copy()
        if self.refit:
            hinge = settings.hinge(self.ranker.loss)
            return self.ranker._solver().training(shard.score, hinge, NoPenalty(), W, pattern=True)
        training = self.ranker._new_training(shard.score, start=W)
        if isinstance(training, Training):
            training.holds_back = True
        if start.alpha is not None:
            training.alpha = start.alpha
            if training.controller is not None:
                training.controller.alpha, training.controller.last_error = start.alpha, start.last
        return training


def _bytes(training: Training | PatternTraining) -> int:
    return training.rows.nbytes if isinstance(training, Training) else training.nbytes


def _resident() -> int:
    """The most bytes this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def unit_for(ranker: BilinearRanker, plan: Plan, number: int, W: csr_array, found: Sequence[ShardSummary]) -> float:
    """What W is counted in: no entry can grow beyond what every step of a partition together could add to it."""
    rates, solver = [], ranker._solver()
    for begin, end in set(zip(plan.ends[number].tolist(), plan.ends[number + 1].tolist(), strict=True)):
        rates.append(float(solver.rates(begin, end - begin).sum()))
    q, d = (max(one.largest[side] for one in found) for side in (0, 1))
    largest = [float(np.abs(M.data).max(initial=0.0)) for M in (W, centre_of(ranker, W.shape)) if M is not None]
    return exact_unit(2.0 * sum(largest) + 2.0 * q * d * max(rates) + 1e-30, int(plan.steps(number).sum()))


def centre_of(ranker: BilinearRanker, shape: tuple[int, int]) -> csr_array | None:
    """What W is shrunk towards, if not towards zero."""
    return None if ranker.centre is None else settings.matrix("centre", ranker.centre, shape)


def mixed(block: WeightedSum) -> tuple[csr_array, Said]:
    """The mean W, and what the partitions say on the whole: means weighted by steps, sums, and largest sizes."""
    said = [block.reports[p] for p in sorted(block.reports)]
    alpha, last, held = (_mean([getattr(one, name) for one in said], said) for name in ("alpha", "last", "held"))
    return block.mean(), Said(
        sum(one.steps for one in said), alpha, last, held,
        sum(one.violations for one in said), sum(one.loss for one in said),
        max(one.peak_bytes for one in said), max(one.peak_nonzeros for one in said), max(one.resident for one in said),
    )  # fmt: skip


def _mean(values: Sequence[float], said: Sequence[Said]) -> float:
    """Weighted by steps; of equal numbers that number itself, without rounding."""
    if min(values) == max(values):
        return values[0]
    return sum(one.steps * value for one, value in zip(said, values, strict=True)) / sum(one.steps for one in said)


def shrunk(W: csr_array, threshold: float, centre: csr_array | None) -> csr_array:
    """Every entry nearer to the centre (zero, where there is none) by the threshold; those that reach it are left out.

    >>> from scipy.sparse import csr_array
    >>> shrunk(csr_array([[3.0, -1.0], [0.5, -2.0]]), 1.0, None).toarray().tolist()
    [[2.0, 0.0], [0.0, -1.0]]
    """
    V = (W if centre is None else W - centre).tocsr().astype(np.float32)
    V.data = np.sign(V.data) * np.maximum(np.abs(V.data) - np.float32(threshold), np.float32(0.0))
    V.eliminate_zeros()
    return V if centre is None else (V + centre).tocsr()


def held_pairs(ranker: BilinearRanker, shape: tuple[int, int]) -> tuple[int, int] | None:
    """How many entries of W are wanted, and how many it may hold while it is learned; None where alpha decides."""
    wanted = settings.wanted_pairs(
        ranker.density, ranker.max_pairs, shape, settings.penalty(ranker.penalty, ranker.alpha)
    )
    if wanted is None:
        return None
    return wanted, round(wanted * settings.held_pairs(ranker.slack, wanted, shape))


def finished(W: csr_array, said: Said, ranker: BilinearRanker, last: bool) -> csr_array:
    """The mean, shrunk by what was held back and cut to what W may hold; after the last round to what is wanted."""
    pairs = held_pairs(ranker, W.shape)
    if said.held and not (last and pairs):  # as on one machine, a W that is cut is not shrunk before
        W = shrunk(W, said.held, centre_of(ranker, W.shape))
    return W if pairs is None else keep_largest(W, pairs[0] if last else pairs[1])


def mean_hinge(W: csr_array, shard: Any, triples: Any, loss: Hinge) -> float:
    """Mean loss of some triples."""
    left = shard.Q[triples.query] @ W
    margin = left.multiply(shard.D[triples.better] - shard.D[triples.worse]).sum(axis=1)
    return float(np.maximum(0.0, loss.margin - np.asarray(margin, dtype=np.float64)).mean())
