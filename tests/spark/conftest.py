"""One real cluster of two worker processes for all tests of `sparserank.spark`; they run one after another."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sparserank.errors import ConfigError
from sparserank.spark.masters import java
from sparserank.spark.session import session

MASTER = "local-cluster[2,1,1024]"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of one process: a second cluster would cost more than it saves."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def runs_spark() -> None:
    """The test is skipped where Spark cannot run."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install 'sparserank[spark]'")
    try:
        java()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(runs_spark: None) -> Iterator[Any]:
    """A session on two worker processes of one core each."""
    running = session(MASTER, **{"spark.sql.shuffle.partitions": 3, "spark.default.parallelism": 3})
    yield running
    running.stop()
