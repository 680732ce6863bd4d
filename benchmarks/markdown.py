"""A benchmark's rows as a Markdown table, to be pasted into docs as it is printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def table(rows: Sequence[Mapping[str, Any]], first: str = "name") -> str:
    """One column a key, in the order in which keys first appear; a missing value is an empty cell.

    >>> print(table([{"name": "BM25", "ndcg": 0.5}, {"name": "learned", "ndcg": 0.6, "pairs": 1000}]))
    | | ndcg | pairs |
    |---|---|---|
    | BM25 | 0.5 | |
    | learned | 0.6 | 1,000 |
    """
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key != first]
    head = f"| | {' | '.join(key.replace('_', ' ') for key in keys)} |"
    lines = [head, "|" + "---|" * (len(keys) + 1)]
    for row in rows:
        cells = (str(row[first]), *(_cell(row.get(key)) for key in keys))
        lines.append("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|")
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)
