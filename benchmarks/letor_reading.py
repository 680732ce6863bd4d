"""LETOR text to arrays: ours against scikit-learn's load_svmlight_file, with equal arrays.

Two files: MQ2007 (46 features, all of them written, six decimals, comments) and RCV1 (47,236 features, few per row,
16 digits, as dump_svmlight_file writes them). Both are uncompressed files, so the benchmark measures reading alone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from sparserank.data.files import read_bytes
from sparserank.data.formats.letor import read_letor

from .measure import best_seconds, peak_megabytes


def _mq2007(folder: Path, target: Path, quick: bool) -> None:
    content = read_bytes(next(folder.glob("*.txt*")))
    target.write_bytes(b"".join(content.splitlines(keepends=True)[: 2000 if quick else None]))


def _rcv1(folder: Path, target: Path, quick: bool) -> None:
    stored = np.load(next(folder.glob("*.npz")), allow_pickle=False)
    values = stored["X_data"].astype(np.float64)
    X = csr_array((values, stored["X_indices"], stored["X_indptr"]), shape=tuple(stored["X_shape"]))
    X = X[: 500 if quick else 10_000]
    X.sort_indices()
    number = np.arange(X.shape[0])
    dump_svmlight_file(X, number % 3, str(target), zero_based=False, query_id=number // 10)


FILES: dict[str, tuple[str, Callable[[Path, Path, bool], None]]] = {
    "MQ2007": ("letor/mq2007", _mq2007),
    "RCV1": ("rcv1", _rcv1),
}


def _require_equal(path: Path) -> str:
    """Refuse to time two readers that differ; the size of what they read."""
    letor = read_letor(path)
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    pairs = [
        (letor.X.data, X.data),
        (letor.X.indices, X.indices),
        (letor.X.indptr, X.indptr),
        (letor.y, y),
        (letor.qid, qid),
    ]
    if letor.X.shape != X.shape or not all(np.array_equal(ours, theirs) for ours, theirs in pairs):
        raise AssertionError(f"{path.name}: the two readers' arrays differ")
    return f"{X.shape[0]} rows, {X.shape[1]} features, {X.nnz} values, {path.stat().st_size / 1e6:.1f} MB"


def _rows(name: str, path: Path, repetitions: int) -> list[dict[str, Any]]:
    seconds = best_seconds(
        {
            "SparseRank": lambda: read_letor(path),
            "SparseRank, one thread": lambda: read_letor(path, n_jobs=1),
            "scikit-learn": lambda: load_svmlight_file(str(path), query_id=True),
        },
        repetitions,
    )
    megabytes = path.stat().st_size / 1e6
    return [
        {
            "name": f"{reader} {name}",
            "mb_per_s": round(megabytes / s, 1),
            "ratio": round(seconds["scikit-learn"] / s, 2),
        }
        for reader, s in seconds.items()
    ]


def run(quick: bool = False) -> dict[str, Any]:
    """Megabytes of text a second, and how many times scikit-learn's that is; a set that is not here is named."""
    root = os.environ.get("SPARSERANK_DATA")
    sizes, rows, missing = [], [], []
    with TemporaryDirectory() as temporary:
        for name, (place, unpack) in FILES.items():
            if not root or not (Path(root) / place).is_dir():
                missing.append(f"{name}: put it under $SPARSERANK_DATA/{place}")
                continue
            path = Path(temporary, f"{name}.txt")
            unpack(Path(root) / place, path, quick)
            sizes.append(f"{name}: {_require_equal(path)}")
            rows += _rows(name, path, repetitions=1 if quick else 3)
    return {
        "case": "LETOR reading",
        "size": "; ".join(sizes),
        "peer": "scikit-learn load_svmlight_file(query_id=True)",
        "rows": rows,
        "peak_mb": peak_megabytes(),
        **({"missing": missing} if missing else {}),
        **({} if rows else {"error": "; ".join(missing)}),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
