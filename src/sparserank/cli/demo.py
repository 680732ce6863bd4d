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
SHOWN, DEEP = 3, 10
"""Searches and results that are shown; a search counts as failed where nothing relevant is among so many results."""


def demo(as_json: Json = False) -> None:
    """The main job on the embedded collection, pydocs: train, measure, search. No network.

    The documents are the docstrings of the numpy, scipy and scikit-learn installed here; a query is the first line of
    one of them, and what its "See Also" section names is what should be found. Word pairs are learned from the train
    queries; what is shown is measured on others. See Also is often mutual, so the figures are also measured without the
    judgments whose reverse is in training.

    Nothing but the cached collection is left behind.
    """
    from ..data import load
    from ..evaluation import Reverses, evaluate_run
    from ..text_ranker import TextRanker
    from .output import phase, print_json, progress
    from .systems import bm25_for, ranking

    with phase("reading the docstrings of numpy, scipy and scikit-learn"):
        collection = load("pydocs")
    qrels = collection.split(SPLIT)
    with progress() as report:
        bm25 = bm25_for(collection)
        learned = TextRanker(max_pairs=MAX_PAIRS).fit(
            collection.documents, collection.queries, collection.split("train"), exclude_self=True, callback=report
        )
        report("measuring")
        runs = {"BM25": ranking(bm25, collection, qrels, 1000), "learned": ranking(learned, collection, qrels, 1000)}
        measured = {name: evaluate_run(run, qrels, MEASURES).to_dict() for name, run in runs.items()}
        reverses = Reverses.between(qrels, collection.split("train"))
        without = {name: reverses.evaluate(run, qrels, MEASURES) for name, run in runs.items()}
    found = {
        "data": collection.name,
        "versions": dict(collection.versions),
        "documents": len(collection.documents),
        "split": SPLIT,
        "queries": len(qrels),
        "pairs": learned.model_.n_pairs,
        "measures": measured,
        "reverse_in_training": reverses.to_dict()
        | {"measures_without": {name: one and one.to_dict() for name, one in without.items()}},
        "searches": _rescued(learned, collection, qrels, runs),
    }
    if as_json:
        print_json(found)
    else:
        show(found, reverses.sentences(without))


def _rescued(
    learned: TextRanker, collection: Collection, qrels: Qrels, runs: dict[str, dict[str, dict[str, float]]]
) -> list[dict[str, Any]]:
    """Queries whose relevant documents are not among BM25's first ten and come first in the learned ranking."""
    cases = []
    for query in qrels:
        relevant = {d for d, grade in qrels[query].items() if grade > 0}
        first = {name: list(run.get(query, {})) for name, run in runs.items()}
        if relevant.isdisjoint(first["BM25"][:DEEP]) and first["learned"][0] in relevant:
            best = first["learned"][0]
            before = first["BM25"].index(best) + 1 if best in first["BM25"] else None
            cases.append((-(before or 10_000), query, best, before, first))
    out = []
    for _, query, best, before, first in sorted(cases, key=lambda case: case[:2])[:SHOWN]:
        text = collection.queries[query]
        pairs = [pair for pair in learned.explain(text, best).pairs if pair.query != pair.document][:SHOWN]
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


def show(found: dict[str, Any], notes: Sequence[str] = ()) -> None:
    """The same for people."""
    from .output import print_table

    versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
    print(f"pydocs: {found['documents']:,} docstrings of {versions}; {found['queries']} {SPLIT} queries\n")
    rows = [
        (name, *(f"{v['value']:.3f} [{v['low']:.3f}, {v['high']:.3f}]" for v in values.values()))
        for name, values in found["measures"].items()
    ]
    title = f"BM25 against BM25 and {found['pairs']:,} learned word pairs (95 % intervals)"
    print_table(title, ("", *found["measures"]["BM25"]), rows, right=(1, 2, 3))
    print("\n".join([*notes, ""]))
    print("Searches where BM25 has nothing right among its first ten, and the learned ranking has it first:\n")
    for case in found["searches"]:
        place = "nowhere" if case["bm25_rank"] is None else f"on place {case['bm25_rank']}"
        pairs = ", ".join(f"{p['query']} → {p['document']} {p['contribution']:+.2f}" for p in case["pairs"])
        print(f"“{case['query']}”")
        print(f"  BM25     {', '.join(case['bm25'])}")
        print(f"  learned  {', '.join(case['learned'])}")
        print(f"  {case['found']} is right; BM25 has it {place}. Largest pairs: {pairs}\n")
