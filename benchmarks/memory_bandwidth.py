"""What the memory of this machine can do, for the roofline of Algorithm 1 (docs/explanation/speed.md).

    python -m benchmarks.memory_bandwidth

Prints GB/s of one thread and of all threads: numbers read in order, and rows of W's length read and written at random
places of as much memory as W takes; and the multiply-adds a second of a sum of products in the first-level cache.
"""

from __future__ import annotations

import json
from time import perf_counter
from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange, set_num_threads

ROW_FLOATS, MEGABYTES = 1_400, 54
CACHED, REPEATED = 4_096, 20_000


@njit(parallel=True, fastmath=True)
def _read(numbers, parts):
    sums, each = np.zeros(parts, np.float32), len(numbers) // parts
    for p in prange(parts):
        total = np.float32(0.0)
        for k in range(np.uint64(p * each), np.uint64((p + 1) * each)):
            total += numbers[k]
        sums[p] = total
    return sums


@njit(parallel=True)
def _change_rows(numbers, starts, n):
    for r in prange(len(starts)):
        at = np.uint64(starts[r])
        for k in range(np.uint64(n)):
            numbers[at + k] *= np.float32(1.0001)


@njit(parallel=True, fastmath=True)
def _multiply(a, b, times, parts):
    sums = np.zeros(parts, np.float32)
    for p in prange(parts):
        total = np.float32(0.0)
        for i in range(times):
            for k in range(len(a)):
                total += a[k] * b[k]
            total *= np.float32(0.5) + np.float32(i & 1)
        sums[p] = total
    return sums


def _seconds(call: Any, repetitions: int = 7) -> float:
    call()
    times = []
    for _ in range(repetitions):
        started = perf_counter()
        call()
        times.append(perf_counter() - started)
    return float(np.median(times))


def measure(threads: int) -> dict[str, float]:
    """The figures for a number of threads."""
    set_num_threads(threads)
    numbers = np.ones(MEGABYTES * 250_000, np.float32)
    starts = np.random.default_rng(0).permutation(len(numbers) // ROW_FLOATS) * ROW_FLOATS
    a, moved = np.ones(CACHED, np.float32), len(starts) * ROW_FLOATS * 4
    return {
        "read_gb_s": round(numbers.nbytes / _seconds(lambda: _read(numbers, threads)) / 1e9, 1),
        "random_rows_gb_s": round(2 * moved / _seconds(lambda: _change_rows(numbers, starts, ROW_FLOATS)) / 1e9, 1),
        "multiply_adds_g_s": round(
            threads * CACHED * REPEATED / _seconds(lambda: _multiply(a, a, REPEATED, threads)) / 1e9, 1
        ),
    }


if __name__ == "__main__":
    print(json.dumps({f"{n} threads": measure(n) for n in dict.fromkeys((1, get_num_threads()))}, indent=2))
