"""Cranfield: 1,400 abstracts on aerodynamics, 225 questions, and a grade for each abstract that answers one.

A query's id is its position in `cran.qry`, counted from 1, because that is how `cranqrel` numbers it.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import DataError
from ..files import write_bytes
from ..records import Collection, Documents
from .checksum import members
from .download import Found

PARTS = ("cran.all.1400", "cran.qry", "cranqrel")


def load(found: Found) -> Collection:
    """The collection with one split, "all"; grades run from 4 (a complete answer) to 1 (of minimum interest)."""
    from ..formats.smart import read_smart, read_smart_qrels

    abstracts = read_smart(found.paths["cran.all.1400"])
    questions = read_smart(found.paths["cran.qry"])
    qrels = read_smart_qrels(found.paths["cranqrel"])
    documents = Documents(
        ids=tuple(record["I"] for record in abstracts),
        titles=tuple(" ".join(record["T"].split()) for record in abstracts),
        texts=tuple(record["W"] for record in abstracts),
    )
    queries = {str(position): " ".join(record["W"].split()) for position, record in enumerate(questions, start=1)}
    known = set(documents.ids)
    for query, grades in qrels.items():
        strays = [document for document in grades if document not in known]
        if query not in queries or strays:
            raise DataError(
                f"{found.paths['cranqrel']}: query {query} is judged and not there, or its {strays} are not"
            )
    return Collection("cranfield", documents, queries, {"all": qrels})


def unpack(raw: Path, ready: Path) -> None:
    """Take the three files out of the archive that Glasgow offers."""
    inside = members(raw / "cran.tar.gz")
    for name in PARTS:
        if name in inside:
            write_bytes(ready / name, inside[name])
