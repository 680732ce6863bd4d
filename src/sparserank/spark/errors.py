"""Errors of Spark as one sentence of SparseRank, instead of a page of stack traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from .. import validation
from ..errors import ConfigError, DataError

_EXECUTOR_ERROR = re.compile(r"sparserank\.errors\.(DataError|ConfigError): (.+)")
_FILE = re.compile(r"reading file (?:file://)?(\S+)\. ")


@contextmanager
def executor_errors() -> Iterator[None]:
    """Raise a DataError or ConfigError of an executor as such; other errors stay as they are."""
    try:
        yield
    except Exception as error:  # the exceptions of Spark have no common base class
        match = _EXECUTOR_ERROR.search(str(error))
        if match is None:
            raise
        kind = DataError if match[1] == "DataError" else ConfigError
        raise kind(match[2].strip()) from None


@contextmanager
def read_errors(name: str, action: str = "read") -> Iterator[None]:
    """Raise a DataError with the file, if known, for data that Spark cannot read; Python errors stay as they are."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException, PythonException

    try:
        yield
    except PythonException:
        raise
    except (PySparkException, Py4JJavaError) as error:
        file = _FILE.search(str(error))
        where = "" if file is None else f" ({file[1]})"
        raise DataError(f"{name}: cannot be {action}{where}: {first_cause(error)}") from None


def check_settings(ranker: object, kind: type, partitions: object) -> None:
    """Raise ConfigError for a ranker of another class or an invalid number of partitions."""
    if partitions is not None:
        validation.count("partitions", partitions, low=1)
    if not isinstance(ranker, kind):
        raise ConfigError(f"The 'ranker' parameter must be a {kind.__name__}; got {type(ranker).__name__}")


def first_cause(error: Exception) -> str:
    """The first cause of an error of Spark, in one line: the innermost Java exception."""
    cause = getattr(error, "java_exception", None)
    message = str(error)
    if cause is not None:
        while cause.getCause() is not None:
            cause = cause.getCause()
        message = str(cause.getMessage() or cause.toString())
    return " ".join(message.split("\n\n")[0].split())[:300]
