"""Algorithm 1 on 20 Newsgroups: ours, Vowpal Wabbit, and the literal dense algorithm, on the same triples.

10,000 words, sublinear tf-idf, no stop list, T = 100, C = 200, a λ that ends near 8 % density. Over the first 5,000
steps rates are large and W fills; most of 50,000 steps have a small rate. Each program runs three times, in turn;
ratios are those of the median times. Before the measurement, our W is compared with that of the literal dense
algorithm, number by number, and, on fewer words and without a penalty, our scores with those of Vowpal Wabbit. With a
penalty Vowpal Wabbit computes something else (`vowpal.DIFFERENCES`), so the table also has the share of test triples
that each ranks correctly.

Against Vowpal Wabbit, our time includes the features from raw posts (the same time per step in both regimes), and its
time includes reading its file. Against the literal algorithm both start from features and have the same number of
threads: the literal one distributes the rows of W over them at every step. Further figures have the memory of training,
and the speed with 100,000 words (each post sampled to as many words as it has among the 10,000) and with a million
hashed n-grams.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numba import get_num_threads, njit, prange
from numpy.typing import NDArray

from sparserank import BilinearRanker, Preferences, data
from sparserank.text import TextFeatures

from . import vowpal
from .measure import peak_megabytes

LAMBDA = 1e-5
HASHED_LAMBDA, HASHED_STEPS = 3e-5, 100_000
"""415 n-grams a post: a step multiplies ten times as many pairs as one of 131 words."""
ETA0, EVERY = 200.0, 100
NEAR = 1e-4
"""How far our W may be from the literal one: this share of W's largest number."""
TEST_TRIPLES, FEWER_WORDS = 20_000, 300
REGIMES, RUNS = (5_000, 50_000), 3
"""The numbers of steps that are measured, and how often."""


@njit(cache=True, parallel=True)
def literal(W, ptr, idx, val, query, better, worse, alpha, eta0, every):
    """Algorithm 1 as it is written, W dense; the rows of W that a step reads are distributed over Numba's threads."""
    delta, columns, owed = np.zeros(W.shape[1], np.float32), np.empty(W.shape[1], np.int64), 0.0
    products = np.empty(W.shape[0], np.float32)
    for t in range(len(query)):
        eta = eta0 / np.sqrt(t + 1.0)
        owed += alpha * eta
        n = 0
        for sign, row in ((np.float32(1.0), better[t]), (np.float32(-1.0), worse[t])):
            for k in range(ptr[row], ptr[row + 1]):
                if delta[idx[k]] == 0.0:
                    columns[n] = idx[k]
                    n += 1
                delta[idx[k]] += sign * val[k]
        first, words = ptr[query[t]], ptr[query[t] + 1] - ptr[query[t]]
        for e in prange(words):
            total = np.float32(0.0)
            for c in range(n):
                total += W[idx[first + e], columns[c]] * delta[columns[c]]
            products[e] = val[first + e] * total
        if products[:words].sum() < 1.0:
            for e in prange(words):
                step = np.float32(eta * val[first + e])
                for c in range(n):
                    W[idx[first + e], columns[c]] += step * delta[columns[c]]
        for c in range(n):
            delta[columns[c]] = 0.0
        if (t + 1) % every == 0:
            s = np.float32(owed)
            owed = 0.0
            for i in prange(W.shape[0]):
                for j in range(W.shape[1]):
                    W[i, j] -= min(max(W[i, j], -s), s)


def trained(X: Any, y: Any, steps: int) -> tuple[float, BilinearRanker]:
    """Seconds to train, and what came out."""
    started = perf_counter()
    ranker = BilinearRanker(alpha=LAMBDA, max_iter=steps, random_state=0, curve_points=0).fit(
        X, X, Preferences.from_labels(y)
    )
    return perf_counter() - started, ranker


def thinned(X: Any, lengths: Any) -> Any:
    """Row i keeps lengths[i] of its entries, at random."""
    rng, kept = np.random.default_rng(0), np.zeros(X.nnz, bool)
    for first, end, length in zip(X.indptr, X.indptr[1:], lengths, strict=False):
        kept[first + rng.permutation(end - first)[:length]] = True
    out = X.copy()
    out.data[~kept] = 0.0
    out.eliminate_zeros()
    return out


def literal_w(X: Any, triples: Any, alpha: float = LAMBDA) -> Any:
    """W of the literal algorithm, from the identity."""
    W = np.eye(X.shape[1], dtype=np.float32)
    literal(W, X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data, *triples, alpha, ETA0, EVERY)
    return W


