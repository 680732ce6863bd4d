"""A click log as Spark SQL: inverse-propensity grades and skip-above pairs, those of `preferences.ClickLog`.

A log is a table `session, query, document, position, clicked`, as `data.scan_clicks` describes it; other columns are
left alone. Rows never pass through Python. Clicks are counted by position first, and positions are added in their
order, so that the numbers are the same however the log is partitioned. All clicks of one session for one query meet in
one task; nothing else has to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import DataError
from ..preferences.clicks import BY_RANK, Propensity
from .frames import judged, refuse_nulls, table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_CLICKED = "true or false, 0 or 1"
COLUMNS = {
    "session": "id", "query": "id", "document": "id", "position": "whole number", "clicked": _CLICKED,
}  # fmt: skip
TRIPLES = {"query": "id", "better": "id", "worse": "id", "weight": "number"}
LONGEST = 100_000
"""The deepest position whose propensity is looked up; below it, that of this position counts."""


def read_clicks(spark: SparkSession, path: str) -> DataFrame:
    """A Parquet click log, wherever Spark can read; one of another schema is refused before anything is read."""
    return judged(table(spark, path), COLUMNS, path)


def click_grades(visits: DataFrame, propensity: Propensity = BY_RANK) -> DataFrame:
    """query, document, grade: clicks / propensity over the times shown, where there was a click (`ClickLog.grades`)."""
    from pyspark.sql import functions as F  # noqa: N812

    log, deepest = _checked(visits)
    by_position = log.groupBy("query", "document", "position").agg(
        F.count_if("clicked").alias("clicks"), F.count("*").alias("shown")
    )
    pairs = by_position.groupBy("query", "document").agg(
        F.sum("shown").alias("shown"), _in_order("clicks", propensity, deepest).alias("taken")
    )
    return pairs.where("taken > 0").select("query", "document", (F.col("taken") / F.col("shown")).alias("grade"))


def click_preferences(visits: DataFrame, propensity: Propensity | None = None) -> DataFrame:
    """query, better, worse, weight: better was taken, worse stood above it in the same session and was not.

    The weight is how often that was so (`ClickLog.skip_above`); with a propensity each time counts 1 / that of the
    position of the click, since few looked so far down.
    """
    from pyspark.sql import functions as F  # noqa: N812

    log, deepest = _checked(visits)
    shown = F.struct("position", "document")
    lists = log.groupBy("session", "query").agg(
        F.collect_list(F.when(F.col("clicked"), shown)).alias("taken"),
        F.collect_list(F.when(~F.col("clicked"), shown)).alias("passed"),
    )
    each = lists.select("query", "passed", F.explode("taken").alias("click"))
    above = F.filter(
        "passed",
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
    return counted.groupBy(*names).agg(_in_order("clicks", propensity, deepest).alias("weight"))


def click_sessions(visits: DataFrame) -> DataFrame:
    """query, sessions: in how many sessions each query was asked (`ClickLog.shown`)."""
    from pyspark.sql import functions as F  # noqa: N812

    log, _ = _checked(visits)
    return log.groupBy("query").agg(F.count_distinct("session").alias("sessions"))


def read_triples(spark: SparkSession, path: str) -> DataFrame:
    """Parquet triples query, better, worse and weight (1, where there is none); of another schema they are refused."""
    from pyspark.sql import functions as F  # noqa: N812

    found = table(spark, path)
    return judged(found if "weight" in found.columns else found.withColumn("weight", F.lit(1.0)), TRIPLES, path)


def known_triples(triples: DataFrame, queries: DataFrame, documents: DataFrame) -> DataFrame:
    """The triples whose ids, as text, are all in these tables of one column `id`."""
    for name, ids in (("query", queries), ("better", documents), ("worse", documents)):
        triples = triples.join(ids, triples[name].cast("string") == ids["id"], "left_semi")
    return triples


def triple_grades(triples: DataFrame) -> DataFrame:
    """query, document, grade: the weight a document won over all it won or lost (`preferences.win_rates`).

    Weights are added from the smallest on, so that the sums are the same however the triples are partitioned.
    """
    from pyspark.sql import functions as F  # noqa: N812

    told = judged(triples, TRIPLES, "triples")
    refuse_nulls(told, "triples")
    weight = F.col("weight").cast("double")
    wrong = F.isnan(weight) | (weight < 0.0) | (weight == float("inf"))
    said = told.select(
        F.count_if(wrong).alias("weight"), F.count_if(F.col("better") == F.col("worse")).alias("worse")
    ).first()
    if said is not None and said["weight"]:
        raise DataError(f"triples: column 'weight' must be finite, 0 or more; it is not in {said['weight']:,} rows")
    if said is not None and said["worse"]:
        raise DataError(f"triples: {said['worse']:,} rows name one document as better and as worse")
    winners = told.select("query", F.col("better").alias("document"), weight.alias("won"), F.lit(None).alias("lost"))
    losers = told.select("query", F.col("worse").alias("document"), F.lit(None).alias("won"), weight.alias("lost"))
    both = winners.union(losers).groupBy("query", "document")
    sums = both.agg(_rising("won").alias("won"), _rising("lost").alias("lost"))
    total = F.col("won") + F.col("lost")
    share = F.when(total > 0.0, F.col("won") / total).otherwise(0.0)
    return sums.select("query", "document", share.alias("grade"))


def _rising(name: str) -> Column:
    """The sum of a column's numbers, the smallest first."""
    from pyspark.sql import functions as F  # noqa: N812

    return F.aggregate(F.array_sort(F.collect_list(name)), F.lit(0.0), lambda total, one: total + one)


def _checked(visits: DataFrame) -> tuple[DataFrame, int]:
    """The log in one form, its clicks true or false, and its deepest position; what cannot be a log is refused."""
    from pyspark.sql import functions as F  # noqa: N812

    log = judged(visits, COLUMNS, "click log")
    refuse_nulls(log, "click log")
    flag = F.col("clicked").cast("int")
    said = log.select(
        F.count_if(F.col("position") < 1).alias("position"),
        F.count_if(~flag.isin(0, 1)).alias("clicked"),
        F.max("position").alias("deepest"),
    ).first()
    if said is None or said["deepest"] is None:
        raise DataError("click log: no row in it")
    for name, wanted in (("position", "a whole number, counted from 1"), ("clicked", "0 or 1")):
        if said[name]:
            raise DataError(f"click log: column {name!r} must be {wanted}; it is not in {said[name]:,} rows")
    return log.withColumn("clicked", flag == 1), int(said["deepest"])


def _in_order(clicks: str, propensity: Propensity, deepest: int) -> Column:
    """sum_p clicks(p) / propensity(p), by rising p: a sum in Spark's own order would differ in the last bits."""
    from pyspark.sql import functions as F  # noqa: N812

    gains = 1.0 / propensity.of(np.arange(1, min(deepest, LONGEST) + 1))
    last = int(np.flatnonzero(gains != gains[-1]).max(initial=-1)) + 2  # from there on they are all the same
    table = F.lit(gains[:last].tolist())
    position = F.least(F.col("position"), F.lit(LONGEST)).cast("int").alias("position")
    positions = F.array_sort(F.collect_list(F.struct(position, F.col(clicks))))
    return F.aggregate(
        positions,
        F.lit(0.0),
        lambda total, one: total + one[clicks] * F.element_at(table, F.least(one["position"], F.lit(last))),
    )
