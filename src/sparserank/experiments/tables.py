"""What Chen et al. (2010) printed: Tables I, II and III, number by number, under the names this package uses.

A set the paper does not have (`digits`) has no entry, and a figure that is not there is None.
"""

from __future__ import annotations

from typing import NamedTuple


class Statistics(NamedTuple):
    """A column of Table I."""

    training_samples: int
    test_samples: int
    classes: int
    dictionary_size: int
    free_parameters: int


class Printed(NamedTuple):
    """A row of Table II; megabytes are those of W."""

    map: float
    error: float
    megabytes: float


TABLE_I = {
    "20newsgroups": Statistics(11_314, 7_532, 20, 10_000, 10**8),
    "rcv1": Statistics(15_564, 518_571, 53, 10_000, 10**8),
    "mnist": Statistics(60_000, 10_000, 10, 784, 614_656),
}

TABLE_II = {
    "20newsgroups": {
        "Identity": Printed(0.185, 0.323, 0.2),
        "Diagonal": Printed(0.190, 0.318, 0.2),
        "SGD (fixed rate)": Printed(0.258, 0.197, 1294.0),
        "SGD (decaying rate)": Printed(0.399, 0.099, 943.1),
        "Sparse": Printed(0.360, 0.114, 154.2),
        "Sparse-R": Printed(0.426, 0.090, 154.2),
    },
    "rcv1": {
        "Identity": Printed(0.380, 0.230, 0.2),
        "Diagonal": Printed(0.390, 0.223, 0.2),
        "SGD (fixed rate)": Printed(0.451, 0.087, 717.2),
        "SGD (decaying rate)": Printed(0.453, 0.046, 360.2),
        "Sparse": Printed(0.463, 0.036, 105.4),
        "Sparse-R": Printed(0.501, 0.029, 105.4),
    },
    "mnist": {
        "Identity": Printed(0.453, 0.221, 0.018),
        "Diagonal": Printed(0.460, 0.318, 0.018),
        "SGD (fixed rate)": Printed(0.610, 0.096, 6.796),
        "SGD (decaying rate)": Printed(0.654, 0.082, 6.121),
        "Sparse": Printed(0.654, 0.083, 4.301),
        "Sparse-R": Printed(0.669, 0.075, 4.301),
    },
}

MISPRINTS = {
    ("mnist", "Diagonal"): "The paper's error .318 repeats its figure for 20 Newsgroups: a misprint.",
}

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
"""What the slides of the authors show for a query word that Table III does not have; they show four words."""

QUERY_WORDS = (*TABLE_III, *SLIDES)
"""The query words for text: those of Table III and of the slides."""
