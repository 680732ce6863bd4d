"""A model file of 10 million word pairs: ours, against scipy's load_npz and pickle of the same W and words.

Ours reads and validates the whole file (sorted indices in range, finite numbers, one word per column) and cannot run
code; load_npz checks shapes only, and pickle can run code from the file. Before the measurement, what each of the three
loads is compared with what was saved.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz

import sparserank as sr

from .measure import best_seconds, peak_megabytes

FRESH = """
from time import perf_counter
started = perf_counter()
{code}
print(perf_counter() - started)
"""


def random_pairs(words: int, per_row: int) -> csr_array:
    """W with so many entries in every row."""
    rng = np.random.default_rng(0)
    columns = np.sort(rng.integers(0, words - per_row, (words, per_row)), axis=1) + np.arange(per_row)
    values = rng.normal(size=words * per_row).astype(np.float32)
    return csr_array((values, columns.ravel().astype(np.int32), np.arange(words + 1) * per_row), shape=(words, words))


def fresh(code: str) -> float:
    """Seconds of the code in a process of its own, imports included; the best of three."""
    command = [sys.executable, "-c", FRESH.format(code=code)]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(3))


def run(quick: bool = False) -> dict[str, Any]:
    """Seconds to have W and its words in memory, and the same with all imports in a process of its own."""
    words = 10_000 if quick else 100_000
    W, names = random_pairs(words, 100), tuple(f"word{i}" for i in range(words))
    nothing, prefs = csr_array((2, words), dtype=np.float32), sr.Preferences.from_triples([0], [0], [1])
    ranker = sr.BilinearRanker(start=W, max_iter=0, random_state=0)
    ranker.fit(nothing, nothing, prefs, query_words=names, document_words=names)
    with TemporaryDirectory() as folder:
        ours, npz, pickled = (Path(folder, name) for name in ("w.safetensors", "w.npz", "w.pickle"))
        ranker.save(ours)
        save_npz(npz, W, compressed=False)
        pickled.write_bytes(pickle.dumps((W, names, names), protocol=5))
        again, (W_pickled, *both) = sr.load(ours), pickle.loads(pickled.read_bytes())
        if any((loaded != W).nnz for loaded in (again.W_, load_npz(npz), W_pickled)):
            raise AssertionError("a W that was loaded is not the W that was saved")
        if again.query_words_ != names or both != [names, names]:
            raise AssertionError("the words that were loaded are not those that were saved")
        seconds = best_seconds(
            {
                "SparseRank": lambda: sr.load(ours),
                "scipy load_npz (W only)": lambda: load_npz(npz),
                "pickle": lambda: pickle.loads(pickled.read_bytes()),
            },
            repetitions=1 if quick else 5,
        )
        with_imports = {
            "SparseRank": fresh(f"import sparserank; sparserank.load({str(ours)!r})"),
            "scipy load_npz (W only)": fresh(f"import scipy.sparse; scipy.sparse.load_npz({str(npz)!r})"),
        }
        megabytes = ours.stat().st_size / 1e6
    return {
        "case": "model loading",
        "size": f"{W.nnz:,} nonzeros, {words:,} words, a file of {megabytes:.0f} MB",
        "peer": "scipy load_npz, uncompressed; pickle",
        "rows": [*_rows(seconds), *_rows(with_imports, ", fresh process")],
        "peak_mb": peak_megabytes(),
    }


def _rows(seconds: dict[str, float], how: str = "") -> list[dict[str, Any]]:
    peer = seconds["scipy load_npz (W only)"]
    return [{"name": name + how, "seconds": round(s, 3), "ratio": round(peer / s, 2)} for name, s in seconds.items()]


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
