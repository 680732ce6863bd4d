from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparserank.spark.broadcast import BroadcastParts

from .cluster import JAVA_OPTIONS


def test_parts_are_worked_on_in_their_order_one_partition_each(spark):
    sent = BroadcastParts(spark, [[1, 2], [], [3]])
    found = sent.flat_map(lambda number, part: [(number, one) for one in part])
    assert len(sent) == found.getNumPartitions() == 3
    assert found.collect() == [(0, 1), (0, 2), (2, 3)]
    sent.destroy()


@pytest.fixture(scope="module")
def ran(runs_spark):
    """A cluster of its own: the size of messages is settled when it starts."""
    command = [sys.executable, "-m", "tests.spark.large_parts"]
    env = os.environ | {"JDK_JAVA_OPTIONS": JAVA_OPTIONS}
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=env)


def test_a_part_may_be_larger_than_a_message_of_spark(ran):
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split()[:-1] == ["text_rankers", "domination_rankers", "folders"]


def test_a_cluster_of_this_machine_leaves_no_folder_in_sparks_own(ran):
    import pyspark

    name = ran.stdout.split()[-1]
    assert name.startswith("app-")
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    assert not (home / "work" / name).exists()
