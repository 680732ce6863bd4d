"""What each step of an analyzer brings in Japanese, Chinese and German: nDCG@10 of BM25, and of learned pairs.

Collections: mdn-ja, mdn-zh and mdn-de, the own page of a query left out. A row has nDCG@10 on 1,500 queries of `train`,
where the defaults were chosen, and on `dev`. The learned rows are trained on `train` and measured on `dev`, with
300,000 pairs; a report that exists is continued, since each of them takes minutes. Bigrams are no words, so no stop
words are removed from them.

    python -m benchmarks.languages --output reports/languages.json [--learned] [mdn-ja …]

`--tune-compounds` chooses the least letters and documents of a part of a compound: the best nDCG@10 of BM25 on all
training queries of mdn-de.

    python -m benchmarks.languages --tune-compounds
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sparserank as sr
from sparserank.data.files import write_bytes
from sparserank.data.records import Collection, Qrels
from sparserank.errors import NotInstalled
from sparserank.text import compounds

MEASURE, TRAIN_QUERIES, MAX_PAIRS = "nDCG@10", 1_500, 300_000
NO_STOPS: dict[str, Any] = {"stop_words": None}
STEPS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "mdn-ja": [
        ("word runs", {}),
        ("+ NFKC, case", {"language": "japanese", "segmenter": None} | NO_STOPS),
        ("+ bigrams", {"language": "japanese"}),
        ("+ English stems", {"language": "japanese+english"}),
        ("fugashi", {"language": "japanese", "segmenter": "fugashi"} | NO_STOPS),
        ("fugashi + stop words", {"language": "japanese", "segmenter": "fugashi"}),
        ("icu + stop words", {"language": "japanese", "segmenter": "icu"}),
    ],
    "mdn-zh": [
        ("word runs", {}),
        ("+ NFKC, case", {"language": "chinese", "segmenter": None} | NO_STOPS),
        ("+ bigrams", {"language": "chinese"}),
        ("+ English stems", {"language": "chinese+english"}),
        ("jieba", {"language": "chinese", "segmenter": "jieba"} | NO_STOPS),
        ("jieba + stop words", {"language": "chinese", "segmenter": "jieba"}),
        ("icu + stop words", {"language": "chinese", "segmenter": "icu"}),
    ],
    "mdn-de": [
        ("word runs", {}),
        ("English stems and stop words", {"language": "english"}),
        ("+ NFKC, case", {"language": "german", "stem": None} | NO_STOPS),
        ("+ stems", {"language": "german"} | NO_STOPS),
        ("+ stop words", {"language": "german"}),
        ("+ compounds", {"language": "german", "compounds": True}),
    ],
}
LEARNED = {
    "mdn-ja": ("+ bigrams", "fugashi + stop words"),
    "mdn-zh": ("+ bigrams", "jieba + stop words"),
    "mdn-de": ("+ stop words", "+ compounds"),
}
"""The rows that are also learned."""
MIN_PARTS, MIN_DOCUMENTS = (3, 4, 5), (2, 5, 10)
"""Letters of a part of a compound, and documents that it is in, at least: the settings to try."""


def sampled(qrels: Qrels, queries: int) -> Qrels:
    """So many queries of a split, drawn at random."""
    drawn = np.random.default_rng(0).permutation(len(qrels))[:queries]
    ids = list(qrels)
    return {ids[i]: qrels[ids[i]] for i in drawn.tolist()}


def ndcg(ranker: sr.TextRanker, collection: Collection, qrels: Qrels) -> float:
    """Mean nDCG@10 of a ranker, without the own page of a query."""
    return float(ndcg_by_query(ranker, collection, qrels).mean())


def ndcg_by_query(ranker: sr.TextRanker, collection: Collection, qrels: Qrels) -> NDArray[np.float64]:
    """nDCG@10 of each query, without its own page."""
    found = ranker.search_many([collection.queries[query] for query in qrels], 11)
    run = {
        query: {hit.id: hit.score for hit in hits if hit.id != query} for query, hits in zip(qrels, found, strict=True)
    }
    return np.array(list(sr.evaluation.evaluate_run(run, qrels, MEASURE).per_query[MEASURE].values()))


def measure(collection: Collection, settings: dict[str, Any], learned: bool) -> dict[str, float]:
    """One row: the measure by split."""
    analyzer = sr.Analyzer(**settings)
    ranker = sr.TextRanker("text" if learned else "bm25", analyzer=analyzer, max_pairs=MAX_PAIRS, random_state=0)
    splits = {"dev": collection.qrels["dev"]}
    if learned:
        ranker.fit(collection.documents, collection.queries, collection.qrels["train"], exclude_self=True)
    else:
        ranker.fit(collection.documents)
        splits["train"] = sampled(collection.qrels["train"], TRAIN_QUERIES)
    return {name: round(ndcg(ranker, collection, qrels), 4) for name, qrels in splits.items()}


def tune_compounds(
    collection: Collection, settings: Iterable[tuple[int, int]]
) -> dict[tuple[int, int] | None, NDArray[np.float64]]:
    """nDCG@10 of every training query by setting, letters and documents; None is without parts."""
    found: dict[tuple[int, int] | None, NDArray[np.float64]] = {}
    before = compounds.MIN_PART, compounds.MIN_DOCUMENTS
    for setting in (None, *settings):
        compounds.MIN_PART, compounds.MIN_DOCUMENTS = setting or before
        analyzer = sr.Analyzer("german", compounds=setting is not None)
        ranker = sr.TextRanker("bm25", analyzer=analyzer).fit(collection.documents)
        found[setting] = ndcg_by_query(ranker, collection, collection.qrels["train"])
        print(describe_compounds(setting, found), flush=True)
    compounds.MIN_PART, compounds.MIN_DOCUMENTS = before
    best = max((one for one in found if one is not None), key=lambda one: float(found[one].mean()))
    print("chosen:", describe_compounds(best, found))
    return found


def describe_compounds(
    setting: tuple[int, int] | None, found: Mapping[tuple[int, int] | None, NDArray[np.float64]]
) -> str:
    """A setting with its nDCG@10, and the difference to no parts with its standard error."""
    if setting is None:
        return f"no parts: {found[None].mean():.4f}"
    gain = found[setting] - found[None]
    return (
        f"at least {setting[0]} letters, {setting[1]} documents: {found[setting].mean():.4f} "
        f"({gain.mean():+.4f} ± {gain.std() / len(gain) ** 0.5:.4f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collections", nargs="*", default=list(STEPS))
    parser.add_argument("--learned", action="store_true", help="also train word pairs")
    parser.add_argument("--output", type=Path, default=Path("reports/languages.json"))
    parser.add_argument("--tune-compounds", action="store_true", help="choose the constants of text/compounds.py")
    options = parser.parse_args()
    if options.tune_compounds:
        tune_compounds(sr.data.load("mdn-de"), product(MIN_PARTS, MIN_DOCUMENTS))
        return
    found: dict[str, Any] = json.loads(options.output.read_text()) if options.output.exists() else {}
    for name in options.collections:
        collection = sr.data.load(name)
        for learned in (False, True) if options.learned else (False,):
            for step, settings in STEPS[name]:
                key = f"{name} {'learned' if learned else 'BM25'} {step}"
                if key in found or (learned and step not in LEARNED[name]):
                    continue
                try:
                    found[key] = measure(collection, settings, learned)
                except NotInstalled as error:
                    print(f"{key}: {error}")
                    continue
                write_bytes(options.output, json.dumps(found, indent=1).encode())
                print(key, found[key], flush=True)


if __name__ == "__main__":
    main()
