"""SparkBilinearRanker: W of s(q, d) = qᵀ W d learned on a cluster, by iterative parameter mixing.

The same kernel, settings and draws as `BilinearRanker.fit` on one machine, in rounds (see `mixing`); what comes out is
an ordinary `BilinearRanker`. A round is a function of W, the seed and the partitions alone, and sums are exact, so
executors that are lost, slow or run twice change no bit. The triples of a DataFrame are divided and ordered by what
they are (see `triples`), so that their partitions are the same each time as well.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import validation
from ..bilinear import config as settings
from ..bilinear.ranker import HELD_OUT, BilinearRanker
from ..bilinear.word_pairs import named
from ..errors import ConfigError, DataError
from ..optim.penalties import GroupL1
from ..optim.scores import Bilinear
from ..optim.solver import LearningCurve, TrainingState
from ..preferences import Preferences
from .blocks import compact_csr, csr_bytes
from .errors import executor_errors
from .mixing import Partitioned, Plan, Said, Start, finished, mean_hinge, mixed, unit_for
from .shards import Shard, ShardSource, ShardSummary, source_of_preferences, source_of_shards
from .triples import source_of_triples

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession
    from scipy.sparse import csr_array

ROUNDS = 10
"""Rounds where nobody says how many; see docs/cluster-figures.md for what more or fewer do."""


@dataclass(frozen=True)
class Round:
    """One round: what was learned, what was sent, and what it took.

    union, nonzeros : entries of the mean as it came, and after it was shrunk and cut. bytes_out : of W as it is sent
    to each executor. bytes_in : of all partitions' W together. peak_bytes : of the largest W while it was learned,
    with all that is kept beside it; resident : the most memory that a Python worker had.
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
        """As it is printed."""
        return asdict(self)


class Mixed(TrainingState):
    """What is told of a training in rounds, as `BilinearRanker` keeps it."""

    def __init__(self) -> None:
        self.steps, self.alpha, self.seconds, self.peak_bytes, self.peak_nonzeros = 0, 0.0, 0.0, 0, 0
        self.curve = LearningCurve()

    def take(self, W: csr_array, said: Said, objective: float | None, seconds: float) -> None:
        """Add what one round has done."""
        self.steps += said.steps
        self.alpha, self.seconds = said.alpha, self.seconds + seconds
        self.peak_bytes = max(self.peak_bytes, said.peak_bytes)
        self.peak_nonzeros = max(self.peak_nonzeros, said.peak_nonzeros)
        self.curve.record(said.steps, said.violations, said.loss)
        self.curve.add_point(
            steps=self.steps, objective=objective, nonzeros=int(W.nnz), megabytes=csr_bytes(compact_csr(W)) / 1e6,
            alpha=self.alpha, seconds=self.seconds,
        )  # fmt: skip


