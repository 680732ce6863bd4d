"""Results of benchmarks as Markdown."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sparserank import __version__
from sparserank.data.files import write_bytes

TEXTS = ("case", "about", "size", "peer", "environment", "error", "rows")
"""The parts of a result that are not figures."""


MAX_COLUMNS = 8
"""Records with more figures have a row for each figure."""


def table(rows: Sequence[Mapping[str, Any]], first: str = "name") -> str:
    """One column per key, in the order in which keys first appear; a missing value is an empty cell.

    >>> print(table([{"name": "BM25", "ndcg": 0.5}, {"name": "learned", "ndcg": 0.6, "pairs": 1000}]))
    | | ndcg | pairs |
    |---|---|---|
    | BM25 | 0.5 | |
    | learned | 0.6 | 1,000 |
    """
    keys = [key for key in dict.fromkeys(key for row in rows for key in row) if key != first]
    head = ["", *(key.replace("_", " ") for key in keys)]
    lines = [[_cell(row.get(key)) for key in (first, *keys)] for row in rows]
    return "\n".join([_line(head), "|" + "---|" * len(head), *map(_line, lines)])


def _line(cells: Sequence[str]) -> str:
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"


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
    others = [figures(key.replace("_", " "), value) for key, value in result.items() if key not in TEXTS]
    return "\n\n".join(parts) + "".join("\n\n" + part for part in join_bullets(others))


def figures(name: str, value: Any) -> str:
    """A figure as a line of a list; a record of figures, or several records, as tables.

    >>> print(figures("start", {"first plan": {"open_s": 0.1}, "second plan": {"open_s": 0.2}}))
    **start**
    <BLANKLINE>
    | | open s |
    |---|---|
    | first plan | 0.1 |
    | second plan | 0.2 |
    >>> print(figures("growth", [{"documents": "10,000", "time": 1.4}]))
    **growth**
    <BLANKLINE>
    | documents | time |
    |---|---|
    | 10,000 | 1.4 |
    """
    if isinstance(value, Mapping) and value:
        if all(isinstance(inner, list) for inner in value.values()):
            return "\n\n".join(figures(f"{name}, {key}", inner) for key, inner in value.items())
        records = {key: _flat(inner) if isinstance(inner, Mapping) else {"": inner} for key, inner in value.items()}
        if len({key for record in records.values() for key in record}) > MAX_COLUMNS:
            keys = dict.fromkeys(key for record in records.values() for key in record)
            records = {key: {column: record.get(key) for column, record in records.items()} for key in keys}
        rows = [{"name": str(key).replace("_", " "), **record} for key, record in records.items()]
        return f"**{name}**\n\n{table(rows)}"
    if isinstance(value, list) and value and all(isinstance(inner, Mapping) for inner in value):
        first, *_ = value[0]
        named = table([_flat(inner) for inner in value], first).replace("| |", f"| {first.replace('_', ' ')} |", 1)
        return f"**{name}**\n\n{named}"
    return f"- {name}: {_cell(value)}"


def join_bullets(parts: Sequence[str]) -> list[str]:
    """Lines of one list follow each other without an empty line."""
    joined: list[str] = []
    for part in parts:
        if joined and joined[-1].startswith("- ") and part.startswith("- "):
            joined[-1] += f"\n{part}"
        else:
            joined.append(part)
    return joined


def _flat(record: Mapping[str, Any]) -> dict[str, Any]:
    """Nested figures under the names of both levels."""
    flat: dict[str, Any] = {}
    for key, value in record.items():
        inner = _flat(value) if isinstance(value, Mapping) else None
        flat |= {key: value} if inner is None else {f"{key}_{name}": one for name, one in inner.items()}
    return flat


def write_section(page: Path, result: Mapping[str, Any]) -> None:
    """Write one section of a page, in place of the earlier one."""
    earlier = page.read_text() if page.exists() else ""
    write_bytes(page, document([section(result)], earlier).encode())


def environment() -> str:
    """The machine and the versions of a run, as a sentence."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))
    machine, python = f"{os.cpu_count()} cores ({processor()})", platform.python_version()
    return f"Measured on {machine} with Python {python}, sparserank {__version__}, {versions}."


def processor() -> str:
    """The model of the processor, or its architecture if the system does not name it."""
    info = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.+)", info.read_text(), re.MULTILINE) if info.exists() else []
    return " ".join((models or [platform.processor() or platform.machine()])[0].split())


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
