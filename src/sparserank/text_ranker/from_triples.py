"""Word pairs by Algorithm 1 of Chen et al. on drawn triples, beside the lexical score: what `ranker='bilinear'` means.

W starts at zero, for the lexical score already has every word's own match. How much it counts is chosen, like that of
any other W, on queries that are held out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..bilinear.ranker import BilinearRanker
from ..optim.penalties import Ridge
from ..preferences import Preferences
from .constraints import Constraints
from .learning import NOTHING_TO_HOLD_OUT, How, Lesson, finished, kept, one_group, prepared
from .lexical import LexicalRanker
from .model import TextModel
from .pair_learner import Tell
from .training_data import Judged, held_out, scores_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array


def learned_by_steps(lexical: LexicalRanker, lesson: Lesson, how: How, edits: Constraints, tell: Tell) -> TextModel:
    """The lexical ranker with pairs learned triple by triple; without any where they would not help."""
    if len(lesson.qrels) < 2:
        return kept(lexical, edits, f"{len(lesson.qrels)} judged queries are too few to learn pairs from and to check")
    learner, judged, words = prepared(lexical, lesson, how, edits)
    if one_group(judged):
        return kept(lexical, edits, NOTHING_TO_HOLD_OUT)
    ids = list(lesson.qrels)

    def pairs(some: NDArray[np.intp]) -> csr_array:
        names = [ids[i] for i in some]
        prefs = _preferences(lesson, names)
        ranker = BilinearRanker(
            start="zero", max_pairs=learner.budget.pairs, random_state=how.seed, n_jobs=how.n_jobs, watch=0
        )
        return ranker.fit(judged.lists.Q[some], judged.lists.D, prefs).W_

    tell("learning pairs step by step, without the held-out queries")
    assert judged.groups is not None
    folds = held_out(judged.groups, how.seed)
    parts = [judged.of(held).made() for held, _ in folds]
    learned = [scores_of(pairs(rest), part) for part, (_, rest) in zip(parts, folds, strict=True)]
    choice = learner.gain(np.concatenate(learned), Judged.joined(parts), 0.0, Ridge())
    tell("learning pairs step by step, from all queries")
    return finished(lexical, edits, choice, {"queries": len(ids)}, lambda: (words, pairs(np.arange(len(ids)))))


def _preferences(lesson: Lesson, queries: list[str]) -> Preferences:
    """What these queries prefer: the triples themselves where they were given, else what the grades say."""
    documents = list(lesson.documents.ids)
    if lesson.triples is None:
        qrels = {q: lesson.qrels[q] for q in queries}
        return Preferences.from_qrels(qrels, queries, documents, drop_self=lesson.drop_self)
    return next(Preferences.stream([lesson.triples.named()], queries, documents, missing="drop"))
