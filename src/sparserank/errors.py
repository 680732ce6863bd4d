"""Every mistake SparseRank reports on purpose: what was found, where, and what to do.

Each is also the built-in exception a Python user would expect (`ValueError`, …), so `except ValueError` keeps working.
"""


class SparseRankError(Exception):
    """The root of all errors raised on purpose; the command line turns one into a single line and exit code 2."""


class DataError(SparseRankError, ValueError):
    """The data – a file, an array, an id – is not what it should be."""


class ConfigError(SparseRankError, ValueError):
    """A setting is out of its range, or two settings contradict one another."""


class ModelError(SparseRankError, ValueError):
    """A model or index file is truncated, foreign, damaged or of another version."""


class NotFitted(SparseRankError, AttributeError):
    """`fit` has not been called yet."""


class NotInstalled(SparseRankError, ImportError):
    """An optional part of SparseRank is wanted and its extra is not installed."""
