"""TextRanker: a lexical score, word pairs learned from judged queries, search and model files."""

from ..base.registry import load
from .constraints import Constraints
from .dense import Dense
from .lexical import BM25, Cosine
from .pair_editor import diff
from .persistence import load_model, load_pairs, load_text
from .ranker import TextRanker, index_path
from .synonyms import Synonyms

__all__ = [
    "BM25",
    "Constraints",
    "Cosine",
    "Dense",
    "Synonyms",
    "TextRanker",
    "diff",
    "index_path",
    "load",
    "load_model",
    "load_pairs",
    "load_text",
]
