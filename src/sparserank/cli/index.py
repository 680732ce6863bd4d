"""sparserank index"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .arguments import Data, Json, ModelFile


def index(
    model: ModelFile,
    data: Data,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="INDEX", help="Where to write the index.")],
    as_json: Json = False,
) -> None:
    """Make the documents of DATA searchable with MODEL: writes INDEX, for `--index INDEX` of the other commands.

    Example: sparserank index model.safetensors other-collection --output other.index
    """
    from ..engine import load_model
    from .collections import open_collection
    from .output import print_json, working

    ranker = load_model(model)
    collection = open_collection(data)
    with working("indexing"):
        made = ranker.index(collection.documents)
        made.save(output)
    summary = {"index": str(output), "documents": len(made), "postings": made.postings}
    if as_json:
        print_json(summary)
    else:
        print(f"{len(made):,} documents of {collection.name} for {model}: {output}")
