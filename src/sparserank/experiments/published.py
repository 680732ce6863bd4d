"""Figures that the papers print (`published.toml`), under the names that this package uses.

Chen et al. (2010): Tables I, II and III. Stevens et al. (2010): Tables 1.1, 1.2 and 1.3.
"""

from __future__ import annotations

from typing import NamedTuple

from .runner import read_toml


class DatasetSize(NamedTuple):
    """A column of Chen's Table I."""

    training_samples: int
    test_samples: int
    classes: int
    dictionary_size: int
    free_parameters: int


class MethodResult(NamedTuple):
    """A row of Chen's Table II; megabytes are those of W."""

    map: float
    error: float
    megabytes: float


class TopicResult(NamedTuple):
    """A column of Stevens' Table 1.2 or 1.3; None is a missing figure."""

    average_precision: float | None
    precision_10: float | None
    domination_error: float | None
    pair_error: float | None
    zero_percent: float | None


_TABLES = read_toml("published.toml")
TABLE_I = {name: DatasetSize(*sizes) for name, sizes in _TABLES["table_1"].items()}
TABLE_II = {
    dataset: {method: MethodResult(*figures) for method, figures in rows.items()}
    for dataset, rows in _TABLES["table_2"].items()
}
TABLE_III, SLIDES, TABLE_1_1 = (
    {name: tuple(cells) for name, cells in _TABLES[table].items()} for table in ("table_3", "slides", "table_1_1")
)
"""SLIDES: the authors' slides show one query word that Table III does not have, with four words."""
TABLE_1_2, TABLE_1_3 = (
    {method: TopicResult(*figures) for method, figures in _TABLES[table].items()}
    for table in ("table_1_2", "table_1_3")
)
NOT_PRINTED = TopicResult(None, None, None, None, None)

MISPRINTS = {("mnist", "Diagonal"): "The paper's error .318 repeats its figure for 20 Newsgroups: a misprint."}
OTHER_SPLIT = "The paper's numbers are those of another split."
TABLE_1_1_METHODS = {
    "Domination (multi-valued)": "domination",
    "Domination (base)": "domination-base",
    "Domination (margin)": "domination-margin",
    "AdaRank-NDCG": "adarank-ndcg",
    "AdaRank-MAP": "adarank",
    "RankBoost": "rankboost",
    "RankSVM": "ranksvm",
}
"""The six methods of Table 1.1, then RankSVM, which the paper omits; with their names in this package."""
