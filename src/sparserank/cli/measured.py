"""What `sparserank evaluate` finds about a text model: beside BM25, beside another model, and without mutual links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from ..data.records import Collection, Qrels, Run
from ..evaluation import Evaluation, PairedRuns, Report, Reverses, WorseQuery, compare, compare_runs, evaluate_run
from ..evaluation.measures import Measure

if TYPE_CHECKING:
    from ..text_ranker import TextRanker

TOP = 3
"""Results of each ranking that are shown as text."""
WIDTH = 60


@dataclass(frozen=True)
class Measured:
    """The rankings of a model, of BM25 and of another model if there is one, and what they are worth.

    training : the split that the model learned from. seen : the models that learned from the very judgments that are
    measured on.
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
        """The values of BM25."""
        return evaluate_run(self.bm25_run, self.qrels, self.measures, random_state=self.seed)

    @cached_property
    def ours(self) -> Evaluation:
        """The values of the model."""
        return evaluate_run(self.run, self.qrels, self.measures, random_state=self.seed)

    @cached_property
    def paired(self) -> PairedRuns | None:
        """The model against the other one."""
        if self.against_run is None:
            return None
        return compare_runs(self.against_run, self.run, self.qrels, self.measures, random_state=self.seed)

    @cached_property
    def reverses(self) -> Reverses | None:
        """The judgments whose reverse is in training; None where queries are no documents."""
        return Reverses.in_collection(self.collection, self.qrels, self.training)

    @property
    def names(self) -> dict[str, str]:
        """What each system is called."""
        against = "" if self.against is None else self.against.name
        same = against == self.model.name
        return {
            "model": "BM25 (model)" if self.model.name == "BM25" else str(self.model) if same else self.model.name,
            "bm25": "BM25",
            "against": "BM25 (against)" if against == "BM25" else str(self.against) if same else against,
        }

    @cached_property
    def without(self) -> dict[str, Evaluation | None]:
        """Each system without the judgments whose reverse is in training."""
        if self.reverses is None:
            return {}
        runs = {"model": self.run, "bm25": self.bm25_run, "against": self.against_run}
        return {
            name: self.reverses.evaluate(run, self.qrels, self.measures, random_state=self.seed)
            for name, run in runs.items()
            if run is not None
        }

    def report(self, settings: Mapping[str, Any]) -> Report:
        """All systems side by side; the baseline is the other model if there is one, else BM25."""
        names = self.names
        seen = [names["model" if path == self.model else "against"] for path in self.seen]
        notes = [f"{name} learned from these judgments: new queries will not be ranked as well." for name in seen]
        systems = {names["bm25"]: self.bm25, names["model"]: self.ours}
        if self.paired is not None:
            systems = {names["against"]: self.paired.baseline, names["model"]: self.ours, names["bm25"]: self.bm25}
        if self.reverses is not None:
            notes += self.reverses.sentences({names[name]: found for name, found in self.without.items()})
        title = f"{self.model.name} on {settings['data']} ({settings['split']})"
        return Report.of(title, systems, notes=notes, settings=settings)

    def to_dict(self) -> dict[str, Any]:
        """The figures, for JSON."""
        found = compare(self.bm25, self.ours, random_state=self.seed)
        out: dict[str, Any] = {
            "measures": self.ours.to_dict(),
            "bm25": self.bm25.to_dict(),
            "comparisons": {self.names["model"]: {name: one.to_dict() for name, one in found.items()}},
            "reverse_in_training": self._reverse_in_training(),
            "learned_from_these": self.model in self.seen,
        }
        if self.paired is not None:
            told = self.paired.to_dict()
            told["worse"] = [{"text": self.collection.queries[one["query"]]} | one for one in told["worse"]]
            seen = {"learned_from_these": self.against in self.seen}
            out["against"] = {"model": str(self.against)} | told | seen
        return out

    def _reverse_in_training(self) -> dict[str, Any] | None:
        if self.reverses is None:
            return None
        left = self.without["model"]
        found = {"measures" if name == "model" else name: one for name, one in self.without.items()}
        return (
            self.reverses.to_dict()
            | {"queries_without": 0 if left is None else len(left.queries)}
            | {f"{name}_without": None if one is None else one.to_dict() for name, one in found.items()}
        )

    def worse_queries(self, most: int) -> str:
        """Text: the queries that got worse than with the other model, with the first results of both."""
        if self.paired is None:
            return ""
        worse, measure = self.paired.worse(), self.measures[0]
        shown = worse[:most]
        head = f"Worse than {self.names['against']} on {measure}: {len(worse):,} of {len(self.qrels):,} queries"
        head += f"; {len(shown)} shown, all in --json" if len(shown) < len(worse) else ""
        return "\n".join(["", head, *(self._worse(one, str(measure)) for one in shown)]) + "\n"

    def _worse(self, one: WorseQuery, measure: str) -> str:
        text = shorten(self.collection.queries[one.query], 100, placeholder=" …")
        lines = [f"\n“{text}” ({one.query}): {one.baseline_values[measure]:.4f} → {one.values[measure]:.4f}"]
        for name, ranked in (("against", one.baseline_ranking), ("model", one.ranking)):
            lines.append(f"  {self.names[name]}")
            lines += [f"    {place}. {self._document(*hit)}" for place, hit in enumerate(ranked[:TOP], 1)]
            lines += [] if ranked else ["    nothing found"]
        return "\n".join(lines)

    def _document(self, document: str, grade: float) -> str:
        title = shorten(self._titles.get(document, ""), WIDTH, placeholder=" …")
        return (
            f"{document}{f' [grade {grade:g}]' if grade else ''}{f'  {title}' if title not in ('', document) else ''}"
        )

    @cached_property
    def _titles(self) -> dict[str, str]:
        documents = self.collection.documents
        return dict(zip(documents.ids, documents.titles, strict=True))


def training_split(ranker: TextRanker, collection: Collection) -> str | None:
    """The split of this collection that the model says it learned from; None if it says nothing."""
    info = ranker.model_.info
    return str(info["split"]) if info.get("data") == collection.name and "split" in info else None
