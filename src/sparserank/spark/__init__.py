"""Features, click logs, rankers and top-k search on Apache Spark.

Training returns the ordinary local object, which is saved, loaded and searched like any other. All names need the extra
`spark`.
"""

from __future__ import annotations

from ..lazy import lazy_names
from .session import session

_MODULES = {
    "Shard": "shards",
    "SparkBilinearRanker": "bilinear",
    "SparkDominationRanker": "domination",
    "SparkTextFeatures": "features",
    "SparkTextRanker": "text",
    "click_grades": "clicks",
    "click_preferences": "clicks",
    "click_sessions": "clicks",
    "read_clicks": "clicks",
    "fit_features": "features",
    "score_topk": "scoring",
    "write_index": "index",
}

__all__ = ["session", *_MODULES]
__getattr__, __dir__ = lazy_names(__name__, _MODULES)
