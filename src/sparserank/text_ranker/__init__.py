"""Text in, search out: TextRanker, its files, and how it learns word pairs."""

from ..base.registry import load
from .persistence import load_model, load_pairs, load_text
from .ranker import TextRanker, diff, index_path

__all__ = ["TextRanker", "diff", "index_path", "load", "load_model", "load_pairs", "load_text"]
