"""Solvers: one algorithm a file; each returns one frozen `Solution`."""

from .solution import Point, Solution
from .sparse_sgd import SparseSGD

__all__ = ["Point", "Solution", "SparseSGD"]
