"""Learning to rank with a text ranker: LambdaMART on the scores of words and pairs, by LightGBM or XGBoost.

The features of a query and a document: `bm25` (the lexical score of the model), `bm25_FIELD` of each searched field
alone, `pair_score` (what learned pairs add), `coverage` (the share of the query's known words that it has),
`length` and `clicks` (logarithms of the number of words and of prior clicks).

LambdaMART learns from held-out queries, whose pair scores come from pairs of the other queries: pairs fit the queries
that they were learned from too well.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..data.records import Qrels
from ..errors import DataError, NotFitted
from ..evaluation.ndcg import ndcg
from ..export import vectors_of
from ..export.vectors import Vectors, term_name
from ..search.hit import Hit
from ..search.results import SearchResults
from ..text_ranker import TextRanker
from ..text_ranker.held_out import divide_groups
from ..text_ranker.learn_again import held_out_pairs
from ..text_ranker.query_vocabulary import document_rows
from ..text_ranker.training_data import TrainingData
from .ltr_trees import Tree, evaluate_trees, lightgbm_trees, xgboost_trees
from .requirement import require

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Features", "LambdaMART", "fit_lambdamart"]
LIBRARIES = {"lightgbm": ("lightgbm", "4.5"), "xgboost": ("xgboost-cpu", "2.1")}
LEAVES, RATES, ROUNDS = (4, 8, 16), (0.05, 0.1), (25, 50, 100, 200)
"""Leaves of a tree, learning rates and numbers of trees to choose from."""
FOLDS = 4
MIN_QUERIES = 8
Floats = NDArray[np.float32]
log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Features:
    """The features of queries and documents.

    Parameters
    ----------
    ranker : TextRanker
        A fitted ranker with an index.
    clicks : mapping of str to float or None, default=None
        The number of prior clicks of each document; 0 if it is missing.

    Examples
    --------
    >>> ranker = TextRanker("bm25").fit({"d1": {"title": "Apples", "text": "red and sweet"}, "d2": "a pear"})
    >>> features = Features(ranker)
    >>> features.names
    ('bm25', 'bm25_title', 'bm25_text', 'pair_score', 'coverage', 'length', 'clicks')
    >>> features.rows("red plum", ["d1"])[0, 4:].round(2)
    array([1.  , 1.61, 0.  ], dtype=float32)
    """

    ranker: TextRanker
    clicks: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.ranker, "index_"):
            raise NotFitted("this ranker has no index; fit it, or load it with its index")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        return (
            "bm25",
            *(f"bm25_{term_name(name)}" for name in self.fields),
            "pair_score",
            "coverage",
            "length",
            "clicks",
        )

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The documents, in the order in which the index got them."""
        return tuple(self.ranker.index_.input_ids)

    @cached_property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The text of every document in each searched field that documents have."""
        columns = self.ranker.lexical_.columns(self.ranker.index_.input_documents)
        return {name: texts for name, texts in columns.items() if any(texts)}

    @cached_property
    def fields(self) -> dict[str, TextRanker]:
        """BM25 of each searched field alone."""
        analyzer = self.ranker.lexical_.analyzer
        return {
            name: TextRanker("bm25", analyzer=analyzer).fit(dict(zip(self.ids, texts, strict=True)))
            for name, texts in self.columns.items()
        }

    @cached_property
    def vectors(self) -> Vectors:
        """The terms and weights of an export of this ranker."""
        return vectors_of(self.ranker)

    @cached_property
    def lexical_rows(self) -> csr_array:
        """Documents × words, with lexical weights."""
        return self.ranker.index_.matrix(self.ids)[:, : len(self.ranker.lexical_.words)].tocsr()

    @cached_property
    def _field_rows(self) -> dict[str, csr_array]:
        return {name: one.index_.matrix(self.ids) for name, one in self.fields.items()}

    @cached_property
    def _pair_rows(self) -> csr_array:
        return document_rows(self.ranker.lexical_.features, self.lexical_rows)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of words of each document in its searched fields."""
        rows = zip(*self.columns.values(), strict=True)
        return np.array([sum(len(text.split()) for text in texts) for texts in rows], np.int64)

    @cached_property
    def click_counts(self) -> NDArray[np.float64]:
        """The number of prior clicks of each document."""
        clicks = self.clicks or {}
        counts = np.array([validation.number("clicks", clicks.get(one, 0.0), low=0.0) for one in self.ids])
        if unknown := set(clicks) - set(self.ids):
            raise DataError(f"clicks on {min(unknown)!r}, which is not in the index")
        return counts

    @cached_property
    def _place(self) -> dict[str, int]:
        return {one: place for place, one in enumerate(self.ids)}

    def rows(self, text: str, doc_ids: Sequence[str]) -> Floats:
        """Return documents × features for one query.

        Parameters
        ----------
        text : str
            The query.
        doc_ids : sequence of str
            The documents.
        """
        if unknown := [one for one in doc_ids if one not in self._place]:
            raise DataError(f"there is no document {unknown[0]!r} in this index of {len(self.ids)} documents")
        model = self.ranker.model_
        expanded = None if model.W is None else model.encode_queries([text]).expand()
        n = len(model.lexical.words)
        weights = None if expanded is None else expanded[:, n:].tocsr()
        return self.at(text, np.array([self._place[one] for one in doc_ids], np.int64), weights)

    def at(self, text: str, places: NDArray[np.int64], pair_weights: csr_array | None) -> Floats:
        """Return documents × features for one query, given the weights that its pairs have for document words.

        Parameters
        ----------
        text : str
            The query.
        places : array of int64
            The documents, by their places in `ids`.
        pair_weights : csr_array of shape (1, n_words) or None
            pair_weight · qᵀ W; None without pairs.
        """
        query, documents = self.ranker.lexical_.queries([text]), self.lexical_rows[places]
        columns = [_product(documents, query)]
        for name, one in self.fields.items():
            columns.append(_product(self._field_rows[name][places], one.lexical_.queries([text])))
        pairs = np.zeros(len(places)) if pair_weights is None else _product(self._pair_rows[places], pair_weights)
        known, found = query.copy(), documents.copy()
        known.data[:], found.data[:] = 1.0, 1.0
        coverage = _product(found, known) / max(known.nnz, 1)
        counts = np.log1p(self.lengths[places]), np.log1p(self.click_counts[places])
        return np.column_stack([*columns, pairs, coverage, *counts]).astype(np.float32)


