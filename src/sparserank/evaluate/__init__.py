"""Figures one can trust: runs, rows and classes measured, with intervals, comparisons and reports."""

from .classes import ClassEvaluation, bilinear_blocks, evaluate_classes
from .intervals import Estimate
from .paired import PairedRuns, WorseQuery, compare_runs, not_worse
from .report import Report
from .reverses import Reverses
from .scoring import Comparison, Evaluation, compare, evaluate_rows, evaluate_run

__all__ = [
    "ClassEvaluation", "Comparison", "Estimate", "Evaluation", "PairedRuns", "Report", "Reverses", "WorseQuery",
    "bilinear_blocks", "compare", "compare_runs", "evaluate_classes", "evaluate_rows", "evaluate_run", "not_worse",
]  # fmt: skip
