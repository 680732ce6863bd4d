"""The learner: one of the serving processes holds a lock and starts learning rounds when there is new feedback.

The lock is an `flock`, which the system releases when its holder dies. A round runs in a process of its own with low
priority, so that searches do not wait for it. That process holds the lock too, so that no other round starts before it
ends, even if its parent is gone.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from ...errors import SparseRankError
from ...versions import VersionRegistry
from ...versions.trials import current_trial
from ..config import ServiceConfig
from .gate import HeldOutJudgments
from .rounds import Outcome, is_due, last_outcome, run_round, save_outcome

if TYPE_CHECKING:
    from ..store import FeedbackStore

ROUND_NICENESS = 10
MAX_BACKOFF_DOUBLINGS = 7
"""The interval doubles after each failed round, at most this many times."""
STOP_GRACE_S = 1.0
"""A round and its service may get the same signal; within this time the end of the round is no error."""
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA")}
ROUND_LOCK = "round.lock"
"""The process that runs a round holds this lock, so that every process knows whether one runs."""
log = logging.getLogger(__name__)


class Learner:
    """Learns from feedback in the background; every serving process has one, and the lock holder works."""

    def __init__(self, config: ServiceConfig) -> None:
        self._registry, self._config = VersionRegistry.open(config.model, register=False), config
        self._failures = 0
        self._lock: IO[str] | None = None
        self._store: FeedbackStore | None = None
        self._child: subprocess.Popen[str] | None = None
        self._stopped, self._child_lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._work, name="learner", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, kill the round in progress, and release the lock; another process repeats the round."""
        self._stopped.set()
        with self._child_lock:
            if self._child is not None:
                self._child.kill()
        if self._thread.is_alive():
            self._thread.join()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @property
    def is_holder(self) -> bool:
        """Whether this process holds the lock."""
        return self._lock is not None

    def state(self) -> dict[str, Any]:
        """Return the state of the learner, whichever process works, for JSON."""
        return {
            "learning": self._registry.writable,
            "working": _is_locked(self._registry.folder / ROUND_LOCK),
            "every": self._config.learn_every,
            "held_out": self._config.held_out,
            "last": last_outcome(self._registry).to_dict(),
        }

    def _work(self) -> None:
        # the serving process handles Ctrl-C and ends the round; a child inherits the blocked signals of this thread
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        while not self._stopped.is_set():
            try:
                # a trial compares two versions; a third one would begin it anew
                if self._registry.writable and current_trial(self._registry) is None and self._acquire_lock():
                    self._run_due_rounds()
            except Exception as error:  # if this thread died, the lock would stay and nothing would be learned
                self._failures += 1
                self._close_store()
                log.error("the learner failed: %s", error, exc_info=not isinstance(error, SparseRankError))
            self._stopped.wait(self._config.learn_every * 2 ** min(self._failures, MAX_BACKOFF_DOUBLINGS))
        self._close_store()

    def _acquire_lock(self) -> bool:
        """Return whether this process holds the lock."""
        if self._lock is None:
            lock = (self._registry.folder / "learner.lock").open("a")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                lock.close()
                return False
            self._lock = lock
        return True

    def _run_due_rounds(self) -> None:
        """Run rounds while there is new feedback."""
        from ..store import FeedbackStore

        if self._store is None:
            self._store = FeedbackStore(self._config.database, create=False)
        last = self._store.last()
        while is_due(self._registry, last) and not self._stopped.is_set():
            outcome = self._run_child()
            if outcome is None or outcome.outcome == "failed":
                self._failures += 1
                return
            self._failures = 0
            log.info("%s", outcome.said)

    def _close_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def _run_child(self) -> Outcome | None:
        """Run a round in a process; return its outcome, or None if it printed none."""
        assert self._lock is not None
        with (self._registry.folder / ROUND_LOCK).open("a") as working:
            fcntl.flock(working, fcntl.LOCK_EX)
            return self._run_locked(self._lock.fileno())

    def _run_locked(self, lock: int) -> Outcome | None:
        command = [sys.executable, "-m", "sparserank.service.learning.learner"]
        with self._child_lock:
            if self._stopped.is_set():
                return None
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                pass_fds=[lock], env={**os.environ, **ONE_THREAD},
            )  # fmt: skip
        try:
            output, _ = self._child.communicate(json.dumps(asdict(self._config)), timeout=self._config.round_timeout)
            return Outcome(**json.loads(output))
        except subprocess.TimeoutExpired:
            log.error("killed a learning round that took more than %g s", self._config.round_timeout)
        except ValueError:
            if not self._stopped.wait(STOP_GRACE_S):
                log.error("a learning round ended with code %s and without an outcome", self._child.returncode)
        finally:
            self._child.kill()
            with suppress(BrokenPipeError), self._child:  # waits for it and closes its pipes
                pass
            self._child = None
        return None


def _is_locked(path: Path) -> bool:
    """Return whether another file descriptor holds the lock of a file."""
    try:
        with path.open("r") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def run(config: ServiceConfig) -> Outcome:
    """Run one round for a `Learner`; an error becomes an outcome too."""
    from ..store import FeedbackStore

    registry, store = VersionRegistry.open(config.model, register=False), None
    try:
        store = FeedbackStore(config.database, create=False)
        judgments = HeldOutJudgments.load(config.held_out, config.held_out_split) if config.held_out else None
        return run_round(registry, store, index=config.index, judgments=judgments)
    except SparseRankError as error:
        failure = replace(last_outcome(registry), outcome="failed", said=str(error))
        with suppress(SparseRankError):
            return save_outcome(registry, failure)
        return failure
    finally:
        if store is not None:
            store.close()


def main() -> None:
    """Read the configuration from stdin, run a round, and print the outcome; no password is on a command line."""
    config = sys.stdin.read()
    if config:  # empty if the parent is gone
        os.nice(ROUND_NICENESS)
        print(json.dumps(run(ServiceConfig(**json.loads(config))).to_dict()))


if __name__ == "__main__":
    main()
