"""Click logs in Spark SQL: inverse-propensity grades and skip-above pairs, equal to those of `preferences.ClickLog`.

A log is a table `session, query, document, position, clicked`, as in `data.scan_clicks`; other columns are ignored.
Rows never pass through Python. Clicks are counted by position first and added in the order of positions, so the numbers
do not depend on the partitions of the log. One task needs all clicks of one session for one query, and no more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import DataError
from ..preferences.clicks import BY_RANK, Propensity
from .frames import aggregate, check_no_nulls, read_parquet, select_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

CLICK_COLUMNS = {
    "session": "id", "query": "id", "document": "id", "position": "whole number", "clicked": "true or false, 0 or 1",
}  # fmt: skip
TRIPLE_COLUMNS = {"query": "id", "better": "id", "worse": "id", "weight": "number"}
MAX_POSITION = 100_000
"""The propensity of this position also applies to all positions below it."""


def read_clicks(spark: SparkSession, path: str) -> DataFrame:
    """Read a Parquet click log.

    Parameters
    ----------
    spark : SparkSession
        The session that reads.
    path : str
        File or folder, in any place that Spark reads.

    Returns
    -------
    DataFrame
        Columns session, query, document, position, clicked. Another schema raises DataError before any row is read.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> visits = [("s1", "apple", "d1", 1, False), ("s1", "apple", "d2", 2, True)]
    >>> log = spark.createDataFrame(visits, list(CLICK_COLUMNS))
    >>> log.write.parquet(f"{folder.name}/log")
    >>> read_clicks(spark, f"{folder.name}/log").count()
    2
    >>> folder.cleanup()
    """
    return select_columns(read_parquet(spark, path), CLICK_COLUMNS, path)


def click_grades(visits: DataFrame, propensity: Propensity = BY_RANK) -> DataFrame:
    """Grade documents by clicks / propensity over impressions, as `ClickLog.grades` does.

    Parameters
    ----------
    visits : DataFrame
        A click log, see `read_clicks`.
    propensity : Propensity
        Probability that a user examines a position.

    Returns
    -------
    DataFrame
        Columns query, document, grade; documents without a click have no row.

    Examples
    --------
    >>> visits = [("s1", "apple", "d1", 1, False), ("s1", "apple", "d2", 2, True)]
    >>> log = spark.createDataFrame(visits, list(CLICK_COLUMNS))
    >>> [tuple(row) for row in click_grades(log).collect()]
    [('apple', 'd2', 2.0)]
    """
    from pyspark.sql import functions as F  # noqa: N812

    log, deepest = _check_log(visits)
    by_position = log.groupBy("query", "document", "position").agg(
        F.count_if("clicked").alias("clicks"), F.count("*").alias("shown")
    )
    pairs = by_position.groupBy("query", "document").agg(
        F.sum("shown").alias("shown"), _weighted_clicks("clicks", propensity, deepest).alias("weight")
    )
    return pairs.where("weight > 0").select("query", "document", (F.col("weight") / F.col("shown")).alias("grade"))


def click_preferences(visits: DataFrame, propensity: Propensity | None = None) -> DataFrame:
    """Skip-above preferences, as `ClickLog.skip_above` gives: a clicked document beats those skipped above it.

    Parameters
    ----------
    visits : DataFrame
        A click log, see `read_clicks`.
    propensity : Propensity, optional
        Weigh each preference by 1 / propensity of the clicked position, since few users examine low positions.

    Returns
    -------
    DataFrame
        Columns query, better, worse, weight; without a propensity the weight is the number of occurrences.

    Examples
    --------
    >>> visits = [("s1", "apple", "d1", 1, False), ("s1", "apple", "d2", 2, True)]
    >>> log = spark.createDataFrame(visits, list(CLICK_COLUMNS))
    >>> [tuple(row) for row in click_preferences(log).collect()]
    [('apple', 'd2', 'd1', 1)]
    """
    from pyspark.sql import functions as F  # noqa: N812

    log, deepest = _check_log(visits)
    result = F.struct("position", "document")
    lists = log.groupBy("session", "query").agg(
        F.collect_list(F.when(F.col("clicked"), result)).alias("clicks"),
        F.collect_list(F.when(~F.col("clicked"), result)).alias("skipped"),
    )
    each = lists.select("query", "skipped", F.explode("clicks").alias("click"))
    above = F.filter(
        "skipped",
        lambda one: (one["position"] < F.col("click")["position"]) & (one["document"] != F.col("click")["document"]),
    )
    pairs = each.select("query", "click", F.explode(above).alias("above")).select(
        "query",
        F.col("click")["document"].alias("better"),
        F.col("above")["document"].alias("worse"),
        F.col("click")["position"].alias("position"),
    )
    names = ("query", "better", "worse")
    if propensity is None:
        return pairs.groupBy(*names).agg(F.count("*").alias("weight"))
    counted = pairs.groupBy(*names, "position").agg(F.count("*").alias("clicks"))
    return counted.groupBy(*names).agg(_weighted_clicks("clicks", propensity, deepest).alias("weight"))


def click_sessions(visits: DataFrame) -> DataFrame:
    """Count the sessions of each query, as `ClickLog.shown` does.

    Parameters
    ----------
    visits : DataFrame
        A click log, see `read_clicks`.

    Returns
    -------
    DataFrame
        Columns query, sessions.

    Examples
    --------
    >>> visits = [("s1", "apple", "d1", 1, True), ("s2", "apple", "d1", 1, False)]
    >>> [tuple(row) for row in click_sessions(spark.createDataFrame(visits, list(CLICK_COLUMNS))).collect()]
    [('apple', 2)]
    """
    from pyspark.sql import functions as F  # noqa: N812

    log, _ = _check_log(visits)
    return log.groupBy("query").agg(F.count_distinct("session").alias("sessions"))


def read_triples(spark: SparkSession, path: str) -> DataFrame:
    """Read Parquet triples query, better, worse and weight (1 if there is no such column)."""
    from pyspark.sql import functions as F  # noqa: N812

    triples = read_parquet(spark, path)
    if "weight" not in triples.columns:
        triples = triples.withColumn("weight", F.lit(1.0))
    return select_columns(triples, TRIPLE_COLUMNS, path)


def known_triples(triples: DataFrame, queries: DataFrame, documents: DataFrame) -> DataFrame:
    """The triples whose ids, as strings, all occur in the column `id` of these tables."""
    for name, ids in (("query", queries), ("better", documents), ("worse", documents)):
        triples = triples.join(ids, triples[name].cast("string") == ids["id"], "left_semi")
    return triples


def triple_grades(triples: DataFrame) -> DataFrame:
    """Columns query, document, grade: weight won / (won + lost), as `preferences.win_rates` gives.

    Weights are added in ascending order, so the sums do not depend on the partitions.
    """
    from pyspark.sql import functions as F  # noqa: N812

    triples = select_columns(triples, TRIPLE_COLUMNS, "triples")
    check_no_nulls(triples, "triples")
    weight = F.col("weight").cast("double")
    invalid = F.isnan(weight) | (weight < 0.0) | (weight == float("inf"))
    counts = aggregate(triples, weight=F.count_if(invalid), same=F.count_if(F.col("better") == F.col("worse")))
    if counts["weight"]:
        raise DataError(f"triples: column 'weight' must be finite, 0 or more; it is not in {counts['weight']:,} rows")
    if counts["same"]:
        raise DataError(f"triples: {counts['same']:,} rows name one document as better and as worse")
    winners = triples.select("query", F.col("better").alias("document"), weight.alias("won"), F.lit(None).alias("lost"))
    losers = triples.select("query", F.col("worse").alias("document"), F.lit(None).alias("won"), weight.alias("lost"))
    both = winners.union(losers).groupBy("query", "document")
    sums = both.agg(_ascending_sum("won").alias("won"), _ascending_sum("lost").alias("lost"))
    total = F.col("won") + F.col("lost")
    share = F.when(total > 0.0, F.col("won") / total).otherwise(0.0)
    return sums.select("query", "document", share.alias("grade"))


def _ascending_sum(name: str) -> Column:
    from pyspark.sql import functions as F  # noqa: N812

    return F.aggregate(F.array_sort(F.collect_list(name)), F.lit(0.0), lambda total, one: total + one)


def _check_log(visits: DataFrame) -> tuple[DataFrame, int]:
    """The log with clicks as booleans, and its deepest position; raise DataError if it is not a click log."""
    from pyspark.sql import functions as F  # noqa: N812

    log = select_columns(visits, CLICK_COLUMNS, "click log")
    check_no_nulls(log, "click log")
    flag = F.col("clicked").cast("int")
    counts = aggregate(
        log, position=F.count_if(F.col("position") < 1), clicked=F.count_if(~flag.isin(0, 1)), deepest=F.max("position")
    )
    if counts["deepest"] is None:
        raise DataError("click log: it has no rows")
    for name, kind in (("position", "a whole number, counted from 1"), ("clicked", "0 or 1")):
        if counts[name]:
            raise DataError(f"click log: column {name!r} must be {kind}; it is not in {counts[name]:,} rows")
    return log.withColumn("clicked", flag == 1), int(counts["deepest"])


def _weighted_clicks(clicks: str, propensity: Propensity, deepest: int) -> Column:
    """sum_p clicks(p) / propensity(p) in ascending p; a sum in Spark's order would differ in the last bits."""
    from pyspark.sql import functions as F  # noqa: N812

    weights = 1.0 / propensity.of(np.arange(1, min(deepest, MAX_POSITION) + 1))
    last = int(np.flatnonzero(weights != weights[-1]).max(initial=-1)) + 2  # all further weights are equal
    table = F.lit(weights[:last].tolist())
    position = F.least(F.col("position"), F.lit(MAX_POSITION)).cast("int").alias("position")
    positions = F.array_sort(F.collect_list(F.struct(position, F.col(clicks))))
    return F.aggregate(
        positions,
        F.lit(0.0),
        lambda total, one: total + one[clicks] * F.element_at(table, F.least(one["position"], F.lit(last))),
    )
