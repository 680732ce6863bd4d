"""The log of a service, on stderr. No request is logged, so no query and no token."""

from __future__ import annotations

import logging
import time
from typing import Any

SAMPLE_INTERVAL_S = 60.0
"""At most one line of a sampled logger in this time."""


class Sampled(logging.Filter):
    """Passes one record in SAMPLE_INTERVAL_S; the next one says how many were left out.

    >>> sampled, record = Sampled(), logging.LogRecord("x", 30, "", 0, "malformed", None, None)
    >>> sampled.filter(record), sampled.filter(record), sampled.filter(record)
    (True, False, False)
    """

    def __init__(self) -> None:
        super().__init__()
        self._next, self._left_out = 0.0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to log a record; warnings of clients come at any rate, errors of the service do not."""
        if record.levelno > logging.WARNING:
            return True
        now = time.monotonic()
        if now < self._next:
            self._left_out += 1
            return False
        if self._left_out:
            record.msg, record.args = f"{record.getMessage()} ({self._left_out} more since the last line)", None
        self._next, self._left_out = now + SAMPLE_INTERVAL_S, 0
        return True


LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "filters": {"sampled": {"()": Sampled}},
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "plain", "stream": "ext://sys.stderr"},
        "sampled": {
            "class": "logging.StreamHandler", "formatter": "plain", "filters": ["sampled"],
            "stream": "ext://sys.stderr",
        },
    },
    "loggers": {
        "sparserank": {"handlers": ["stderr"], "level": "INFO"},
        "uvicorn": {"handlers": ["sampled"], "level": "WARNING"},
    },
}  # fmt: skip
