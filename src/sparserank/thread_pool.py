"""Threads that the whole process shares: to start threads for every small product takes longer than the product."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import local
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_POOLS: dict[int, ThreadPoolExecutor] = {}
"""The pool of each number of threads. Idle threads cost nothing."""
_THREAD = local()


def map_in_threads(function: Callable[[Item], Result], items: Iterable[Item], threads: int) -> list[Result]:
    """Return function(item) of all items, in order, computed by so many threads of this process.

    A function that calls this again computes its own items one after another, so threads never wait for each other.

    >>> map_in_threads(abs, [-1, 2, -3], threads=2)
    [1, 2, 3]
    """
    items = list(items)
    if threads == 1 or len(items) < 2 or getattr(_THREAD, "is_busy", False):
        return [function(item) for item in items]
    if threads not in _POOLS:
        _POOLS[threads] = ThreadPoolExecutor(threads, "sparserank", lambda: setattr(_THREAD, "is_busy", True))
    return list(_POOLS[threads].map(function, items))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_POOLS.clear)  # a fork copies the pools without their threads
