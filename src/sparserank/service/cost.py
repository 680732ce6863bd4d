"""The cost of a request: limits on what one may ask for, and the computation that it is charged for.

A plain search costs about one unit, half a millisecond of one core. The rate limit of a client counts units, so that
few expensive requests weigh as much as many cheap ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from ..errors import DataError

T = TypeVar("T")

UNIT_S = 0.0005
MAX_EXPLAINED_TERMS = 500_000
"""Terms of the expanded query times documents that one request may explain: about 40 ms."""
MIN_HEAVY_TERMS = 50_000
"""Requests that explain more than so many run one after another, so that others wait for one slice at most."""
MAX_LIGHT_CHARACTERS = 500
"""So do requests with a longer query, which have many words to expand."""
MIN_HEAVY_BYTES = 200_000
"""So do requests that read passages in more text than this."""
SLICE_BYTES = 20_000
"""Text of the documents whose passages are found without a pause; a longer document is read alone."""
MAX_TEXT_CHARACTERS = 500_000
"""Of the text of a document in one answer: at most 3 MB of JSON."""
HEAVY_SHARE = 0.25
"""The share of a worker's time that heavy requests get at most."""
MAX_ANSWER_PAIRS = 20_000
MAX_ANSWER_BYTES = 4 << 20
SLICE_S = 0.002
"""A request that computes for longer lets others run."""


class TooExpensive(DataError):
    """A request that would take too long, or whose answer would be too large."""


class Work:
    """Measures the computation of one request, in CPU time of the event loop's thread.

    >>> work = Work()
    >>> work.explain(terms=1000, documents=100)
    >>> work.explain(terms=1000, documents=501)
    Traceback (most recent call last):
    ...
    sparserank.service.cost.TooExpensive: the query has 1,000 words and pairs, too many to explain 501 documents; ...
    """

    def __init__(self) -> None:
        self._seconds, self._start, self._pairs = 0.0, time.thread_time(), 0
        self._has_turn = False

    @asynccontextmanager
    async def turn(self, heavy: asyncio.Semaphore, is_heavy: bool) -> AsyncIterator[None]:
        """Let a heavy request wait for its turn among those.

        After it the next one waits for so long that heavy requests get HEAVY_SHARE of the time at most.
        """
        if not is_heavy or self._has_turn:
            yield
            return
        before = self._seconds + time.thread_time() - self._start
        await heavy.acquire()
        self._seconds, self._start, self._has_turn = before, time.thread_time(), True
        try:
            yield
        finally:
            computed = self._seconds + time.thread_time() - self._start - before
            asyncio.get_running_loop().call_later(computed * (1.0 / HEAVY_SHARE - 1.0), heavy.release)
            self._has_turn = False

    async def run(
        self, heavy: asyncio.Semaphore, is_heavy: bool, function: Callable[..., T], *args: object
    ) -> T:  # fmt: skip
        """Call a function that cannot pause; a heavy one in its turn and in a thread, so that others run meanwhile."""
        if not is_heavy:
            return function(*args)
        async with self.turn(heavy, True):
            return await self.in_thread(function, *args)

    def explain(self, terms: int, documents: int) -> None:
        """Raise TooExpensive if an explanation of so many documents takes too long."""
        if terms * documents > MAX_EXPLAINED_TERMS:
            raise TooExpensive(
                f"the query has {terms:,} words and pairs, too many to explain {documents} documents; "
                "ask for fewer results (k) or use fewer words"
            )

    def add_pairs(self, pairs: int) -> None:
        """Count pairs of the answer. Too many raise TooExpensive."""
        self._pairs += pairs
        if self._pairs > MAX_ANSWER_PAIRS:
            raise TooExpensive(
                f"the answer would have more than {MAX_ANSWER_PAIRS:,} pairs; limit `pairs`, or lower `k`"
            )

    async def pause(self) -> None:
        """Let other requests run if this one has computed for a while."""
        now = time.thread_time()
        if now - self._start > SLICE_S:
            self._seconds += now - self._start
            await asyncio.sleep(0)
            self._start = time.thread_time()

    async def in_thread(self, function: Callable[..., T], *args: object) -> T:
        """Run a function in a thread, and count what it computes."""
        self._seconds += time.thread_time() - self._start
        try:
            return await asyncio.to_thread(self._measured, function, *args)
        finally:
            self._start = time.thread_time()

    def _measured(self, function: Callable[..., T], *args: object) -> T:
        start = time.thread_time()
        try:
            return function(*args)
        finally:
            self._seconds += time.thread_time() - start

    def units(self) -> float:
        """Return what the request costs beyond the unit that every request costs."""
        return max(0.0, (self._seconds + time.thread_time() - self._start) / UNIT_S - 1.0)


def check_size(content: bytes) -> bytes:
    """Return an answer. One that is too large raises TooExpensive."""
    if len(content) > MAX_ANSWER_BYTES:
        raise TooExpensive(
            f"the answer would have {len(content):,} bytes, more than {MAX_ANSWER_BYTES:,}; ask for fewer results"
        )
    return content
