"""DATA, as the user names it, to a collection."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..data.records import Collection
from ..errors import DataError
from .output import working


def open_collection(data: str) -> Collection:
    """A BEIR folder, a table of documents, or a known collection by name; what is none is told what would work."""
    from .. import data as sets
    from ..data.formats.beir import read_beir
    from ..data.formats.tables import is_table
    from ..data.formats.text_tables import read_documents

    path = Path(data)
    if is_table(path):
        with working(f"reading {data}"):
            return Collection(path.name, read_documents(path), {}, {})
    if path.is_dir():
        with working(f"reading {data}"):
            return read_beir(path)
    if path.exists():
        raise DataError(
            f"{data}: a file, but text rankers need a BEIR folder with corpus.jsonl and queries.jsonl, or tables "
            "(.csv, .tsv, .parquet); to learn from a LETOR file say --ranker domination (or ranksvm, …)"
        )
    with working(f"reading {data}"):
        found = sets.load(data)
    if not isinstance(found, Collection):
        raise DataError(f"{data!r} is not a text collection with queries; try pydocs, nfcorpus or cranfield")
    return found


def excluding_self(collection: Collection, queries: Iterable[str], asked: bool | None) -> Collection:
    """The collection with `drop_self` as the option says, or as it is; one line on stderr if ids overlap and it is off.

    queries : the judged queries that are used.
    """
    from ..evaluation.reverses import own_documents

    collection = collection if asked is None else replace(collection, drop_self=asked)
    queries = list(queries)
    if not collection.drop_self and asked is None and (n := own_documents(collection, queries)):
        print(
            f"{n:,} of {len(queries):,} queries have the id of a document; --exclude-self leaves that document out of "
            "its own query's ranking (--no-exclude-self: the ids name different things)",
            file=sys.stderr,
        )
    return collection
