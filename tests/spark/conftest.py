"""One real cluster of two worker processes for all tests of `sparserank.spark`; they run one after another."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

from sparserank.errors import ConfigError
from sparserank.spark.masters import java_version
from sparserank.spark.session import session

MASTER = "local-cluster[2,1,1024]"


@pytest.fixture(scope="session")
def runs_spark() -> None:
    """The test is skipped where Spark cannot run."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install 'sparserank[spark]'")
    try:
        java_version()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(runs_spark: None) -> Iterator[Any]:
    """A session on two worker processes of one core each."""
    running = session(MASTER, **{"spark.sql.shuffle.partitions": 3, "spark.default.parallelism": 3})
    yield running
    running.stop()
