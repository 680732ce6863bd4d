"""An inverted index with exact top-k search, and explanations of every score."""

from .explanation import Contribution, Explanation
from .hit import Hit
from .index import Index

__all__ = ["Contribution", "Explanation", "Hit", "Index"]
