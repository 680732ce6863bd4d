"""The loss of each engine: nDCG@10 on NFCorpus dev, and the share of the exact top 10 that it finds.

The model trains on the train split. Qdrant runs embedded; for the other engines, `benchmarks.engine_simulation`
evaluates the documents and requests that `sparserank export` writes, following the engine's documentation. `within`
rows are the curve with which the default of K was set: how many of the best by positive weights are rescored with
signs. The ratio is to exact scoring.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import sparserank as sr
from sparserank import data
from sparserank.export import Vectors, lucene, qdrant, synonyms, trec, vectors_of, vespa
from sparserank.export.impacts import Impacts
from sparserank.export.stages import RESCORE_WINDOW

from . import engine_simulation as simulation
from .measure import peak_megabytes

MEASURE, TOP = "nDCG@10", 10
CURVE = (10, 15, 20, 30, 50, 100, 200, 500, 1000)
PLOT = Path("reports/export_loss.png")
Answers = dict[str, list[tuple[str, float]]]


def lucene_answers(vectors: Vectors, texts: dict[str, str], target: str, windows: tuple[int, ...]) -> list[Answers]:
    """By the requests for one engine, for every K; K = 0 is without rescoring."""
    engine = simulation.LuceneEngine(lucene.bulk(vectors))
    found: list[Answers] = [{} for _ in windows]
    for name, text in texts.items():
        body = lucene.body(lucene.ENGINES[target], vectors, text, TOP, TOP)
        for answers, K in zip(found, windows, strict=True):
            rescorers = [part | {"window_size": K} for part in body.get("rescore", []) if K]
            answers[name] = engine.search(body | {"rescore": rescorers})
    return found


def vespa_answers(vectors: Vectors, texts: dict[str, str]) -> Answers:
    engine = simulation.VespaEngine(vespa.feed(vectors))
    return {name: engine.search(vespa.body(vectors, text, TOP, RESCORE_WINDOW)) for name, text in texts.items()}


def impact_answers(vectors: Vectors, texts: dict[str, str]) -> Answers:
    """By whole numbers and the positive part alone, as trec and ciff files hold them."""
    impacts = Impacts.over(float(vectors.largest.max()), trec.BITS)
    lines = list(trec.vector_lines(vectors, impacts))
    engine = simulation.Postings([str(line["id"]) for line in lines], [line["vector"] for line in lines])  # type: ignore[misc]
    return {name: engine.best(engine.scores(trec.topic(vectors, text)), TOP) for name, text in texts.items()}


def synonym_answers(vectors: Vectors, texts: dict[str, str], rules: list[synonyms.Rule]) -> Answers:
    analyzer, documents = vectors.model.lexical.analyzer, vectors.index.documents
    features = vectors.model.lexical.features
    counts = features.field_counts(documents.titles, documents.texts, field_weights=(1.0, 1.0))
    rows = (counts[[i]] for i in range(counts.shape[0]))
    named = [
        {features.words_[j]: c for j, c in zip(row.indices.tolist(), row.data.tolist(), strict=True)} for row in rows
    ]
    engine = simulation.SynonymEngine(documents.ids, named)
    alike = simulation.by_stem(rules, analyzer.normal_forms)
    return {name: engine.search(analyzer.tokens(text), alike, TOP) for name, text in texts.items()}


def word_rules_answers(vectors: Vectors, texts: dict[str, str], alike: dict[str, list[str]], at_least: int) -> Answers:
    """By the synonyms of Typesense or Meilisearch, with the words of titles and texts as they are spelled."""
    documents = vectors.index.documents
    analyzer = replace(vectors.model.lexical.analyzer, ngrams=1, stem=None, stop_words=None, accents="keep")
    rows = zip(documents.titles, documents.texts, strict=True)
    engine = simulation.WordRulesEngine(documents.ids, ([analyzer.tokens(part) for part in row] for row in rows))
    return {name: engine.search(analyzer.tokens(text), alike, TOP, at_least) for name, text in texts.items()}


def qdrant_answers(vectors: Vectors, texts: dict[str, str]) -> Answers:
    """For real."""
    with tempfile.TemporaryDirectory() as folder:
        shard = qdrant.make_shard(vectors, Path(folder, "shard"))
        found = {name: qdrant.hits(shard, vectors, text, TOP) for name, text in texts.items()}
        shard.close()
    return {name: [(hit.id, hit.score) for hit in hits] for name, hits in found.items()}


class Loss:
    """Answers against exact ones."""

    def __init__(self, exact: Answers, qrels: Any) -> None:
        self.exact, self.qrels = exact, qrels
        self.value = self.ndcg(exact)

    def ndcg(self, answers: Answers) -> float:
        """By the order of the answers, whatever the engine's scores are."""
        run = {q: {d: float(-rank) for rank, (d, _) in enumerate(found)} for q, found in answers.items()}
        return float(sr.evaluation.evaluate_run(run, self.qrels, MEASURE)[MEASURE].value)

    def overlap(self, answers: Answers) -> float:
        """Of the exact results, the share that is there."""
        there = sum(len({d for d, _ in self.exact[q]} & {d for d, _ in answers[q]}) for q in self.exact)
        return there / sum(map(len, self.exact.values()))

    def row(self, name: str, answers: Answers) -> dict[str, Any]:
        value = self.ndcg(answers)
        figures = {
            "ndcg": round(value, 4),
            "loss": round(self.value - value, 4),
            "top10": round(self.overlap(answers), 4),
        }
        return {"name": name, "ratio": round(value / self.value, 4)} | figures


