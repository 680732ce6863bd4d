"""Threads that the process shares."""

from __future__ import annotations

import multiprocessing
import threading

import pytest

from sparserank.thread_pool import map_in_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_are_in_the_order_of_the_items(threads):
    assert map_in_threads(lambda n: n * n, iter(range(40)), threads) == [n * n for n in range(40)]
    assert map_in_threads(str, [], threads) == []


def test_so_many_threads_work_at_once_and_are_used_again():
    meeting, seen = threading.Barrier(3, timeout=60), set()

    def meet(_):
        seen.add(threading.get_ident())
        meeting.wait()

    for _ in range(3):
        map_in_threads(meet, range(3), 3)
    assert len(seen) == 3
    assert threading.get_ident() not in seen


def test_a_function_in_a_thread_may_use_threads_itself():
    found = map_in_threads(lambda n: map_in_threads(lambda m: n + m, range(3), 2), range(4), 2)
    assert found == [[n, n + 1, n + 2] for n in range(4)]


def test_an_error_reaches_the_caller():
    with pytest.raises(ZeroDivisionError):
        map_in_threads(lambda n: 1 // n, [1, 0, 1], 2)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_a_forked_process_starts_threads_of_its_own():
    map_in_threads(abs, [1, 2], 2)
    context = multiprocessing.get_context("fork")
    process = context.Process(target=map_in_threads, args=(abs, [1, 2], 2))
    process.start()
    process.join(60)
    is_done = process.exitcode == 0
    process.kill()
    assert is_done
