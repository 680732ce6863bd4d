"""Judged queries over documents to a TextModel with word pairs; settings are chosen on queries that are held out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import validation
from ..data.formats.logs import Triples
from ..data.records import Documents, Qrels
from ..errors import DataError
from ..optim.pattern_ridge import PatternRidge
from ..optim.problems import ListProblem
from ..optim.pruning import PairBudget
from ..preferences import win_rates
from .constraints import PairEdits
from .fixed_pairs import Edits
from .lexical import LexicalRanker
from .model import TextModel
from .pair_learner import Choice, PairLearner, Tell
from .query_groups import query_groups
from .query_words import QueryWords, document_rows
from .training_data import Judged, Product, grades_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NOTHING_TO_HOLD_OUT = "all judged queries are near-duplicates of each other, so no gain can be verified"
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class How:
    """How pairs are learned."""

    budget: PairBudget
    loss: str = "squared"
    penalty: str = "ridge"
    seed: int = 0
    n_jobs: int | None = None
    solver: PatternRidge = field(default_factory=PatternRidge)

    def learner(self, shape: tuple[int, int], edits: Edits) -> PairLearner:
        """For a W of this shape."""
        budget = self.budget.for_shape(shape)
        return PairLearner(budget, self.seed, self.n_jobs, edits, self.loss, self.penalty, self.solver)


@dataclass(frozen=True)
class Lesson:
    """What is learned from: judged queries that have something to teach, over documents with their lexical rows."""

    documents: Documents
    weighted: csr_array
    queries: Mapping[str, str]
    qrels: Qrels
    drop_self: bool = False
    weight: Mapping[str, float] | None = None
    triples: Triples | None = None

    @classmethod
    def of(
        cls,
        documents: Documents,
        weighted: csr_array,
        queries: Mapping[str, str] | None,
        qrels: Qrels | Triples | None,
        drop_self: bool,
        weight: Mapping[str, float] | None = None,
        below: bool = False,
    ) -> Lesson:
        """Checked: judgments of queries without a text, or of documents that are not there, are refused by name.

        below : grades below 0 teach too (that a document is worse than those nobody judged), else they are left out.
        """
        queries, triples = queries or {}, None
        if isinstance(qrels, Triples):
            triples, qrels = qrels, win_rates(qrels.query, qrels.better, qrels.worse, qrels.weight)
        qrels = qrels or {}
        unknown = [q for q in qrels if q not in queries]
        if unknown:
            raise DataError(f"{len(unknown)} judged queries have no text, the first is {unknown[0]!r}")
        there = set(documents.ids)
        absent = list(dict.fromkeys(d for judged in qrels.values() for d in judged if d not in there))
        if absent:
            raise DataError(f"{len(absent)} judged documents are not among the documents, the first is {absent[0]!r}")
        for q, judged in qrels.items():
            for d, grade in judged.items():
                if not np.isfinite(grade):
                    raise DataError(f"the grade of document {d!r} for query {q!r} is {grade}")
        teaching = {
            q: {d: g for d, g in judged.items() if (g > 0 or (below and g < 0)) and not (drop_self and d == q)}
            for q, judged in qrels.items()
        }
        for q, value in (weight or {}).items():
            if not 0.0 < validation.number(f"query_weight[{q!r}]", value) < np.inf:
                raise DataError(f"a query counts as a number above 0; {q!r} is said to count as {value}")
        kept = {q: judged for q, judged in teaching.items() if judged}
        return cls(documents, weighted, queries, kept, drop_self, weight, triples)

    @property
    def texts(self) -> list[str]:
        """Of the queries that teach, in their order."""
        return [self.queries[q] for q in self.qrels]

    def judged(self, lexical: LexicalRanker, words: QueryWords) -> Judged:
        """As rows."""
        places = {d: i for i, d in enumerate(self.documents.ids)}
        ids = list(self.qrels)
        own = np.array([places.get(q, -1) if self.drop_self else -1 for q in ids], np.int64)
        D = document_rows(lexical.features, self.weighted)
        weight = None if not self.weight else np.array([float(self.weight.get(q, 1.0)) for q in ids])
        lists = ListProblem(words.rows(self.texts), D, grades_of(self.qrels, ids, places), weight)
        return Judged(lists, Product(lexical.queries(self.texts), self.weighted), own)


def learned(lexical: LexicalRanker, lesson: Lesson, how: How, edits: PairEdits, tell: Tell) -> TextModel:
    """The lexical ranker with the pairs that the lesson teaches; without any where they would not help."""
    if len(lesson.qrels) < 2:
        return kept(lexical, edits, f"{len(lesson.qrels)} judged queries are too few to learn pairs from and to check")
    learner, judged, words = prepared(lexical, lesson, how, edits)
    if one_group(judged):
        return kept(lexical, edits, NOTHING_TO_HOLD_OUT)
    W, choice = learner.learn(judged, tell)
    about = {
        "queries": len(lesson.qrels),
        "evenness": choice.evenness,
        "a": choice.ridge.query,
        "b": choice.ridge.document,
        "loss": how.loss if choice.strength is not None else "squared",
        "strength": choice.strength,
    }
    return finished(lexical, edits, choice, about, lambda: (words, W))


def with_groups(judged: Judged, words: QueryWords) -> Judged:
    """With the groups of near-duplicate queries; a query's own document counts among its relevant ones."""
    from scipy.sparse import csr_array

    lists, has_own = judged.lists, np.flatnonzero(judged.own >= 0)
    own = (np.ones(len(has_own), np.float32), (has_own, judged.own[has_own]))
    single = np.fromiter((" " not in word for word in words.words), np.bool_, len(words.words))
    relevant = (lists.relevant + csr_array(own, shape=lists.grades.shape)).tocsr()
    return replace(judged, groups=query_groups(lists.Q[:, single], relevant))


