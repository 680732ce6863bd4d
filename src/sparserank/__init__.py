"""SparseRank learns to rank from raw words on a CPU and keeps what it learns sparse.

Public names are imported on first use, so `import sparserank` costs nothing: no numba, no scipy, no scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "AdaRank": "sparserank.rankers.adarank",
    "BilinearRanker": "sparserank.rankers.bilinear",
    "Constraints": "sparserank.rankers.pair_edits",
    "DominationRanker": "sparserank.rankers.domination",
    "PAMIR": "sparserank.rankers.pamir",
    "RBFRegressionRanker": "sparserank.rankers.rbf",
    "RankBoost": "sparserank.rankers.rankboost",
    "RankSVM": "sparserank.rankers.ranksvm",
    "Preferences": "sparserank.preferences",
    "SizePath": "sparserank.rankers.size_path",
    "TextRanker": "sparserank.engine",
    "diff": "sparserank.engine",
    "fewer_weights": "sparserank.solvers.fewer_weights",
    "load": "sparserank.engine",
    "size_path": "sparserank.rankers.size_path",
    "ranking_scorer": "sparserank.rankers.by_query",
    "evaluate": None,
    "data": None,
    "text": None,
    "measures": None,
    "preferences": None,
    "search": None,
}

__all__ = [
    "PAMIR",
    "AdaRank",
    "BilinearRanker",
    "Constraints",
    "DominationRanker",
    "Preferences",
    "RBFRegressionRanker",
    "RankBoost",
    "RankSVM",
    "SizePath",
    "TextRanker",
    "__version__",
    "data",
    "diff",
    "evaluate",
    "fewer_weights",
    "load",
    "measures",
    "preferences",
    "ranking_scorer",
    "search",
    "size_path",
    "text",
]

if TYPE_CHECKING:
    from . import data, evaluate, measures, preferences, search, text
    from .engine import TextRanker, diff, load
    from .preferences import Preferences
    from .rankers.adarank import AdaRank
    from .rankers.bilinear import BilinearRanker
    from .rankers.by_query import ranking_scorer
    from .rankers.domination import DominationRanker
    from .rankers.pair_edits import Constraints
    from .rankers.pamir import PAMIR
    from .rankers.rankboost import RankBoost
    from .rankers.ranksvm import RankSVM
    from .rankers.rbf import RBFRegressionRanker
    from .rankers.size_path import SizePath, size_path
    from .solvers.fewer_weights import fewer_weights


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sparserank' has no attribute {name!r}")
    home = _HOME[name]
    value = (
        importlib.import_module(f"sparserank.{name}") if home is None else getattr(importlib.import_module(home), name)
    )
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