def plot(curve: list[dict[str, Any]], exact: float, path: Path) -> None:
    """nDCG@10 and overlap against K."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(8.4, 3.0), layout="constrained")
    for panel, key, title in zip(panels, ("ndcg", "top10"), (MEASURE, "share of the exact top 10"), strict=True):
        panel.plot(CURVE, [row[key] for row in curve], marker="o", color="#2a6fdb")
        panel.axhline(exact if key == "ndcg" else 1.0, color="#6a7380", linewidth=0.8, linestyle="--")
        panel.axvline(RESCORE_WINDOW, color="#d4691e", linewidth=0.8)
        panel.set_xscale("log")
        panel.set_xlabel("K: documents scored again with signs")
        panel.set_title(title, loc="left", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def run(quick: bool = False, report: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Every target, and the curve."""
    collection = data.load("nfcorpus")
    pairs = {"max_pairs": 20_000} if quick else {}
    ranker = sr.TextRanker(**pairs).fit(collection.documents, collection.queries, collection.qrels["train"])
    vectors, qrels = vectors_of(ranker), collection.qrels["dev"]
    texts = {q: collection.queries[q] for q in list(qrels)[: 40 if quick else None]}
    hits = ranker.search_many(texts.values(), TOP)
    exact: Answers = {q: [(hit.id, hit.score) for hit in found] for q, found in zip(texts, hits, strict=True)}
    loss = Loss(exact, {q: qrels[q] for q in texts})
    lexical: Answers = {
        q: [(hit.id, hit.score) for hit in ranker.search_lexical(text, TOP)] for q, text in texts.items()
    }
    report("the curve")
    without, *by_K = lucene_answers(vectors, texts, "elasticsearch", (0, *CURVE))
    (by_opensearch,) = lucene_answers(vectors, texts, "opensearch", (RESCORE_WINDOW,))
    curve = [loss.row(f"within {K}", answers) for K, answers in zip(CURVE, by_K, strict=True)]
    plot(curve, loss.value, PLOT)
    report("the others")
    rules = synonyms.rules(vectors)
    of_typesense = {one["root"]: one["synonyms"] for one in synonyms.typesense(rules)}
    of_meilisearch = synonyms.meilisearch(rules)["synonyms"]
    rows = [
        loss.row("exact", exact),
        loss.row("qdrant (run)", qdrant_answers(vectors, texts)),
        loss.row(f"elasticsearch, K = {RESCORE_WINDOW}", by_K[CURVE.index(RESCORE_WINDOW)]),
        loss.row(f"opensearch, K = {RESCORE_WINDOW}", by_opensearch),
        loss.row("elasticsearch, no rescoring", without),
        loss.row(f"vespa, K = {RESCORE_WINDOW}", vespa_answers(vectors, texts)),
        loss.row("trec and ciff, no signs", impact_answers(vectors, texts)),
        loss.row("BM25 of Lucene and synonyms", synonym_answers(vectors, texts, rules)),
        loss.row("BM25 of Lucene", synonym_answers(vectors, texts, [])),
        loss.row("typesense and synonyms (simulated)", word_rules_answers(vectors, texts, of_typesense, 1)),
        loss.row("typesense (simulated)", word_rules_answers(vectors, texts, {}, 1)),
        loss.row("meilisearch and synonyms (simulated)", word_rules_answers(vectors, texts, of_meilisearch, TOP)),
        loss.row("meilisearch (simulated)", word_rules_answers(vectors, texts, {}, TOP)),
        loss.row("our words alone", lexical),
    ]
    size = f"NFCorpus dev, {len(texts)} queries, {len(vectors.index)} documents, {vectors.model.n_pairs} pairs"
    return {
        "case": "export",
        "size": size,
        "peer": "exact scoring",
        "rows": rows + curve,
        "plot": str(PLOT),
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
