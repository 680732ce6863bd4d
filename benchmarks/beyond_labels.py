"""W from class labels: MAP and error on the test split, the size of W, time and peak memory.

20 Newsgroups (10,000 words, sublinear tf-idf, no stop list) with 10 %, 1 % and 0.1 % of all word pairs, MNIST with half
of all pixel pairs. The ratio is our MAP to that of the cosine in the same run; `paper` is Sparse-R of Chen et al., as
MAP / error. Each model trains in its own process from ready features and compiled kernels; `peak_mb` is the memory of
that process, including data and interpreter, and `extra_mb` is what training added.
`python -m benchmarks.beyond_labels` prints a Markdown table.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from sparserank.experiments.published import TABLE_II

from .markdown import table

ROWS = (
    ("20 Newsgroups, 10 %", "20newsgroups", "ridge", 0.1),
    ("20 Newsgroups, 1 %", "20newsgroups", "ridge", 0.01),
    ("20 Newsgroups, 0.1 %", "20newsgroups", "ridge", 0.001),
    ("MNIST, 50 %", "mnist", "low-rank", 0.5),
)
QUICK = (("digits, 10 %", "digits", "ridge", 0.1), ("digits, 50 %", "digits", "low-rank", 0.5))
PAPER = {
    name: f"{result.map:.3f} / {result.error:.3f}".replace("0.", ".")
    for name, methods in TABLE_II.items()
    for result in (methods["Sparse-R"],)
}
"""Sparse-R in the paper's Table II."""

LEARN = """
import gc, json
from time import perf_counter
import sparserank as sr
from sparserank.evaluation.labels import bilinear_blocks, evaluate_classes
from sparserank.experiments.datasets import load_labeled
from benchmarks.measure import Growth, peak_megabytes
def learned(set, density):
    return sr.LabelRanker({method!r}, density=density, random_state=0).fit(set.train, set.train_classes)
learned(load_labeled("digits"), 0.1)  # every kernel is loaded before the clock starts
set = load_labeled({name!r})
gc.collect()
started = perf_counter()
with Growth() as growth:
    ranker = learned(set, {density})
seconds, peak = perf_counter() - started, peak_megabytes()
W = ranker.W_ if ranker.density_ < 0.2 else ranker.W_.toarray()
test = set.test if ranker.density_ < 0.2 else set.test.toarray()
found, cosine = (evaluate_classes(bilinear_blocks(test, m, test), set.test_classes) for m in (W, None))
print(json.dumps(dict(map=found.map.value, error=found.error.value, pairs=int(ranker.W_.nnz), seconds=seconds,
    extra_mb=growth.megabytes, peak_mb=peak, cosine=cosine.map.value)))
"""


def measured(name: str, method: str, density: float) -> dict[str, Any]:
    """What a fresh process learns and finds."""
    code = LEARN.format(name=name, method=method, density=density)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(result.stderr.strip().splitlines()[-1])
    return dict(json.loads(result.stdout.splitlines()[-1]))


def run(quick: bool = False) -> dict[str, Any]:
    """A row for every set and size."""
    rows = []
    for title, name, how, density in QUICK if quick else ROWS:
        found = measured(name, how, density)
        rows.append(
            {
                "name": title,
                "ratio": round(found["map"] / found["cosine"], 2),
                "map": round(found["map"], 4),
                "error": round(found["error"], 4),
                "pairs": found["pairs"],
                "seconds": round(found["seconds"], 1),
                "extra_mb": found["extra_mb"],
                "peak_mb": found["peak_mb"],
                "cosine": round(found["cosine"], 3),
                "paper": PAPER.get(name, ""),
            }
        )
    return {
        "case": "beyond labels",
        "size": "the digits of scikit-learn"
        if quick
        else "20 Newsgroups, 10,000 words; MNIST, 784 pixels; test splits",
        "peer": "cosine of the same rows",
        "rows": rows,
    }


if __name__ == "__main__":
    print(table(run()["rows"]))
