"""sparserank export"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .arguments import IndexFile, Json, ModelFile


class Target(StrEnum):
    """Who is to serve the model."""

    qdrant = "qdrant"
    elasticsearch = "elasticsearch"
    opensearch = "opensearch"
    vespa = "vespa"
    trec = "trec"
    ciff = "ciff"
    synonyms = "synonyms"


def export(
    model: ModelFile,
    to: Annotated[
        Target,
        typer.Option(
            help="qdrant: exact. elasticsearch, opensearch, vespa: found by positive weights, the best scored again "
            "with signs. trec, ciff: term weights and impacts for research engines. synonyms: rules for engines that "
            "take nothing else."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="DIR",
            help="The folder to write; an earlier export there is replaced.",
            show_default=False,
        ),
    ] = None,
    index: IndexFile = None,
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="WORDS", help="Print the request for these words.", show_default=False),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Write these queries too: a queries.jsonl, a BEIR folder or a known collection.",
            show_default=False,
        ),
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="Of --queries, those judged in this split.", show_default=False)
    ] = None,
    rescore: Annotated[
        int, typer.Option(metavar="K", help="How many documents are scored again with signs.", min=10, max=10_000)
    ] = 100,
    embedded: Annotated[
        bool, typer.Option("--embedded", help="qdrant: also a shard that Qdrant Edge opens in your own process.")
    ] = False,
    k: Annotated[int, typer.Option("-k", help="How many results --query asks for.", min=1, max=10_000)] = 10,
    as_json: Json = False,
) -> None:
    """Serve MODEL from another engine: writes its documents, index settings and queries to DIR, and how to use them.

    DIR/README.md has commands to copy. Without --output, --query prints the one request for those words.

    Example: sparserank export model.safetensors --to qdrant --output for-qdrant

    Example: sparserank export model.safetensors --to elasticsearch --query "heart attack" | curl -d @- …
    """  # fmt: skip
    from ..errors import ConfigError
    from .output import phase, print_json

    if output is None and query is None:
        raise ConfigError("give --output DIR for the documents, or --query WORDS for one request")
    if output is not None and query is not None:
        raise ConfigError("--query prints one request and --output writes the documents: give one of the two")
    if split is not None and queries is None:
        raise ConfigError("--split chooses among --queries: give both")
    with phase(f"reading {model}"):
        from .. import export as exporting
        from ..text_ranker import load_text

        if output is not None:
            exporting.check_free(output)
        ranker = load_text(model, index)
    if query is not None:
        request = exporting.query_body(ranker, to.value, query, k, rescore)
        print_json(request)
        return
    asked = None if queries is None else _queries(queries, split)
    assert output is not None
    with phase(f"writing {output}"):
        told = exporting.export(ranker, to.value, output, asked, rescore, embedded)
    told = {"output": str(output)} | told | {"bytes": sum(told["files"].values())}
    if as_json:
        print_json(told)
        return
    size = f"{told['documents']:,} documents, {told['terms']:,} terms, {told['bytes'] / 1e6:.1f} MB"
    print(f"{size} for {to.value}: {output}\nread {output / 'README.md'}")


def _queries(data: str, split: str | None) -> dict[str, str]:
    """{id: text} of a file of queries, or of a collection."""
    from ..data.formats.beir import read_queries
    from ..data.open import open_collection
    from ..errors import ConfigError

    if Path(data).is_file():
        if split is not None:
            raise ConfigError(f"{data}: is a file of queries and has no splits; --split needs a BEIR folder")
        return read_queries(data)
    collection = open_collection(data)
    if split is None:
        return dict(collection.queries)
    if split not in collection.qrels:
        raise ConfigError(f"{data} has no split {split!r}; there are: {', '.join(collection.qrels)}")
    return {name: collection.queries[name] for name in collection.qrels[split]}
