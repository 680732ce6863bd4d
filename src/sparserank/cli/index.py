"""sparserank index"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .arguments import DataOrNone, Json, ModelFile

if TYPE_CHECKING:
    from ..text_ranker import TextRanker


MIN_SPEEDUP = 1.5
"""`--plan auto` expands documents if searches become at least this many times as fast."""


PART_DOCUMENTS = 20_000
"""Documents that are encoded at a time."""


class Plan(StrEnum):
    """What learned pairs expand."""

    auto = "auto"
    query = "query"
    documents = "documents"


def index(
    model: ModelFile,
    data: DataOrNone = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="INDEX", help="Where to write the index.", show_default="MODEL.index"),
    ] = None,
    update: Annotated[
        bool, typer.Option("--update", help="Add the documents of DATA to INDEX; equal ids are replaced.")
    ] = False,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="ID", help="Remove this document from INDEX; repeatable.")
    ] = None,
    plan: Annotated[
        Plan,
        typer.Option(
            help="query: expand queries through W at search time. documents: expand the documents now. "
            f"auto: documents, if searches become {MIN_SPEEDUP} times as fast and it takes < 512 MB."
        ),
    ] = Plan.auto,
    as_json: Json = False,
) -> None:
    """Index the documents of DATA for MODEL and write INDEX, which other commands take as `--index INDEX`.

    Example: sparserank index model.safetensors other-collection --output other.index

    Example: sparserank index model.safetensors new-documents --update --remove old-id
    """
    from ..data.files import file_lock
    from ..errors import ConfigError
    from ..text_ranker import index_path
    from .output import print_json, progress
    from .training_summary import describe_fields

    where = index_path(model) if output is None else output
    changes = update or bool(remove)
    if data is None and not changes:
        raise ConfigError("give DATA to index, or --remove documents from an existing index")
    if remove and data is not None and not update:
        raise ConfigError("--remove changes an existing index: with DATA, say --update as well")
    with progress() as report, file_lock(where) if changes else nullcontext():
        report("indexing")
        if changes:
            ranker = _updated_index(model, data, where, list(remove or []))
        else:
            ranker = _new_index(model, str(data), where, report)
        ranker.index_ = replace(ranker.index_, expansion=None)
        expanded = plan is not Plan.query and _expand(ranker, always=plan is Plan.documents)
        if changes or expanded:
            ranker.index_.save(where)
    found, lexical = ranker.index_, ranker.lexical_
    fields = {name: round(weight, 4) for name, weight in lexical.weight_of_field.items()}
    columns = [segment.metadata for segment in found.segments if segment.metadata is not None]
    metadata = sorted({name for one in columns for name in one.field_numbers}.difference(fields))
    if as_json:
        summary = {"index": str(where), "documents": len(found), "postings": found.postings, "expanded": expanded}
        print_json(summary | {"fields": fields, "metadata": metadata})
    else:
        print(f"{len(found):,} documents for {model}: {where}{' (documents expanded)' if expanded else ''}")
        print(describe_fields(fields, lexical.bm25f is not None, metadata))


def _new_index(model: Path, data: str, where: Path, report: Callable[[str], None]) -> TextRanker:
    """Write the index some documents at a time, and load it."""
    from ..data.open import stream_documents
    from ..search import Index
    from ..text_ranker import load_model
    from ..text_ranker.persistence import write_index

    ranker = load_model(model)
    write_index(ranker, where, stream_documents(data, PART_DOCUMENTS), report)
    ranker.index_ = Index.load(where)
    return ranker


def _updated_index(model: Path, data: str | None, where: Path, remove: list[str]) -> TextRanker:
    """Load the index, remove documents and add those of DATA."""
    from ..data.open import open_collection
    from ..text_ranker import load_text

    ranker = load_text(model, where)
    if remove:
        ranker.remove(remove)
    return ranker if data is None else ranker.add(open_collection(data, missing="drop").documents)


def _expand(ranker: TextRanker, always: bool) -> bool:
    """Expand the documents, always or if that makes searches faster; return whether they were expanded."""
    from ..errors import ConfigError

    if ranker.model_.W is None:
        return False
    plain = ranker.index_
    if not ranker.expand():
        if always:
            raise ConfigError("documents expanded through these pairs take more than 512 MB; say --plan query")
        return False
    if always or ranker.expansion_speedup() >= MIN_SPEEDUP:
        return True
    ranker.index_ = plain
    return False