def _product(documents: csr_array, query: csr_array) -> NDArray[np.float64]:
    return np.asarray((documents @ query.T).todense(), np.float64).ravel()


class TrainingRows(NamedTuple):
    """Rows of features with their grades, the first row of each query (and the end), and the group of each query."""

    X: Floats
    grades: Floats
    start: NDArray[np.int64]
    group: NDArray[np.int64]

    def select(self, queries: NDArray[np.intp]) -> TrainingRows:
        """Return the rows of some queries."""
        spans = [np.arange(self.start[q], self.start[q + 1]) for q in queries.tolist()]
        rows = np.concatenate(spans)
        start = np.concatenate([[0], np.cumsum([len(span) for span in spans])])
        return TrainingRows(self.X[rows], self.grades[rows], start.astype(np.int64), self.group[queries])

    def ndcg(self, scores: Floats) -> NDArray[np.float64]:
        """Return nDCG@10 of every query that has a relevant candidate."""
        return ndcg(self.start, scores.astype(np.float32), self.grades)[0]


@dataclass(frozen=True, eq=False)
class LambdaMART:
    """Trees on the features of a ranker, which rank its best documents again.

    Parameters
    ----------
    features : Features
        The features.
    trees : sequence of dict
        The trees as XGBoost writes them: {"split", "split_condition", "children", …} or {"leaf"}.
    depth : int
        How many of the ranker's best documents are ranked again.
    info : mapping
        The chosen parameters, and nDCG@10 of held-out queries with the trees and by the score of the ranker.
    """

    features: Features
    trees: Sequence[Tree]
    depth: int
    info: Mapping[str, Any]

    def scores(self, text: str, doc_ids: Sequence[str]) -> Floats:
        """Return the score of each document for one query.

        Parameters
        ----------
        text : str
            The query.
        doc_ids : sequence of str
            The documents.
        """
        return evaluate_trees(self.trees, self.features.names, self.features.rows(text, doc_ids))

    def search(self, text: str, k: int = 10) -> SearchResults:
        """Return the best k of the ranker's best `depth` documents, ranked by the trees.

        Parameters
        ----------
        text : str
            The query.
        k : int, default=10
            The largest number of results.
        """
        hits = self.features.ranker.words_only().search(text, self.depth)
        if not hits:
            return SearchResults()
        scores = self.scores(text, [hit.id for hit in hits])
        order = np.argsort(-scores, kind="stable")[: validation.count("k", k, low=1)]  # equal scores keep their order
        ranked = [Hit(hits[i].id, float(scores[i]), hits[i].title, hits[i].metadata) for i in order.tolist()]
        return SearchResults(ranked)


