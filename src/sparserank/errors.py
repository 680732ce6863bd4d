"""The errors that SparseRank raises on purpose: each message says what was found, where, and what to do.

Each class also derives from the matching built-in exception, so `except ValueError` works.
"""


class SparseRankError(Exception):
    """Base class of all errors; the command line prints one as a single line and exits with code 2."""


class DataError(SparseRankError, ValueError):
    """The data, such as a file, an array or an id, is invalid."""


class ConfigError(SparseRankError, ValueError):
    """A setting is out of its range, or two settings contradict each other."""


class FilterError(SparseRankError, ValueError):
    """A filter of a search has a syntax error, or names a field that no document has."""


class ModelError(SparseRankError, ValueError):
    """A model or index file is truncated, damaged, of another version or another kind of file."""


class NotFitted(SparseRankError, AttributeError):
    """`fit` has not been called yet."""


class NotInstalled(SparseRankError, ImportError):
    """An optional part of SparseRank needs an extra that is not installed."""


def count_of(n: int, noun: str) -> str:
    """Return a number with its noun, for a message.

    Parameters
    ----------
    n : int
        The number.
    noun : str
        The noun in the singular.

    Examples
    --------
    >>> count_of(1, "judged query"), count_of(2000, "judged query"), count_of(0, "document")
    ('1 judged query', '2,000 judged queries', '0 documents')
    """
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{n:,} {noun if n == 1 else plural}"