class SparkBilinearRanker:
    """Learns a `BilinearRanker` on a cluster.

    ranker : its settings, those of one machine: max_iter triples in all, divided among the partitions. n_jobs is the
        threads of one task (1 unless given). Group penalties are not mixed, and the solvers from class labels need no
        cluster.
    rounds : how often the partitions' W are combined. partitions : how many there are; by itself, where the data are
        this machine's, the cluster's default parallelism, and as many as a DataFrame has. An RDD has its own.

    After `fit`: rounds_ (and refit_rounds_), one record each.
    """

    def __init__(
        self, ranker: BilinearRanker | None = None, *, rounds: int = ROUNDS, partitions: int | None = None
    ) -> None:
        self.ranker = BilinearRanker() if ranker is None else ranker
        self.rounds = rounds
        self.partitions = partitions

    def fit(
        self,
        spark: SparkSession,
        Q: Any,
        D: Any,
        preferences: Preferences | DataFrame,
        *,
        query_ids: Sequence[str] | None = None,
        document_ids: Sequence[str] | None = None,
        query_words: Sequence[str] | None = None,
        document_words: Sequence[str] | None = None,
        tell: Callable[[str], None] = lambda message: None,
    ) -> BilinearRanker:
        """Learn from preferences between rows of D for rows of Q.

        preferences : `Preferences`, or a DataFrame with the columns query, better, worse (and weight): numbers of rows,
            or ids where query_ids and document_ids name the rows. They are divided among the partitions by a hash, and
            each partition takes them by rising row numbers where shuffle is False. How many partitions a DataFrame has
            may be Spark's choice (after a groupBy): give `partitions` where every bit should be the same again.
        """
        self._judged()
        score = Bilinear.of(Q, D)
        words = named(query_words, document_words, score.shape)
        if isinstance(preferences, Preferences):
            score = self.ranker._checked(score.queries, score.items, preferences)
            partitions = self.partitions or spark.sparkContext.defaultParallelism
            watched = Shard.of_preferences(score.queries, score.items, preferences)
            source = source_of_preferences(spark, watched, partitions)
        elif hasattr(preferences, "mapInArrow"):
            source, watched = source_of_triples(preferences, Q, D, query_ids, document_ids, self.partitions), None
        else:
            raise DataError(f"Preferences or a DataFrame of triples is wanted; got {type(preferences).__name__}")
        return self._fitted(spark, source, words, watched, tell)

    def fit_shards(
        self,
        spark: SparkSession,
        shards: RDD[Shard],
        *,
        query_words: Sequence[str] | None = None,
        document_words: Sequence[str] | None = None,
        tell: Callable[[str], None] = lambda message: None,
    ) -> BilinearRanker:
        """Learn from an RDD of `Shard`: each partition has rows and preferences of its own, and none is sent to it.

        A partition may be empty. One whose rows are all of one class is refused by its number.
        """
        self._judged()
        return self._fitted(spark, source_of_shards(shards), (query_words, document_words), None, tell)

    def _judged(self) -> None:
        validation.count("rounds", self.rounds, low=1)
        if self.partitions is not None:
            validation.count("partitions", self.partitions, low=1)
        ranker = self.ranker
        if not isinstance(ranker, BilinearRanker):
            raise ConfigError(f"a BilinearRanker's settings are wanted; got {type(ranker).__name__}")
        if ranker.solver != "sparse-sgd":
            raise ConfigError(f"solver={ranker.solver!r} runs on one machine; on Spark there is 'sparse-sgd'")
        penalty = settings.penalty(ranker.penalty, ranker.alpha)
        if isinstance(penalty, GroupL1):
            raise ConfigError("group penalties are not mixed over partitions; use penalty='l1'")
        validation.count("max_iter", ranker.max_iter, low=1)
        ranker._judge_settings()
        settings.hinge(ranker.loss)
        if settings.wanted_pairs(ranker.density, ranker.max_pairs, (1, 1), penalty) is not None:
            settings.held_pairs(ranker.slack, 1, (1, 1))

    def _fitted(
        self, spark: SparkSession, source: ShardSource, words: tuple[Any, Any], watched: Shard | None,
        tell: Callable[[str], None],
    ) -> BilinearRanker:  # fmt: skip
        try:
            with executor_errors():
                found = source.summarize()
                shape = found[0].shape
                words = named(*words, shape)
                return self._learned(spark, source, found, words, watched, tell)
        finally:
            source.close()

    def _learned(
        self, spark: SparkSession, source: ShardSource, found: Sequence[ShardSummary], words: tuple[Any, Any],
        watched: Shard | None, tell: Callable[[str], None],
    ) -> BilinearRanker:  # fmt: skip
        out = BilinearRanker(**self.ranker.get_params(deep=False))
        seed = secrets.randbits(62) if out.random_state is None else int(out.random_state)
        plan = Plan.of(
            found,
            source.partitions,
            out.max_iter,
            self.rounds,
            out.shrink_every,
            seed,
            source.shared_preferences,
            out.shuffle,
        )
        longest = max(1, int(plan.ends[-1].max()))
        there = BilinearRanker(
            **out.get_params(deep=False) | {"n_jobs": out.n_jobs or 1, "max_iter": longest, "start": "zero"}
        )
        W = settings.matrix("start", out.start, found[0].shape)
        W = settings.diagonal(W) if out.diagonal else W
        told, seen = Mixed(), Watch(watched, out, seed)
        W, self.rounds_ = self._rounds(spark, source, found, Partitioned(there, plan), W, told, seen, tell)
        self.refit_rounds_: tuple[Round, ...] = ()
        if out.refit:
            again, more = Partitioned(there, plan, refit=True), Mixed()
            W, self.refit_rounds_ = self._rounds(spark, source, found, again, W, more, seen, tell)
            out.refit_curve_ = tuple(more.curve.points)
        out.seed_, (out.query_words_, out.document_words_) = seed, words
        out._take(W, told, (sum(f.empty[0] for f in found), sum(f.empty[1] for f in found)))
        if source.shared_rows:
            out.n_empty_queries_, out.n_empty_documents_ = found[0].empty
        return out

    def _rounds(
        self, spark: SparkSession, source: ShardSource, found: Sequence[ShardSummary], work: Partitioned, W: csr_array,
        told: Mixed, seen: Watch, tell: Callable[[str], None],
    ) -> tuple[csr_array, tuple[Round, ...]]:  # fmt: skip
        out: list[Round] = []
        taking = [number for number in range(work.plan.rounds) if work.plan.steps(number).any()]
        alpha, last = None, 0.0
        for number in taking:
            started = perf_counter()
            unit = unit_for(work.ranker, work.plan, number, W, found)
            start = Start(compact_csr(W), number, alpha, last, unit)
            block = _reduced(spark, source, work, start)
            mean, said = mixed(block)
            union = int(mean.nnz)
            W = mean if work.refit else finished(mean, said, work.ranker, last=number == taking[-1])
            alpha, last, seconds = said.alpha, said.last, perf_counter() - started
            told.take(W, said, seen(W), seconds)
            point = told.curve.points[-1]
            out.append(Round(
                len(out) + 1, said.steps, int(np.count_nonzero(work.plan.steps(number))), union, int(W.nnz),
                csr_bytes(start.W), block.nbytes, point.violations, point.loss, said.alpha, seconds,
                said.peak_bytes, said.resident,
            ))  # fmt: skip
            tell(
                f"round {len(out)} of {len(taking)}: {told.steps:,} triples, {W.nnz:,} pairs, "
                f"{csr_bytes(start.W) / 1e6:.1f} MB out, {block.nbytes / 1e6:.1f} MB in, {seconds:.1f} s"
            )
        return W, tuple(out)


@dataclass(frozen=True)
class Watch:
    """Held-out triples that the objective is measured on after each round, where the rows are on this machine."""

    shard: Shard | None
    ranker: BilinearRanker
    seed: int

    def __call__(self, W: csr_array) -> float | None:
        """The mean loss, or None."""
        if self.shard is None or not self.ranker.watch:
            return None
        triples = self.shard.preferences.draw(HELD_OUT, self.seed + 1)
        return mean_hinge(W, self.shard, triples, settings.hinge(self.ranker.loss))


def _reduced(spark: SparkSession, source: ShardSource, work: Partitioned, start: Start) -> Any:
    """The sum of what all partitions have learned in a round, by a tree of additions on the executors."""
    sent, planned = spark.sparkContext.broadcast(start), spark.sparkContext.broadcast(work)

    def learn(partition: int, shard: Shard) -> Any:
        return planned.value(partition, shard, sent.value)

    try:
        return source.map(learn).mapPartitions(_there).treeReduce(operator.add)
    finally:
        sent.destroy()
        planned.destroy()


def _there(blocks: Iterable[Any]) -> Iterator[Any]:
    return (block for block in blocks if block is not None)