def fit_lambdamart(
    ranker: TextRanker,
    queries: Mapping[str, str],
    qrels: Qrels,
    *,
    library: str = "lightgbm",
    clicks: Mapping[str, float] | None = None,
    depth: int = 100,
    exclude_self: bool = False,
) -> LambdaMART:
    """Learn LambdaMART from the queries that a ranker was trained on.

    The number and size of trees and the learning rate are chosen by cross-validation.

    Parameters
    ----------
    ranker : TextRanker
        A ranker that was fitted on these queries, with the index of its training documents.
    queries, qrels : mapping
        The queries and judgments, as `TextRanker.fit` takes them.
    library : {"lightgbm", "xgboost"}, default="lightgbm"
        The library that learns the trees.
    clicks : mapping of str to float or None, default=None
        The number of prior clicks of each document.
    depth : int, default=100
        How many of the ranker's best documents are ranked again.
    exclude_self : bool, default=False
        Whether a query never finds the document with its own id.

    Returns
    -------
    LambdaMART
        The trees. `info` says whether they help: compare `ndcg` with `ndcg_of_ranker`.

    Examples
    --------
    >>> fruits = ("apple", "pear", "plum", "fig", "lime", "kiwi", "date", "grape")
    >>> docs = {fruit: f"{fruit} juice" for fruit in fruits}
    >>> queries, qrels = docs, {fruit: {fruit: 1} for fruit in fruits}
    >>> model = fit_lambdamart(TextRanker("bm25").fit(docs, queries, qrels), queries, qrels)
    >>> model.search("plum juice", k=1)[0].id, model.info["queries"]
    ('plum', 8)
    """
    validation.choice("library", library, tuple(LIBRARIES))
    require(*LIBRARIES[library])
    depth = validation.count("depth", depth, low=2)
    features = Features(ranker, clicks)
    rows = _training_rows(features, queries, qrels, depth, exclude_self)
    if len(rows.group) < MIN_QUERIES or len(np.unique(rows.group)) < FOLDS:
        raise DataError(f"LambdaMART needs at least {MIN_QUERIES} different judged queries; got {len(rows.group)}")
    part = divide_groups(rows.group, FOLDS, ranker.random_state)
    folds = [(rows.select(np.flatnonzero(part != i)), rows.select(np.flatnonzero(part == i))) for i in range(FOLDS)]
    baseline = float(np.mean(np.concatenate([held_out.ndcg(_ranker_score(held_out)) for _, held_out in folds])))
    best: tuple[float, dict[str, Any]] = (-1.0, {})
    for leaves, rate in product(LEAVES, RATES):
        fitted = [_fit_trees(library, train, features.names, leaves, rate, max(ROUNDS)) for train, _ in folds]
        for rounds in ROUNDS:
            pairs = zip(fitted, folds, strict=True)
            scores = [(one, evaluate_trees(trees[:rounds], features.names, one.X)) for trees, (_, one) in pairs]
            value = float(np.mean(np.concatenate([one.ndcg(score) for one, score in scores])))
            if value > best[0]:
                best = value, {"leaves": leaves, "rate": rate, "rounds": rounds}
    value, chosen = best
    info = {"library": library, **chosen, "queries": len(rows.group), "ndcg": value, "ndcg_of_ranker": baseline}
    if value <= baseline:
        log.warning("LambdaMART did not beat the ranker on held-out queries (nDCG@10 %.3f, %.3f)", value, baseline)
    trees = _fit_trees(library, rows, features.names, **chosen)
    return LambdaMART(features, trees, depth, info)