def one_group(judged: Judged) -> bool:
    """Whether all queries are near-duplicates, so that none can be held out."""
    return judged.groups is not None and len(np.unique(judged.groups)) < 2


def finished(
    lexical: LexicalRanker,
    edits: PairEdits,
    choice: Choice,
    about: dict[str, Any],
    pairs: Callable[[], tuple[QueryWords, csr_array]],
) -> TextModel:
    """The lexical ranker with the pairs, edited; or alone, where the pairs did not help what was held out."""
    about |= {
        "held_out_lexical": choice.lexical,
        "held_out_learned": choice.learned,
        "held_out_p_value": choice.p_value,
    }
    if choice.gain == 0.0:
        why = (
            f"word pairs did not beat the lexical score on held-out queries (nDCG@10 {choice.lexical:.3f}, "
            f"p = {choice.p_value:.2g})"
        )
        return replace(kept(lexical, edits, why), told=about)
    model = TextModel(lexical, *pairs(), choice.gain, edits, about)
    return model.edited(edits) if edits else model


def prepared(
    lexical: LexicalRanker, lesson: Lesson, how: How, edits: PairEdits
) -> tuple[PairLearner, Judged, QueryWords]:
    """A learner of the wanted size, the lesson as rows, and the words of its queries."""
    if len(lesson.qrels) < 2:
        raise DataError(f"two judged queries at least are needed; {len(lesson.qrels)} has a relevant document")
    words = QueryWords.of(lexical.features, lesson.texts)
    judged = with_groups(lesson.judged(lexical, words), words)
    return how.learner(judged.lists.shape, told_edits(edits, words, 1.0)), judged, words


def told_edits(edits: PairEdits, words: QueryWords, gain: float) -> Edits:
    """A person's edits, by the numbers of their words."""
    pinned = edits.pinned_in(words)
    return Edits(
        None if pinned is None else pinned * np.float32(1.0 / gain), edits.forbidden_in(words), edits.barred_in(words)
    )


def kept(lexical: LexicalRanker, edits: PairEdits, why: str) -> TextModel:
    """The lexical ranker alone, and a line in the log that says why."""
    log.warning("%s; the lexical ranker is kept as it is", why)
    return TextModel(lexical, edits=edits)


def joined(documents: Documents, more: Documents) -> Documents:
    """All documents; one of the same id takes the other's place."""
    columns: dict[str, Any] = dict(zip(documents.ids, zip(documents.titles, documents.texts, strict=True), strict=True))
    columns |= dict(zip(more.ids, zip(more.titles, more.texts, strict=True), strict=True))
    return Documents(tuple(columns), *(tuple(column[k] for column in columns.values()) for k in (0, 1)))
