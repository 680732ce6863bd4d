"""Bytes to records: the named data sets, the readers and writers of each format, and the records they hand on.

Names are imported on first use, so `import sparserank.data` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_HOME = {
    "Collection": "records",
    "Documents": "records",
    "Fold": "records",
    "Known": "sets",
    "Labelled": "records",
    "Letor": "records",
    "Split": "records",
    "Stories": "records",
    "Triples": "logs",
    "docids": "letor",
    "known": "sets",
    "load": "sets",
    "parse_letor": "letor",
    "read_beir": "beir",
    "read_documents": "text_tables",
    "read_judgments": "text_tables",
    "read_letor": "letor",
    "read_qrels": "trec",
    "read_query_texts": "text_tables",
    "read_run": "trec",
    "read_smart": "smart",
    "read_smart_qrels": "smart",
    "read_triples": "logs",
    "scan_clicks": "logs",
    "scan_triples": "logs",
    "stream_triples": "logs",
    "write_beir": "beir",
    "write_letor": "letor",
    "write_qrels": "trec",
    "write_run": "trec",
}

__all__ = [
    "Collection",
    "Documents",
    "Fold",
    "Known",
    "Labelled",
    "Letor",
    "Split",
    "Stories",
    "Triples",
    "docids",
    "known",
    "load",
    "parse_letor",
    "read_beir",
    "read_documents",
    "read_judgments",
    "read_letor",
    "read_qrels",
    "read_query_texts",
    "read_run",
    "read_smart",
    "read_smart_qrels",
    "read_triples",
    "scan_clicks",
    "scan_triples",
    "stream_triples",
    "write_beir",
    "write_letor",
    "write_qrels",
    "write_run",
]

if TYPE_CHECKING:
    from .beir import read_beir, write_beir
    from .letor import docids, parse_letor, read_letor, write_letor
    from .logs import Triples, read_triples, scan_clicks, scan_triples, stream_triples
    from .records import Collection, Documents, Fold, Labelled, Letor, Split, Stories
    from .sets import Known, known, load
    from .smart import read_smart, read_smart_qrels
    from .text_tables import read_documents, read_judgments, read_query_texts
    from .trec import read_qrels, read_run, write_qrels, write_run


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sparserank.data' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"sparserank.data.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
