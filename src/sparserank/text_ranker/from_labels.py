"""A text ranker from class labels: documents are the queries, and look for documents of their own class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..bilinear.ranker import BilinearRanker
from ..data.records import Documents
from ..errors import DataError
from ..optim.penalties import Ridge
from ..optim.problems import ListProblem
from ..optim.pruning import PairBudget
from ..preferences import Preferences, classes_of
from .constraints import Constraints
from .learning import finished
from .lexical import LexicalRanker
from .model import TextModel
from .pair_learner import PairLearner, Tell
from .query_groups import query_groups
from .query_words import QueryWords, document_rows
from .training_data import Judged, held_out, scores_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MOST_ASKED = 1000
"""Held-out documents that are asked as queries to choose the gain."""


def learned_from_classes(
    lexical: LexicalRanker,
    documents: Documents,
    weighted: csr_array,
    prefs: Preferences,
    budget: PairBudget,
    edits: Constraints,
    seed: int,
    n_jobs: int | None,
    tell: Tell,
) -> TextModel:
    """The lexical ranker with pairs that bring documents of one class together; the gain is chosen on held-out ones."""
    classes = classes_of(prefs)
    if classes is None:
        raise DataError("of preferences, a TextRanker takes those of Preferences.from_labels; else give queries, qrels")
    if len(classes) != len(documents):
        raise DataError(f"{len(documents)} documents need as many labels; got {len(classes)}")
    D = document_rows(lexical.features, weighted)
    budget = budget.for_shape((D.shape[1], D.shape[1]))

    def pairs(rows: NDArray[np.intp]) -> csr_array:
        ranker = BilinearRanker(
            loss="squared", solver="closed-form", max_pairs=budget.pairs, random_state=seed, n_jobs=n_jobs
        )
        return ranker.fit(D[rows], D[rows], Preferences.from_labels(classes[rows])).W_

    held, rest = held_out(query_groups(D), seed)[0]
    tell("learning pairs without the held-out documents")
    judged = _asked(lexical, documents, weighted, D, classes, held[:MOST_ASKED], rest)
    choice = PairLearner(budget, seed, n_jobs).gain(scores_of(pairs(rest), judged), judged, 0.0, Ridge())
    about = {"queries": len(classes), "classes": int(classes.max()) + 1}
    tell("learning pairs from all documents")
    words = QueryWords(lexical.features, like_documents=True)
    return finished(lexical, edits, choice, about, lambda: (words, pairs(np.arange(len(classes)))))


def _asked(
    lexical: LexicalRanker,
    documents: Documents,
    weighted: csr_array,
    D: csr_array,
    classes: NDArray[np.int64],
    held: NDArray[np.intp],
    rest: NDArray[np.intp],
) -> Judged:
    """Held-out documents as queries over the others."""
    from scipy.sparse import csr_array

    texts = [f"{documents.titles[i]} {documents.texts[i]}" for i in held]
    grades = csr_array((classes[held][:, None] == classes[rest]).astype(np.float32))
    scores = np.asarray((lexical.queries(texts) @ weighted[rest].T).toarray(), dtype=np.float32)
    return Judged(ListProblem(D[held], D[rest], grades), scores, np.full(len(held), -1, np.int64))
