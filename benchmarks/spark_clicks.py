"""A click log of 10⁷ events in Parquet: grades and skip-above pairs by Spark SQL, against ClickLog on one machine.

Both read the same files, and the results are checked to be equal. Two worker processes of one core each
(`local-cluster[2,1,2048]`) share the machine with the local run, so the ratio shows the overhead of Spark on a log that
one machine can hold. Plan by rows per second and core.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import perf_counter
from typing import Any

import numpy as np

from sparserank.data import scan_clicks
from sparserank.preferences import ClickLog, Propensity

from .measure import peak_megabytes

MASTER = "local-cluster[2,1,2048]"
COLUMNS = ("session", "query", "document", "position", "clicked")
LIST = 10
"""Documents shown in a visit."""


def write_log(folder: Path, events: int, parts: int = 8) -> None:
    """Visits of LIST documents each: few queries are asked often, and what stands high is clicked more."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    visits = events // LIST // parts
    for part in range(parts):
        query = (100_000 * rng.random(visits) ** 4).astype(np.int64)
        document = query[:, None] * 20 + rng.permuted(np.tile(np.arange(20), (visits, 1)), axis=1)[:, :LIST]
        position = np.tile(np.arange(1, LIST + 1), (visits, 1))
        clicked = rng.random(position.shape) < 0.4 / position
        session = np.arange(part * visits, (part + 1) * visits)
        columns = (
            np.repeat(session, LIST),
            np.repeat(query, LIST),
            *(c.ravel() for c in (document, position, clicked)),
        )
        pq.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True))), folder / f"part-{part}.parquet")


def local_log(folder: Path) -> ClickLog:
    import polars as pl

    table = pl.concat([scan_clicks(part).collect() for part in sorted(folder.glob("*.parquet"))])
    return ClickLog.of(*(table[name].to_numpy() for name in COLUMNS))


def of_spark(frame: Any, keys: int) -> tuple[np.ndarray, np.ndarray]:
    """Its rows in the order of their keys."""
    found = frame.toArrow()
    *names, value = (found.column(i).to_numpy() for i in range(keys + 1))
    order = np.lexsort(names[::-1])
    return np.stack([name[order] for name in names]), value[order]


def check_equal(log: ClickLog, grades: Any, pairs: Any) -> tuple[int, int]:
    """Refuse to time what differs; how many grades and pairs there are."""
    keys, values = of_spark(grades, 2)
    known = log.grades(Propensity())
    expected = np.array([(q, d, g) for q, row in known.items() for d, g in row.items()])
    if not (np.array_equal(keys, expected[:, :2].T) and np.allclose(values, expected[:, 2], rtol=1e-12)):
        raise AssertionError("the grades of Spark are not those of the local log")
    keys, weight = of_spark(pairs, 3)
    above = log.skip_above()
    if not (
        np.array_equal(keys, np.stack([above.query, above.better, above.worse])) and (weight == above.weight).all()
    ):
        raise AssertionError("the pairs of Spark are not those of the local log")
    return len(expected), len(weight)


class Tree:
    """The largest resident size of all processes below this one, while the block runs."""

    def __enter__(self) -> Tree:
        self.most, self._done = 0, Event()
        self._watcher = Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def _watch(self) -> None:
        import psutil

        while not self._done.wait(0.1):
            total = 0
            for child in psutil.Process().children(recursive=True):
                try:
                    total += child.memory_info().rss
                except psutil.Error:  # it has ended meanwhile
                    continue
            self.most = max(self.most, total)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()


def timed(call: Any) -> float:
    started = perf_counter()
    call()
    return perf_counter() - started


def run(quick: bool = False) -> dict[str, Any]:
    """Seconds and rows a second of both, for grades and for pairs, from Parquet to a result."""
    from sparserank.spark import click_grades, click_preferences, read_clicks
    from sparserank.spark.session import temporary_session

    events = 100_000 if quick else 10_000_000
    settings = {"spark.executor.memory": "2g", "spark.sql.shuffle.partitions": 8}
    with TemporaryDirectory() as name, Tree() as tree, temporary_session(MASTER, **settings) as spark:
        folder = Path(name)
        write_log(folder, events)

        def made(make: Any) -> Any:
            return make(read_clicks(spark, name))

        def kept(make: Any) -> Any:
            return lambda: made(make).write.format("noop").mode("overwrite").save()

        n_grades, n_pairs = check_equal(local_log(folder), made(click_grades), made(click_preferences))
        seconds = {
            ("grades", "ClickLog"): timed(lambda: local_log(folder).grades()),
            ("grades", "Spark SQL"): timed(kept(click_grades)),
            ("pairs", "ClickLog"): timed(lambda: local_log(folder).skip_above()),
            ("pairs", "Spark SQL"): timed(kept(click_preferences)),
        }
    return {
        "case": "click logs on Spark",
        "size": f"{events:,} events in Parquet, {n_grades:,} grades, {n_pairs:,} pairs, {MASTER}",
        "peer": "ClickLog (numpy, one process), from the same files in the same run",
        "rows": [
            {
                "name": f"{what}, {who}",
                "ratio": round(seconds[what, "ClickLog"] / taken, 2),
                "seconds": round(taken, 2),
                "rows_per_second": round(events / taken),
            }
            for (what, who), taken in seconds.items()
        ],
        "driver_and_executors_mb": round(tree.most / 1e6),
        "peak_mb": peak_megabytes(),
    }
