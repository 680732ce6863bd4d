"""Collections of the ir_datasets catalog."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..data.records import Collection, Documents
from ..errors import DataError
from .requirement import require
from .runs import as_qrels

__all__ = ["read_ir_datasets"]


def read_ir_datasets(datasets: str | Any | Mapping[str, str | Any]) -> Collection:
    """Read a data set of ir_datasets; one that is not on this machine is downloaded by ir_datasets.

    Parameters
    ----------
    datasets : str, Dataset or mapping
        The id of a data set, such as "beir/nfcorpus/train", or the object that `ir_datasets.load` returns. A mapping
        {split: id or Dataset} reads the queries and judgments of several; the documents come from the first.

    Returns
    -------
    Collection
        Documents, queries and judgments, which `TextRanker.fit` and `write_beir` take. A single data set is the split
        that its id ends with, or else "train".

    Examples
    --------
    >>> import ir_datasets
    >>> from tempfile import NamedTemporaryFile
    >>> with NamedTemporaryFile("w", suffix=".tsv") as file:
    ...     print("d1\\tred apples", file=file, flush=True)
    ...     read_ir_datasets(ir_datasets.create_dataset(docs_tsv=file.name)).documents.texts
    ('red apples',)
    """
    require("ir-datasets", "0.5")
    if not isinstance(datasets, Mapping):
        datasets = {_split_name(datasets): datasets}
    loaded = {split: _load(one) for split, one in datasets.items()}
    if not loaded:
        raise DataError("there are no data sets: give an id of ir_datasets, such as 'beir/nfcorpus/train'")
    first = next(iter(loaded.values()))
    if not first.has_docs():
        raise DataError(f"{_name(first)} of ir_datasets has no documents")
    docs = {doc.doc_id: _fields(doc) for doc in first.docs_iter()}
    queries: dict[str, str] = {}
    qrels = {}
    for split, dataset in loaded.items():
        if dataset.has_queries():
            queries |= {query.query_id: query.default_text() for query in dataset.queries_iter()}
        if dataset.has_qrels():
            qrels[split] = as_qrels(dataset.qrels_iter())
    return Collection(_name(first), Documents.of(docs), queries, qrels)


def _load(dataset: str | Any) -> Any:
    import ir_datasets

    if not isinstance(dataset, str):
        return dataset
    try:
        return ir_datasets.load(dataset)
    except KeyError:
        raise DataError(f"ir_datasets has no data set {dataset!r}") from None


def _name(dataset: Any) -> str:
    identify = getattr(dataset, "dataset_id", None)
    return str(identify()) if callable(identify) else "ir_datasets"


def _split_name(dataset: str | Any) -> str:
    last = (dataset if isinstance(dataset, str) else _name(dataset)).rpartition("/")[2]
    return last if last in ("train", "dev", "validation", "test") else "train"


def _fields(doc: Any) -> dict[str, Any]:
    """The plain fields of a document; one without a field `text` has the text that ir_datasets makes of its fields."""
    fields = {name: value for name, value in doc._asdict().items() if isinstance(value, str | int | float | bool)}
    del fields["doc_id"]
    return fields if "text" in fields else {"text": doc.default_text()}
