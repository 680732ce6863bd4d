"""Algorithm 1 as far as Vowpal Wabbit can run it: one example per triple, quadratic features of q and Δ = d⁺ − d⁻.

The same in both: the triples and their order, the hinge with margin 1, the rate η_t = C/√t, λ, plain steps
(`--sgd` turns adaptive, normalized and importance-aware updates off), no constant, no linear features.

What Vowpal Wabbit cannot do (`DIFFERENCES`): its L1 penalty is a total that grows on steps that violate the margin
only, and weights are read through a threshold by that total, where Algorithm 1 shrinks W by λ·Σ η of every step, once
in T steps. A start other than one constant is not an option of its command line, so the identity comes in as each
example's base score q·Δ, which the penalty does not affect. Pairs of words share 2²⁷ hashed places.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIRST_T = 1e-6
"""Its rate is l·(t₀ / (t₀ + t))^p: with p = ½, a small t₀ and l = C/√t₀ that is C/√t."""
OPTIONS = (
    "--loss_function hinge -q qd --ignore_linear q --ignore_linear d --noconstant --sgd --power_t 0.5 "
    "--initial_t {t0} --learning_rate {rate} --l1 {alpha} -b 27 --quiet --no_stdin -d {data}"
)
SCORING = "-t -i {model} -d {data} -r {out} --quiet --no_stdin"
DIFFERENCES = (
    "Vowpal Wabbit has the same triples, margin, rates and λ; it adds to the threshold on violated steps only, reads "
    "weights through its total instead of shrinking them every T steps, never shrinks the identity, and hashes pairs"
)


def write(path: Path, X: Any, triples: Any) -> None:
    """One line a triple: label 1, importance 1, the base score q·Δ, then q and Δ."""
    with path.open("w") as file:
        for q, delta in _rows(X, triples):
            base = _dot(q, delta)
            file.write(f"1 1 {base:.6g} |q {_spelled(*q)} |d {_spelled(*delta)}\n")


def learn(data: Path, model: Path, alpha: float, eta0: float) -> float:
    """One pass over the file; the seconds it takes, without those of saving the model."""
    import vowpalwabbit

    rate, started = eta0 / np.sqrt(FIRST_T), perf_counter()
    workspace = vowpalwabbit.Workspace(OPTIONS.format(t0=FIRST_T, rate=rate, alpha=alpha, data=data))
    seconds = perf_counter() - started
    workspace.save(str(model))
    workspace.finish()
    return seconds


def margins(data: Path, model: Path) -> NDArray[np.float64]:
    """qᵀWΔ of every triple in the file."""
    import vowpalwabbit

    out = model.with_suffix(".raw")
    vowpalwabbit.Workspace(SCORING.format(model=model, data=data, out=out)).finish()
    return np.array([float(line.split()[0].rsplit(":", 1)[-1]) for line in out.read_text().splitlines() if line])


def _rows(X: Any, triples: Any) -> Iterator[tuple[tuple[Any, Any], tuple[Any, Any]]]:
    for q, b, w in zip(*triples, strict=True):
        left, right = X[[q]], X[[b]] - X[[w]]
        yield (left.indices, left.data), (right.indices, right.data)


def _dot(q: tuple[Any, Any], delta: tuple[Any, Any]) -> float:
    _, at, there = np.intersect1d(q[0], delta[0], assume_unique=True, return_indices=True)
    return float(np.dot(q[1][at].astype(np.float64), delta[1][there].astype(np.float64)))


def _spelled(columns: Any, values: Any) -> str:
    return " ".join(f"{i}:{v:.9g}" for i, v in zip(columns, values, strict=True))
