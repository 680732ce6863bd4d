"""Iterative parameter mixing: the work of a partition in a round, and the mean of all partitions.

    W_p = Algorithm 1 from W on the triples of partition p,    W = sum_p steps_p W_p / sum_p steps_p

Every partition counts its own steps, so its rates continue from round to round. The shrinking that follows the last
batch of a round is applied to the mean instead: the amount equals that of one machine, and entries that only one
partition learned, which the mean has made small, vanish. If the number of entries is given, the mean is pruned to it.
So the data sent never exceed the entries that one machine would hold.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..bilinear import config
from ..bilinear.ranker import BilinearRanker
from ..optim.penalties import L1, NoPenalty
from ..optim.pruning import keep_largest
from ..optim.sparse_sgd import AnyTraining, Training
from .blocks import WeightedSum, exact_unit
from .shards import Shard, ShardSummary

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class PartitionReport(NamedTuple):
    """Of a partition in a round: alpha and the last error of its controller, the pending threshold, and statistics.

    resident : peak memory of the process.
    """

    steps: int
    alpha: float
    last_error: float
    threshold: float
    violations: int
    loss: float
    peak_bytes: int
    peak_nonzeros: int
    resident: int


@dataclass(frozen=True)
class StepPlan:
    """The draws of each partition in each round: partition p has taken ends[r, p] draws before round r.

    offset : where the draws of a partition begin in the common sequence, or 0 if it has its own sequence.
    """

    ends: NDArray[np.int64]
    offset: NDArray[np.int64]
    seeds: tuple[int, ...]

    @classmethod
    def of(
        cls, summaries: Sequence[ShardSummary], partitions: int, steps: int, rounds: int, every: int, seed: int,
        shared: bool, shuffle: bool,
    ) -> StepPlan:  # fmt: skip
        """Divide steps in proportion to the sampling weights; rounds end at multiples of `every`.

        shared : all partitions draw from one sequence.
        """
        if shared and not shuffle:
            steps = min(steps, summaries[0].pairs)
        weight = np.zeros(partitions)
        for one in summaries:
            weight[one.partition] = one.sampling_weight
        bounds = np.floor(np.cumsum(weight) / weight.sum() * steps + 1e-9).astype(np.int64)
        count = np.diff(bounds, prepend=0)
        if not (shared or shuffle):
            pairs = {one.partition: one.pairs for one in summaries}
            count = np.minimum(count, [pairs.get(p, 0) for p in range(partitions)])
        ends = np.stack([count * r // rounds // every * every for r in range(rounds)] + [count])
        if shared:
            return cls(ends, bounds - count, (seed,) * partitions)
        own = [int(np.random.SeedSequence((seed, p)).generate_state(1, np.uint64)[0] >> 1) for p in range(partitions)]
        return cls(ends, np.zeros(partitions, np.int64), (seed, *own[1:]))

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self.ends) - 1

    def steps(self, number: int) -> NDArray[np.int64]:
        """Steps of every partition in a round."""
        return np.asarray(self.ends[number + 1] - self.ends[number])


@dataclass(frozen=True)
class RoundStart:
    """The state at the start of a round, as it is sent to the executors."""

    W: csr_array
    number: int
    alpha: float | None
    last_error: float
    unit: float


@dataclass(frozen=True)
class PartitionTraining:
    """The work of one partition in any round. refit : without penalty, on the entries of W alone."""

    ranker: BilinearRanker
    plan: StepPlan
    refit: bool = False

    def __call__(self, partition: int, shard: Shard, start: RoundStart) -> WeightedSum | None:
        """The result of the partition; None if it has no step to take."""
        begin, end = (int(self.plan.ends[start.number + more, partition]) for more in (0, 1))
        if begin == end:
            return None
        training = self._training(shard, start)
        training.steps, offset = begin, int(self.plan.offset[partition])
        first, steps = offset + begin, end - begin
        if self.ranker.shuffle:
            triples = shard.preferences.draw(steps, self.plan.seeds[partition], first=first)
        else:
            triples = shard.preferences.first(steps, skip=first)
        training.advance(triples, every=end)
        threshold = training.delayed_threshold if isinstance(training, Training) else 0.0
        last_error = training.controller.last_error if training.controller is not None else 0.0
        report = PartitionReport(
            steps, training.alpha, last_error, threshold, training.curve.total_violations,
            steps * training.curve.points[-1].loss, max(training.peak_bytes, training.nbytes), training.peak_nonzeros,
            resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024),
        )  # fmt: skip
        return WeightedSum.of(training.weights(), steps, start.unit, {partition: report})

    def _training(self, shard: Shard, start: RoundStart) -> AnyTraining:
        W = start.W.copy()
        if self.refit:
            loss = config.make_loss(self.ranker.loss)
            return config.make_solver(self.ranker).training(shard.score, loss, NoPenalty(), W, pattern=True)
        training = config.new_training(self.ranker, shard.score, W)
        if isinstance(training, Training):
            training.holds_back = True
        if start.alpha is not None:
            training.alpha = start.alpha
            if training.controller is not None:
                training.controller.alpha, training.controller.last_error = start.alpha, start.last_error
        return training


def sum_unit(
    ranker: BilinearRanker, plan: StepPlan, number: int, W: csr_array, summaries: Sequence[ShardSummary]
) -> float:
    """The unit of the sums of a round: no entry can exceed what all steps of a partition together could add to it."""
    solver = config.make_solver(ranker)
    spans = set(zip(plan.ends[number].tolist(), plan.ends[number + 1].tolist(), strict=True))
    rate = max(float(solver.rates(begin, end - begin).sum()) for begin, end in spans)
    q, d = (max(one.largest[side] for one in summaries) for side in (0, 1))
    matrices = [M for M in (W, _centre(ranker, W.shape)) if M is not None]
    largest = sum(float(np.abs(M.data).max(initial=0.0)) for M in matrices)
    return exact_unit(2.0 * largest + 2.0 * q * d * rate + 1e-30, int(plan.steps(number).sum()))


def _centre(ranker: BilinearRanker, shape: tuple[int, int]) -> csr_array | None:
    """The matrix that the penalty shrinks towards; None for zero."""
    return None if ranker.prior is None else config.make_matrix("prior", ranker.prior, shape)


def combine(total: WeightedSum) -> tuple[csr_array, PartitionReport]:
    """The mean W, and one report: means weighted by steps, sums, and largest sizes."""
    reports = [total.reports[p] for p in sorted(total.reports)]
    steps = sum(one.steps for one in reports)

    def mean(name: str) -> float:
        values = [getattr(one, name) for one in reports]
        if min(values) == max(values):  # without rounding
            return float(values[0])
        return float(sum(one.steps * value for one, value in zip(reports, values, strict=True)) / steps)

    return total.mean(), PartitionReport(
        steps, mean("alpha"), mean("last_error"), mean("threshold"),
        sum(one.violations for one in reports), sum(one.loss for one in reports),
        max(one.peak_bytes for one in reports), max(one.peak_nonzeros for one in reports),
        max(one.resident for one in reports),
    )  # fmt: skip


def shrink_towards(W: csr_array, threshold: float, centre: csr_array | None) -> csr_array:
    """Soft-threshold the difference to the centre (zero by default).

    >>> from scipy.sparse import csr_array
    >>> shrink_towards(csr_array([[3.0, -1.0], [0.5, -2.0]]), 1.0, None).toarray().tolist()
    [[2.0, 0.0], [0.0, -1.0]]
    """
    V = (W if centre is None else W - centre).tocsr().astype(np.float32)
    V.data = L1(threshold).prox(V.data).astype(np.float32)
    V.eliminate_zeros()
    return V if centre is None else (V + centre).tocsr()


def shrink_and_prune(W: csr_array, report: PartitionReport, ranker: BilinearRanker, last: bool) -> csr_array:
    """The mean after the pending shrinkage, pruned to the entries of training, or of the result in the last round."""
    penalty = config.make_penalty(ranker.penalty, ranker.alpha)
    n_pairs = config.n_pairs(ranker.density, ranker.max_pairs, W.shape, penalty)
    if report.threshold and not (last and n_pairs is not None):  # as on one machine: a W that is pruned is not shrunk
        W = shrink_towards(W, report.threshold, _centre(ranker, W.shape))
    if n_pairs is None:
        return W
    return keep_largest(W, n_pairs if last else round(n_pairs * config.slack_factor(ranker.slack, n_pairs, W.shape)))
