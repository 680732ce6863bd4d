"""What every test stands on: where the real data sets are, and arithmetic that may wrap when kernels run as Python."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import settings

from .compilation import share_compilation

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

TESTS = Path(__file__).parent
SPARK = (TESTS / "spark", TESTS.parent / "src/sparserank/spark")

settings.register_profile("steady", max_examples=50, deadline=None, derandomize=True, print_blob=True)
settings.load_profile("steady")
share_compilation()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Spark go first, since one worker runs them all, then files with slow tests."""
    slow = {item.path for item in items if item.get_closest_marker("slow") or item.get_closest_marker("data")}
    items.sort(key=lambda item: 0 if item.path.parent in SPARK else 1 if item.path in slow else 2)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer | None) -> LoadScopeScheduling:
    """One worker runs all tests of a file, so that it builds module fixtures once; one runs all tests of Spark.

    The groups of `--dist loadgroup` are ignored, without a word, by pytest-xdist 3.8 under pytest 9.2.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path = Path(nodeid.partition("::")[0])
            # one cluster for all: a second one would cost more than it saves
            return "spark" if config.rootpath / path.parent in SPARK else path.as_posix()

    config.option.loadscopereorder = False  # the order is that of `pytest_collection_modifyitems`
    return Files(config, log)


@pytest.fixture(autouse=True)
def _wrapping_integers() -> Iterator[None]:
    """Hash kernels wrap on purpose; under NUMBA_DISABLE_JIT=1 numpy would warn about it."""
    with np.errstate(over="ignore" if os.environ.get("NUMBA_DISABLE_JIT") == "1" else "warn"):
        yield


@pytest.fixture(scope="session")
def real() -> object:
    """`real("nfcorpus")` is that set's folder; the test is skipped, by name, where the set is not there."""

    def folder(name: str) -> Path:
        root = os.environ.get("SPARSERANK_DATA")
        if not root or not (Path(root) / name).exists():
            pytest.skip(f"the data set {name!r} is not here: put it under $SPARSERANK_DATA/{name}")
        return Path(root) / name

    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on the path: install it with the system's packages (apt install chromium)")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()
