"""Is the learned ranker ever worse than BM25? Every text collection in five grouped folds, and collections of noise.

Each fold is measured by a model of the other four. Folds are grouped: near-duplicates of a query are always on one
side. Pages of one header (winapi) or one interface (mdn) stay together; the ranker knows nothing of these groups in one
row, and is given them in another (`query_group`). Elsewhere queries with similar words or the same relevant documents
stay together. Collections of more than 4,000 documents are sampled by whole groups of pages.

`bm25_tuned` has the k1 and b with the best nDCG@10 on the queries of the other folds (`benchmarks/tuned_bm25.py`), and
`p_tuned` is p of a paired randomisation test of the learned ranker against it; `difference` and `worst_fold` compare
with BM25 at its defaults, on which the learned ranker is built. Where queries are pages that link to each other,
`reverse_share` is the share of judgments whose reverse is in another fold; the columns that end in `without` are the
figures without these judgments.

A collection of noise has real or synthetic documents and queries, and random relevant documents: a model that keeps
word pairs there has mistaken chance for a gain.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import sparserank as sr
from sparserank.data.records import Collection, Documents
from sparserank.evaluation import Reverses
from sparserank.evaluation.reverses import own_documents
from sparserank.text import TextFeatures
from sparserank.text_ranker import held_out, model_selection
from sparserank.text_ranker.query_groups import query_groups

from .measure import peak_megabytes, without_reverses
from .tuned_bm25 import BM25Grid

FOLDS = 5
MOST_DOCUMENTS = 4_000
WORLDS = 100
FIRST_SEED = 1_000
"""Seeds below this one were used while the decision was built; the count is over seeds from here on."""
MEASURE = "nDCG@10"
GROUPS_GIVEN = ", groups given"


def cranfield(queries: int | None = None) -> tuple[Collection, list[Any]]:
    """All queries of Cranfield, or so many drawn at random."""
    whole = _all_judgments(sr.data.load("cranfield"))
    if queries is not None:
        whole = _some_queries(whole, np.random.default_rng(0).permutation(len(whole.queries))[:queries])
    return whole, _near_duplicates(whole)


def known(name: str) -> tuple[Collection, list[Any]]:
    """A collection with groups of near-duplicate queries."""
    collection = _all_judgments(sr.data.load(name))
    return collection, _near_duplicates(collection)


def pages(name: str, depth: int) -> tuple[Collection, list[Any]]:
    """A collection of pages that link to each other; pages whose ids begin with the same parts form a group."""
    collection = _sampled(_all_judgments(sr.data.load(name)), depth)
    return collection, [_page_group(page, depth) for page in collection.qrels["all"]]


COLLECTIONS: dict[str, Callable[[], tuple[Collection, list[Any]]]] = {
    "cranfield, 76 queries": partial(cranfield, 76),
    "cranfield": cranfield,
    "pydocs": partial(known, "pydocs"),
    "nfcorpus": partial(known, "nfcorpus"),
} | {
    f"{name}{ending}": partial(pages, name, depth)
    for name, depth in (("winapi", 1), ("mdn-de", 3), ("mdn-ja", 3), ("mdn-zh", 3))
    for ending in ("", GROUPS_GIVEN)
}


def _all_judgments(collection: Collection) -> Collection:
    qrels = {q: grades for split in collection.qrels.values() for q, grades in split.items()}
    own = any(q in set(collection.documents.ids) for q in qrels)
    return Collection(
        collection.name,
        collection.documents,
        collection.queries,
        {"all": qrels},
        exclude_self=own or collection.exclude_self,
    )


def _some_queries(collection: Collection, some: Any) -> Collection:
    ids = np.array(list(collection.qrels["all"]))[np.sort(some)].tolist()
    qrels = {"all": {q: collection.qrels["all"][q] for q in ids}}
    return Collection(
        collection.name, collection.documents, collection.queries, qrels, exclude_self=collection.exclude_self
    )


def _page_group(page: str, depth: int) -> str:
    """The first parts of a page's id: its header, or its section and interface."""
    return "/".join(page.split("/")[:depth])


