"""Linear algebra that several solvers share: the conjugate gradient method, and sums that give the same bits always."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Vector = TypeVar("Vector", bound=NDArray[Any])


def conjugate_gradient(
    matvec: Callable[[Vector], Any],
    b: Vector,
    x: Vector,
    preconditioner: Callable[[Vector], Any] | None = None,
    max_iter: int = 100,
    tol: float = 0.0,
) -> tuple[Vector, bool]:
    """Solve A x = b, A symmetric positive definite, by the preconditioned conjugate gradient method.

    b and x may be matrices: each column is then a system of its own. Vectors keep their dtype; inner products are
    summed in float64 without BLAS, so that the number of threads changes no bit.

    Parameters
    ----------
    matvec : callable
        matvec(v) = A v.
    b : ndarray
        The right-hand side.
    x : ndarray of the shape of b
        Where to start. It is not changed.
    preconditioner : callable, default=None
        preconditioner(r) ≈ A⁻¹ r. None leaves r as it is.
    max_iter : int, default=100
        The most steps.
    tol : float, default=0.0
        Stop once ‖r‖ ≤ tol · max(‖b‖, ‖r₀‖) for every system.

    Returns
    -------
    x : ndarray
        The solution.
    converged : bool
        Whether the tolerance was reached.

    Examples
    --------
    >>> A = np.array([[2.0, 1.0], [1.0, 3.0]])
    >>> x, converged = conjugate_gradient(lambda v: A @ v, np.array([3.0, 4.0]), np.zeros(2), tol=1e-10)
    >>> x.round(6).tolist(), converged
    ([1.0, 1.0], True)
    """
    r: Any = b - matvec(x)
    threshold = tol**2 * np.maximum(dot(b, b), dot(r, r))
    z = r if preconditioner is None else preconditioner(r)
    p, rz = z, dot(r, z)
    for _ in range(max_iter):
        if np.all(dot(r, r) <= threshold):
            break
        Ap = matvec(p)
        alpha = _ratio(rz, dot(p, Ap), x.dtype)
        x = x + alpha * p
        r = r - alpha * Ap
        z = r if preconditioner is None else preconditioner(r)
        rz, rz_before = dot(r, z), rz
        p = z + _ratio(rz, rz_before, x.dtype) * p
    return x, bool(np.all(dot(r, r) <= threshold))


def dot(a: NDArray[Any], b: NDArray[Any]) -> Any:
    """a · b, column by column, summed in float64 without BLAS."""
    return np.sum(np.multiply(a, b, dtype=np.float64), axis=0)


def _ratio(a: Any, b: Any, dtype: Any) -> NDArray[Any]:
    """a / b, and 0 for a system that is solved already."""
    return np.asarray(np.divide(a, b, out=np.zeros_like(a), where=b > 0.0), dtype=dtype)
