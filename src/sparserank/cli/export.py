"""sparserank export"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from .arguments import IndexFile, Json, ModelFile

Target = StrEnum("Target", "qdrant elasticsearch opensearch vespa trec ciff synonyms static")


def export(
    model: ModelFile,
    to: Annotated[
        Target,
        typer.Option(
            help="qdrant: exact. elasticsearch, opensearch, vespa: positive weights retrieve documents, signed weights "
            "rescore the best. trec, ciff: term weights and impacts for research engines. synonyms: rules for engines "
            "that support nothing else. static: files and a script that search in the browser, exactly."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="The folder to write; an earlier export there is replaced."),
    ] = None,
    index: IndexFile = None,
    query: Annotated[
        str | None, typer.Option("--query", metavar="WORDS", help="Print the request for this query.")
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            metavar="DATA", help="Also write these queries: a queries.jsonl, a BEIR folder or a known collection."
        ),
    ] = None,
    filter: Annotated[
        str | None,
        typer.Option(
            "--filter", metavar="FILTER", help="A filter by metadata that the requests have: 'kind:function'."
        ),
    ] = None,
    split: Annotated[str | None, typer.Option(metavar="SPLIT", help="The split of --queries to write.")] = None,
    rescore: Annotated[
        int, typer.Option(metavar="K", help="How many documents to rescore with signed weights.", min=10, max=10_000)
    ] = 100,
    embedded: Annotated[bool, typer.Option("--embedded", help="qdrant: also write a shard for Qdrant Edge.")] = False,
    k: Annotated[int, typer.Option("-k", help="With --query: how many results to request.", min=1, max=10_000)] = 10,
    as_json: Json = False,
) -> None:
    """Export MODEL to another engine: write its documents, index settings and queries to DIR.

    DIR/README.md has commands to copy. With --query instead of --output, print the request for one query.

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
        from ..export import check_free, query_body
        from ..export import export as write_export
        from ..text_ranker import load_text

        if output is not None:
            check_free(output)
        ranker = load_text(model, index)
    if query is not None:
        print_json(query_body(ranker, to.value, query, k, rescore, filter))
        return
    texts = None if queries is None else _read_queries(queries, split)
    assert output is not None
    with phase(f"writing {output}"):
        summary = write_export(ranker, to.value, output, texts, rescore, embedded, filter)
    summary = {"output": str(output)} | summary | {"bytes": sum(summary["files"].values())}
    if as_json:
        print_json(summary)
        return
    size = f"{summary['documents']:,} documents, {summary['terms']:,} terms, {summary['bytes'] / 1e6:.1f} MB"
    print(f"{size} for {to.value}: {output}\nread {output / 'README.md'}")


def _read_queries(data: str, split: str | None) -> dict[str, str]:
    """Read {id: text} from a file of queries or from a collection."""
    from ..data.formats.beir import read_queries
    from ..data.open import open_collection
    from ..errors import ConfigError

    if Path(data).is_file():
        if split is not None:
            raise ConfigError(f"{data}: is a file of queries and has no splits; --split needs a BEIR folder")
        return read_queries(data)
    collection = open_collection(data, missing="drop")
    if split is None:
        return dict(collection.queries)
    if split not in collection.qrels:
        raise ConfigError(f"{data} has no split {split!r}; there are: {', '.join(collection.qrels)}")
    return {name: collection.queries[name] for name in collection.qrels[split]}
