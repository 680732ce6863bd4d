"""Past one machine: the same features, preferences, rankers and top-k over the partitions of Apache Spark.

What is trained here is the ordinary local object, so it is saved, loaded and searched as any other. Names other than
`session` are imported on first use; all need the extra `spark`.
"""

from __future__ import annotations

import importlib
from typing import Any

from .session import session

_HOME = {
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

__all__ = [
    "SparkBilinearRanker",
    "SparkDominationRanker",
    "SparkTextFeatures",
    "SparkTextRanker",
    "click_grades",
    "click_preferences",
    "click_sessions",
    "fit_features",
    "read_clicks",
    "score_topk",
    "session",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sparserank.spark' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"sparserank.spark.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
