"""Documents made ready for one ranker, searched exactly, and every score explained."""

from .explain import Contribution, Explanation, explain
from .index import Hit, Index

__all__ = ["Contribution", "Explanation", "Hit", "Index", "explain"]