def _ranker_score(rows: TrainingRows) -> Floats:
    """The candidates come by descending score of the ranker."""
    return -np.arange(len(rows.X), dtype=np.float32)


def _training_rows(
    features: Features, queries: Mapping[str, str], qrels: Qrels, depth: int, exclude_self: bool
) -> TrainingRows:
    """Return the features of the best documents of held-out queries, by descending score of the ranker."""
    ranker = features.ranker
    data = TrainingData.validate(ranker.index_.input_documents, queries, qrels, exclude_self=exclude_self)
    data = replace(data, lexical_rows=features.lexical_rows)
    trainer = replace(ranker.trainer(), lexical=ranker.lexical_)
    X, grades, lengths, groups = [], [], [], []
    for query, places, grade, weights, group in _candidates(trainer, ranker, data, depth):
        X.append(features.at(query, places, weights))
        grades.append(grade)
        lengths.append(len(places))
        groups.append(group)
    if not X:
        raise DataError("no held-out query finds a relevant document")
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return TrainingRows(np.concatenate(X), np.concatenate(grades), start, np.array(groups, np.int64))


def _candidates(
    trainer: Any, ranker: TextRanker, data: TrainingData, depth: int
) -> Iterator[tuple[str, NDArray[np.int64], Floats, csr_array | None, int]]:
    """Yield each held-out query with a relevant candidate: text, places, grades, weights of its pairs, and group."""
    texts, weight = data.texts, ranker.model_.pair_weight
    for fold in held_out_pairs(trainer, ranker.model_, data):
        lists, groups = fold.queries.lists, fold.queries.group_numbers
        found = fold.search.top(fold.queries, depth, fold.W, weight)
        expanded = None if fold.W is None else (lists.Q @ fold.W * np.float32(weight)).tocsr()
        for i, number in enumerate(fold.numbers.tolist()):
            places = found[i][found[i] >= 0]
            row = lists.grades[[i]]
            grade = np.asarray(row[:, places].todense(), np.float32).ravel() if len(places) else np.zeros(0, np.float32)
            if (grade > 0.0).any():
                weights = None if expanded is None else expanded[[i]]
                yield texts[number], places, grade, weights, int(groups[i])


def _fit_trees(
    library: str, rows: TrainingRows, names: Sequence[str], leaves: int, rate: float, rounds: int
) -> list[Tree]:
    """Learn trees. A grade counts by its rank among the grades that occur."""
    _, labels = np.unique(rows.grades, return_inverse=True)
    sizes = np.diff(rows.start)
    if library == "lightgbm":
        import lightgbm

        settings = {
            "objective": "lambdarank", "num_leaves": leaves, "learning_rate": rate, "min_data_in_leaf": 20,
            "lambdarank_truncation_level": 20, "label_gain": [2.0**i - 1.0 for i in range(int(labels.max()) + 1)],
            "deterministic": True, "force_row_wise": True, "num_threads": 1, "seed": 0, "verbose": -1,
        }  # fmt: skip
        data = lightgbm.Dataset(rows.X, labels, group=sizes, feature_name=list(names))
        return lightgbm_trees(lightgbm.train(settings, data, rounds))
    import xgboost

    settings = {
        "objective": "rank:ndcg", "max_leaves": leaves, "grow_policy": "lossguide", "max_depth": 0, "eta": rate,
        "tree_method": "hist", "base_score": 0.0, "nthread": 1, "seed": 0, "ndcg_exp_gain": bool(labels.max() < 31),
    }  # fmt: skip
    matrix = xgboost.DMatrix(rows.X, labels, feature_names=list(names))
    matrix.set_group(sizes)
    return xgboost_trees(xgboost.train(settings, matrix, rounds))
