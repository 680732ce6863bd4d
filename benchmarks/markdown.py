"""Results of benchmarks as Markdown."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sparserank import __version__
from sparserank.data.files import write_bytes

TEXTS = ("case", "about", "size", "peer", "environment", "error", "rows")
"""The parts of a result that are not figures."""


def table(rows: Sequence[Mapping[str, Any]], first: str = "name") -> str:
    """One column per key, in the order in which keys first appear; a missing value is an empty cell.

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
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text.replace("|", "\\|")


def section(result: Mapping[str, Any]) -> str:
    """One benchmark: its description, its size, its peer, its rows and its other figures.

    >>> print(section({"case": "loading", "size": "3 MB", "rows": [{"name": "ours", "ratio": 2.0}], "peak_mb": 9}))
    ## Loading
    <BLANKLINE>
    Size: 3 MB.
    <BLANKLINE>
    | | ratio |
    |---|---|
    | ours | 2.0 |
    <BLANKLINE>
    - peak mb: 9
    """
    title = str(result["case"])
    parts = [f"## {title[:1].upper()}{title[1:]}"]
    parts += [str(result["about"])] if result.get("about") else []
    parts += [f"Size: {result['size']}."] if result.get("size") else []
    parts += [f"Compared with: {result['peer']}."] if result.get("peer") else []
    parts += [str(result["environment"])] if result.get("environment") else []
    parts += [f"Not measured: {result['error']}"] if "error" in result else []
    parts += [table(result["rows"])] if result.get("rows") else []
    others = [key for key in result if key not in TEXTS]
    if others:
        parts.append("\n".join(f"- {key.replace('_', ' ')}: {_cell(result[key])}" for key in others))
    return "\n\n".join(parts)


def write_section(page: Path, result: Mapping[str, Any]) -> None:
    """Write one section of a page, in place of the earlier one."""
    earlier = page.read_text() if page.exists() else ""
    write_bytes(page, document([section(result)], earlier).encode())


def environment() -> str:
    """The machine and the versions of a run, as a sentence."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    python = platform.python_version()
    return f"Measured on {os.cpu_count()} cores with Python {python}, sparserank {__version__}, {versions}."


def document(sections: Sequence[str], page: str = "") -> str:
    """The page of all benchmarks: these sections, and those of an earlier page that are not measured again.

    >>> page = document(["## Loading\\n\\nslow", "## Search\\n\\nfast"])
    >>> print(document(["## Loading\\n\\nfast"], page))
    # Benchmarks
    <BLANKLINE>
    `make bench` writes this page; `make bench ARGS=CASE` replaces one section. Each ratio compares with the named peer
    in the same run on the same data.
    <BLANKLINE>
    ## Loading
    <BLANKLINE>
    fast
    <BLANKLINE>
    ## Search
    <BLANKLINE>
    fast
    <BLANKLINE>
    """
    lead = (
        "# Benchmarks\n\n`make bench` writes this page; `make bench ARGS=CASE` replaces one section. "
        "Each ratio compares with the named peer\nin the same run on the same data."
    )
    earlier = [f"## {part.strip()}" for part in page.split("\n## ")[1:]]
    by_title = {part.splitlines()[0]: part for part in (*earlier, *sections)}
    return "\n\n".join([lead, *by_title.values()]) + "\n"
