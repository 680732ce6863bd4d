"""sparserank demo"""

from __future__ import annotations

from .arguments import Json

SEARCHES = (
    "solve a linear system of equations",
    "middle value of the data, not the mean",
    "split data into training and test sets",
)
MEASURES = "nDCG@10 AP R@100"
SPLIT = "dev"


def demo(as_json: Json = False) -> None:
    """The main job on the embedded collection, pydocs: train, measure, search. No network.

    The documents are the docstrings of the numpy, scipy and scikit-learn installed here; a query is the first line of
    one of them, and what its "See Also" section names is what should be found. Nothing but the cached collection is
    left behind.
    """
    from ..data import load
    from ..evaluate import evaluate_run
    from .output import print_json, print_table, working
    from .systems import bm25_for, ranking

    with working("reading the docstrings of numpy, scipy and scikit-learn"):
        collection = load("pydocs")
    qrels = collection.split(SPLIT)
    with working("training and measuring"):
        bm25 = bm25_for(collection)
        measured = evaluate_run(ranking(bm25, collection, qrels, 1000), qrels, MEASURES)
    found = {words: bm25.search(words, 3) for words in SEARCHES}
    if as_json:
        print_json(
            {
                "data": collection.name,
                "versions": dict(collection.versions),
                "documents": len(collection.documents),
                "split": SPLIT,
                "queries": len(qrels),
                "measures": {"BM25": measured.to_dict()},
                "searches": {words: [hit._asdict() for hit in hits] for words, hits in found.items()},
            }
        )
        return
    versions = ", ".join(f"{name} {version}" for name, version in collection.versions.items())
    print(f"pydocs: {len(collection.documents):,} docstrings of {versions}; {len(qrels)} {SPLIT} queries\n")
    for words, hits in found.items():
        print_table(f"“{words}”", ("score", "document"), [(f"{hit.score:.2f}", hit.id) for hit in hits], right=(0,))
    values = measured.to_dict()
    cells = [f"{v['value']:.3f} [{v['low']:.3f}, {v['high']:.3f}]" for v in values.values()]
    print_table(f"on the {SPLIT} queries (95 % intervals)", ("", *values), [("BM25", *cells)], right=(1, 2, 3))
