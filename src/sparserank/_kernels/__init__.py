"""Numba kernels: arrays and integers in, arrays out. A file imports only numpy, numba, math and other kernels.

A file that imports other kernels has a line with their digest, so that Numba's cache notices when they change.
`instructions` also imports llvmlite, which Numba is built on.

Numba caches compiled kernels beside the source or in the user's cache folder, and raises an error if it can write to
neither. In that case, unless NUMBA_CACHE_DIR is set, this package gives it a temporary folder for the process.
"""

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _users_cache() -> Path:
    """Numba's folder in the cache of the user."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - where there is no home, Path.home() fails
    cache = home / "Library/Caches" if sys.platform == "darwin" else os.environ.get("XDG_CACHE_HOME", home / ".cache")
    return Path(cache, "numba")


def _provide_cache() -> None:
    if (
        os.environ.get("NUMBA_CACHE_DIR")
        or _writable(Path(__file__).parent / "__pycache__")
        or _writable(_users_cache())
    ):
        return
    folder = tempfile.mkdtemp(prefix="sparserank-kernels-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["NUMBA_CACHE_DIR"] = folder
    if "numba" in sys.modules:  # it has read the environment already
        sys.modules["numba"].config.CACHE_DIR = folder


_provide_cache()
