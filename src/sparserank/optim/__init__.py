"""Solvers: one algorithm a file; each returns one frozen `Solution`."""

from .solver import CurvePoint, Solution
from .sparse_sgd import SparseSGD

__all__ = ["CurvePoint", "Solution", "SparseSGD"]
