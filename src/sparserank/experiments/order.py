"""Whether the methods of Table II stand in the paper's order, computed from the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

Row = Mapping[str, Any]


def swapped_pairs(rows: Sequence[Row]) -> list[tuple[Row, Row]]:
    """(a, b) for every two rows where the paper has a larger MAP for a than for b, and these rows do not.

    >>> rows = [{"method": "a", "map": 0.4, "paper_map": 0.5}, {"method": "b", "map": 0.4, "paper_map": 0.3}]
    >>> [(a["method"], b["method"]) for a, b in swapped_pairs(rows)]
    [('a', 'b')]
    """
    printed = [row for row in rows if row["paper_map"] is not None]
    both = [pair for a, b in combinations(printed, 2) for pair in ((a, b), (b, a))]
    return [(a, b) for a, b in both if a["paper_map"] > b["paper_map"] and not a["map"] > b["map"]]


def order_sentence(rows: Sequence[Row]) -> str | None:
    """Says which methods stand otherwise than in the paper, by MAP; None where the paper has no numbers.

    >>> order_sentence([{"method": "a", "map": 0.4, "paper_map": 0.5}, {"method": "b", "map": 0.3, "paper_map": 0.4}])
    "By MAP the methods stand in the paper's order."
    """
    if all(row["paper_map"] is None for row in rows):
        return None
    swapped = swapped_pairs(rows)
    if not swapped:
        return "By MAP the methods stand in the paper's order."
    told = "; ".join(
        f"{a['method']} {a['map']:.3f} is not above {b['method']} {b['map']:.3f} "
        f"(paper: {a['paper_map']:.3f} and {b['paper_map']:.3f})"
        for a, b in swapped
    )
    return f"By MAP the methods do not all stand in the paper's order: {told}."
