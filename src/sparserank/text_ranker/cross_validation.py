"""Cross-validation of a text ranker: folds of judged queries, with near-duplicates in the same fold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..data.records import Collection, Qrels
from ..errors import ConfigError
from ..evaluation import Reverses
from ..evaluation.reverses import own_documents
from ..text import TextFeatures
from .held_out import divide_groups
from .progress import Callback
from .query_groups import query_groups
from .ranker import TextRanker
from .training_data import grade_matrix, group_numbers

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MutableRun = dict[str, dict[str, float]]


@dataclass(frozen=True)
class CrossValidation:
    """What `cross_validate` returns.

    Attributes
    ----------
    qrels : mapping
        The judgments of all folds.
    fold : mapping of str to int
        The fold of each query, from 0.
    run, bm25_run : mapping
        {query id: {document id: score}} of the models, each for queries that it was not trained on, and of BM25.
    pairs : tuple of int
        The number of pairs of each fold's model.
    reverses : Reverses or None
        The judgments whose reverse is in another fold; None if no query has the id of a document.
    """

    qrels: Qrels
    fold: Mapping[str, int]
    run: MutableRun
    bm25_run: MutableRun
    pairs: tuple[int, ...]
    reverses: Reverses | None = None

    def queries_of(self, fold: int) -> list[str]:
        """Return the queries of a fold.

        Parameters
        ----------
        fold : int
            Its number, from 0.
        """
        return [query for query, number in self.fold.items() if number == fold]


def cross_validate(
    ranker: TextRanker, collection: Collection, qrels: Qrels, n_folds: int = 5, depth: int = 1000,
    callback: Callback = lambda message: None, query_group: Mapping[str, str] | None = None,
) -> CrossValidation:  # fmt: skip
    """Train a ranker with the same parameters on all folds but one, and rank for the queries of that one.

    Parameters
    ----------
    ranker : TextRanker
        Its parameters are used, and the fields that it searches if it is fitted; it does not change.
    collection : Collection
        The documents and the texts of queries.
    qrels : mapping
        The judgments to divide; queries without a relevant document are left out.
    n_folds : int, default=5
        The number of folds.
    depth : int, default=1000
        The number of documents in a ranking.
    callback : callable, default=None
        Called with a message when a fold starts.
    query_group : mapping of str to str, default=None
        The source of each query, as in `TextRanker.fit`; queries of one source are in the same fold.

    Returns
    -------
    CrossValidation
        The rankings of the models and of BM25 with default parameters in the language of the models.
    """
    relevant = {query: grades for query, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
    groups = near_duplicates(collection, relevant, query_group)
    if not 2 <= n_folds <= len(np.unique(groups)):
        raise ConfigError(
            f"The number of folds must be from 2 to {len(np.unique(groups))}, the number of groups of "
            f"near-duplicates{' or of one source' * bool(query_group)} among {len(relevant):,} judged queries. "
            f"Got {n_folds} instead."
        )
    folds = divide_groups(groups, n_folds, ranker.random_state)
    fold = dict(zip(relevant, folds.tolist(), strict=True))
    texts = {query: collection.queries[query] for query in relevant}
    run: MutableRun = {}
    bm25_run: MutableRun = {}
    fields = ranker.lexical_.fields if hasattr(ranker, "model_") else None
    pairs = []
    for number in range(n_folds):
        training = {query: grades for query, grades in relevant.items() if fold[query] != number}

        def report(message: str, number: int = number) -> None:
            callback(f"fold {number + 1} of {n_folds}: {message}")

        callback(f"fold {number + 1} of {n_folds}")
        model = TextRanker(**ranker.get_params(deep=False)).fit(
            collection.documents, collection.queries, training,
            fields=fields, query_group=query_group, exclude_self=collection.exclude_self, callback=report,
        )  # fmt: skip
        pairs.append(model.model_.n_pairs)
        queries = {query: text for query, text in texts.items() if fold[query] == number}
        run |= model.run(queries, depth, collection.exclude_self)
        bm25_run = bm25_run or fit_bm25(collection, model).run(texts, depth, collection.exclude_self)
    is_linked = own_documents(collection, relevant) > 0
    reverses = Reverses.between_folds(relevant, fold) if is_linked else None
    return CrossValidation(relevant, fold, run, bm25_run, tuple(pairs), reverses)


def fit_bm25(collection: Collection, model: TextRanker | None = None) -> TextRanker:
    """Fit BM25 with default settings on the documents, as the baseline of every model; in the language of the model.

    English BM25 splits no Japanese words, so it would make any Japanese model look good.

    Parameters
    ----------
    collection : Collection
        The documents.
    model : TextRanker, default=None
        A fitted ranker whose analyzer BM25 shares.
    """
    if model is None or model.lexical_.analyzer.is_plain:
        return TextRanker("bm25").fit(collection.documents)
    return TextRanker("bm25", analyzer=replace(model.lexical_.analyzer, ngrams=1)).fit(collection.documents)


def near_duplicates(
    collection: Collection, qrels: Qrels, query_group: Mapping[str, str] | None = None
) -> NDArray[np.int64]:
    """Return the group of each judged query, joined with the given ones; its own document counts as relevant."""
    position = {document: i for i, document in enumerate(collection.documents.ids)}
    relevant = {
        query: {document: 1.0 for document, grade in grades.items() if grade > 0 and document in position}
        | ({query: 1.0} if query in position else {})
        for query, grades in qrels.items()
    }
    tokens: csr_array = TextFeatures("binary", unit=False).fit_transform([collection.queries[query] for query in qrels])
    return query_groups(tokens, grade_matrix(relevant, list(relevant), position), group_numbers(qrels, query_group))
