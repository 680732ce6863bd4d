"""Training on Spark from half of a collection and from all of it: the driver's memory, and CPU time by phase.

Both have the same queries and judgments; judged documents are in the half. Each training runs in a process of its own
and is kept in reports/spark_scale, so a second run goes on where the first one ended. CPU time is that of the driver's
Python and that of all other processes (Java, executors, Python workers), so other work on the machine does not count.
`per 10^5 documents` is the difference of both trainings.

`python -m benchmarks.spark_scale winapi 2000` names the collection and the number of training queries.
"""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from sparserank.data.files import write_bytes

from .measure import in_new_process, peak_megabytes

FOLDER = Path("reports/spark_scale")
MASTER, PARTITION_BYTES, MEMORY_LIMIT = "local-cluster[2,1,1024]", 16 << 20, "1GB"
MEASURES = "seconds", "driver_cpu_s", "spark_cpu_s"


def write_half_and_whole(name: str, n_queries: int, folder: Path) -> None:
    """Documents as Parquet, half of them and all, with queries whose judged documents are in the half."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sparserank import data

    collection = data.load(name)
    documents, half = collection.documents, len(collection.documents) // 2
    folder.mkdir(parents=True, exist_ok=True)
    for part, size in (("half", half), ("whole", len(documents))):
        columns = {field: getattr(documents, f"{field}s")[:size] for field in ("id", "title", "text")}
        pq.write_table(pa.table(columns), folder / f"{part}.parquet", row_group_size=10_000)
    known = set(documents.ids[:half])
    qrels = {q: grades for q, grades in collection.split("train").items() if known.issuperset(grades)}
    qrels = dict(list(qrels.items())[:n_queries])
    queries = {q: collection.queries[q] for q in qrels}
    write_bytes(folder / "queries.json", json.dumps([queries, qrels, collection.exclude_self]).encode())


def usage() -> tuple[float, float, float]:
    """CPU time of this process and of all that it started, directly or not; megabytes of the Python workers."""
    import psutil

    me = psutil.Process()
    cpu, workers, own = 0.0, 0.0, me.cpu_times()
    for one in me.children(recursive=True):
        with suppress(psutil.NoSuchProcess), one.oneshot():
            cpu += sum(one.cpu_times()[:4])  # its own, and that of its children that have ended
            workers += one.memory_info().rss / 2**20 if one.name().startswith("python") else 0.0
    return own.user + own.system, cpu, round(workers, 1)


def java_peak_megabytes(spark: Any) -> float:
    """The largest resident size of the driver's Java."""
    status = Path(f"/proc/{spark.sparkContext._gateway.proc.pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+)", status)
    return round(int(found[1]) / 2**10, 1) if found else 0.0


def train(folder: str, part: str) -> dict[str, Any]:
    """Train on Spark in this process; memory, and the time of each phase."""
    import sparserank as sr
    from sparserank.spark import SparkTextRanker
    from sparserank.spark.session import temporary_session

    queries, qrels, exclude_self = json.loads(Path(folder, "queries.json").read_text())
    phases: list[dict[str, Any]] = []
    workers: list[float] = []

    def report(message: str) -> None:
        phase = re.sub(r"(: .*|,? \d+ %.*)$", "", message)
        driver, others, megabytes = usage()
        used = dict(zip(MEASURES, (perf_counter(), driver, others), strict=True)) | {"peak_mb": peak_megabytes()}
        if not phases or phases[-1]["phase"] != phase:
            phases.append({"phase": phase} | used)
        workers.append(megabytes)
        print(used, message, file=sys.stderr, flush=True)

    with temporary_session(MASTER, **{"spark.sql.files.maxPartitionBytes": PARTITION_BYTES}) as spark:
        frame = spark.read.parquet(f"{folder}/{part}.parquet")
        frame.count()
        report("reading")
        ranker = SparkTextRanker(sr.TextRanker(memory_limit=MEMORY_LIMIT)).fit(
            spark, frame, queries, qrels, exclude_self=exclude_self, index=f"{folder}/{part}.index", callback=report
        )
        report("end")
        java, partitions = java_peak_megabytes(spark), frame.rdd.getNumPartitions()
    first, last = phases[0], phases[-1]
    return {
        "documents": len(ranker.index_), "partitions": partitions, "queries": len(queries),
        "words": len(ranker.model_.lexical.words), "pairs": ranker.model_.n_pairs,
        **{name: round(last[name] - first[name], 1) for name in MEASURES},
        "driver_before_mb": first["peak_mb"], "driver_peak_mb": last["peak_mb"], "driver_java_peak_mb": java,
        "workers_mb": max(workers),
        "phases": [
            {"phase": a["phase"], **{name: round(b[name] - a[name], 1) for name in MEASURES}, "peak_mb": b["peak_mb"]}
            for a, b in pairwise(phases)
        ],
    }  # fmt: skip


def kept_training(folder: Path, part: str) -> dict[str, Any]:
    """One training: from its file, or measured in a new process."""
    path = folder / f"{part}.json"
    if not path.exists():
        result = in_new_process("spark_scale", "train", str(folder), part)
        write_bytes(path, json.dumps(result).encode())
    return dict(json.loads(path.read_text()))


def run(quick: bool = False, name: str = "winapi", n_queries: int = 2000) -> dict[str, Any]:
    """Half, whole, and the growth between them."""
    name, n_queries = ("nfcorpus", 600) if quick else (name, n_queries)
    folder = FOLDER / f"{name}-{n_queries}"
    if not (folder / "queries.json").exists():
        write_half_and_whole(name, n_queries, folder)
    half, whole = (kept_training(folder, part) for part in ("half", "whole"))
    documents = whole["documents"] - half["documents"]
    return {
        "case": "training on Spark",
        "size": f"{name}, {whole['queries']} queries, {MASTER}",
        "peer": "half of the documents (the ratio is that of the driver's peak memory)",
        "rows": [
            {
                "name": f"{one['documents']:,} documents",
                "ratio": round(one["driver_peak_mb"] / half["driver_peak_mb"], 2),
                **{key: value for key, value in one.items() if key not in ("documents", "phases")},
            }
            for one in (half, whole)
        ],
        "per_1e5_documents": {key: round((whole[key] - half[key]) * 1e5 / documents, 1) for key in MEASURES},
        "phases": {"half": half["phases"], "whole": whole["phases"]},
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    named = {"name": sys.argv[1], "n_queries": int(sys.argv[2])} if len(sys.argv) > 2 else {}
    print(json.dumps(run(**named), indent=2))