def check_literal(ranker: BilinearRanker, W: Any) -> float:
    """Raise an error unless our W is the literal one; the largest difference, relative to W's largest number."""
    difference = float(np.abs(ranker.W_.toarray() - W).max() / np.abs(W).max())
    if difference > NEAR:
        raise AssertionError(f"our W is off the literal one by {difference:.1e} of its largest number")
    return difference


def in_order(W: Any, X: Any, triples: Any) -> NDArray[np.float64]:
    """qᵀW(d⁺ − d⁻) of every triple."""
    query, better, worse = triples
    return np.asarray(((X[query] @ W).multiply(X[better] - X[worse])).sum(axis=1), np.float64).ravel()


def check_vowpal(folder: Path, texts: Any, y: Any, steps: int) -> float:
    """Without a penalty both run the same algorithm; the median difference of their scores, relative to their spread.

    A median, since a few pairs of words share a hashed place.
    """
    X = TextFeatures("sublinear", columns=FEWER_WORDS).fit_transform(texts)
    prefs = Preferences.from_labels(y)
    ours = BilinearRanker(penalty="none", max_iter=steps, random_state=0, curve_points=0).fit(X, X, prefs)
    seen, other = prefs.draw(steps, random_state=0), prefs.draw(500, random_state=1)
    for name, triples in (("few.vw", seen), ("other.vw", other)):
        vowpal.write(folder / name, X, triples)
    vowpal.learn(folder / "few.vw", folder / "few.model", 0.0, ETA0)
    theirs, own = vowpal.margins(folder / "other.vw", folder / "few.model"), in_order(ours.W_, X, other)
    difference = float(np.median(np.abs(theirs - own)) / np.std(own))
    if difference > NEAR:
        raise AssertionError(f"without a penalty, Vowpal Wabbit's scores are off ours by {difference:.1e}")
    return difference


def grown(code: str) -> dict[str, Any]:
    """What a fresh process prints: peak memory is its own."""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return dict(json.loads(result.stdout.splitlines()[-1]))


MEMORY = """
import gc, json
from time import perf_counter
from scipy.sparse import csr_array, eye_array
from sparserank import Preferences, data
from sparserank.optim.losses import Hinge
from sparserank.optim.penalties import L1
from sparserank.optim.scores import Bilinear
from sparserank.optim import SparseSGD
from sparserank.text import Analyzer, TextFeatures
from benchmarks.measure import Growth, peak_megabytes
news = data.load("20newsgroups").train
X = TextFeatures({features}).fit_transform(list(news.items))
prefs = Preferences.from_labels(news.y)
def training(X):
    identity = csr_array(eye_array(X.shape[1], dtype="float32", format="csr"))
    return SparseSGD().training(Bilinear(X, X), Hinge(), L1({alpha}), identity)
training(X[:, :600]).advance(prefs.draw(3_000, 0))  # every kernel is loaded before memory is looked at
learner, triples, started = training(X), prefs.draw({steps}, 0), perf_counter()
gc.collect()
with Growth() as growth:
    learner.advance(triples)
print(json.dumps(dict(seconds=perf_counter() - started, extra_mb=growth.megabytes, peak_mb=peak_megabytes(),
    peak_nonzeros=learner.peak_nonzeros, held_mb=learner.peak_bytes / 1e6, columns=X.shape[1])))
"""


