"""BM25 with k1 and b chosen on training queries: a peer that is tuned, as the learned ranker is.

Every pair of K1 and B is measured once on all judged queries, because the statistics of documents do not depend on
queries; `best` then reads only the queries that it is given.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

import sparserank as sr
from sparserank.evaluation.ndcg import ndcg
from sparserank.text_ranker.lexical import LexicalModel
from sparserank.text_ranker.training_data import grade_matrix

K1 = (0.4, 0.9, 1.2, 1.6, 2.0, 2.4, 3.2)
B = (0.2, 0.4, 0.6, 0.75, 0.95)
SETTINGS = tuple(product(K1, B))
PART = 500
"""Queries whose scores of all documents are in memory at a time."""


@dataclass(frozen=True)
class BM25Grid:
    """nDCG@10 of every setting and query.

    place : the column of each query in `ndcg`, whose rows are `SETTINGS`.
    """

    place: dict[str, int]
    ndcg: Any

    @classmethod
    def of(cls, collection: Any, qrels: Any, exclude_self: bool) -> BM25Grid:
        """Measure all settings on these judgments; queries without a relevant document are left out."""
        position = {name: i for i, name in enumerate(collection.documents.ids)}
        model = LexicalModel(sr.BM25(), sr.TextRanker("bm25").fit(collection.documents).lexical_.analyzer)
        counts = model.fit_counts(collection.documents)
        judged = [q for q, grades in qrels.items() if any(g > 0 and d in position for d, g in grades.items())]
        texts = model.queries([collection.queries[query] for query in judged])
        grades, values = grade_matrix(qrels, judged, position), np.zeros((len(SETTINGS), len(judged)))
        for at, (k1, b) in enumerate(SETTINGS):
            model.features.k1, model.features.b = k1, b
            columns = model.features.apply_weights(counts).T.tocsr()
            for start in range(0, len(judged), PART):
                part = slice(start, start + PART)
                scores, names = (texts[part] @ columns).toarray().astype(np.float32), judged[part]
                if exclude_self:
                    own = [(i, position[query]) for i, query in enumerate(names) if query in position]
                    for row, column in own:
                        scores[row, column] = -np.inf
                starts = np.arange(len(names) + 1) * len(position)
                grade = grades[part].toarray().astype(np.float32)
                values[at, part] = ndcg(starts, scores.ravel(), grade.ravel(), (10,))[0]
        return cls({query: i for i, query in enumerate(judged)}, values)

    def best(self, queries: Iterable[str]) -> sr.BM25:
        """The setting with the best mean over these queries; of several, the first."""
        places = [self.place[query] for query in queries if query in self.place]
        k1, b = SETTINGS[int(self.ndcg[:, places].mean(axis=1).argmax())]
        return sr.BM25(k1=k1, b=b)


def tune_bm25(collection: Any, qrels: Any, exclude_self: bool) -> sr.BM25:
    """The setting with the best nDCG@10 on these training judgments."""
    return BM25Grid.of(collection, qrels, exclude_self).best(qrels)


def settings_text(settings: Iterable[sr.BM25]) -> str:
    """k1 and b of each setting, without repetitions.

    >>> settings_text([sr.BM25(k1=1.6, b=0.75), sr.BM25(k1=1.6, b=0.75)])
    '1.6, 0.75'
    """
    return "; ".join(dict.fromkeys(f"{one.k1:g}, {one.b:g}" for one in settings))
