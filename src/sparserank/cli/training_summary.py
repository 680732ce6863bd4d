"""What `sparserank train` prints about a text ranker, trained here or on Spark."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..data.records import Documents
from ..text.analyzer import as_analyzer
from ..text.languages import AUTO
from ..text_ranker import TextRanker, index_path
from .output import print_json


def print_training(
    ranker: TextRanker, output: Path, source: str, seconds: float, n_dropped: int, exclude_self: bool,
    notes: Sequence[str], as_json: bool, documents: Documents | None = None, metadata: Sequence[str] = (), **more: Any,
) -> None:  # fmt: skip
    """Print the summary of a training, with `more` as JSON, or with the notes as text.

    metadata : the fields of documents on a cluster.
    """
    model, features = ranker.model_, ranker.model_.lexical.features
    index = str(index_path(output)) if hasattr(ranker, "index_") else None
    fields = {
        name: round(weight, 4)
        for name, weight in model.lexical.weight_of_field.items()
        if documents is None or any(documents.column(name))
    }
    names = metadata if documents is None else dict.fromkeys(name for one in documents.metadata for name in one)
    metadata = [name for name in names if name not in fields]
    summary = {
        "model": str(output),
        "index": index,
        "ranker": ranker.ranker,
        "documents": features.documents_,
        "words": len(features.words_),
        "language": features.analyzer_.language,
        "fields": fields,
        "metadata": metadata,
        "pairs": model.n_pairs,
        "left_out": n_dropped,
        "exclude_self": exclude_self,
        "chosen": dict(model.info),
        "seconds": round(seconds, 3),
    }
    if as_json:
        print_json(summary | more)
        return
    print(
        f"{ranker.ranker} on {features.documents_:,} documents and {len(features.words_):,} words {source} "
        f"in {seconds:.1f} s: {output}{'' if index is None else f', {index}'}"
    )
    print(describe_fields(fields, model.lexical.bm25f is not None, metadata))
    dropped = [f"{n_dropped:,} rows dropped: they name unknown documents or queries"] if n_dropped else []
    found = features.analyzer_.language
    detected = [f"detected language: {found or 'none'}"] if as_analyzer(ranker.analyzer).language == AUTO else []
    other_name = output.suffix not in ("", ".safetensors")
    suffix = [f"{output} is a safetensors file; other tools expect the name {output.with_suffix('.safetensors')}"]
    for note in (*dropped, *detected, *notes, *suffix * other_name):
        print(note)


def describe_fields(fields: dict[str, float], is_bm25f: bool, metadata: Sequence[str]) -> str:
    """Name the searched fields, with their weights in BM25F, and the metadata.

    >>> describe_fields({"title": 2.0, "body": 1.0}, True, ["year"])
    'fields: title (weight 2), body (weight 1); metadata: year'
    """
    names = [f"{name} (weight {weight:g})" if is_bm25f else name for name, weight in fields.items()]
    return f"fields: {', '.join(names)}" + (f"; metadata: {', '.join(metadata)}" if metadata else "")
