"""Test judgments whose reverse is in training, in collections whose queries are documents.

If judgments are links between documents (*See Also*), many links are mutual: if document d is a training query and q is
relevant to it, a model already knows the test judgment (q, d). Reports therefore show the measures without these
judgments too. Each such document is removed from the judgments *and* from the ranking of that query, so that it is
neither a gain nor a loss. A query without any other relevant document is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..data.records import Collection, Qrels, Run
from ..deprecated import renamed_parameters
from .measures import Measures
from .runs import Evaluation, evaluate_run


@dataclass(frozen=True)
class Reverses:
    """The relevant judgments (q, d) of a split for which q is relevant to the training query d.

    Attributes
    ----------
    known : dict of str to frozenset of str
        For every query, its relevant documents whose judgment has a reverse in training.
    of : int
        The number of relevant judgments in the split.

    Examples
    --------
    >>> reverses = Reverses.between({"a": {"b": 1, "c": 1}}, training={"b": {"a": 1}})
    >>> reverses.judgments, reverses.of, reverses.without({"a": {"b": 1, "c": 1}})
    (1, 2, {'a': {'c': 1}})
    """

    known: Mapping[str, frozenset[str]]
    of: int

    @classmethod
    def between(cls, qrels: Qrels, training: Qrels) -> Reverses:
        """Find the judgments of `qrels` whose reverse is in `training`.

        Parameters
        ----------
        qrels, training : {query id: {document id: grade}}
            The judgments to measure on, and those that the model was trained on.
        """
        relevant = {q: frozenset(d for d, grade in of.items() if grade > 0) for q, of in qrels.items()}
        known = {q: frozenset(d for d in of if training.get(d, {}).get(q, 0.0) > 0) for q, of in relevant.items()}
        return cls(known, sum(map(len, relevant.values())))

    @classmethod
    def between_folds(cls, qrels: Qrels, fold: Mapping[str, int]) -> Reverses:
        """Find the judgments whose reverse is in another fold, for models of all folds but one.

        Parameters
        ----------
        qrels : {query id: {document id: grade}}
            The judgments of all folds.
        fold : mapping of str to int
            The fold of each query.
        """
        whole = cls.between(qrels, qrels)
        known = {q: frozenset(d for d in of if fold[d] != fold[q]) for q, of in whole.known.items()}
        return cls(known, whole.of)

    @classmethod
    def in_collection(cls, collection: Collection, qrels: Qrels, training: str = "train") -> Reverses | None:
        """Find the judgments of `qrels` whose reverse is in a split of the collection.

        Return None if no query has the id of a document, if there is no such split, or if `qrels` is that split.

        Parameters
        ----------
        collection : Collection
            The documents, and the splits.
        qrels : {query id: {document id: grade}}
            The judgments to measure on.
        training : str, default="train"
            The split that the model was trained on.
        """
        training_qrels = collection.qrels.get(training)
        if not training_qrels or qrels == training_qrels or not own_documents(collection, qrels):
            return None
        return cls.between(qrels, training_qrels)

    @property
    def judgments(self) -> int:
        """Their number."""
        return sum(map(len, self.known.values()))

    @property
    def share(self) -> float:
        """Their share of all relevant judgments of the split."""
        return self.judgments / self.of if self.of else 0.0

    def without(self, qrels: Qrels) -> dict[str, dict[str, float]]:
        """Remove these judgments, and queries that then have no relevant document.

        Parameters
        ----------
        qrels : {query id: {document id: grade}}
            All judgments.
        """
        remaining = {q: {d: g for d, g in of.items() if d not in self.known.get(q, ())} for q, of in qrels.items()}
        return {q: of for q, of in remaining.items() if any(grade > 0 for grade in of.values())}

    @renamed_parameters({"seed": "random_state"})
    def evaluate(self, run: Run, qrels: Qrels, measures: Measures, *, random_state: int = 0) -> Evaluation | None:
        """Measure a run without these judgments and documents; return None if no relevant judgment is left.

        Parameters
        ----------
        run, qrels, measures, random_state : mapping, mapping, str or sequence, and int
            As in `evaluate_run`.
        """
        remaining = self.without(qrels)
        if not remaining:
            return None
        ranked = {q: {d: s for d, s in run.get(q, {}).items() if d not in self.known.get(q, ())} for q in remaining}
        return evaluate_run(ranked, remaining, measures, random_state=random_state)

    def to_dict(self) -> dict[str, Any]:
        """{"judgments": …, "of": …, "share": …}, for JSON."""
        return {"judgments": self.judgments, "of": self.of, "share": self.share}

    def sentences(self, evaluations: Mapping[str, Evaluation | None]) -> list[str]:
        """Describe the share, and each system's values without these judgments.

        Parameters
        ----------
        evaluations : mapping of str to Evaluation or None
            What `evaluate` returned for each system.
        """
        lines = [f"{self}: the document is a training query, and this query is relevant to it."]
        for name, one in evaluations.items():
            if one is None:
                return [*lines, "Without them no relevant judgment is left."]
            values = ", ".join(f"{measure} {estimate.value:.4f}" for measure, estimate in one.estimates.items())
            lines.append(f"Without them, {name}: {values} ({len(one.queries):,} queries).")
        return lines

    def __str__(self) -> str:
        return f"{self.judgments:,} of {self.of:,} judgments ({self.share:.1%}) have their reverse in training"


def own_documents(collection: Collection, queries: Iterable[str]) -> int:
    """How many of these queries have the id of a document."""
    return len(set(queries) & set(collection.documents.ids))
