"""Cranfield: 1,400 abstracts on aerodynamics, 225 questions and graded judgments.

A query's id is its position in `cran.qry`, counted from 1, as in `cranqrel`.
"""

from __future__ import annotations

from pathlib import Path

from ...errors import DataError
from ..files import write_bytes
from ..records import Collection, Documents
from .checksum import members
from .download import LocalFiles

PARTS = ("cran.all.1400", "cran.qry", "cranqrel")


def load(files: LocalFiles) -> Collection:
    """Load the collection with one split, "all"; grades are 4 (a complete answer) to 1 (of minimum interest)."""
    from ..formats.smart import read_smart, read_smart_qrels

    abstracts = read_smart(files.paths["cran.all.1400"])
    questions = read_smart(files.paths["cran.qry"])
    qrels = read_smart_qrels(files.paths["cranqrel"])
    documents = Documents(
        ids=tuple(record["I"] for record in abstracts),
        titles=tuple(" ".join(record["T"].split()) for record in abstracts),
        texts=tuple(record["W"] for record in abstracts),
    )
    queries = {str(position): " ".join(record["W"].split()) for position, record in enumerate(questions, start=1)}
    known = set(documents.ids)
    for query, grades in qrels.items():
        unknown = [document for document in grades if document not in known]
        if query not in queries or unknown:
            raise DataError(f"{files.paths['cranqrel']}: query {query} or its documents {unknown} do not exist")
    return Collection("cranfield", documents, queries, {"all": qrels})


def unpack(raw: Path, ready: Path) -> None:
    """Extract the three files from Glasgow's archive."""
    inside = members(raw / "cran.tar.gz")
    for name in PARTS:
        if name in inside:
            write_bytes(ready / name, inside[name])
