"""The cluster of the tests: the session of the fixture `spark` in the conftest.py of the repository."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parents[2]
MASTER = "local-cluster[2,1,1024]"
"""Two worker processes of one core each."""
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A process of seconds does not gain from the optimizing compiler, which takes more time than the tests."""
SETTINGS = {
    "spark.sql.shuffle.partitions": 3,
    "spark.default.parallelism": 3,
    "spark.shuffle.io.maxRetries": 1,  # an executor that was killed is not waited for
    "spark.shuffle.io.retryWait": "100ms",
    "spark.rpc.message.maxSize": 1,  # megabytes; so every test shows that data do not travel in tasks
    "spark.python.daemon.module": "tests.spark.daemon",
    "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
}
