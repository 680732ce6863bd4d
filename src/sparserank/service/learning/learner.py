"""The learner: of all processes that serve a model one holds a lock, and looks for new feedback now and then.

The lock is the system's (`flock`): whoever holds it and dies, however that may be, has let go of it. A round runs in a
process of its own, at low priority, so that nobody who searches waits for it; that process holds the lock too, so that
no other round begins before it has ended, even where the process that started it is gone.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...data.files import PathLike
from ...errors import SparseRankError
from ...versions import VersionRegistry
from .gate import Judgments
from .rounds import Outcome, due, keep, last_outcome, learn

if TYPE_CHECKING:
    from ..feedback import FeedbackStore

__all__ = ["Learner", "Outcome", "learn"]

NICE = 10
LONGEST = 900.0
"""Seconds after which a round is given up."""
SLOWER = 7
"""Rounds that fail are tried again after twice the time, so many times; then no slower."""
TOGETHER = 1.0
"""Seconds within which a round that ends and a service that stops were told so by the same signal."""
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
log = logging.getLogger(__name__)


class Learner:
    """Learns from feedback in the background, in whichever process holds the lock; every process has one.

    held_out : a BEIR folder or the name of a known collection whose judgments new models are checked on.
    every : seconds between two looks at the feedback.
    """

    def __init__(
        self,
        model: PathLike,
        database: str,
        *,
        index: PathLike | None = None,
        held_out: PathLike | None = None,
        held_out_split: str = "dev",
        every: float = 30.0,
    ) -> None:
        self._versions = VersionRegistry.open(model, register=False)
        self._told: dict[str, Any] = {
            "model": str(model),
            "database": database,
            "index": None if index is None else str(index),
            "held_out": None if held_out is None else str(held_out),
            "held_out_split": held_out_split,
        }
        self._every, self._failures = every, 0
        self._lock: IO[str] | None = None
        self._store: FeedbackStore | None = None
        self._child: subprocess.Popen[str] | None = None
        self._stopped, self._changing = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._work, name="learner", daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """End, and let go of the lock; a round under way is ended too, and begins anew elsewhere."""
        self._stopped.set()
        with self._changing:
            child = self._child
            if child is not None:
                child.kill()
        if self._thread.is_alive():
            self._thread.join()
        self._let_go()

    def state(self) -> dict[str, Any]:
        """What is going on here, and the outcome of the last round anywhere; plain values, for JSON."""
        return {
            "learning": self._versions.writable,
            "holder": self._lock is not None,
            "working": self._child is not None,
            "every": self._every,
            "held_out": self._told["held_out"],
            "last": last_outcome(self._versions).to_dict(),
        }

    def _work(self) -> None:
        # Ctrl-C is for whoever serves, who ends the round; processes inherit what the thread that starts them blocks
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        while not self._stopped.is_set():
            try:
                if self._versions.writable and self._holds():
                    self._look()
            except Exception as error:  # a thread that dies would leave the lock held and nothing learned
                self._failures += 1
                self._close()
                log.error("the learner failed: %s", error, exc_info=not isinstance(error, SparseRankError))
            self._stopped.wait(self._every * 2 ** min(self._failures, SLOWER))
        self._close()

    def _holds(self) -> bool:
        """Whether the lock is ours, now at the latest."""
        import fcntl

        if self._lock is None:
            lock = (self._versions.folder / "learner.lock").open("a")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                return False
            self._lock = lock
        return True

    def _let_go(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _look(self) -> None:
        """One round, where there is anything to look at."""
        from ..feedback import FeedbackStore

        if self._store is None:
            self._store = FeedbackStore(self._told["database"], make=False)
        last = self._store.last()
        while due(self._versions, last) and not self._stopped.is_set():
            done = self._round()
            if done is None or done.outcome == "failed":
                self._failures += 1
                return
            self._failures = 0
            log.info("%s", done.said)

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _round(self) -> Outcome | None:
        """What the process of a round says in the end; None where it said nothing."""
        assert self._lock is not None
        command = [sys.executable, "-m", "sparserank.service.learning.learner"]
        with self._changing:
            if self._stopped.is_set():
                return None
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                pass_fds=[self._lock.fileno()], env={**os.environ, **ONE_THREAD},
            )  # fmt: skip
        try:
            said, _ = self._child.communicate(json.dumps(self._told), timeout=LONGEST)
            return Outcome(**json.loads(said))
        except subprocess.TimeoutExpired:
            log.error("a round of learning took more than %.0f s and was given up", LONGEST)
        except ValueError:
            if not self._stopped.wait(TOGETHER):
                log.error("a round of learning ended with code %s and said nothing", self._child.returncode)
        finally:
            self._child.kill()
            with suppress(BrokenPipeError), self._child:  # waits for it, and closes its ends
                pass
            self._child = None
        return None


def run(told: Mapping[str, Any]) -> Outcome:
    """One round, as `Learner` asks for it; what goes wrong is an outcome too."""
    from ..feedback import FeedbackStore

    versions, store = VersionRegistry.open(told["model"], register=False), None
    try:
        store = FeedbackStore(told["database"], make=False)
        held_out, index = told["held_out"], told["index"]
        judgments = None if held_out is None else Judgments.of(held_out, told["held_out_split"])
        return learn(versions, store, index=None if index is None else Path(index), judgments=judgments)
    except SparseRankError as error:
        failed = replace(last_outcome(versions), outcome="failed", said=str(error))
        with suppress(SparseRankError):
            return keep(versions, failed)
        return failed
    finally:
        if store is not None:
            store.close()


def main() -> None:
    """Read what to do from standard input, do it, and print the outcome; passwords are on no command line."""
    told = sys.stdin.read()
    if told:  # else whoever would have said it is gone
        os.nice(NICE)
        print(json.dumps(run(json.loads(told)).to_dict()))


if __name__ == "__main__":
    main()
