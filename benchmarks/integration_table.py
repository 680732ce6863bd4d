"""Compare every integration with `TextRanker.search` on the queries of a collection, and print a table.

    python -m benchmarks.integration_table
    python -m benchmarks.integration_table model.safetensors nfcorpus --split dev --queries 100

A row has the library and its version, the lines of our modules, and the figure that shows equality: on how many queries
the ids and scores of the best ten documents equal those of `TextRanker.search`; of runs and judgments, the difference
of nDCG@10; of ir_datasets, whether a collection is read as it was written; of documentation sites, which MkDocs and
Sphinx build of the documents that were found, on how many queries Chromium finds what Python finds in their pages; of
trees, the largest difference between the exported trees and the library's own predictions. The table and the line
below it count every module of the integrations at least once.
Without arguments a model is trained on Cranfield. A library that is missing has its error in the row.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sparserank import integrations
from sparserank.data import open_data
from sparserank.text_ranker import TextRanker, load_text

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


def trees(library: str, model: Path, texts: Sequence[str]) -> str:
    """Train trees of a library on scores as features, and compare the exported ones with its predictions."""
    import numpy as np

    from sparserank.integrations import ltr_trees

    ranker = load_text(model)
    X = np.asarray(ranker.scores(texts).T, np.float32)
    labels = (X.sum(axis=1) > np.median(X.sum(axis=1))).astype(int)
    names = [f"f{i}" for i in range(X.shape[1])]
    settings: dict[str, Any]
    if library == "lightgbm":
        import lightgbm

        settings = {"objective": "lambdarank", "verbose": -1, "num_threads": 1}
        group = [100] * (len(X) // 100) + ([len(X) % 100] if len(X) % 100 else [])
        data = lightgbm.Dataset(X, labels, group=group, feature_name=names)
        booster = lightgbm.train(settings, data, 50)
        ours, predicted = ltr_trees.lightgbm_trees(booster), booster.predict(X)
    else:
        import xgboost

        matrix = xgboost.DMatrix(X, labels, feature_names=names)
        settings = {"objective": "rank:pairwise", "base_score": 0.0, "nthread": 1}
        booster = xgboost.train(settings, matrix, 50)
        ours, predicted = ltr_trees.xgboost_trees(booster), booster.predict(matrix, output_margin=True)
    difference = float(np.abs(ltr_trees.evaluate_trees(ours, names, X) - predicted).max())
    return f"{len(ours)} trees, {len(X):,} rows: differ by at most {difference:.1e}"


def measures(model: Path, texts: Sequence[str]) -> str:
    """Compare nDCG@10 of a run with that of ir_measures' own code."""
    import ir_measures

    from sparserank.evaluation import evaluate_run
    from sparserank.integrations.runs import as_run

    ranker = load_text(model)
    run = ranker.run({str(n): text for n, text in enumerate(texts)}, K)
    qrels = {query: dict.fromkeys(list(found)[:2], 1) for query, found in run.items() if found}
    records = [ir_measures.ScoredDoc(q, d, score) for q, found in run.items() for d, score in found.items()]
    theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, records)[ir_measures.nDCG @ 10]
    ours = evaluate_run(as_run(records), qrels, "nDCG@10").mean()
    return f"nDCG@10 of {len(qrels)} queries differs by {abs(ours - theirs):.1e}"


def trec_measures(model: Path, texts: Sequence[str]) -> str:
    """Compare nDCG@10 of a run with that of trec_eval's code."""
    import pytrec_eval

    from sparserank.evaluation import evaluate_run
    from sparserank.integrations.runs import as_run

    run = load_text(model).run({str(n): text for n, text in enumerate(texts)}, K)
    qrels = {query: dict.fromkeys(list(found)[:2], 1) for query, found in run.items() if found}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(run)
    ours = evaluate_run(as_run(run), qrels, "nDCG@10").mean()
    mean = sum(one["ndcg_cut_10"] for one in theirs.values()) / len(theirs)
    return f"nDCG@10 of {len(qrels)} queries differs by {abs(ours - mean):.1e}"


