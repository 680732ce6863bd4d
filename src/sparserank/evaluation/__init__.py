"""Measures of rankings with confidence intervals, paired tests and reports."""

from .comparison import Comparison, PairedRuns, WorseQuery, compare, compare_runs, not_worse
from .labels import ClassEvaluation, bilinear_blocks, evaluate_classes
from .report import Report
from .reverses import Reverses
from .runs import Evaluation, evaluate_rows, evaluate_run
from .significance import Estimate

__all__ = [
    "ClassEvaluation", "Comparison", "Estimate", "Evaluation", "PairedRuns", "Report", "Reverses", "WorseQuery",
    "bilinear_blocks", "compare", "compare_runs", "evaluate_classes", "evaluate_rows", "evaluate_run", "not_worse",
]  # fmt: skip
