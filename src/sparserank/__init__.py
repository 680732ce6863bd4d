"""SparseRank learns to rank from raw words on a CPU and keeps what it learns sparse.

Public names are imported on first use, so `import sparserank` costs nothing: no numba, no scipy, no scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import deprecated as _deprecated

__version__ = "0.2.0"
_deprecated.install()

_HOME = {
    "AdaRank": "sparserank.letor.adarank",
    "Analyzer": "sparserank.text",
    "BM25": "sparserank.text_ranker.lexical",
    "BilinearRanker": "sparserank.bilinear.ranker",
    "Constraints": "sparserank.text_ranker.constraints",
    "Cosine": "sparserank.text_ranker.lexical",
    "DominationRanker": "sparserank.letor.domination",
    "LabelRanker": "sparserank.bilinear.label_ranker",
    "PAMIR": "sparserank.letor.pamir",
    "RBFRegressionRanker": "sparserank.letor.rbf",
    "RankBoost": "sparserank.letor.rankboost",
    "RankSVM": "sparserank.letor.ranksvm",
    "Preferences": "sparserank.preferences",
    "SizePath": "sparserank.bilinear.size_path",
    "TextRanker": "sparserank.text_ranker",
    "diff": "sparserank.text_ranker",
    "load": "sparserank.base.registry",
    "losses": "sparserank.optim",
    "penalties": "sparserank.optim",
    "prune_features": "sparserank.optim.feature_pruning",
    "size_path": "sparserank.bilinear.size_path",
    "ranking_scorer": "sparserank.letor.base",
    "evaluation": None,
    "data": None,
    "text": None,
    "preferences": None,
    "search": None,
}

__all__ = [
    "BM25",
    "PAMIR",
    "AdaRank",
    "Analyzer",
    "BilinearRanker",
    "Constraints",
    "Cosine",
    "DominationRanker",
    "LabelRanker",
    "Preferences",
    "RBFRegressionRanker",
    "RankBoost",
    "RankSVM",
    "SizePath",
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
    from .text_ranker import BM25, Constraints, Cosine, TextRanker, diff

_find_old_name = _deprecated.renamed_names(
    __name__, {"fewer_weights": "sparserank.optim.feature_pruning:prune_features"}
)


def __getattr__(name: str) -> Any:
    if name not in _HOME and _deprecated.new_module(old := f"sparserank.{name}"):
        return importlib.import_module(old)
    if name not in _HOME:
        return _find_old_name(name)
    home = _HOME[name]
    value = (
        importlib.import_module(f"sparserank.{name}") if home is None else getattr(importlib.import_module(home), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
