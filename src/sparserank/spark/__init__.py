"""The same features, preferences, rankers and top-k search over the partitions of Apache Spark.

Training returns the ordinary local object, which is saved, loaded and searched like any other. All names need the extra
`spark`.
"""

from __future__ import annotations

import importlib
from typing import Any

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
}

__all__ = ["session", *_MODULES]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'sparserank.spark' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"sparserank.spark.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
