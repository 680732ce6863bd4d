"""`make bench`: every benchmark in its own process, as tables, as JSON and as Markdown.

Each ratio compares with a named peer in the same run on the same data. If both compute the same thing, the benchmark
checks that the results are equal before it measures time; if not, each row has the quality of both. A case that fails
is named, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from sparserank.data.files import write_bytes

from .markdown import TEXTS, environment, write_section

CASES = (
    "letor_reading", "text_features", "bm25_search", "search_index", "search_scale", "filtered_search", "typo_search",
    "word_pairs", "model_loading", "domination", "liblinear", "gblinear", "beyond_text", "text_training", "scale",
    "never_worse", "known_items", "explained_share", "learn_from", "beyond_labels", "export_loss", "spark_text",
    "spark_equality", "spark_scale", "spark_clicks", "spark_training",
)  # fmt: skip

FULL_CASES = ("scale",)
"""The cases that have larger sizes, for `--full`."""


def run_case(case: str, quick: bool, full: bool = False) -> dict[str, Any]:
    """The result of one benchmark, from a fresh process, so that its peak memory is its own."""
    size = f"quick={quick}{', full=True' * (full and case in FULL_CASES)}"
    code = f"import json, benchmarks.{case} as b; print(json.dumps(b.run({size})))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if result.returncode:
        return {"case": case, "error": result.stderr.strip().splitlines()[-1]}
    source = Path(__file__).with_name(f"{case}.py").read_text()
    about = ast.get_docstring(ast.parse(source))
    return {"about": about, "environment": environment()} | json.loads(result.stdout.splitlines()[-1])


def show(result: dict[str, Any]) -> None:
    print(f"\n{result['case']}: {result.get('size', '')}")
    if "error" in result:
        print(f"  not measured: {result['error']}")
    for row in result.get("rows", []):
        rest = "  ".join(f"{key} {value}" for key, value in row.items() if key not in ("name", "ratio"))
        print(f"  {row['name']:36s} {row['ratio']:6.2f}x  {rest}")
    for key in sorted(result.keys() - {*TEXTS, "peak_mb"}):
        print(f"  {key.replace('_', ' ')}: {result[key]}")
    if "peak_mb" in result:
        print(f"  peak memory {result['peak_mb']} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=CASES, help="which benchmarks; all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes, one repetition: checks that it runs")
    parser.add_argument("--full", action="store_true", help=f"the largest sizes too, which take hours: {FULL_CASES[0]}")
    parser.add_argument("--output", type=Path, default=Path("reports/bench.json"), help="the JSON file to write")
    parser.add_argument("--markdown", type=Path, help="the page whose sections to write; not with --quick")
    options = parser.parse_args()
    results = []
    for case in options.cases:
        results.append(run_case(case, options.quick, options.full))
        show(results[-1])
        if options.markdown is not None and not options.quick and "error" not in results[-1]:
            write_section(options.markdown, results[-1])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(options.output, (json.dumps(results, indent=2) + "\n").encode())
    print(f"\n{options.output}")
    print(json.dumps(results))
    if any("error" in result for result in results):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