def _sampled(collection: Collection, depth: int) -> Collection:
    """Whole groups of pages, drawn at random until there are `MOST_DOCUMENTS`; judgments among these pages."""
    documents = collection.documents
    pages: dict[str, list[int]] = {}
    for at, page in enumerate(documents.ids):
        pages.setdefault(_page_group(page, depth), []).append(at)
    kept: list[int] = []
    for group in np.random.default_rng(0).permutation(sorted(pages)).tolist():
        if len(kept) + len(pages[group]) <= MOST_DOCUMENTS:
            kept += pages[group]
    kept.sort()
    columns = (tuple(column[i] for i in kept) for column in (documents.ids, documents.titles, documents.texts))
    sample = Documents(*columns)
    there = set(sample.ids)
    qrels = {
        q: {d: g for d, g in grades.items() if d in there and d != q}
        for q, grades in collection.qrels["all"].items()
        if q in there
    }
    qrels = {q: grades for q, grades in qrels.items() if any(g > 0 for g in grades.values())}
    return Collection(collection.name, sample, collection.queries, {"all": qrels}, exclude_self=collection.exclude_self)


def _near_duplicates(collection: Collection) -> list[int]:
    from scipy.sparse import csr_array

    qrels, place = collection.qrels["all"], {d: i for i, d in enumerate(collection.documents.ids)}
    tokens = TextFeatures("binary").fit_transform([collection.queries[q] for q in qrels])
    entries = [(i, place[d]) for i, (q, grades) in enumerate(qrels.items()) for d in _linked(q, grades, place)]
    row, column = np.array(entries).T
    relevant = csr_array((np.ones(len(row), np.float32), (row, column)), shape=(len(qrels), len(place)))
    return query_groups(tokens, relevant).tolist()


def _linked(query: str, grades: Any, place: Any) -> set[str]:
    """The relevant documents, and the page that the query was made from."""
    return {d for d, grade in grades.items() if grade > 0} | ({query} & place.keys())


def folds(name: str, collection: Collection, groups: list[Any]) -> dict[str, Any]:
    """One row of the table: BM25 and learned over all queries, and the fold where learned is furthest behind."""
    started = perf_counter()
    qrels, own = collection.qrels["all"], collection.exclude_self
    queries = np.array(list(qrels))
    given = {"query_group": dict(zip(queries.tolist(), groups, strict=True))} if name.endswith(GROUPS_GIVEN) else {}
    fold, grid = _fold_of_each(groups), BM25Grid.of(collection, qrels, own)
    runs: dict[str, Any] = {"bm25": {}, "bm25_tuned": {}, "learned": {}}
    differences, kept = [], 0
    for one in range(FOLDS):
        train, test = ({q: qrels[q] for q in queries[part].tolist()} for part in (fold != one, fold == one))
        ranker = sr.TextRanker().fit(collection.documents, collection.queries, train, exclude_self=own, **given)
        kept += ranker.model_.n_pairs > 0
        rankers = {
            "bm25": sr.TextRanker("bm25").fit(collection.documents),
            "bm25_tuned": sr.TextRanker("bm25", lexical=grid.best(train)).fit(collection.documents),
            "learned": ranker,
        }
        found = {key: _run(system, collection, test) for key, system in rankers.items()}
        value = {key: sr.evaluation.evaluate_run(run, test, MEASURE)[MEASURE].value for key, run in found.items()}
        differences.append(value["learned"] - value["bm25"])
        for key, run in found.items():
            runs[key] |= run
    measured = {key: sr.evaluation.evaluate_run(run, qrels, MEASURE) for key, run in runs.items()}
    comparison = sr.evaluation.compare(measured["bm25"], measured["learned"])[MEASURE]
    tuned = sr.evaluation.compare(measured["bm25_tuned"], measured["learned"])[MEASURE]
    fold_of = dict(zip(queries.tolist(), fold.tolist(), strict=True))
    reverses = Reverses.between_folds(qrels, fold_of) if own_documents(collection, qrels) else None
    return {
        "name": name,
        "ratio": round(comparison.value / comparison.baseline, 3),
        "bm25": round(comparison.baseline, 4),
        "bm25_tuned": round(tuned.baseline, 4),
        "learned": round(comparison.value, 4),
        "p_tuned": round(tuned.p, 5),
        "difference": [round(x, 4) for x in (comparison.difference.low, comparison.difference.high)],
        "worst_fold": round(min(differences), 4),
        "folds_with_pairs": f"{kept} of {FOLDS}",
        "documents": len(collection.documents),
        "queries": len(queries),
        "groups": len(set(groups)),
        "seconds": round(perf_counter() - started, 1),
    } | without_reverses(reverses, qrels, runs, MEASURE)


