"""Figures that the papers print, under the names that this package uses; None stands for a figure that is missing.

Chen et al. (2010): Tables I, II and III. Stevens et al. (2010): Tables 1.1, 1.2 and 1.3.
"""

from __future__ import annotations

from typing import NamedTuple


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
    """A column of Stevens' Table 1.2 or 1.3."""

    average_precision: float | None
    precision_10: float | None
    domination_error: float | None
    pair_error: float | None
    zero_percent: float | None


TABLE_I = {
    "20newsgroups": DatasetSize(11_314, 7_532, 20, 10_000, 10**8),
    "rcv1": DatasetSize(15_564, 518_571, 53, 10_000, 10**8),
    "mnist": DatasetSize(60_000, 10_000, 10, 784, 614_656),
}

TABLE_II = {
    "20newsgroups": {
        "Identity": MethodResult(0.185, 0.323, 0.2),
        "Diagonal": MethodResult(0.190, 0.318, 0.2),
        "SGD (fixed rate)": MethodResult(0.258, 0.197, 1294.0),
        "SGD (decaying rate)": MethodResult(0.399, 0.099, 943.1),
        "Sparse": MethodResult(0.360, 0.114, 154.2),
        "Sparse-R": MethodResult(0.426, 0.090, 154.2),
    },
    "rcv1": {
        "Identity": MethodResult(0.380, 0.230, 0.2),
        "Diagonal": MethodResult(0.390, 0.223, 0.2),
        "SGD (fixed rate)": MethodResult(0.451, 0.087, 717.2),
        "SGD (decaying rate)": MethodResult(0.453, 0.046, 360.2),
        "Sparse": MethodResult(0.463, 0.036, 105.4),
        "Sparse-R": MethodResult(0.501, 0.029, 105.4),
    },
    "mnist": {
        "Identity": MethodResult(0.453, 0.221, 0.018),
        "Diagonal": MethodResult(0.460, 0.318, 0.018),
        "SGD (fixed rate)": MethodResult(0.610, 0.096, 6.796),
        "SGD (decaying rate)": MethodResult(0.654, 0.082, 6.121),
        "Sparse": MethodResult(0.654, 0.083, 4.301),
        "Sparse-R": MethodResult(0.669, 0.075, 4.301),
    },
}

MISPRINTS = {("mnist", "Diagonal"): "The paper's error .318 repeats its figure for 20 Newsgroups: a misprint."}
OTHER_SPLIT = "The paper's numbers are those of another split."

TABLE_III = {
    "clinton": ("clinton", "government", "health", "people", "gay"),
    "cpu": ("mac", "drive", "scsi", "card", "jon"),
    "graphics": ("graphics", "tiff", "image", "color", "polygon"),
    "handgun": ("gun", "weapons", "handgun", "militia", "fbi"),
    "hockey": ("hockey", "game", "espn", "colorado", "team"),
    "motorcycle": ("bike", "brake", "turbo", "rpi", "cylinder"),
    "religions": ("god", "religions", "bible", "christian", "jesus"),
}
SLIDES = {"atheism": ("keith", "atheists", "god", "caltech")}
"""The authors' slides show one query word that Table III does not have, with four words."""

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

TABLE_1_1 = {
    "nDCG-letor4@10": (3.62, 3.38, 2.75, 4.12, 3.62, 3.38),
    "P@10": (3.25, 3.12, 2.38, 4.00, 4.38, 3.12),
    "nDCG-letor4@5": (3.12, 3.38, 3.62, 4.12, 3.38, 3.38),
}
"""Average ranks of the six methods over the paper's eight data sets."""

TABLE_1_2 = {
    "PAMIR": TopicResult(0.051, 0.080, 0.964, 0.234, 3.4),
    "Domination (base, L2²)": TopicResult(0.050, 0.073, 0.964, 0.213, 1.4),
    "Domination (base, L1)": TopicResult(0.050, 0.073, 0.963, 0.237, 94.3),
    "Domination (multi-valued)": TopicResult(0.050, 0.073, 0.964, 0.235, 93.4),
    "Domination (margin)": TopicResult(0.050, 0.073, 0.964, 0.236, 93.2),
}
TABLE_1_3 = {
    "PAMIR": TopicResult(0.705, 0.915, 0.974, 0.014, 78.1),
    "Domination (L1)": TopicResult(0.670, 0.918, 0.976, 0.024, 98.8),
}
NOT_PRINTED = TopicResult(None, None, None, None, None)
