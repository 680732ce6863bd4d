"""Documents made ready for one ranker, searched exactly, and every score explained."""

from .explanation import Contribution, Explanation
from .index import Hit, Index

__all__ = ["Contribution", "Explanation", "Hit", "Index"]
