from __future__ import annotations

import subprocess
import sys

from sparserank.spark.sent import Sent


def test_parts_are_worked_on_in_their_order_one_partition_each(spark):
    sent = Sent(spark, [[1, 2], [], [3]])
    found = sent.flat_map(lambda number, part: [(number, one) for one in part])
    assert len(sent) == found.getNumPartitions() == 3
    assert found.collect() == [(0, 1), (0, 2), (2, 3)]
    sent.destroy()


def test_a_part_may_be_larger_than_a_message_of_spark(runs_spark):
    """A cluster of its own: the size of messages is settled when it starts."""
    ran = subprocess.run([sys.executable, "-m", "tests.spark.large_parts"], capture_output=True, text=True, timeout=600)
    assert (ran.returncode, ran.stdout.split()) == (0, ["text_rankers", "domination_rankers", "folders"]), ran.stderr
