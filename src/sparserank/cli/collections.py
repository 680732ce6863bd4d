"""DATA, as the user names it, to a collection."""

from __future__ import annotations

from pathlib import Path

from ..data.records import Collection
from ..errors import DataError
from .output import working


def open_collection(data: str) -> Collection:
    """A BEIR folder, or a known collection by name; anything else is refused with what would work."""
    from .. import data as sets
    from ..data.beir import read_beir

    path = Path(data)
    if path.is_dir():
        with working(f"reading {data}"):
            return read_beir(path)
    if path.exists():
        raise DataError(
            f"{data}: a file, but text rankers need a BEIR folder with corpus.jsonl and queries.jsonl; "
            "to learn from a LETOR file say --ranker domination (or ranksvm, …)"
        )
    with working(f"reading {data}"):
        found = sets.load(data)
    if not isinstance(found, Collection):
        raise DataError(f"{data!r} is not a text collection with queries; try pydocs, nfcorpus or cranfield")
    return found
