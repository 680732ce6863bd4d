"""RBFRegressionRanker: regression of grades on Gaussian basis functions; the predicted grade is the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.formats.tensors import Tensors
from ..optim.penalties import L2
from ..optim.rbf import Basis, BasisProblem, BasisRidge, BasisSGD, draw_weights
from ..preferences.queries import Queries
from .base import LetorRanker, as_rows, check_features, draw_seed


@dataclass(eq=False, repr=False)
class RBFRegressionRanker(LetorRanker):
    """Predicts grades as w·φ(x): φ_0 = 1 and Gaussians around centers of k-means (the LeToR regression report).

    It is pointwise: `qid` is validated but has no effect, queries of one grade count like others, and `sample_weight`
    weights a row's squared error. Features with a single value are left out.

    Parameters
    ----------
    n_basis : int, default=50
        The number M of basis functions, φ_0 included; fewer if there are fewer distinct rows.
    width : float, default=None
        Σ is diagonal: the features' training variances times this number. 1 is the report's setting, with which almost
        every φ vanishes in many dimensions. None means the number of features that vary.
    alpha : float, default=0.03
        Regularization strength, the report's λ.
    solver : {'closed', 'sgd'}, default='closed'
        w = (λI + ΦᵀΦ)⁻¹Φᵀt by QR and SVD, or stochastic gradient descent.
    rate : float or 'decay', default='decay'
        Learning rate of SGD; 'decay' is 0.1/√(5i) at step i.
    max_iter : int, default=10000
        Steps of SGD; each draws a row with replacement.
    random_state : int, default=None
        Seed of k-means and SGD.
    init : {'zeros', 'random'}, default='zeros'
        Start of SGD; 'random' draws standard normal weights, as the report does.

    Attributes
    ----------
    coef_ : ndarray
        Weights of the basis functions.
    rmse_ : float
        The root mean squared error on the training rows.

    Examples
    --------
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> RBFRegressionRanker(n_basis=5, alpha=0.0, random_state=0).fit(X, [1, 2, 1, 3]).predict(X).round(3).tolist()
    [1.0, 2.0, 1.0, 3.0]
    """

    _requires_pairs = False
    _saved_attributes: ClassVar[tuple[str, ...]] = (*LetorRanker._saved_attributes, "seed_", "rmse_")

    n_basis: int = 50
    width: float | None = None
    alpha: float = 0.03
    solver: str = "closed"
    rate: float | str = "decay"
    max_iter: int = 10_000
    random_state: int | None = None
    init: str = "zeros"

    def _train(self, X: Any, queries: Queries) -> None:
        validation.count("n_basis", self.n_basis, low=1)
        validation.number("alpha", self.alpha, low=0)
        validation.choice("solver", self.solver, ("closed", "sgd"))
        validation.count("max_iter", self.max_iter, low=1)
        validation.choice("init", self.init, ("zeros", "random"))
        if self.rate != "decay":
            validation.number("rate", self.rate, low=0, open_low=True)
        self.seed_ = draw_seed(self.random_state)
        X = as_rows(X)
        grade, weight = queries.by_row(queries.grade), queries.by_row(queries.weight)
        width = 1.0 if self.width is None else validation.number("width", self.width, low=0, open_low=True)
        basis = Basis.of(X, weight, self.n_basis, width, self.seed_)
        if self.width is None:
            basis = basis.widened(max(len(basis.columns), 1))
        self.basis_ = basis
        problem, penalty = BasisProblem(basis, X, grade, weight), L2(self.alpha)
        if self.solver == "closed":
            self.coef_ = BasisRidge().solve(problem, penalty).weights
        else:
            init = draw_weights(basis, self.seed_) if self.init == "random" else None
            solver = BasisSGD(self.rate, self.max_iter, self.seed_)
            self.coef_, self.n_iter_ = solver.solve(problem, penalty, init).weights, self.max_iter
        self.rmse_ = float(np.sqrt(((self._scores(X) - grade) ** 2).mean()))

    def _scores(self, X: Any) -> NDArray[np.float64]:
        return np.concatenate([phi @ self.coef_ for _, phi in self.basis_.blocks(as_rows(X))])

    def rmse(self, X: Any, y: Any) -> float:
        """Return the report's E_RMS = √(Σ (y - w·φ(x))² / N), without the penalty.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Feature vectors.
        y : array-like of shape (n_rows,)
            Grades.

        Returns
        -------
        float
        """
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
        check_features(columns, self.n_features_in_)
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
