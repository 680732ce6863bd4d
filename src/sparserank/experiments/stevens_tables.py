"""What Stevens, Bengio and Singer printed."""

from __future__ import annotations

from typing import NamedTuple

METHODS = {
    "Domination (multi-valued)": "domination",
    "Domination (base)": "domination-base",
    "Domination (margin)": "domination-margin",
    "AdaRank-NDCG": "adarank-ndcg",
    "AdaRank-MAP": "adarank",
    "RankBoost": "rankboost",
    "RankSVM": "ranksvm",
}
"""The methods of Table 1.1 (and RankSVM, which the paper left out of it), and the names they have here."""

TABLE_1_1 = {
    "nDCG-letor4@10": (3.62, 3.38, 2.75, 4.12, 3.62, 3.38),
    "P@10": (3.25, 3.12, 2.38, 4.00, 4.38, 3.12),
    "nDCG-letor4@5": (3.12, 3.38, 3.62, 4.12, 3.38, 3.38),
}
"""Average ranks over the paper's eight sets, of the first six methods."""


class Columns(NamedTuple):
    """A column of Table 1.2 or 1.3; None: the paper has none."""

    average_precision: float | None
    precision_10: float | None
    domination_error: float | None
    pair_error: float | None
    zero_percent: float | None


NOT_PRINTED = Columns(None, None, None, None, None)

TABLE_1_2 = {
    "PAMIR": Columns(0.051, 0.080, 0.964, 0.234, 3.4),
    "Domination (base, L2²)": Columns(0.050, 0.073, 0.964, 0.213, 1.4),
    "Domination (base, L1)": Columns(0.050, 0.073, 0.963, 0.237, 94.3),
    "Domination (multi-valued)": Columns(0.050, 0.073, 0.964, 0.235, 93.4),
    "Domination (margin)": Columns(0.050, 0.073, 0.964, 0.236, 93.2),
}
TABLE_1_3 = {
    "PAMIR": Columns(0.705, 0.915, 0.974, 0.014, 78.1),
    "Domination (L1)": Columns(0.670, 0.918, 0.976, 0.024, 98.8),
}
