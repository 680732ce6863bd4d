"""RBFRegressionRanker: grades by regression on Gaussian basis functions; the grade that is foreseen is the score."""

from __future__ import annotations

import secrets
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.formats.tensors import Tensors
from ..optim.rbf import Basis, Descent, closed_form
from ..preferences.queries import Queries
from .base import ByQueryRanker


class RBFRegressionRanker(ByQueryRanker):
    """Foresees grades as w·φ(x): φ_0 = 1 and Gaussians around centres of k-means (the LeToR regression report).

    n_basis : M, how many basis functions, φ_0 among them; fewer where there are fewer different rows.
    width : Σ is diagonal, the features' variances in training times this. 1 is the report's own setting, with which in
        many dimensions almost every φ vanishes; None is the number of features that vary. Best chosen on validation.
    alpha : the report's λ. solver : 'closed', w = (λI + ΦᵀΦ)⁻¹Φᵀt by QR and SVD, or 'sgd'.
    rate, max_iter : of SGD: a fixed rate, or 'decay' for 0.1/√(5i) at step i; so many rows, drawn with replacement.
    init : of SGD: start at 'zeros', or at 'random', standard normal weights drawn by random_state, as the report does.

    It is pointwise: qid is judged, but changes nothing; queries of one grade teach as well as others; sample_weight
    weighs a row's squared error. `rmse(X, y)` is the report's E_RMS; features with one value only are left out.

    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> RBFRegressionRanker(n_basis=5, alpha=0.0, random_state=0).fit(X, [1, 2, 1, 3]).predict(X).round(3).tolist()
    [1.0, 2.0, 1.0, 3.0]
    """

    _compares = False
    _told: ClassVar[tuple[str, ...]] = (*ByQueryRanker._told, "seed_", "rmse_")

    def __init__(
        self,
        n_basis: int = 50,
        width: float | None = None,
        alpha: float = 0.03,
        solver: str = "closed",
        rate: float | str = "decay",
        max_iter: int = 10_000,
        random_state: int | None = None,
        init: str = "zeros",
    ) -> None:
        self.n_basis = n_basis
        self.width = width
        self.alpha = alpha
        self.solver = solver
        self.rate = rate
        self.max_iter = max_iter
        self.random_state = random_state
        self.init = init

    def _learn(self, X: Any, queries: Queries) -> None:
        validation.count("n_basis", self.n_basis, low=1)
        validation.number("alpha", self.alpha, low=0)
        validation.choice("solver", self.solver, ("closed", "sgd"))
        validation.count("max_iter", self.max_iter, low=1)
        validation.choice("init", self.init, ("zeros", "random"))
        if self.rate != "decay":
            validation.number("rate", self.rate, low=0, open_low=True)
        self.seed_ = secrets.randbits(63) if self.random_state is None else validation.count("seed", self.random_state)
        X = X if isinstance(X, np.ndarray) else X.tocsr()
        grade, weight = queries.by_row(queries.grade), queries.by_row(queries.weight)
        width = 1.0 if self.width is None else validation.number("width", self.width, low=0, open_low=True)
        basis = Basis.of(X, weight, self.n_basis, width, self.seed_)
        if self.width is None:
            basis = basis.widened(max(len(basis.columns), 1))
        self.basis_ = basis
        if self.solver == "closed":
            self.coef_ = closed_form(basis, X, grade, weight, self.alpha)
        else:
            descent = Descent(basis, self.alpha, self.rate, self.seed_, self.init)
            self.coef_ = descent.go(X, grade, weight, self.max_iter)
            self.n_iter_ = self.max_iter
        self.rmse_ = float(np.sqrt(((self._scores(X) - grade) ** 2).mean()))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        X = X if isinstance(X, np.ndarray) else X.tocsr()
        return np.concatenate([phi @ self.coef_ for _, phi in self.basis_.blocks(X)])

    def rmse(self, X: Any, y: Any) -> float:
        """E_RMS = √(Σ (y - w·φ(x))² / N), without the penalty."""
        return float(np.sqrt(np.mean((self.predict(X) - np.asarray(y, dtype=np.float64)) ** 2)))

    def _arrays(self) -> dict[str, NDArray[Any]]:
        basis = self.basis_
        return {
            "coef": self.coef_,
            "columns": basis.columns,
            "spread": basis.spread,
            "middle_and_centres": np.vstack([basis.middle, basis.centres]).ravel(),
        }

    def _restore_arrays(self, file: Tensors) -> None:
        columns = file.array("columns", "int64")
        if len(columns) and not 0 <= columns.min() <= columns.max() < self.n_features_in_:
            raise ValueError("a feature that is not there")
        self.coef_ = file.array("coef", "float64")
        spread = file.array("spread", "float64", len(columns))
        if (spread <= 0).any():
            raise ValueError("a spread that is not positive")
        functions = len(self.coef_)
        if "centres" in file.arrays:  # a file of version 0.1, whose features were not centred
            centres = file.array("centres", "float64", (functions - 1) * len(columns))
            points = np.vstack([np.zeros(len(columns)), centres.reshape(functions - 1, len(columns))])
        else:
            points = file.array("middle_and_centres", "float64", functions * len(columns))
            points = points.reshape(functions, len(columns))
        self.basis_ = Basis(columns, spread, points[1:], points[0])
