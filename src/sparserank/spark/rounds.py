"""The rounds of parameter mixing: what is sent, what comes back, and what is recorded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bilinear import config
from ..bilinear.ranker import HELD_OUT_TRIPLES, BilinearRanker
from ..optim.solver import LearningCurve, TrainingState
from .blocks import WeightedSum, compact_csr, csr_bytes
from .mixing import PartitionReport, PartitionTraining, RoundStart, combine, shrink_and_prune, sum_unit
from .shards import Shard, ShardSource, ShardSummary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from scipy.sparse import csr_array

Callback = Callable[[str], None]


@dataclass(frozen=True)
class Round:
    """One round.

    union, nonzeros : entries of the mean before and after it is shrunk and pruned. bytes_out : of W, sent to each
    executor. bytes_in : of the W of all partitions. peak_bytes : of the largest W during training, with all state
    beside it. resident : peak memory of a Python worker.
    """

    number: int
    steps: int
    partitions: int
    union: int
    nonzeros: int
    bytes_out: int
    bytes_in: int
    violations: float
    loss: float
    alpha: float
    seconds: float
    peak_bytes: int
    resident: int

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dictionary."""
        return asdict(self)


class MixedTraining(TrainingState):
    """The state of a training in rounds, in the form that `BilinearRanker` stores."""

    def __init__(self) -> None:
        self.steps, self.alpha, self.seconds, self.peak_bytes, self.peak_nonzeros = 0, 0.0, 0.0, 0, 0
        self.curve = LearningCurve()

    def add_round(self, W: csr_array, report: PartitionReport, objective: float | None, seconds: float) -> None:
        """Add the results of one round."""
        self.steps += report.steps
        self.alpha, self.seconds = report.alpha, self.seconds + seconds
        self.peak_bytes = max(self.peak_bytes, report.peak_bytes)
        self.peak_nonzeros = max(self.peak_nonzeros, report.peak_nonzeros)
        self.curve.record(report.steps, report.violations, report.loss)
        self.curve.add_point(
            steps=self.steps, objective=objective, nonzeros=int(W.nnz), megabytes=csr_bytes(compact_csr(W)) / 1e6,
            alpha=self.alpha, seconds=self.seconds,
        )  # fmt: skip


@dataclass(frozen=True)
class Mixing:
    """The partitions, and the rounds over them."""

    spark: SparkSession
    source: ShardSource
    summaries: Sequence[ShardSummary]
    held_out: Shard | None
    seed: int
    callback: Callback

    def run(
        self, training: PartitionTraining, W: csr_array, state: MixedTraining
    ) -> tuple[csr_array, tuple[Round, ...]]:
        """All rounds from W."""
        records: list[Round] = []
        numbers = [number for number in range(training.plan.rounds) if training.plan.steps(number).any()]
        alpha, last_error = None, 0.0
        for number in numbers:
            started = perf_counter()
            unit = sum_unit(training.ranker, training.plan, number, W, self.summaries)
            start = RoundStart(compact_csr(W), number, alpha, last_error, unit)
            total = self._sum(training, start)
            mean, report = combine(total)
            union = int(mean.nnz)
            last = number == numbers[-1]
            W = mean if training.refit else shrink_and_prune(mean, report, training.ranker, last)
            alpha, last_error, seconds = report.alpha, report.last_error, perf_counter() - started
            state.add_round(W, report, self._held_out_loss(W, training.ranker), seconds)
            point, bytes_out = state.curve.points[-1], csr_bytes(start.W)
            records.append(Round(
                len(records) + 1, report.steps, int(np.count_nonzero(training.plan.steps(number))), union, int(W.nnz),
                bytes_out, total.nbytes, point.violations, point.loss, report.alpha, seconds,
                report.peak_bytes, report.resident,
            ))  # fmt: skip
            self.callback(
                f"round {len(records)} of {len(numbers)}: {state.steps:,} triples, {W.nnz:,} pairs, "
                f"{bytes_out / 1e6:.1f} MB out, {total.nbytes / 1e6:.1f} MB in, {seconds:.1f} s"
            )
        return W, tuple(records)

    def _sum(self, training: PartitionTraining, start: RoundStart) -> WeightedSum:
        """The sum of the results of all partitions, by a tree of additions on the executors."""
        broadcast = self.spark.sparkContext.broadcast((training, start))

        def train(partition: int, shard: Shard) -> WeightedSum | None:
            training, start = broadcast.value
            result: WeightedSum | None = training(partition, shard, start)
            return result

        try:
            results = self.source.map(train).filter(lambda result: result is not None)
            total: WeightedSum = results.treeReduce(operator.add)
            return total
        finally:
            broadcast.destroy()

    def _held_out_loss(self, W: csr_array, ranker: BilinearRanker) -> float | None:
        """Mean loss of held-out triples; None if the rows are not on this machine."""
        shard = self.held_out
        if shard is None or not ranker.curve_points:
            return None
        triples = shard.preferences.draw(HELD_OUT_TRIPLES, self.seed + 1)
        left = shard.Q[triples.query] @ W
        score = left.multiply(shard.D[triples.better] - shard.D[triples.worse]).sum(axis=1)
        margin = config.make_loss(ranker.loss).margin
        return float(np.maximum(0.0, margin - np.asarray(score, dtype=np.float64)).mean())
