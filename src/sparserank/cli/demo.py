"""sparserank demo"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .arguments import Json

if TYPE_CHECKING:
    from ..data.records import Collection, Qrels
    from ..text_ranker import TextRanker

MEASURES = "nDCG@10 AP R@100"
SPLIT = "dev"
MAX_PAIRS = 200_000
SHOWN, DEPTH = 3, 10
"""Searches and results to show; a search fails if no relevant document is among the first DEPTH results."""


def demo(as_json: Json = False) -> None:
    """Train, evaluate and search on the embedded collection pydocs, without a network.

    The documents are the docstrings of the installed numpy, scipy and scikit-learn. A query is the first line of a
    docstring, and the objects in its "See Also" section are relevant. The model learns word pairs from the train
    queries and is measured on other queries. See Also is often mutual, so the figures are also measured without the
    judgments whose reverse is in training.

    The command leaves nothing but the cached collection.
    """
    from ..data import load
    from ..evaluation import Reverses, evaluate_run
    from ..text_ranker import TextRanker
    from ..text_ranker.cross_validation import fit_bm25
    from .model_evaluation import rank_queries
    from .output import phase, print_json, progress

    with phase("reading the docstrings of numpy, scipy and scikit-learn"):
        collection = load("pydocs")
    qrels = collection.split(SPLIT)
    with progress() as report:
        bm25 = fit_bm25(collection)
        ranker = TextRanker(max_pairs=MAX_PAIRS).fit(
            collection.documents, collection.queries, collection.split("train"), exclude_self=True, callback=report
        )
        report("measuring")
        rankers = {"BM25": bm25, "learned": ranker}
        runs = {name: rank_queries(ranker, collection, qrels, 1000) for name, ranker in rankers.items()}
        measures = {name: evaluate_run(run, qrels, MEASURES).to_dict() for name, run in runs.items()}
        reverses = Reverses.between(qrels, collection.split("train"))
        without = {name: reverses.evaluate(run, qrels, MEASURES) for name, run in runs.items()}
    summary = {
        "data": collection.name,
        "versions": dict(collection.versions),
        "documents": len(collection.documents),
        "split": SPLIT,
        "queries": len(qrels),
        "pairs": ranker.model_.n_pairs,
        "measures": measures,
        "reverse_in_training": reverses.to_dict()
        | {"measures_without": {name: one and one.to_dict() for name, one in without.items()}},
        "searches": _rescued_searches(ranker, collection, qrels, runs),
    }
    if as_json:
        print_json(summary)
    else:
        _print_summary(summary, reverses.sentences(without))


def _rescued_searches(
    ranker: TextRanker, collection: Collection, qrels: Qrels, runs: dict[str, dict[str, dict[str, float]]]
) -> list[dict[str, Any]]:
    """Return queries with a relevant document first in the learned ranking and none among BM25's first ten."""
    cases = []
    for query in qrels:
        relevant = {d for d, grade in qrels[query].items() if grade > 0}
        first = {name: list(run.get(query, {})) for name, run in runs.items()}
        if relevant.isdisjoint(first["BM25"][:DEPTH]) and first["learned"][0] in relevant:
            best = first["learned"][0]
            before = first["BM25"].index(best) + 1 if best in first["BM25"] else None
            cases.append((-(before or 10_000), query, best, before, first))
    out = []
    for _, query, best, before, first in sorted(cases, key=lambda case: case[:2])[:SHOWN]:
        text = collection.queries[query]
        pairs = [pair for pair in ranker.explain(text, best).pairs if pair.query != pair.document][:SHOWN]
        out.append(
            {
                "query": text,
                "found": best,
                "bm25_rank": before,
                "bm25": first["BM25"][:SHOWN],
                "learned": first["learned"][:SHOWN],
                "pairs": [pair._asdict() for pair in pairs],
            }
        )
    return out


def _print_summary(summary: dict[str, Any], notes: Sequence[str]) -> None:
    from .output import print_table

    versions = ", ".join(f"{name} {version}" for name, version in summary["versions"].items())
    print(f"pydocs: {summary['documents']:,} docstrings of {versions}; {summary['queries']} {SPLIT} queries\n")
    rows = [
        (name, *(f"{v['value']:.3f} [{v['low']:.3f}, {v['high']:.3f}]" for v in values.values()))
        for name, values in summary["measures"].items()
    ]
    title = f"BM25 against BM25 and {summary['pairs']:,} learned word pairs (95 % intervals)"
    print_table(title, ("", *summary["measures"]["BM25"]), rows, right=(1, 2, 3))
    print("\n".join([*notes, ""]))
    print("Searches whose first learned result is relevant and whose first ten BM25 results are not:\n")
    for case in summary["searches"]:
        place = "does not rank it" if case["bm25_rank"] is None else f"ranks it {case['bm25_rank']}"
        pairs = ", ".join(f"{p['query']} → {p['document']} {p['contribution']:+.2f}" for p in case["pairs"])
        print(f"“{case['query']}”")
        print(f"  BM25     {', '.join(case['bm25'])}")
        print(f"  learned  {', '.join(case['learned'])}")
        print(f"  {case['found']} is relevant; BM25 {place}. Largest pairs: {pairs}\n")
