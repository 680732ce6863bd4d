"""Check that BEIR and MTEB measure the same nDCG@10 as `sparserank evaluate`, on a BEIR folder and offline.

Both libraries need torch, so they are in no lock file. The script installs them in an environment of their own:

    benchmarks/beir_mteb.sh nf.safetensors nfcorpus --split dev
"""

from __future__ import annotations

import argparse
from importlib.metadata import version
from pathlib import Path
from typing import Any

from sparserank.data import open_data
from sparserank.data.records import Collection
from sparserank.evaluation import evaluate_run
from sparserank.integrations.beir import BeirSearch, MtebSearch
from sparserank.text_ranker import load_text

from .markdown import table

K = 1000


def by_beir(model: Path, corpus: dict[str, dict[str, str]], queries: dict[str, str], qrels: dict[str, Any]) -> float:
    from beir.retrieval.evaluation import EvaluateRetrieval

    evaluation = EvaluateRetrieval(BeirSearch.from_model(model), k_values=[10, K])
    run = evaluation.retrieve(corpus, queries)
    return evaluation.evaluate(qrels, run, [10])[0]["NDCG@10"]


def by_mteb(model: Path, corpus: dict[str, dict[str, str]], queries: dict[str, str], qrels: dict[str, Any]) -> float:
    import mteb
    from datasets import Dataset

    task = mteb.get_task("NFCorpus")
    split = {
        "corpus": Dataset.from_list([{"id": key, **one} for key, one in corpus.items()]),
        "queries": Dataset.from_list([{"id": key, "text": text} for key, text in queries.items()]),
        "relevant_docs": qrels,
        "top_ranked": None,
    }
    task.dataset, task.data_loaded = {"default": {"test": split}}, True
    scores = task.evaluate(MtebSearch.from_model(model), "test", encode_kwargs={})
    return scores["default"]["ndcg_at_10"]


def measure(model: Path, collection: Collection, split: str) -> list[dict[str, Any]]:
    """One row for each evaluator."""
    qrels = {q: {d: int(grade) for d, grade in of.items()} for q, of in collection.split(split).items()}
    queries = {query: collection.queries[query] for query in qrels}
    corpus = {key: {"title": title, "text": text} for key, (title, text, _) in collection.documents.rows().items()}
    ours = evaluate_run(load_text(model).run(queries, k=K), qrels, "nDCG@10").mean()
    rows = [{"name": "sparserank", "nDCG@10": f"{ours:.5f}"}]
    for name, evaluate in (("beir", by_beir), ("mteb", by_mteb)):
        found = evaluate(model, corpus, queries, qrels)
        if abs(found - ours) > 1e-5:  # both round to five digits
            raise AssertionError(f"{name} measures {found}, sparserank {ours}")
        rows.append({"name": name, "version": version(name), "nDCG@10": f"{found:.5f}"})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("data")
    parser.add_argument("--split", default="dev")
    options = parser.parse_args()
    print(table(measure(options.model, open_data(options.data), options.split)))


if __name__ == "__main__":
    main()
