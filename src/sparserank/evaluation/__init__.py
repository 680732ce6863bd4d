"""Figures one can trust: runs, rows and classes measured, with intervals, comparisons and reports."""

from .intervals import Estimate
from .labels import ClassEvaluation, bilinear_blocks, evaluate_classes
from .paired import PairedRuns, WorseQuery, compare_runs, not_worse
from .report import Report
from .reverses import Reverses
from .runs import Comparison, Evaluation, compare, evaluate_rows, evaluate_run

__all__ = [
    "ClassEvaluation", "Comparison", "Estimate", "Evaluation", "PairedRuns", "Report", "Reverses", "WorseQuery",
    "bilinear_blocks", "compare", "compare_runs", "evaluate_classes", "evaluate_rows", "evaluate_run", "not_worse",
]  # fmt: skip