def ranx(model: Path, texts: Sequence[str]) -> str:
    """Compare a run that went through ranx, and nDCG@10 of the queries with results; ranx takes no others."""
    from ranx import Qrels, Run, evaluate

    from sparserank.evaluation import evaluate_run
    from sparserank.integrations.runs import as_qrels, as_run

    found = load_text(model).run({str(n): text for n, text in enumerate(texts)}, K)
    run = {query: documents for query, documents in found.items() if documents}
    qrels = {query: dict.fromkeys(list(documents)[:2], 1) for query, documents in run.items()}
    theirs = Run(run), Qrels(qrels)
    same = "" if (as_run(theirs[0]), as_qrels(theirs[1])) == (run, qrels) else "not "
    ours = evaluate_run(run, qrels, "nDCG@10").mean()
    difference = abs(ours - float(evaluate(theirs[1], theirs[0], "ndcg@10")))
    return f"{same}the same run and judgments; nDCG@10 of {len(qrels)} queries differs by {difference:.1e}"


def catalog(model: Path, texts: Sequence[str]) -> str:
    """Compare a collection with what is read of it through ir_datasets."""
    import ir_datasets

    from sparserank.integrations.ir_datasets import read_ir_datasets

    hits = {f"q{n}": load_text(model).search(text, K) for n, text in enumerate(texts)}
    queries = {query: " ".join(text.split()) for query, text in zip(hits, texts, strict=True)}
    docs = {hit.id: " ".join(hit.title.split()) for found in hits.values() for hit in found}
    qrels = {query: {hit.id: 1 for hit in found} for query, found in hits.items() if found}
    with TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("docs.tsv", "queries.tsv", "qrels.txt")]
        for file, fields in zip(files, (docs, queries), strict=False):
            file.write_text("".join(f"{name}\t{text}\n" for name, text in fields.items()))
        files[2].write_text("".join(f"{query} 0 {doc} 1\n" for query, of in qrels.items() for doc in of))
        paths = dict(zip(("docs_tsv", "queries_tsv", "qrels_trec"), map(str, files), strict=True))
        read = read_ir_datasets(ir_datasets.create_dataset(**paths))
    same = dict(zip(read.documents.ids, read.documents.texts, strict=True)) == docs and read.queries == queries
    judgments = sum(map(len, qrels.values()))
    different = "" if same and read.split("train") == qrels else "not "
    return f"{different}the same {len(docs):,} documents, {len(queries):,} queries and {judgments:,} judgments"


def found_documents(model: Path, texts: Sequence[str]) -> dict[str, tuple[str, str]]:
    """{page: title and text} of the documents that the queries find, without what Markdown and reST read as markup."""
    ranker = load_text(model)
    ids = sorted({hit.id for text in texts for hit in ranker.search(text, K)})
    plain = [
        [re.sub(r"[^\w.,]+", " ", part).strip() for part in (ranker.index_.title_of(one), ranker.index_.text_of(one))]
        for one in ids
    ]
    return {f"page{n}": (title or f"Page {n}", text) for n, (title, text) in enumerate(plain)}


