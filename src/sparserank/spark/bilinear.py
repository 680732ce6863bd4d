"""SparkBilinearRanker: W of s(q, d) = qᵀ W d on a cluster, by iterative parameter mixing.

Kernel, settings and draws equal those of `BilinearRanker.fit`, in rounds (see `mixing`); the result is an ordinary
`BilinearRanker`. A round depends on W, the seed and the partitions alone, and sums are exact, so executors that are
lost, slow or run twice change no bit. The triples of a DataFrame are divided and sorted by their content (see
`triples`), so their partitions are always the same as well.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import validation
from ..bilinear import config
from ..bilinear.ranker import BilinearRanker
from ..bilinear.training import store_solution
from ..bilinear.word_pairs import column_words
from ..deprecated import renamed_parameters
from ..errors import ConfigError, DataError
from ..optim.penalties import GroupL1
from ..optim.scores import Bilinear
from ..parameters import Parameters
from ..preferences import Preferences
from .errors import check_settings, executor_errors
from .mixing import PartitionTraining, StepPlan
from .rounds import Callback, MixedTraining, Mixing, Round
from .shards import Shard, ShardSource, source_of_preferences, source_of_shards
from .triples import source_of_triples

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_ROUNDS = 10
"""docs/explanation/cluster-figures.md shows the effect of more or fewer rounds."""


class SparkBilinearRanker(Parameters):
    """Learns a `BilinearRanker` on a cluster.

    Parameters
    ----------
    ranker : BilinearRanker, optional
        The settings, as on one machine: max_iter triples in all, divided among the partitions. n_jobs is the number of
        threads of one task, 1 by default. Group penalties raise ConfigError.
    rounds : int, default 10
        How often the W of all partitions are combined.
    partitions : int, optional
        Number of partitions. The default is the cluster's default parallelism for local data, and the number of
        partitions of a DataFrame. An RDD has its own.

    Attributes
    ----------
    rounds_, refit_rounds_ : tuple of Round
        One record per round, after `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> cluster = SparkBilinearRanker(BilinearRanker(max_iter=400, random_state=0), rounds=2, partitions=2)
    >>> ranker = cluster.fit(spark, np.eye(4), np.eye(4), Preferences.from_labels([0, 0, 1, 1]))
    >>> ranker.W_.shape, [round.steps for round in cluster.rounds_]
    ((4, 4), [200, 200])
    """

    def __init__(
        self, ranker: BilinearRanker | None = None, *, rounds: int = DEFAULT_ROUNDS, partitions: int | None = None
    ) -> None:
        self.ranker = BilinearRanker() if ranker is None else ranker
        self.rounds = rounds
        self.partitions = partitions

    @renamed_parameters({"tell": "callback", "document_ids": "doc_ids"})
    def fit(
        self,
        spark: SparkSession,
        Q: Any,
        D: Any,
        preferences: Preferences | DataFrame,
        *,
        query_ids: Sequence[str] | None = None,
        doc_ids: Sequence[str] | None = None,
        query_words: Sequence[str] | None = None,
        document_words: Sequence[str] | None = None,
        callback: Callback = lambda message: None,
    ) -> BilinearRanker:
        """Learn from preferences between rows of D for rows of Q.

        Parameters
        ----------
        spark : SparkSession
            The cluster.
        Q, D : sparse or dense arrays
            Query and document vectors, used as they are.
        preferences : Preferences or DataFrame
            A DataFrame has the columns query, better, worse and, optionally, weight. A hash divides its triples among
            the partitions, and with shuffle=False each partition takes them in the order of row numbers. After a
            groupBy, Spark chooses the number of partitions: give `partitions` for the same bits in every run.
        query_ids, doc_ids : sequences of str, optional
            Ids of the rows of Q and D; without them the DataFrame has row numbers.
        query_words, document_words : sequences of str, optional
            Names of the columns of Q and D.
        callback : callable, optional
            Called with a line of text after every round.

        Returns
        -------
        BilinearRanker
            A fitted ranker.
        """
        self._validate()
        score = Bilinear.of(Q, D)
        words = column_words(query_words, document_words, score.shape)
        held_out = None
        if isinstance(preferences, Preferences):
            held_out = Shard.of_preferences(score.queries, score.items, preferences)
            partitions = self.partitions or spark.sparkContext.defaultParallelism
            source = source_of_preferences(spark, held_out, partitions)
        elif hasattr(preferences, "mapInArrow"):
            source = source_of_triples(preferences, Q, D, query_ids, doc_ids, self.partitions)
        else:
            raise DataError(f"expected Preferences or a DataFrame of triples; got {type(preferences).__name__}")
        return self._fit(spark, source, words, held_out, callback)

    @renamed_parameters({"tell": "callback"})
    def fit_shards(
        self,
        spark: SparkSession,
        shards: RDD[Shard],
        *,
        query_words: Sequence[str] | None = None,
        document_words: Sequence[str] | None = None,
        callback: Callback = lambda message: None,
    ) -> BilinearRanker:
        """Learn from an RDD of `Shard`: each partition has its own rows and preferences, which stay there.

        Parameters
        ----------
        spark : SparkSession
            The cluster.
        shards : RDD of Shard
            A partition may be empty; if all its rows are of one class, DataError names it.
        query_words, document_words, callback
            As in `fit`.

        Returns
        -------
        BilinearRanker
            A fitted ranker.
        """
        self._validate()
        return self._fit(spark, source_of_shards(shards), (query_words, document_words), None, callback)

    def _validate(self) -> None:
        ranker = self.ranker
        validation.count("rounds", self.rounds, low=1)
        check_settings(ranker, BilinearRanker, self.partitions)
        penalty = config.make_penalty(ranker.penalty, ranker.alpha)
        if isinstance(penalty, GroupL1):
            raise ConfigError("group penalties are not mixed over partitions; use penalty='l1'")
        validation.count("max_iter", ranker.max_iter, low=1)
        ranker.validate()
        config.make_loss(ranker.loss)
        if config.n_pairs(ranker.density, ranker.max_pairs, (1, 1), penalty) is not None:
            config.slack_factor(ranker.slack, 1, (1, 1))

    def _fit(
        self, spark: SparkSession, source: ShardSource, words: tuple[Any, Any], held_out: Shard | None,
        callback: Callback,
    ) -> BilinearRanker:  # fmt: skip
        ranker = BilinearRanker(**self.ranker.get_params(deep=False))
        seed = secrets.randbits(62) if ranker.random_state is None else int(ranker.random_state)
        try:
            with executor_errors():
                summaries = source.summarize()
                words = column_words(*words, summaries[0].shape)
                mixing = Mixing(spark, source, summaries, held_out, seed, callback)
                self._train(ranker, seed, mixing)
        finally:
            source.close()
        ranker.seed_, (ranker.query_words_, ranker.document_words_) = seed, words
        return ranker

    def _train(self, ranker: BilinearRanker, seed: int, mixing: Mixing) -> None:
        source, summaries = mixing.source, mixing.summaries
        plan = StepPlan.of(
            summaries, source.partitions, ranker.max_iter, self.rounds, ranker.shrink_every, seed,
            source.shared_preferences, ranker.shuffle,
        )  # fmt: skip
        longest = max(1, int(plan.ends[-1].max()))
        changes = {"n_jobs": ranker.n_jobs or 1, "max_iter": longest, "init": "zero"}
        local = BilinearRanker(**ranker.get_params(deep=False) | changes)
        W = config.make_matrix("init", ranker.init, summaries[0].shape)
        W = config.diagonal(W) if ranker.diagonal else W
        state = MixedTraining()
        W, self.rounds_ = mixing.run(PartitionTraining(local, plan), W, state)
        self.refit_rounds_: tuple[Round, ...] = ()
        if ranker.refit:
            refit_state = MixedTraining()
            W, self.refit_rounds_ = mixing.run(PartitionTraining(local, plan, refit=True), W, refit_state)
            ranker.refit_curve_ = tuple(refit_state.curve.points)
        sources = summaries[:1] if source.shared_rows else summaries
        empty = sum(one.empty[0] for one in sources), sum(one.empty[1] for one in sources)
        store_solution(ranker, W, state, empty)
