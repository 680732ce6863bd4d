"""The free memory of the machine, and how many features of a LETOR file fit into it."""

from __future__ import annotations

import os
import re
from pathlib import Path

BYTES_PER_FEATURE = 64
"""Memory of training a LETOR ranker for each feature up to the largest index, with or without rows that have it."""
ALWAYS_FEATURES = 1 << 24
"""Features that are never too many: a gigabyte."""


def features_in_memory(wanted: int) -> int:
    """How many of the wanted features have room in the free memory.

    >>> features_in_memory(136)
    136
    """
    return (
        wanted
        if wanted <= ALWAYS_FEATURES
        else min(wanted, max(ALWAYS_FEATURES, int(free_memory() / BYTES_PER_FEATURE)))
    )


def format_bytes(size: float) -> str:
    """A size to two digits.

    >>> format_bytes(2.34e9), format_bytes(56e6)
    ('2.3 GB', '56 MB')
    """
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.2g} MB" if size < 1e7 else f"{size / 1e6:.0f} MB"


def free_memory() -> float:
    """The free memory in bytes: that of the machine, within the limit of the control group."""
    sizes = [float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))]
    info = Path("/proc/meminfo")
    if info.exists():
        sizes += [1024.0 * int(kb) for kb in re.findall(r"MemAvailable:\s+(\d+)", info.read_text())]
    limit, used = (Path("/sys/fs/cgroup", name) for name in ("memory.max", "memory.current"))
    if limit.exists() and used.exists() and (text := limit.read_text().strip()).isdigit():
        sizes.append(float(text) - float(used.read_text()))
    return max(min(sizes), 0.0)
