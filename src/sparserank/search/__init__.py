"""Documents made ready for one ranker, searched exactly, and every score explained."""

from ..rankers.explanation import Contribution, Explanation
from .explain import explain
from .index import Hit, Index

__all__ = ["Contribution", "Explanation", "Hit", "Index", "explain"]
