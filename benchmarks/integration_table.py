"""Compare every integration with `TextRanker.search` on the queries of a collection, and print a table.

    python -m benchmarks.integration_table model.safetensors nfcorpus --split dev --queries 100

A row has the library and its version, the lines of our module, and on how many queries the ids and scores of the best
ten documents equal those of `TextRanker.search`.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sparserank import integrations
from sparserank.data import open_data
from sparserank.text_ranker import load_text

from .markdown import table

K = 10
Rankings = list[list[tuple[str, float]]]


def langchain(model: Path, texts: Sequence[str]) -> Rankings:
    from sparserank.integrations.langchain import SparseRankRetriever

    found = SparseRankRetriever.from_model(model, k=K).batch(list(texts))
    return [[(one.metadata["id"], one.metadata["score"]) for one in documents] for documents in found]


def llamaindex(model: Path, texts: Sequence[str]) -> Rankings:
    from sparserank.integrations.llamaindex import SparseRankRetriever

    retriever = SparseRankRetriever.from_model(model, k=K)
    return [[(one.node.node_id, one.score) for one in retriever.retrieve(text)] for text in texts]


def haystack(model: Path, texts: Sequence[str]) -> Rankings:
    from sparserank.integrations.haystack import SparseRankRetriever

    retriever = SparseRankRetriever.from_model(model, k=K)
    return [[(one.id, one.score) for one in retriever.run(text)["documents"]] for text in texts]


def pyterrier(model: Path, texts: Sequence[str]) -> Rankings:
    import pandas as pd

    from sparserank.integrations.pyterrier import SparseRankTransformer

    transformer = SparseRankTransformer.from_model(model, k=K)
    frame = transformer(pd.DataFrame({"qid": [str(n) for n in range(len(texts))], "query": texts}))
    groups = {query: list(zip(of.docno, of.score, strict=True)) for query, of in frame.groupby("qid")}
    return [groups.get(str(n), []) for n in range(len(texts))]


def mcp(model: Path, texts: Sequence[str]) -> Rankings:
    import mcp as sdk

    from sparserank.integrations.mcp import create_server

    async def ask() -> list[Any]:
        async with sdk.Client(create_server(model)) as client:
            return [await client.call_tool("search", {"query": text, "k": K}) for text in texts]

    found = [one.structured_content["results"] for one in asyncio.run(ask())]
    return [[(one["id"], one["score"]) for one in results] for results in found]


def huggingface(model: Path, texts: Sequence[str]) -> Rankings:
    from sparserank.integrations.huggingface import from_pretrained, save_pretrained

    with TemporaryDirectory() as folder:
        save_pretrained(load_text(model), folder)
        ranker = from_pretrained(folder)
        return [[(hit.id, hit.score) for hit in ranker.search(text, K)] for text in texts]


PACKAGES: dict[Callable[[Path, Sequence[str]], Rankings], str] = {
    langchain: "langchain-core",
    llamaindex: "llama-index-core",
    haystack: "haystack-ai",
    pyterrier: "pyterrier",
    mcp: "mcp",
    huggingface: "huggingface-hub",
}


def measure(model: Path, texts: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each integration."""
    ranker = load_text(model)
    wanted = [[(hit.id, hit.score) for hit in ranker.search(text, K)] for text in texts]
    rows = []
    for search, package in PACKAGES.items():
        found = search(model, texts)
        equal = sum(one == other for one, other in zip(found, wanted, strict=True))
        file = import_module(f"sparserank.integrations.{search.__name__}").__file__
        lines = len(Path(str(file)).read_text().splitlines())
        figure = f"{equal} of {len(texts)} queries, {sum(map(len, wanted)):,} documents and scores"
        rows.append({"name": package, "version": version(package), "lines": lines, "equal to search": figure})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("data")
    parser.add_argument("--split", default="dev")
    parser.add_argument("--queries", type=int, default=100)
    options = parser.parse_args()
    collection = open_data(options.data)
    texts = [collection.queries[query] for query in list(collection.split(options.split))[: options.queries]]
    print(table(measure(options.model, texts)))
    shared = [
        Path(str(integrations.__file__)).with_name(f"{name}.py")
        for name in ("requirement", "results", "filters", "runs")
    ]
    print(f"\nshared by them: {sum(len(file.read_text().splitlines()) for file in shared)} lines")


if __name__ == "__main__":
    main()
