"""`make bench`: every benchmark in a process of its own, as a table and as JSON: the last line, and reports/bench.json.

Each ratio is to a named peer in the same run on the same data. Where both compute the same, results are checked equal
before they are timed; where they do not, each row has what both find. A case that fails to run is named, and the exit
code is 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from sparserank.data.files import write_bytes

CASES = (
    "letor_reading", "text_features", "bm25_search", "search_index", "word_pairs", "model_loading", "domination",
    "beyond_text", "never_worse", "beyond_labels", "export_loss", "spark_text", "spark_clicks", "spark_training",
)  # fmt: skip


def measured(case: str, quick: bool) -> dict:
    """One benchmark's result, from a fresh process so that peak memory is its own."""
    code = f"import json, benchmarks.{case} as b; print(json.dumps(b.run(quick={quick})))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if result.returncode:
        return {"case": case, "error": result.stderr.strip().splitlines()[-1]}
    return json.loads(result.stdout.splitlines()[-1])


def show(result: dict) -> None:
    print(f"\n{result['case']}: {result.get('size', '')}")
    if "error" in result:
        print(f"  not measured: {result['error']}")
    for row in result.get("rows", []):
        rest = "  ".join(f"{key} {value}" for key, value in row.items() if key not in ("name", "ratio"))
        print(f"  {row['name']:36s} {row['ratio']:6.2f}x  {rest}")
    for key in sorted(result.keys() - {"case", "size", "peer", "wanted", "rows", "error", "peak_mb"}):
        print(f"  {key.replace('_', ' ')}: {result[key]}")
    if "peak_mb" in result:
        print(f"  peak memory {result['peak_mb']} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=CASES, help="which ones; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes, one repetition: to see that it runs")
    parser.add_argument("--output", type=Path, default=Path("reports/bench.json"))
    given = parser.parse_args()
    results = []
    for case in given.cases:
        results.append(measured(case, given.quick))
        show(results[-1])
    given.output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(given.output, (json.dumps(results, indent=2) + "\n").encode())
    print(f"\n{given.output}")
    print(json.dumps(results))
    if any("error" in result for result in results):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
