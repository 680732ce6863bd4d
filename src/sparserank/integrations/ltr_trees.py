"""Regression trees of LightGBM and XGBoost in one form: that of XGBoost's JSON dump, with thresholds of 32 bits.

A split goes to its first child if `value < split_condition`, in 32 bits, and to the second otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tree = dict[str, Any]
Floats = NDArray[np.float32]


def float_above(threshold: float) -> float:
    """Return the smallest 32-bit number above a threshold: x <= threshold exactly if x is below it.

    >>> float_above(0.5) > 0.5, float_above(0.1) == float(np.float32(0.1))
    (True, True)
    """
    nearest = np.float32(threshold)
    return float(nearest if float(nearest) > threshold else np.nextafter(nearest, np.float32(np.inf)))


def xgboost_trees(booster: Any) -> list[Tree]:
    """Return the trees of an XGBoost booster."""
    return [json.loads(tree) for tree in booster.get_dump(dump_format="json")]


def lightgbm_trees(booster: Any) -> list[Tree]:
    """Return the trees of a LightGBM booster that was trained without missing values and categories."""
    dump = booster.dump_model()
    names = dump["feature_names"]
    return [_lightgbm_node(tree["tree_structure"], names, [0], 0) for tree in dump["tree_info"]]


def _lightgbm_node(node: dict[str, Any], names: Sequence[str], counter: list[int], depth: int) -> Tree:
    number = counter[0]
    counter[0] += 1
    if "leaf_value" in node:
        return {"nodeid": number, "leaf": node["leaf_value"]}
    children = [_lightgbm_node(node[side], names, counter, depth + 1) for side in ("left_child", "right_child")]
    yes, no = (child["nodeid"] for child in children)
    return {
        "nodeid": number, "depth": depth, "split": names[node["split_feature"]],
        "split_condition": float_above(node["threshold"]), "yes": yes, "no": no, "missing": yes, "children": children,
    }  # fmt: skip


def evaluate_trees(trees: Sequence[Tree], names: Sequence[str], X: Floats) -> Floats:
    """Return the sum of the leaves that each row reaches.

    >>> tree = {"split": "a", "split_condition": 0.5, "children": [{"leaf": 1.0}, {"leaf": 2.0}]}
    >>> evaluate_trees([tree, {"leaf": 0.5}], ["a"], np.array([[0.0], [0.5]], np.float32))
    array([1.5, 2.5], dtype=float32)
    """
    column = {name: number for number, name in enumerate(names)}
    total = np.zeros(len(X))
    for tree in trees:
        _add(tree, column, X, np.arange(len(X)), total)
    return total.astype(np.float32)


def _add(node: Tree, column: dict[str, int], X: Floats, rows: NDArray[np.intp], total: NDArray[np.float64]) -> None:
    if "leaf" in node:
        total[rows] += node["leaf"]
    elif len(rows):
        is_below = X[rows, column[node["split"]]] < np.float32(node["split_condition"])
        for child, part in zip(node["children"], (is_below, ~is_below), strict=True):
            _add(child, column, X, rows[part], total)


def smallest_sum(trees: Sequence[Tree]) -> float:
    """Return a lower bound on the score: the sum of the smallest leaf of each tree."""
    return sum(min(_leaves(tree)) for tree in trees)


def _leaves(node: Tree) -> list[float]:
    return [node["leaf"]] if "leaf" in node else [leaf for child in node["children"] for leaf in _leaves(child)]
