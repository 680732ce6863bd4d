"""SparseRank learns to rank from raw words on a CPU and keeps what it learns sparse.

Public names are imported on first use, so `import sparserank` costs nothing: no numba, no scipy, no scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import deprecated as _deprecated
from .lazy import lazy_names as _lazy_names

__version__ = "0.2.0"
_deprecated.install()

_MODULES = {
    "AdaRank": "letor.adarank",
    "Analyzer": "text",
    "BM25": "text_ranker.lexical",
    "BilinearRanker": "bilinear.ranker",
    "Constraints": "text_ranker.constraints",
    "Cosine": "text_ranker.lexical",
    "Dense": "text_ranker.dense",
    "DominationRanker": "letor.domination",
    "LabelRanker": "bilinear.label_ranker",
    "PAMIR": "letor.pamir",
    "RBFRegressionRanker": "letor.rbf",
    "RankBoost": "letor.rankboost",
    "RankSVM": "letor.ranksvm",
    "Preferences": "preferences",
    "SizePath": "bilinear.size_path",
    "Synonyms": "text_ranker.synonyms",
    "TextRanker": "text_ranker",
    "diff": "text_ranker",
    "load": "base.registry",
    "losses": "optim",
    "penalties": "optim",
    "prune_features": "optim.feature_pruning",
    "size_path": "bilinear.size_path",
    "ranking_scorer": "letor.base",
    "evaluation": "",
    "data": "",
    "text": "",
    "preferences": "",
    "search": "",
}

__all__ = [
    "BM25",
    "PAMIR",
    "AdaRank",
    "Analyzer",
    "BilinearRanker",
    "Constraints",
    "Cosine",
    "Dense",
    "DominationRanker",
    "LabelRanker",
    "Preferences",
    "RBFRegressionRanker",
    "RankBoost",
    "RankSVM",
    "SizePath",
    "Synonyms",
    "TextRanker",
    "__version__",
    "data",
    "diff",
    "evaluation",
    "load",
    "losses",
    "penalties",
    "preferences",
    "prune_features",
    "ranking_scorer",
    "search",
    "size_path",
    "text",
]

if TYPE_CHECKING:
    from . import data, evaluation, preferences, search, text
    from .base.registry import load
    from .bilinear.label_ranker import LabelRanker
    from .bilinear.ranker import BilinearRanker
    from .bilinear.size_path import SizePath, size_path
    from .letor.adarank import AdaRank
    from .letor.base import ranking_scorer
    from .letor.domination import DominationRanker
    from .letor.pamir import PAMIR
    from .letor.rankboost import RankBoost
    from .letor.ranksvm import RankSVM
    from .letor.rbf import RBFRegressionRanker
    from .optim import losses, penalties
    from .optim.feature_pruning import prune_features
    from .preferences import Preferences
    from .text import Analyzer
    from .text_ranker import BM25, Constraints, Cosine, Dense, Synonyms, TextRanker, diff

_find_old_name = _deprecated.renamed_names(
    __name__, {"fewer_weights": "sparserank.optim.feature_pruning:prune_features"}
)


def _find_other(name: str) -> Any:
    old = f"sparserank.{name}"
    return importlib.import_module(old) if _deprecated.new_module(old) else _find_old_name(name)


__getattr__, __dir__ = _lazy_names(__name__, _MODULES, _find_other)
