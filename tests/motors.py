"""Four documents and six judged queries whose words no document has: enough for a few pairs to be learned."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

import sparserank as sr
from sparserank.text_ranker import model_selection, training_data

DOCS = {"a": "car engine", "b": "boat engine", "c": "plum cake", "d": "boat and car"}
QUERIES = {str(i): text for i, text in enumerate(["motor", "motor power", "sweet", "sweet food", "vehicle", "ship"])}
QRELS = {"0": {"a": 1}, "1": {"a": 1}, "2": {"c": 1}, "3": {"c": 1}, "4": {"d": 1}, "5": {"b": 1}}


def learned_anyway(docs: Any, queries: Any, qrels: Any, **params: Any) -> sr.TextRanker:
    """A ranker with pairs, for tests of what is done with pairs: so few queries could not show that pairs help.

    Each query is a group of its own, and no test decides.
    """
    alone = patch.object(training_data, "query_groups", lambda tokens, *other: np.arange(tokens.shape[0]))
    with patch.multiple(model_selection, SIGNIFICANCE_LEVEL=1.0, PRUNED_LEVEL=1.0), alone:
        return sr.TextRanker(**params).fit(docs, queries, qrels)
