"""The LeToR regression report: E_RMS of Gaussian basis functions on MQ2007, closed form and SGD, figure by figure.

Every curve is shown for training, validation and test rows, beside the E_RMS of the constant predictor. The figures use
the report's settings (`width` 1) and also the width that is best on validation rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data import load
from ..optim.penalties import L2
from ..optim.rbf import Basis, BasisProblem, BasisRidge, Descent, draw_weights
from .report import Section
from .runner import Column, Progress, note, table_of

TITLE = "LeToR: learning to rank by linear regression (the MQ2007 report)"
LAMBDAS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
FUNCTIONS = (5, 10, 15, 20, 30, 50, 75, 100)
RATES = tuple(round(0.01 * i, 2) for i in range(1, 11))
WIDTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
ITERATIONS = (1, 2, 3, 5, 7, 10, 20, 30, 50, 70, 100, 150, 200, 300, 400, 500, 600, 700, 800, 900, 1000)
FEW_FUNCTIONS, MANY_FUNCTIONS = 15, 100
SGD_STEPS, SGD_RATE, SGD_LAMBDA, CLOSED_LAMBDA = 400, 0.01, 5.0, 0.03
"""The report's settings of SGD, and λ of its closed form in Figure 2."""
LONG_STEPS = 200_000
RIDGES = (0.0, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""λ of the linear predictor: as many values as there are widths, so every predictor chooses among as many settings."""
REPORT = {"closed_lambda": 0.62713, "sgd_lambda": 0.63546, "closed_functions": 0.61861, "sgd_functions": 0.63024}
"""The lowest E_RMS that the report gives for Figures 1 and 2; it gives neither its split nor its constant."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RegressionData:
    """Rows in three splits, and the basis functions for each number of functions, fitted on training rows once."""

    X: Any
    y: Floats
    rows: Mapping[str, NDArray[np.int64]]
    seed: int

    @classmethod
    def split(cls, X: Any, y: Floats, order: NDArray[np.int64], seed: int) -> RegressionData:
        """Take 80, 10 and 10 % of the rows, in this order."""
        parts = np.split(order, [int(0.8 * len(y)), int(0.9 * len(y))])
        return cls(X, y, dict(zip(("train", "validation", "test"), parts, strict=True)), seed)

    @cached_property
    def _bases(self) -> dict[int, Basis]:
        return {}

    @property
    def training(self) -> tuple[Any, Floats, Floats]:
        """X, y and weights of the training rows."""
        rows = self.rows["train"]
        return self.X[rows], self.y[rows], np.ones(len(rows))

    def basis(self, functions: int, width: float) -> Basis:
        """The centres depend on the number of functions alone; the width only scales Σ."""
        if functions not in self._bases:
            X, _, weight = self.training
            self._bases[functions] = Basis.of(X, weight, functions, 1.0, self.seed)
        return self._bases[functions].widened(width)

    def rmse(self, predict: Callable[[Any], Floats]) -> dict[str, float]:
        """E_RMS of each split."""
        return {
            split: float(np.sqrt(np.mean((self.y[rows] - predict(self.X[rows])) ** 2)))
            for split, rows in self.rows.items()
        }

    def constant_rmse(self) -> dict[str, float]:
        """E_RMS of the mean of the training rows."""
        mean = float(self.y[self.rows["train"]].mean())
        return self.rmse(lambda X: np.full(len(X), mean))

    def _rmse_of_weights(self, basis: Basis, w: Floats) -> dict[str, float]:
        return self.rmse(lambda X: np.concatenate([phi @ w for _, phi in basis.blocks(X)]))

    def closed_form(self, functions: int, width: float, alpha: float) -> dict[str, float]:
        """E_RMS of the closed form."""
        basis = self.basis(functions, width)
        return self._rmse_of_weights(basis, BasisRidge().solve(BasisProblem(basis, *self.training), L2(alpha)).weights)

    def sgd(
        self, functions: int, width: float, alpha: float, rate: float | str, steps: Sequence[int], init: str = "random"
    ) -> list[dict[str, float]]:
        """E_RMS of SGD after each of these numbers of steps."""
        basis = self.basis(functions, width)
        start = draw_weights(basis, self.seed) if init == "random" else None
        descent = Descent(BasisProblem(basis, *self.training), alpha, rate, self.seed, start)
        return [self._rmse_of_weights(basis, descent.advance(n - descent.steps)) for n in steps]


def reproduce(
    *, seed: int = 0, rows: int | None = None, progress: Progress = lambda message: None, letor: Any = None
) -> dict[str, Any]:
    """Reproduce all figures as plain numbers for JSON.

    seed : of the split, of k-means and of SGD. rows : the size of a sample, for a quick look. letor : other rows than
    MQ2007. progress : called with a line of text at every phase.
    """
    validation.count("seed", seed)
    progress("mq2007: reading")
    letor = load("mq2007") if letor is None else letor
    sample = np.arange(len(letor))
    if rows is not None and rows < len(sample):
        size = validation.count("rows", rows, low=10)
        sample = np.sort(np.random.default_rng(seed).choice(sample, size, replace=False))
    X, y = letor.X[sample].toarray(), letor.y[sample]
    data = RegressionData.split(X, y, np.random.default_rng(seed).permutation(len(y)), seed)
    progress(f"width: closed form, M = {MANY_FUNCTIONS}")
    widths = {width: data.closed_form(MANY_FUNCTIONS, width, CLOSED_LAMBDA) for width in WIDTHS}
    closed = {"functions": MANY_FUNCTIONS, "lambda": CLOSED_LAMBDA} | _best_on_validation(widths, "width")
    progress("linear predictor")
    result = {
        "paper": "letor-regression",
        "dataset": "mq2007",
        "rows": {split: len(numbers) for split, numbers in data.rows.items()},
        "seed": seed,
        "constant": data.constant_rmse(),
        "linear": _linear(data),
        "width": closed["width"],
        "figures": _figures(data, closed["width"], progress)
        | {"width": _curves("width", WIDTHS, {"closed form": list(widths.values())})},
    }
    progress("rows in file order")
    in_file_order = _rmse_in_file_order(data)
    return result | {
        "best": {"closed form": closed, "SGD": _best_sgd(data, progress)},
        "report": REPORT,
        "differs": _differences(len(letor), rows, seed, in_file_order),
        "in_file_order": in_file_order,
    }


def _linear(data: RegressionData) -> dict[str, Any]:
    """Ridge regression on the features with an unpenalized constant; λ is chosen on validation rows."""
    X, y, _ = data.training
    mean, middle = X.mean(axis=0), y.mean()
    U, s, Vt = np.linalg.svd(X - mean, full_matrices=False)
    target = U.T @ (y - middle)
    nonzero = s > s[0] * 1e-10

    def rmse(alpha: float) -> dict[str, float]:
        w = Vt[nonzero].T @ (s[nonzero] / (s[nonzero] ** 2 + alpha) * target[nonzero])
        return data.rmse(lambda X: middle + (X - mean) @ w)

    return _best_on_validation({alpha: rmse(alpha) for alpha in RIDGES}, "lambda")


def _best_on_validation(errors: Mapping[float, dict[str, float]], name: str) -> dict[str, Any]:
    """The setting with the least validation error, its errors, and the number of settings."""
    best = min(errors, key=lambda value: errors[value]["validation"])
    return {name: best, "settings_tried": len(errors)} | errors[best]


def _figures(data: RegressionData, best_width: float, progress: Progress) -> dict[str, Any]:
    """Figures 1 to 4; every curve at the report's width and at the best width."""
    widths = {"": 1.0, f", width {best_width:g}": best_width}

    def sgd(functions: int, width: float, alpha: float, rate: float) -> dict[str, float]:
        return data.sgd(functions, width, alpha, rate, [SGD_STEPS])[0]

    few = FEW_FUNCTIONS
    figures: dict[str, tuple[str, Sequence[float], dict[str, Callable[[float], list[dict[str, float]]]]]] = {
        "1": ("λ", LAMBDAS, {
            "closed form": lambda width: [data.closed_form(few, width, alpha) for alpha in LAMBDAS],
            "SGD": lambda width: [sgd(few, width, alpha, SGD_RATE) for alpha in LAMBDAS],
        }),
        "2": ("M", FUNCTIONS, {
            "closed form": lambda width: [data.closed_form(m, width, CLOSED_LAMBDA) for m in FUNCTIONS],
            "SGD": lambda width: [sgd(m, width, SGD_LAMBDA, SGD_RATE) for m in FUNCTIONS],
        }),
        "3": ("η", RATES, {"SGD": lambda width: [sgd(few, width, SGD_LAMBDA, rate) for rate in RATES]}),
        "4": ("iterations", ITERATIONS, {
            "SGD": lambda width: data.sgd(few, width, SGD_LAMBDA, "decay", ITERATIONS),
        }),
    }  # fmt: skip
    out = {}
    for name, (x, values, methods) in figures.items():
        progress(f"figure {name}: {x}")
        lines = ((f"{method}{label}", fit(width)) for label, width in widths.items() for method, fit in methods.items())
        out[name] = _curves(x, values, dict(lines))
    return out


def _curves(x: str, values: Sequence[float], curves: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """{"x": …, "values": […], "curves": {method: {"train": […], "validation": […], "test": […]}}}"""
    by_split = {
        method: {split: [point[split] for point in points] for split in points[0]} for method, points in curves.items()
    }
    return {"x": x, "values": list(values), "curves": by_split}


def _best_sgd(data: RegressionData, progress: Progress) -> dict[str, Any]:
    """SGD with many steps, λ of the closed form divided by the number of rows, and the best width."""
    alpha = CLOSED_LAMBDA / len(data.rows["train"])
    errors = {}
    for width in WIDTHS:
        progress(f"best: SGD, width {width:g}, {LONG_STEPS:,} steps")
        errors[width] = data.sgd(MANY_FUNCTIONS, width, alpha, "decay", [LONG_STEPS], "zeros")[0]
    common = {"functions": MANY_FUNCTIONS, "lambda": alpha, "rate": "0.1/√(5i)", "steps": LONG_STEPS, "init": "zeros"}
    return common | _best_on_validation(errors, "width")


def _rmse_in_file_order(data: RegressionData) -> dict[str, float]:
    """E_RMS on the last tenth of the rows in file order, after training on the first eight tenths."""
    ordered = RegressionData.split(data.X, data.y, np.arange(len(data.y)), data.seed)
    widths = (1.0, 100.0)
    return {"constant": ordered.constant_rmse()["test"]} | {
        f"width {width:g}": ordered.closed_form(MANY_FUNCTIONS, width, CLOSED_LAMBDA)["test"] for width in widths
    }


def _differences(n: int, rows: int | None, seed: int, in_file_order: Mapping[str, float]) -> str:
    sample = "" if rows is None else f" Only a sample of {rows:,} rows is used."
    errors = ", ".join(f"{name} {value:.3f}" for name, value in in_file_order.items())
    return note("letor", "differences", n=n, seed=seed, sample=sample, in_file_order=errors, settings=len(WIDTHS))


def sections(result: Mapping[str, Any]) -> list[Section]:
    """A table of the best predictors, and the figures, as sections of a report."""
    from .plots import rmse_curves

    linear = result["linear"]
    predictors = {"constant": result["constant"], f"linear, λ = {linear['lambda']:g}": linear} | {
        f"{name}, M = {best['functions']}, width {best['width']:g}": best for name, best in result["best"].items()
    }
    rows = [{"predictor": name, "settings_tried": 1} | best for name, best in predictors.items()]
    splits: tuple[Column, ...] = (
        ("training", "train", ".4f"), ("validation", "validation", ".4f"), ("test", "test", ".4f"),
    )  # fmt: skip
    columns = ("predictor", "predictor", ""), *splits, ("settings tried", "settings_tried", "")
    settings: dict[str, Any] = {"few": FEW_FUNCTIONS, "many": MANY_FUNCTIONS, "rate": SGD_RATE, "steps": SGD_STEPS}
    settings |= {"closed_lambda": CLOSED_LAMBDA, "sgd_lambda": SGD_LAMBDA}
    out = [Section("E_RMS", table_of(rows, *columns))]
    for name, figure in result["figures"].items():
        remark = note("letor", f"figure_{name}", **settings)
        picture = f"figure-{name}.png", rmse_curves(figure, result["constant"], remark)
        heading = f"Figure {name}" if name.isdigit() else "Width"
        out.append(Section(heading, None, f"{remark} Dashed: the constant predictor.", picture))
    return out
