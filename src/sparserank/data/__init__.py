"""Read and write data: named data sets, file formats, and the records that they return.

Names are imported on first use, so `import sparserank.data` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..deprecated import renamed_names
from ..lazy import lazy_names

if TYPE_CHECKING:
    from .datasets.load import DatasetInfo, list_datasets, load
    from .formats.beir import read_beir, write_beir
    from .formats.letor import docids, parse_letor, read_letor, write_letor
    from .formats.letor_folds import read_folds
    from .formats.shopping import read_esci, read_wands
    from .formats.smart import read_smart, read_smart_qrels
    from .formats.text_tables import read_documents, read_judgments, read_query_texts, scan_clicks
    from .formats.trec import read_qrels, read_run, write_qrels, write_run
    from .formats.triples import Triples, read_triples, scan_triples, stream_triples
    from .formats.ubi import read_quepid, read_ubi, write_quepid
    from .open import open_data
    from .page_queries import TrainingQueries, training_queries
    from .records import Collection, Documents, Fold, LabeledData, Letor, Stories, TrainTestSplit

_MODULES = {
    "datasets.load": ("DatasetInfo", "list_datasets", "load"),
    "formats.beir": ("read_beir", "write_beir"),
    "formats.letor": ("docids", "parse_letor", "read_letor", "write_letor"),
    "formats.letor_folds": ("read_folds",),
    "formats.shopping": ("read_esci", "read_wands"),
    "formats.smart": ("read_smart", "read_smart_qrels"),
    "formats.text_tables": ("read_documents", "read_judgments", "read_query_texts", "scan_clicks"),
    "formats.trec": ("read_qrels", "read_run", "write_qrels", "write_run"),
    "formats.triples": ("Triples", "read_triples", "scan_triples", "stream_triples"),
    "formats.ubi": ("read_quepid", "read_ubi", "write_quepid"),
    "open": ("open_data",),
    "records": ("Collection", "Documents", "Fold", "LabeledData", "Letor", "Stories", "TrainTestSplit"),
    "page_queries": ("TrainingQueries", "training_queries"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
_RENAMED = {"Known": "DatasetInfo", "Labelled": "LabeledData", "Split": "TrainTestSplit", "known": "list_datasets"}

__all__ = sorted(_HOME)
__getattr__, __dir__ = lazy_names(__name__, _HOME, renamed_names(__name__, _RENAMED))
