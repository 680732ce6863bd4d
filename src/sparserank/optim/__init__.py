"""Losses, penalties, problems and solvers; every solver returns one frozen `Solution`."""

from . import losses, penalties
from .solver import CurvePoint, Solution
from .sparse_sgd import SparseSGD

__all__ = ["CurvePoint", "Solution", "SparseSGD", "losses", "penalties"]