def run(quick: bool = False) -> dict[str, Any]:
    """Steps a second and ratios; bytes a nonzero; 100,000 words; a million hashed n-grams."""
    regimes, runs = ((1_000, 2_000), 1) if quick else (REGIMES, RUNS)
    steps = regimes[-1]
    news = data.load("20newsgroups")
    texts, y, few = list(news.train.items), news.train.y, min(steps, 10_000)
    trained(TextFeatures("sublinear", columns=1_000).fit_transform(texts[:2000]), y[:2000], 200)
    started = perf_counter()
    features = TextFeatures("sublinear", columns=10_000)
    X = features.fit_transform(texts)
    building = (perf_counter() - started) / steps
    triples = Preferences.from_labels(y).draw(steps, random_state=0)
    some = tuple(c[:few] for c in triples)
    checks = {"literal": check_literal(trained(X, y, few)[1], literal_w(X, some))}
    test = (
        features.transform(news.test.items),
        Preferences.from_labels(news.test.y).draw(TEST_TRIPLES, random_state=0),
    )
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        checks["vowpal_without_penalty"] = check_vowpal(Path(folder), texts, y, 2_000)
        for regime in regimes:
            drawn = tuple(c[:regime] for c in triples)
            times, ordered, ranker = measure(Path(folder), X, y, drawn, test, runs)
            rows += _rows(f"Vowpal Wabbit, {regime:,} steps", times["vowpal"], times["ours"], building, ordered)
            rows += _rows(f"literal dense, {regime:,} steps", times["literal"], times["ours"])
    training = float(np.median(times["ours"])) * steps
    return {
        "case": "word pairs",
        "size": f"20 Newsgroups, 10,000 words, {get_num_threads()} threads, {steps} steps, "
        f"ends at {100 * ranker.density_:.1f} %",
        "peer": "Vowpal Wabbit; the literal dense algorithm in Numba",
        "rows": rows,
        "differences_checked": {name: float(f"{found:.1e}") for name, found in checks.items()},
        "differs": vowpal.DIFFERENCES,
        **sizes(X, texts, y, steps, training, quick),
        "peak_mb": peak_megabytes(),
    }


def measure(
    folder: Path, X: Any, y: Any, triples: Any, test: Any, runs: int
) -> tuple[dict[str, list[float]], tuple[float, float], BilinearRanker]:
    """Seconds per step of the three programs in every run, the shares of test triples in order, and our ranker."""
    steps, times = len(triples[0]), {name: list[float]() for name in ("ours", "vowpal", "literal")}
    for _ in range(runs):
        seconds, ranker = trained(X, y, steps)
        times["ours"].append(seconds / steps)
        seconds, theirs = vowpal_run(folder, X, triples, test)
        times["vowpal"].append(seconds / steps)
        started = perf_counter()
        literal_w(X, triples)
        times["literal"].append((perf_counter() - started) / steps)
    return times, (share(in_order(ranker.W_, *test)), theirs), ranker


def share(margin: NDArray[np.float64]) -> float:
    return round(float(np.mean(margin > 0.0)), 4)


def vowpal_run(folder: Path, X: Any, triples: Any, test: Any) -> tuple[float, float]:
    """Its seconds to learn, and its share of test triples in order."""
    vowpal.write(folder / "train.vw", X, triples)
    vowpal.write(folder / "test.vw", *test)
    seconds = vowpal.learn(folder / "train.vw", folder / "model", LAMBDA, ETA0)
    return seconds, share(vowpal.margins(folder / "test.vw", folder / "model"))


def sizes(X: Any, texts: Any, y: Any, steps: int, training: float, quick: bool) -> dict[str, Any]:
    """Memory, and what ten and a hundred times the columns cost."""
    wide = thinned(TextFeatures("sublinear", columns=100_000).fit_transform(texts), np.diff(X.indptr))
    slower, _ = trained(wide, y, steps)
    memory = grown(MEMORY.format(features='"sublinear", columns=10_000', alpha=LAMBDA, steps=steps))
    hashed = None
    if not quick:
        features = '"sublinear", hashing=20, analyzer=Analyzer(ngrams=2)'
        hashed = grown(MEMORY.format(features=features, alpha=HASHED_LAMBDA, steps=HASHED_STEPS))
    return {
        "bytes_per_nonzero": round(1e6 * memory["extra_mb"] / memory["peak_nonzeros"], 1),
        "share_of_dense": round(memory["extra_mb"] / 400, 3),
        "speed_at_100000_words": round(training / slower, 2),
        "hashed": None if hashed is None else {"steps": HASHED_STEPS, "alpha": HASHED_LAMBDA, **hashed},
    }


def _rows(
    peer: str, theirs: list[float], ours: list[float], building: float = 0.0, ordered: tuple[float, float] | None = None
) -> list[dict[str, Any]]:
    """We and a peer, over the same number of steps; `building` is added to our seconds per step."""
    both = ((f"SparseRank, against {peer}", [s + building for s in ours]), (peer, theirs))
    rows: list[dict[str, Any]] = []
    for k, (name, seconds) in enumerate(both):
        rows.append(
            {
                "name": name,
                "us_per_step": round(1e6 * float(np.median(seconds)), 1),
                "runs": ", ".join(f"{1e6 * s:.0f}" for s in seconds),
                "ratio": round(float(np.median(theirs) / np.median(seconds)), 2),
            }
        )
        if ordered is not None:
            rows[-1]["test_triples_in_order"] = ordered[k]
    return rows


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
