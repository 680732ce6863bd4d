"""Checks of DataFrames: columns by their schema before any work, then empty cells and repeated ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import DataError
from .errors import read_errors

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_INTEGERS = ("byte", "short", "integer", "long")
COLUMN_TYPES = {
    "text": ("string",),
    "id": ("string", *_INTEGERS),
    "whole number": _INTEGERS,
    "number": (*_INTEGERS, "float", "double"),
    "true or false, 0 or 1": ("boolean", *_INTEGERS),
}
"""Kinds of columns, and the Spark types that each accepts."""


def read_parquet(spark: SparkSession, path: str) -> DataFrame:
    """Read a Parquet file or folder from any place that Spark reads; raise DataError if it is not Parquet."""
    with read_errors(path, "read as Parquet"):
        return spark.read.parquet(path)


def select_columns(frame: DataFrame, columns: Mapping[str, str], name: str) -> DataFrame:
    """The given columns in this order; raise DataError if one is missing or of another type.

    columns : {column: kind}, with the kinds of COLUMN_TYPES.
    """
    types = {field.name: field.dataType.typeName() for field in frame.schema.fields}
    for column, kind in columns.items():
        if column not in types:
            raise DataError(f"{name}: no column {column!r} ({kind}); the columns are {', '.join(types) or 'none'}")
        if types[column] not in COLUMN_TYPES[kind]:
            raise DataError(f"{name}: column {column!r} must be {kind}; its type is {types[column]}")
    return frame.select(*columns)


def aggregate(frame: DataFrame, **columns: Column) -> dict[str, Any]:
    """The values of aggregates over all rows, by name."""
    (row,) = frame.agg(*(column.alias(name) for name, column in columns.items())).collect()
    return row.asDict()


def check_no_nulls(frame: DataFrame, name: str) -> None:
    """Raise DataError if a cell is empty."""
    from pyspark.sql import functions as F  # noqa: N812 - the usual name

    with read_errors(name):
        nulls = aggregate(frame, **{column: F.count_if(F.col(column).isNull()) for column in frame.columns})
    for column, count in nulls.items():
        if count:
            raise DataError(f"{name}: column {column!r} is empty in {count:,} rows; fill them in or leave them out")


def check_unique_ids(documents: DataFrame) -> None:
    """Raise DataError if a document id occurs more than once."""
    twice = documents.groupBy("id").count().where("count > 1").select("id").first()
    if twice is not None:
        raise DataError(f"document id {twice['id']!r} occurs more than once")
