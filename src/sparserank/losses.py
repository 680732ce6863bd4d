"""Losses: what it costs that an item does not beat another by enough."""

from __future__ import annotations

from dataclasses import dataclass

from . import check


@dataclass(frozen=True)
class Hinge:
    """max(0, margin - (s(better) - s(worse))), on triples (paper C, eq. 2)."""

    margin: float = 1.0

    def __post_init__(self) -> None:
        check.number("margin", self.margin, low=0, open_low=True)
