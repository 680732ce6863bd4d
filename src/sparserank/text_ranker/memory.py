"""The memory of a training, estimated before it starts, within a limit."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import ConfigError
from ..optim.closed_form import MAX_PRODUCT, MAX_SIZE

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
MIN_SIZE = 500
"""The smallest Gram matrix that a plan falls back to."""
BYTES_PER_WEIGHT = 48
"""Bytes for each word of each document: its lexical and its pair weight, in rows and in the index to search."""
BYTES_PER_PAIR = 100
"""Bytes for each pair while W is pruned and refitted."""
BYTES_PER_CANDIDATE, CANDIDATES_PER_QUERY = 40, 150
CHARACTERS_PER_WEIGHT = 9
"""Characters per distinct word of a text, roughly: estimates the number of weights before texts are analyzed."""


def parse_memory(value: float | str | None, name: str = "memory_limit") -> float:
    """Bytes of a number of bytes or of a text such as "8GB"; None is half of what the machine has free.

    >>> parse_memory("1.5 GB")
    1500000000.0
    """
    if value is None:
        return free_memory() / 2
    text = f"{value}" if isinstance(value, str) else repr(float(value))
    match = re.fullmatch(r"\s*([0-9.]+(?:e[+]?[0-9]+)?)\s*([kmgt]?)(?:i?b)?\s*", text.lower())
    try:
        size = float(match[1]) * UNITS[match[2]] if match else 0.0
    except ValueError:
        size = 0.0
    if not 0.0 < size < float("inf"):
        raise ConfigError(f"The {name!r} parameter must be a size such as '8GB' or a number of bytes. Got {value!r}.")
    return size


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


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes of the documents' rows, of the closed form, of the pairs and of the candidate lists.

    max_size : the largest Gram matrix of the closed form that fits.
    """

    rows: float
    closed_form: float
    pairs: float
    lists: float
    max_size: int

    @classmethod
    def of(cls, weights: int, shape: tuple[int, int], words: tuple[int, int], pairs: int, limit: float) -> MemoryPlan:
        """Plan for a number of document weights, a shape of queries × documents, and words of both.

        Raises ConfigError if the smallest plan is beyond the limit.
        """
        sides = [min(items, known) for items, known in zip(shape, words, strict=True)]
        fixed = cls(
            float(weights * BYTES_PER_WEIGHT), 0.0, float(min(pairs, sides[0] * words[1]) * BYTES_PER_PAIR),
            float(shape[0] * CANDIDATES_PER_QUERY * BYTES_PER_CANDIDATE), 0,
        )  # fmt: skip
        size = min(MAX_SIZE, max(*sides, 1))
        while True:
            left, right = (min(side, size) for side in sides)
            closed_form = 4.0 * (left * left + right * right + 3 * left * right)
            product = shape[0] * words[1]  # of both sides by items: M D
            if (left, right) == shape and shape[0] < words[0] and product <= MAX_PRODUCT:
                closed_form += 4.0 * product
            plan = replace(fixed, closed_form=closed_form, max_size=size)
            if plan.total <= limit:
                return plan
            if size <= MIN_SIZE:
                raise ConfigError(
                    f"training needs at least {format_bytes(plan.total)} for {shape[1]:,} documents and {shape[0]:,} "
                    f"queries, and the memory limit is {format_bytes(limit)}; raise memory_limit (--memory), lower "
                    "max_pairs, or train on Spark (--engine spark)"
                )
            size = max(MIN_SIZE, int(size * 0.8))

    @property
    def total(self) -> float:
        """All bytes."""
        return self.rows + self.closed_form + self.pairs + self.lists

    def __str__(self) -> str:
        parts = {
            "document rows": self.rows, "closed form": self.closed_form, "pairs": self.pairs, "lists": self.lists,
        }  # fmt: skip
        details = ", ".join(f"{name} {format_bytes(size)}" for name, size in parts.items())
        return f"{format_bytes(self.total)}: {details}"


def check_texts(characters: int, n_documents: int, limit: float) -> None:
    """Raise ConfigError if texts of this many characters cannot fit into the limit, before they are analyzed."""
    needed = characters / CHARACTERS_PER_WEIGHT / 4 * BYTES_PER_WEIGHT  # a quarter: long texts repeat their words
    if needed > limit:
        raise ConfigError(
            f"{n_documents:,} documents of {format_bytes(characters)} of text need at least {format_bytes(needed)} to "
            f"learn from, and the memory limit is {format_bytes(limit)}; raise memory_limit (--memory), or train on "
            "Spark (--engine spark)"
        )