def _fold_of_each(groups: list[Any]) -> Any:
    """Groups go to folds at random, the fullest fold last."""
    names, group = np.unique(np.array(groups), return_inverse=True)
    sizes = np.bincount(group)
    filled, fold = np.zeros(FOLDS, np.int64), np.empty(len(names), np.int64)
    for one in np.random.default_rng(0).permutation(len(names)).tolist():
        fold[one] = np.argmin(filled)
        filled[fold[one]] += sizes[one]
    return fold[group]


def _run(ranker: Any, collection: Collection, qrels: Any) -> dict[str, dict[str, float]]:
    return ranker.run({q: collection.queries[q] for q in qrels}, 100, collection.exclude_self)


# ------------------------------------------------------------------------------------------------ noise


def made_up(documents: int, queries: int, relevant: int, copies: int = 1) -> Callable[[int], tuple[Any, Any, Any]]:
    """Texts of words by Zipf's law; `copies` of a query differ by a word and share their relevant documents."""

    def world(seed: int) -> tuple[Any, Any, Any]:
        rng = np.random.default_rng(seed)
        vocabulary = np.array([f"w{i}x" for i in range(2 * documents)])
        often = 1.0 / np.arange(1, len(vocabulary) + 1)

        def text(low: int, high: int) -> str:
            return " ".join(rng.choice(vocabulary, rng.integers(low, high), p=often / often.sum()))

        docs = {f"d{i}": text(10, 40) for i in range(documents)}
        texts, qrels = {}, {}
        for i in range(queries):
            said, grades = (
                text(2, 6),
                dict.fromkeys((f"d{d}" for d in rng.choice(documents, relevant, replace=False)), 1),
            )
            for copy in range(copies):
                texts[f"q{i}-{copy}"] = said if copy == 0 else f"{said} {rng.choice(vocabulary)}"
                qrels[f"q{i}-{copy}"] = grades
        return docs, texts, qrels

    return world


def shuffled_cranfield(seed: int) -> tuple[Any, Any, Any]:
    """Cranfield's documents and queries; each query has as many relevant documents as before, drawn at random."""
    collection = _all_judgments(sr.data.load("cranfield"))
    rng, ids = np.random.default_rng(seed), np.array(collection.documents.ids)
    qrels = {
        q: dict.fromkeys(rng.choice(ids, max(1, sum(g > 0 for g in grades.values())), replace=False).tolist(), 1)
        for q, grades in collection.qrels["all"].items()
    }
    return collection.documents, collection.queries, qrels


NOISE = {
    "50 documents, 30 queries, 1 relevant": made_up(50, 30, 1),
    "300 documents, 200 queries, 5 relevant": made_up(300, 200, 5),
    "500 documents, 700 queries, 3 relevant": made_up(500, 700, 3),
    "200 documents, 40 queries in 3 wordings, 3 relevant": made_up(200, 40, 3, copies=3),
    "cranfield, judgments drawn at random": shuffled_cranfield,
}
LARGE = "300 documents, 200 queries, 5 relevant, as a large collection"
"""As if there were more than `ALL_DOCUMENTS` documents: pools of candidates, and one test, that of pruned pairs."""


def noise(worlds: int) -> dict[str, str]:
    """How many collections of noise keep word pairs."""
    counts = {name: _that_keep_pairs(world, worlds) for name, world in NOISE.items()}
    limits = {module: module.ALL_DOCUMENTS for module in (held_out, model_selection)}
    try:
        for module in limits:
            module.ALL_DOCUMENTS = 0
        counts[LARGE] = _that_keep_pairs(made_up(300, 200, 5), worlds)
    finally:
        for module, limit in limits.items():
            module.ALL_DOCUMENTS = limit
    return counts


def _that_keep_pairs(world: Callable[[int], tuple[Any, Any, Any]], worlds: int) -> str:
    rankers = (sr.TextRanker(max_pairs=10_000).fit(*world(FIRST_SEED + seed)) for seed in range(worlds))
    return f"{sum(ranker.model_.n_pairs > 0 for ranker in rankers)} of {worlds}"


def run(quick: bool = False) -> dict[str, Any]:
    """A row a collection, and the counts of noise."""
    logging.getLogger("sparserank").setLevel(logging.ERROR)
    names = list(COLLECTIONS)[:1] if quick else list(COLLECTIONS)
    rows = [folds(name, *COLLECTIONS[name]()) for name in names]
    return {
        "case": "never worse than BM25",
        "size": f"nDCG@10 in {FOLDS} grouped folds; worst_fold is learned less BM25 in the fold where that is least",
        "peer": "BM25",
        "rows": rows,
        "noise_that_kept_pairs": noise(2 if quick else WORLDS),
        "peak_mb": peak_megabytes(),
    }
