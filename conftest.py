"""One Spark cluster for the tests of `sparserank.spark`, and which libraries the examples of integrations need."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.cluster import JAVA_OPTIONS, MASTER, SETTINGS

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")  # a test sends nothing
LIBRARIES = {
    "haystack": "haystack",
    "huggingface": "huggingface_hub",
    "ir_datasets": "ir_datasets",
    "langchain": "langchain_core",
    "llamaindex": "llama_index",
    "ltr": "lightgbm",
    "mcp": "mcp",
    "mkdocs": "mkdocs",
    "pyterrier": "pyterrier",
    "sphinx": "sphinx",
    "tantivy": "tantivy",
}
"""What the modules of `sparserank.integrations` and the pages of docs/integrations need, by their names."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out examples whose library is missing; the tests of the library say how to install it."""
    module = LIBRARIES.get(collection_path.stem) if collection_path.parent.name == "integrations" else None
    return True if module and importlib.util.find_spec(module) is None else None


@pytest.fixture(scope="session")
def runs_spark() -> None:
    """The test is skipped where Spark cannot run."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("pyspark is not installed: pip install 'sparserank[spark]'")
    from sparserank.errors import ConfigError
    from sparserank.spark.masters import java_version

    try:
        java_version()
    except ConfigError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def spark(runs_spark: None) -> Iterator[Any]:
    """A session on two worker processes of one core each."""
    from sparserank.spark import session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JDK_JAVA_OPTIONS", JAVA_OPTIONS)
        running = session(MASTER, **SETTINGS)
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def _spark_in_examples(request: pytest.FixtureRequest, doctest_namespace: dict[str, Any]) -> None:
    """Examples in docstrings may use the session as `spark`."""
    examples = getattr(getattr(request.node, "dtest", None), "examples", ())
    if any(re.search(r"(?<![\w.])spark\b", example.source) for example in examples):
        doctest_namespace["spark"] = request.getfixturevalue("spark")
