"""The log of a service, on stderr: lines of text, or one JSON object per line with the id of the request.

A line about a request has its route, status and duration; no line has a query or a token.
"""

from __future__ import annotations

import json
import logging
import time
from contextvars import ContextVar
from datetime import UTC, datetime
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


LOG_FORMATS = ("plain", "json")
request_id: ContextVar[str] = ContextVar("request_id", default="")
"""The id of the request that this code works for."""
requests_log = logging.getLogger("sparserank.requests")


class JsonFormatter(logging.Formatter):
    """Formats a record as one JSON object; fields that a caller passes as `extra={"fields": …}` are added.

    >>> record = logging.LogRecord("x", 20, "", 0, "serving version %d", (3,), None)
    >>> line = json.loads(JsonFormatter().format(record))
    >>> line["level"], line["message"]
    ('INFO', 'serving version 3')
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, Any] = {"time": at, "level": record.levelname, "logger": record.name}
        line["message"] = record.getMessage()
        if request_id.get():
            line["request_id"] = request_id.get()
        line |= getattr(record, "fields", {})
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def logging_config(log_format: str = "plain") -> dict[str, Any]:
    """Return the configuration of logging in a format of LOG_FORMATS; requests are logged as JSON only."""
    handler = {"class": "logging.StreamHandler", "formatter": log_format, "stream": "ext://sys.stderr"}
    requests = "INFO" if log_format == "json" else "WARNING"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
            "json": {"()": JsonFormatter},
        },
        "filters": {"sampled": {"()": Sampled}},
        "handlers": {"stderr": handler, "sampled": {**handler, "filters": ["sampled"]}},
        "loggers": {
            "sparserank": {"handlers": ["stderr"], "level": "INFO"},
            requests_log.name: {"level": requests},
            "uvicorn": {"handlers": ["sampled"], "level": "WARNING"},
        },
    }
