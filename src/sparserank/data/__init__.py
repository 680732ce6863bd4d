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
    "Known": "datasets.named",
    "Labelled": "records",
    "Letor": "records",
    "Split": "records",
    "Stories": "records",
    "Triples": "formats.logs",
    "docids": "formats.letor",
    "known": "datasets.named",
    "load": "datasets.named",
    "parse_letor": "formats.letor",
    "read_beir": "formats.beir",
    "read_documents": "formats.text_tables",
    "read_judgments": "formats.text_tables",
    "read_letor": "formats.letor",
    "read_qrels": "formats.trec",
    "read_query_texts": "formats.text_tables",
    "read_run": "formats.trec",
    "read_smart": "formats.smart",
    "read_smart_qrels": "formats.smart",
    "read_triples": "formats.logs",
    "scan_clicks": "formats.logs",
    "scan_triples": "formats.logs",
    "stream_triples": "formats.logs",
    "write_beir": "formats.beir",
    "write_letor": "formats.letor",
    "write_qrels": "formats.trec",
    "write_run": "formats.trec",
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
    from .datasets.named import Known, known, load
    from .formats.beir import read_beir, write_beir
    from .formats.letor import docids, parse_letor, read_letor, write_letor
    from .formats.logs import Triples, read_triples, scan_clicks, scan_triples, stream_triples
    from .formats.smart import read_smart, read_smart_qrels
    from .formats.text_tables import read_documents, read_judgments, read_query_texts
    from .formats.trec import read_qrels, read_run, write_qrels, write_run
    from .records import Collection, Documents, Fold, Labelled, Letor, Split, Stories


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'sparserank.data' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"sparserank.data.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
