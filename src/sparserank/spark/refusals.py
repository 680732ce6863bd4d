"""What an executor refuses, told here in its own sentence instead of Spark's page of stack traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import ConfigError, DataError

_REFUSED = re.compile(r"sparserank\.errors\.(DataError|ConfigError): (.+)")


@contextmanager
def told_plainly() -> Iterator[None]:
    """A DataError or ConfigError of an executor is raised as such; every other failure is left as it is."""
    try:
        yield
    except Exception as error:  # Spark's failures have no common ancestor
        found = _REFUSED.search(str(error))
        if found is None:
            raise
        kind = DataError if found[1] == "DataError" else ConfigError
        raise kind(found[2].strip()) from None
