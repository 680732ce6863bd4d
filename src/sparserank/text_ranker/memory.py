"""The memory of a training, estimated before it starts, within a limit."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from .. import validation
from ..data.memory import format_bytes, free_memory
from ..data.records import Documents
from ..errors import ConfigError
from ..optim.closed_form import BLOCK_ROWS, MAX_PRODUCT, MAX_SIZE
from ..optim.document_source import DocumentSource
from ..optim.pattern_ridge import BLOCK_FLOATS, MAX_WORDS
from .candidates import ALL_DOCUMENTS, POOL_DEPTH
from .held_out import HELD_OUT_PARTS, MAX_HELD_OUT, MAX_ROTATED_QUERIES
from .model_selection import RIDGES, TUNING_SIZE
from .pair_learner import FIRST_FACTOR

UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
MIN_SIZE = 500
"""The smallest Gram matrix that a plan falls back to."""
BYTES_PER_WEIGHT = 48
"""Bytes for each word of each document: its lexical and its pair weight, in rows and in the index to search."""
BYTES_PER_PAIR = 100
"""Bytes for each pair while W is pruned and refitted."""
BYTES_PER_CANDIDATE, CANDIDATES_PER_QUERY = 40, 150
BYTES_PER_PLACE = 64
"""Bytes for each document of a held-out ranking: its number, scores and grade."""
BYTES_PER_GRAM_ENTRY, BYTES_PER_OVERLAP = 12.0, 24.0
"""Bytes for each entry of DᵀD and of QᵀVQ in a refit."""
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


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes of the texts, the documents' rows, tuning, learning, the pairs and the candidate lists.

    Tuning has ended when learning starts, so only the larger of both counts. The program itself does not count.

    max_size : the largest Gram matrix of the closed form that fits.
    max_words : the words of the largest matrix of words of a refit that fits.
    """

    texts: float
    rows: float
    tuning: float
    learning: float
    pairs: float
    lists: float
    max_size: int
    max_words: float

    @classmethod
    def of(
        cls, weights: int, shape: tuple[int, int], words: tuple[int, int], pairs: int, limit: float, *,
        texts: float = 0.0, overlaps: tuple[float, float] = (0.0, 0.0),
    ) -> MemoryPlan:  # fmt: skip
        """Plan for a number of document weights, a shape of queries × documents, and words of both.

        texts : bytes of the texts. overlaps : bounds of the entries of QᵀQ and DᵀD.
        Raises ConfigError if the smallest plan is beyond the limit.
        """
        sides = [min(items, known) for items, known in zip(shape, words, strict=True)]
        fixed = cls(
            texts, float(weights * BYTES_PER_WEIGHT), 0.0, 0.0,
            float(min(FIRST_FACTOR * pairs, sides[0] * words[1]) * BYTES_PER_PAIR),
            float(shape[0] * CANDIDATES_PER_QUERY * BYTES_PER_CANDIDATE), 0, np.inf,
        )  # fmt: skip
        needed_words = min(MAX_WORDS, words[1], FIRST_FACTOR * pairs)
        entries = min(needed_words**2, overlaps[1])
        refit = max(BYTES_PER_GRAM_ENTRY * entries, 8.0 * min(BLOCK_FLOATS, words[0] * shape[1]))
        query_gram = BYTES_PER_OVERLAP * min(overlaps[0], words[0] ** 2)
        size = min(MAX_SIZE, max(*sides, 1))
        while True:
            tuning = _tuning_bytes(min(size, TUNING_SIZE), sides, shape)
            solving, right = _closed_form_bytes(size, sides, shape, words), min(sides[1], size)
            beside = 4.0 * right * right + query_gram  # of a refit
            room = limit - fixed.total - beside
            max_words = np.inf if refit <= room else float(int((max(room, 0.0) / BYTES_PER_GRAM_ENTRY) ** 0.5))
            learning = max(solving, beside + min(refit, BYTES_PER_GRAM_ENTRY * max_words**2))
            plan = replace(fixed, tuning=tuning, learning=learning, max_size=size, max_words=max_words)
            if plan.total <= limit and max_words >= min(MIN_SIZE, needed_words):
                return plan
            if size <= MIN_SIZE:
                least = max(plan.total, fixed.total + beside + BYTES_PER_GRAM_ENTRY * MIN_SIZE**2)
                raise ConfigError(
                    f"training needs at least {format_bytes(least)} for {shape[1]:,} documents and {shape[0]:,} "
                    f"queries, and the memory limit is {format_bytes(limit)}; raise memory_limit (--memory), lower "
                    "max_pairs, or train on Spark (--engine spark)"
                )
            size = max(MIN_SIZE, int(size * 0.8))

    @property
    def total(self) -> float:
        """All bytes."""
        return self.texts + self.rows + max(self.tuning, self.learning) + self.pairs + self.lists

    def __str__(self) -> str:
        parts = {
            "texts": self.texts, "document rows": self.rows, "tuning": self.tuning, "then learning": self.learning,
            "pairs": self.pairs, "lists": self.lists,
        }  # fmt: skip
        details = ", ".join(f"{name} {format_bytes(size)}" for name, size in parts.items())
        return f"{format_bytes(self.total)}: {details}"


