"""Figures one can trust: runs, rows and classes measured, with intervals, comparisons and reports."""

from .classes import ClassEvaluation, bilinear_blocks, evaluate_classes
from .intervals import Estimate
from .report import Report
from .scoring import Comparison, Evaluation, compare, evaluate_rows, evaluate_run

__all__ = [
    "ClassEvaluation", "Comparison", "Estimate", "Evaluation", "Report", "bilinear_blocks", "compare",
    "evaluate_classes", "evaluate_rows", "evaluate_run",
]  # fmt: skip