def mkdocs(model: Path, texts: Sequence[str]) -> str:
    """Build a site of the documents by MkDocs with our plugin, and search it in Chromium."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "docs").mkdir()
        for page, (title, text) in found_documents(model, texts).items():
            (folder / "docs" / f"{page}.md").write_text(f"# {title}\n\n{text}\n")
        (folder / "mkdocs.yml").write_text("site_name: Site\nplugins: [sparserank]\n")
        config = load_config(str(folder / "mkdocs.yml"))
        build(config)
        return site_search(config.plugins["sparserank"].pages, Path(config.site_dir, "search"), texts)


def sphinx(model: Path, texts: Sequence[str]) -> str:
    """Build a site of the documents by Sphinx with our extension, and search it in Chromium."""
    from sphinx.application import Sphinx

    with TemporaryDirectory() as name:
        folder = Path(name)
        documents = found_documents(model, texts)
        for page, (title, text) in documents.items():
            (folder / f"{page}.rst").write_text(f"{title}\n{'=' * len(title)}\n\n{text}\n")
        (folder / "index.rst").write_text("Site\n====\n\n.. toctree::\n\n   " + "\n   ".join(documents) + "\n")
        (folder / "conf.py").write_text('extensions = ["sparserank.integrations.sphinx"]\n')
        app = Sphinx(name, name, f"{name}/site", f"{name}/trees", "html", status=None, warning=None)
        app.build()
        return site_search(list(app.sparserank_pages.values()), folder / "site/sparserank", texts)


def site_search(pages: Sequence[Any], folder: Path, texts: Sequence[str]) -> str:
    """Compare the results of the search of a site in Chromium with those of Python on the same pages."""
    from playwright.sync_api import sync_playwright

    from sparserank.integrations.static_docs import train_search

    from .static_search import serve

    ranker = train_search(pages)
    with sync_playwright() as playwright, serve(folder, []) as base:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = chromium.new_page()
        page.goto(base)
        answers = page.evaluate(SEARCH, [base, list(texts)])
        chromium.close()
    equal, difference = 0, 0.0
    for text, found in zip(texts, answers, strict=True):
        hits = ranker.search(text, K)
        equal += [hit.id for hit in hits] == [one for one, _ in found]
        difference = max(0.0, difference, *(abs(hit.score - b) for hit, (_, b) in zip(hits, found, strict=True)))
    return f"{len(pages):,} pages, {equal} of {len(texts)} queries; scores differ by at most {difference:.1e}"


SEARCH = """async ([base, queries]) => {
  const { open } = await import(base + "search.js");
  const search = await open(base);
  const answers = await Promise.all(queries.map((query) => search(query)));
  return answers.map(({ results }) => results.map(({ id, score }) => [id, score]));
}"""


PACKAGES: dict[Callable[[Path, Sequence[str]], Rankings], str] = {
    langchain: "langchain-core",
    llamaindex: "llama-index-core",
    haystack: "haystack-ai",
    pyterrier: "pyterrier",
    mcp: "mcp",
    huggingface: "huggingface-hub",
}


OTHERS: dict[str, tuple[tuple[str, ...], Callable[[Path, Sequence[str]], str]]] = {
    "ir-datasets": (("ir_datasets",), catalog),
    "ir-measures": (("runs",), measures),
    "pytrec-eval-terrier": (("runs",), trec_measures),
    "ranx": (("runs",), ranx),
    "mkdocs": (("mkdocs", "static_docs"), mkdocs),
    "sphinx": (("sphinx", "static_docs"), sphinx),
    "lightgbm": (("ltr", "ltr_trees", "ltr_export"), partial(trees, "lightgbm")),
    "xgboost-cpu": (("ltr", "ltr_trees", "ltr_export"), partial(trees, "xgboost")),
}
"""Figures of integrations that do not search: package, our modules, and the function that returns the figure."""
SHARED = ("requirement", "results", "filters", "fusion")
"""Modules that several integrations use."""


def lines_of(*modules: str) -> int:
    """The number of lines of modules of the integrations."""
    folder = Path(str(integrations.__file__)).parent
    return sum(len((folder / f"{name}.py").read_text().splitlines()) for name in modules)


def row(package: str, modules: Sequence[str], figure: Callable[[], str]) -> dict[str, Any]:
    """One row; a package that is missing or too old has its error as the figure."""
    lines = lines_of(*modules)
    try:
        return {"name": package, "version": version(package), "lines": lines, "shows equality": figure()}
    except (ImportError, PackageNotFoundError) as error:
        return {"name": package, "version": "missing", "lines": lines, "shows equality": str(error)}


def measure(model: Path, texts: Sequence[str]) -> list[dict[str, Any]]:
    """One row for each integration."""
    ranker = load_text(model)
    wanted = [[(hit.id, hit.score) for hit in ranker.search(text, K)] for text in texts]

    def equality(search: Callable[[Path, Sequence[str]], Rankings]) -> str:
        found = search(model, texts)
        equal = sum(one == other for one, other in zip(found, wanted, strict=True))
        return f"{equal} of {len(texts)} queries, {sum(map(len, wanted)):,} documents and scores"

    rows = [row(package, (search.__name__,), partial(equality, search)) for search, package in PACKAGES.items()]
    return rows + [row(name, modules, partial(figure, model, texts)) for name, (modules, figure) in OTHERS.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("data", nargs="?", default="cranfield")
    parser.add_argument("--split")
    parser.add_argument("--queries", type=int, default=100)
    options = parser.parse_args()
    collection = open_data(options.data)
    qrels = collection.split(options.split or next(iter(collection.qrels)))
    texts = [collection.queries[query] for query in list(qrels)[: options.queries]]
    with TemporaryDirectory() as folder:
        model = options.model or Path(folder, "model.safetensors")
        if options.model is None:
            TextRanker(loss="squared", max_pairs=100_000).fit(collection.documents, collection.queries, qrels).save(
                model
            )
        print(table(measure(model, texts)))
    print(f"\nshared: {', '.join(SHARED)}, {lines_of(*SHARED)} lines")


if __name__ == "__main__":
    main()
