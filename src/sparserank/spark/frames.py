"""What a DataFrame must hold, judged by its schema before any work."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import DataError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WHOLE = ("byte", "short", "integer", "long")
TYPES = {
    "text": ("string",),
    "id": ("string", *_WHOLE),
    "whole number": _WHOLE,
    "number": (*_WHOLE, "float", "double"),
    "true or false, 0 or 1": ("boolean", *_WHOLE),
}
"""What a column may be asked to hold, and the types of Spark that can."""
_FILE = re.compile(r"reading file (?:file://)?(\S+)\. ")


def table(spark: SparkSession, path: str) -> DataFrame:
    """A Parquet file or folder, wherever Spark can read; what is none is refused."""
    with reading(path, "read as Parquet"):
        return spark.read.parquet(path)


@contextmanager
def reading(what: str, done: str = "read") -> Iterator[None]:
    """What Spark cannot read is refused in one sentence, with the file where it tells; a failure of Python is left."""
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException, PythonException

    try:
        yield
    except PythonException:
        raise
    except (PySparkException, Py4JJavaError) as error:
        file = _FILE.search(str(error))
        where = "" if file is None else f" ({file[1]})"
        raise DataError(f"{what}: cannot be {done}{where}: {reason(error)}") from None


def reason(error: Exception) -> str:
    """The first cause of what Spark raised, in one line: of Java's exceptions the last is the one that tells."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return " ".join(str(error).split("\n\n")[0].split())[:300]
    while cause.getCause() is not None:
        cause = cause.getCause()
    return " ".join(str(cause.getMessage() or cause.toString()).split("\n\n")[0].split())[:300]


def judged(frame: DataFrame, wanted: Mapping[str, str], what: str) -> DataFrame:
    """The columns that are wanted, in this order; one that is missing or of another type is refused by name.

    wanted : {column: what it must hold}, one of TYPES.
    """
    found = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    for name, kind in wanted.items():
        if name not in found:
            raise DataError(f"{what}: no column {name!r} ({kind}); the columns are {', '.join(found) or 'none'}")
        if found[name] not in TYPES[kind]:
            raise DataError(f"{what}: column {name!r} must be {kind}; its type is {found[name]}")
    return frame.select(*wanted)


def refuse_nulls(frame: DataFrame, what: str) -> None:
    """Refuse a table with an empty cell; Spark looks at these columns alone, once."""
    from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

    with reading(what):
        empty = frame.select(*(F.count_if(F.col(name).isNull()).alias(name) for name in frame.columns)).first()
    for name, count in empty.asDict().items() if empty is not None else ():
        if count:
            raise DataError(f"{what}: column {name!r} is empty in {count:,} rows; fill them in or leave them out")
