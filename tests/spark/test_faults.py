"""Executors that are really killed, with SIGKILL, in the middle of a round: nothing of the result changes."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import sparserank as sr
from sparserank.spark import SparkBilinearRanker, SparkDominationRanker
from sparserank.spark.shards import Shard

from .small_worlds import graded_rows, labelled_rows


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def executor_here() -> int:
    """The Java process that the task's Python worker belongs to: the parent of the daemon it was forked from."""
    return parent_of(os.getppid())


def once(marker: Path) -> bool:
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Deadly(Shard):
    """A shard that kills the executor it is on, once, where it is drawn from for the third time: in the second round
    (the first time is the survey's)."""

    folder: Path
    kills: bool

    @property
    def preferences(self):
        if self.kills:
            use = next(n for n in count() if once(self.folder / f"use-{n}"))
            if use == 2:
                os.kill(executor_here(), signal.SIGKILL)
        return Shard.preferences.func(self)


@pytest.fixture
def by_value(spark) -> Iterator[None]:
    """What is defined in this file goes to the executors itself: they cannot import it."""
    from pyspark import cloudpickle

    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def deadly_shards(spark, folder, kills):
    X, labels = labelled_rows()
    thirds = np.array_split(np.arange(len(X)), 3)
    folder.mkdir()

    def shard(number):
        whole = Shard.of_labels(X[thirds[number]], labels[thirds[number]])
        out = Deadly(whole.Q, whole.D, None, whole.sampling_weight, whole.labels)
        object.__setattr__(out, "folder", folder)
        object.__setattr__(out, "kills", kills and number == 1)
        return out

    return spark.sparkContext.parallelize(range(3), 3).map(shard)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the executor's process is found in /proc")
def test_an_executor_killed_in_the_middle_of_a_round_changes_no_bit(spark, by_value, tmp_path):
    cluster = SparkBilinearRanker(sr.BilinearRanker(max_iter=900, random_state=1, density=0.3), rounds=3)
    calm = cluster.fit_shards(spark, deadly_shards(spark, tmp_path / "calm", kills=False))
    hurt = cluster.fit_shards(spark, deadly_shards(spark, tmp_path / "hurt", kills=True))
    assert (tmp_path / "hurt" / "use-4").exists()  # round 2 was begun again, or there were fewer uses
    assert_array_equal(hurt.W_.toarray(), calm.W_.toarray())
    assert hurt.alpha_ == calm.alpha_


def executors(spark) -> set[int]:
    return set(spark.sparkContext.parallelize(range(8), 8).map(lambda _: executor_here()).collect())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the executor's process is found in /proc")
def test_triples_that_are_shuffled_anew_after_all_executors_are_lost_change_no_bit(spark, by_value):
    X, labels = labelled_rows()
    drawn = zip(*sr.Preferences.from_labels(labels).draw(2000, random_state=5), strict=True)
    rows = spark.sparkContext.parallelize([tuple(map(int, one)) for one in drawn], 6)
    pairs = spark.createDataFrame(rows, "query int, better int, worse int").groupBy("query", "better", "worse")
    frame = pairs.count().withColumnRenamed("count", "weight")
    cluster = SparkBilinearRanker(sr.BilinearRanker(max_iter=900, random_state=1), rounds=2, partitions=3)
    calm = cluster.fit(spark, X, X, frame)
    pids = executors(spark)

    def kill(message):
        if message.startswith("round 1 "):
            for pid in pids:
                os.kill(pid, signal.SIGKILL)

    hurt = cluster.fit(spark, X, X, frame, callback=kill)
    assert pids.isdisjoint(executors(spark))
    assert_array_equal(hurt.W_.toarray(), calm.W_.toarray())


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the executor's process is found in /proc")
def test_all_executors_lost_between_two_trainings_change_no_bit(spark, by_value):
    X, y, qid = graded_rows(rows=100)
    cluster = SparkDominationRanker(sr.DominationRanker(penalty="l2", tol=1e-2), partitions=2)
    calm = cluster.fit(spark, X, y, qid)
    pids = executors(spark)
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    assert_array_equal(cluster.fit(spark, X, y, qid).coef_, calm.coef_)
    assert pids.isdisjoint(executors(spark))