def _tuning_bytes(size: int, sides: list[int], shape: tuple[int, int]) -> float:
    """The Gram matrices of both sides with their factors, and the scores of held-out queries in all folds."""
    left, right = (min(side, size) for side in sides)
    n, m = shape
    is_rotated = n <= MAX_ROTATED_QUERIES
    folds = HELD_OUT_PARTS if is_rotated else 1
    held_out = n if is_rotated else n // max(HELD_OUT_PARTS, n // MAX_HELD_OUT)
    documents = 4.0 * (2 + len(RIDGES)) * right * right
    queries = 4.0 * folds * (3 * left * left + 2 * left * right) + 4.0 * held_out * (3 * left + 4 * right)
    places = held_out * (m if m <= ALL_DOCUMENTS else min(m, 2 * POOL_DEPTH))
    return documents + queries + float(places * BYTES_PER_PLACE)


def _closed_form_bytes(size: int, sides: list[int], shape: tuple[int, int], words: tuple[int, int]) -> float:
    left, right = (min(side, size) for side in sides)
    product = shape[0] * words[1]  # of both sides by items: M D
    is_product = (left, right) == shape and shape[0] < words[0] and product <= MAX_PRODUCT
    width = words[1] if right == shape[1] else right
    blocks = 3 * BLOCK_ROWS * validation.threads(None) * width
    return 4.0 * (left * left + right * right + 3 * left * right + product * is_product + blocks)


def count_overlaps(X: Any) -> float:
    """A bound of the entries of XᵀX; infinite if the rows of X are elsewhere."""
    if isinstance(X, DocumentSource):
        return float("inf")
    return float(np.square(np.diff(X.indptr).astype(np.float64)).sum())


def text_bytes(documents: Documents) -> int:
    """The bytes of the titles and texts in memory."""
    return sum(map(sys.getsizeof, chain(documents.titles, documents.texts)))


def check_corpus(data: str, size: int, limit: float) -> None:
    """Raise ConfigError if documents of this many bytes cannot fit into the limit, before they are read."""
    if size > limit:
        raise ConfigError(
            f"the documents of {data} have about {format_bytes(size)} of text or more, and the memory limit is "
            f"{format_bytes(limit)}; raise --memory, or train on Spark (--engine spark)"
        )


def check_texts(characters: int, n_documents: int, limit: float) -> None:
    """Raise ConfigError if texts of this many characters cannot fit into the limit, before they are analyzed."""
    needed = characters / CHARACTERS_PER_WEIGHT / 4 * BYTES_PER_WEIGHT  # a quarter: long texts repeat their words
    if needed > limit:
        raise ConfigError(
            f"{n_documents:,} documents of {format_bytes(characters)} of text need at least {format_bytes(needed)} to "
            f"learn from, and the memory limit is {format_bytes(limit)}; raise memory_limit (--memory), or train on "
            "Spark (--engine spark)"
        )
