"""A small world of fruits for tests: queries name a fruit in Latin, documents in English."""

from __future__ import annotations

from sparserank.data.records import Collection, Documents

LATIN = ("malus", "pyrus", "prunus", "vitis", "ficus")
ENGLISH = ("apple", "pear", "plum", "grape", "fig")
COLOURS = ("red", "green", "blue", "black")


def fruits() -> Collection:
    """Sixty documents of ten words in all, forty queries – each of twenty texts twice – and one split, `train`."""
    docs = {f"d{i}": {"title": ENGLISH[i % 5], "text": f"{COLOURS[i // 5 % 4]} fruit"} for i in range(60)}
    queries = {f"q{i}": f"{LATIN[i % 5]} {COLOURS[i // 5 % 4]}" for i in range(40)}
    qrels = {f"q{i}": {f"d{d}": 1.0 for d in range(60) if d % 20 == i % 20} for i in range(40)}
    return Collection("fruit", Documents.of(docs), queries, {"train": qrels})
