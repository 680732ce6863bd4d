"""Evaluation of a text model: against BM25 or another model, and without judgments whose reverse is in training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from ..data.records import Collection, Qrels, Run
from ..errors import DataError, count_of
from ..evaluation import Evaluation, PairedRuns, Report, Reverses, WorseQuery, compare, compare_runs, evaluate_run
from ..evaluation.measures import Measure

if TYPE_CHECKING:
    from ..text_ranker import TextRanker

SHOWN_RESULTS = 3
TITLE_WIDTH = 60


def rank_queries(ranker: TextRanker, collection: Collection, qrels: Qrels, depth: int) -> dict[str, dict[str, float]]:
    """Rank for the judged queries, with the ranker's own index if it contains the documents of the collection."""
    missing = [query for query in qrels if query not in collection.queries]
    if missing:
        n = count_of(len(missing), "judged query")
        raise DataError(f"{collection.name}: no text for {n}, the first is {missing[0]!r}")
    queries = {query: collection.queries[query] for query in qrels}
    if not ranker.serves(collection.documents):
        ranker = ranker.over(collection.documents)
    return ranker.run(queries, depth, collection.exclude_self)


def training_split(ranker: TextRanker, collection: Collection) -> str | None:
    """Return the split of this collection that the model was trained on, if its file says so."""
    info = ranker.model_.info
    return str(info["split"]) if info.get("data") == collection.name and "split" in info else None


@dataclass(frozen=True)
class ModelEvaluation:
    """The runs of a model, of BM25 and perhaps of another model, and their measures.

    training : the split that the model learned from. seen : the models that learned from the judgments in `qrels`.
    """

    collection: Collection
    qrels: Qrels
    measures: Sequence[Measure]
    seed: int
    model: Path
    run: Run
    bm25_run: Run
    against: Path | None = None
    against_run: Run | None = None
    training: str = "train"
    seen: tuple[Path, ...] = ()

    @cached_property
    def bm25(self) -> Evaluation:
        """The measures of BM25."""
        return evaluate_run(self.bm25_run, self.qrels, self.measures, random_state=self.seed)

    @cached_property
    def evaluation(self) -> Evaluation:
        """The measures of the model."""
        return evaluate_run(self.run, self.qrels, self.measures, random_state=self.seed)

    @cached_property
    def paired(self) -> PairedRuns | None:
        """The comparison with the other model."""
        if self.against_run is None:
            return None
        return compare_runs(self.against_run, self.run, self.qrels, self.measures, random_state=self.seed)

    @cached_property
    def reverses(self) -> Reverses | None:
        """The judgments whose reverse is in training; None unless queries are documents."""
        return Reverses.in_collection(self.collection, self.qrels, self.training)

    @property
    def names(self) -> dict[str, str]:
        """The display name of each system."""
        against = "" if self.against is None else self.against.name
        same = against == self.model.name
        return {
            "model": "BM25 (model)" if self.model.name == "BM25" else str(self.model) if same else self.model.name,
            "bm25": "BM25",
            "against": "BM25 (against)" if against == "BM25" else str(self.against) if same else against,
        }

    @cached_property
    def without_reverses(self) -> dict[str, Evaluation | None]:
        """The measures of each system without the judgments whose reverse is in training."""
        if self.reverses is None:
            return {}
        runs = {"model": self.run, "bm25": self.bm25_run, "against": self.against_run}
        return {
            name: self.reverses.evaluate(run, self.qrels, self.measures, random_state=self.seed)
            for name, run in runs.items()
            if run is not None
        }

    def report(self, settings: Mapping[str, Any]) -> Report:
        """Report on all systems; the baseline is the other model if there is one, else BM25."""
        names = self.names
        seen = [names["model" if path == self.model else "against"] for path in self.seen]
        notes = [f"{name} learned from these judgments; its results for new queries will be worse." for name in seen]
        systems = {"BM25": self.bm25, names["model"]: self.evaluation}
        if self.paired is not None:
            systems = {names["against"]: self.paired.baseline, names["model"]: self.evaluation, "BM25": self.bm25}
        if self.reverses is not None:
            notes += self.reverses.sentences({names[name]: one for name, one in self.without_reverses.items()})
        title = f"{self.model.name} on {settings['data']} ({settings['split']})"
        return Report.of(title, systems, notes=notes, settings=settings)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as JSON."""
        comparisons = compare(self.bm25, self.evaluation, random_state=self.seed)
        out: dict[str, Any] = {
            "measures": self.evaluation.to_dict(),
            "bm25": self.bm25.to_dict(),
            "comparisons": {self.names["model"]: {name: one.to_dict() for name, one in comparisons.items()}},
            "reverse_in_training": self._reverse_in_training(),
            "learned_from_these": self.model in self.seen,
        }
        if self.paired is not None:
            paired = self.paired.to_dict()
            paired["worse"] = [{"text": self.collection.queries[one["query"]]} | one for one in paired["worse"]]
            seen = {"learned_from_these": self.against in self.seen}
            out["against"] = {"model": str(self.against)} | paired | seen
        return out

    def _reverse_in_training(self) -> dict[str, Any] | None:
        if self.reverses is None:
            return None
        model = self.without_reverses["model"]
        by_key = {"measures" if name == "model" else name: one for name, one in self.without_reverses.items()}
        return (
            self.reverses.to_dict()
            | {"queries_without": 0 if model is None else len(model.queries)}
            | {f"{name}_without": None if one is None else one.to_dict() for name, one in by_key.items()}
        )

    def worse_queries(self, max_queries: int) -> str:
        """Describe the queries that got worse than with the other model, with the first results of both."""
        if self.paired is None:
            return ""
        worse, measure = self.paired.worse(), self.measures[0]
        shown = worse[:max_queries]
        head = f"Worse than {self.names['against']} on {measure}: {len(worse):,} of {len(self.qrels):,} queries"
        head += f"; {len(shown)} shown, all in --json" if len(shown) < len(worse) else ""
        return "\n".join(["", head, *(self._describe(one, str(measure)) for one in shown)]) + "\n"

    def _describe(self, one: WorseQuery, measure: str) -> str:
        text = shorten(self.collection.queries[one.query], 100, placeholder=" …")
        lines = [f"\n“{text}” ({one.query}): {one.baseline_values[measure]:.4f} → {one.values[measure]:.4f}"]
        for name, results in (("against", one.baseline_ranking), ("model", one.ranking)):
            lines.append(f"  {self.names[name]}")
            lines += [f"    {place}. {self._document(*hit)}" for place, hit in enumerate(results[:SHOWN_RESULTS], 1)]
            lines += [] if results else ["    nothing found"]
        return "\n".join(lines)

    def _document(self, document: str, grade: float) -> str:
        title = shorten(self._titles.get(document, ""), TITLE_WIDTH, placeholder=" …")
        return (
            f"{document}{f' [grade {grade:g}]' if grade else ''}{f'  {title}' if title not in ('', document) else ''}"
        )

    @cached_property
    def _titles(self) -> dict[str, str]:
        documents = self.collection.documents
        return dict(zip(documents.ids, documents.titles, strict=True))
