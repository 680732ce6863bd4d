"""Compile a kernel in one worker process only, and outside of coverage, whose tracer takes half as long again.

Without this, workers that start with the same kernels compile them at the same time, and one overwrites the other's
entry in Numba's index, so that the next process compiles it once more.
"""

from __future__ import annotations

import fcntl
import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

_locked: set[Path] = set()
"""The locks of this process; the compiler's own lock keeps other threads away from it."""


def share_compilation() -> None:
    """Let one process at a time compile the kernels of a file; the others find them in the cache."""
    compile_alone = Dispatcher.compile

    @functools.wraps(compile_alone)
    def compile_once(self: Dispatcher, signature: Any) -> Any:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            with global_compiler_lock, _lock(self):
                return compile_alone(self, signature)
        finally:
            sys.settrace(tracer)
            _call()

    Dispatcher.compile = compile_once


def _call() -> None:
    """Coverage's tracer is back in full only from the next call on; without one it would miss a return."""


@contextmanager
def _lock(kernel: Dispatcher) -> Iterator[None]:
    folder = kernel._cache.cache_path  # None: not cached
    path = Path(folder or "", f"{kernel.__module__}.lock")
    if folder is None or path in _locked:  # the caller of this kernel is being compiled
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _locked.add(path)
        try:
            yield
        finally:
            _locked.remove(path)
