"""Held-out queries that decide whether word pairs of a source without judgments are added to a model.

With judgments these are judged queries. Without judgments (`page_folds`) pages are held out, and their titles and first
sentences are queries. Pairs must find the *neighbours* of such a page better, by neither of the two worse; these are
the pages whose texts are closest by latent semantic analysis. And they must not find the page itself worse, neither by
its title nor by its first sentence in a text without that sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data.page_queries import TrainingQueries, training_queries
from .candidates import CandidateSearch
from .held_out import HeldOut, Scores, divide_groups
from .lexical import LexicalModel
from .model_selection import SIGNIFICANCE_LEVEL, improvement_p_value
from .query_vocabulary import QueryVocabulary, document_rows
from .training_data import TrainingData, TrainingMatrices

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WEIGHTS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Weights of a source to try, in standard deviations of both scores."""
NEIGHBORS, DIMENSIONS = 10, 100
"""The closest pages that count as relevant to a page, and the dimensions of the latent semantic analysis."""
MAX_ANALYZED = 10_000
"""Pages from which the dimensions are computed."""
MAX_TESTED = 1_000
"""Held-out pages to test on."""
PARTS = 4
"""One page of four is held out."""
MAX_ROTATED = 5_000
"""Up to so many pages, each part is held out in turn."""
MIN_PAGES = 40
"""A test needs so many pages."""
MAX_STANDARD_ERRORS = 2.0
"""A weight is not tried if own pages are found worse by more standard errors than this."""


@dataclass(frozen=True)
class SourceResult:
    """What the test of a source found.

    weight : the weight of its pairs; 0 if the source is left out.
    ndcg_before, ndcg : nDCG@10 of the held-out queries without and with its pairs.
    """

    weight: float
    ndcg_before: float
    ndcg: float
    p_value: float


@dataclass(frozen=True)
class AcceptanceFold:
    """Held-out queries of one fold; the base of their candidates is the score so far.

    gains : pairs must improve these queries, and make no kind of them worse.
    guards : pairs must not make these kinds worse.
    """

    gains: tuple[HeldOut, ...]
    guards: tuple[HeldOut, ...] = ()

    def with_pairs(self, W: csr_array, weight: float) -> AcceptanceFold:
        """Return the fold with weight · W in the score."""

        def mixed(kind: HeldOut) -> HeldOut:
            base = kind.candidates.base + np.float32(weight) * kind.pair_scores(W)
            return replace(kind, candidates=replace(kind.candidates, base=base))

        return AcceptanceFold(tuple(map(mixed, self.gains)), tuple(map(mixed, self.guards)))


class PairScores(NamedTuple):
    """Held-out queries, their pair scores, and nDCG@10 before these are added."""

    kind: HeldOut
    pairs: Scores
    before: NDArray[np.float64]

    @classmethod
    def of(cls, kind: HeldOut, W: csr_array) -> PairScores:
        """Score held-out queries by pairs."""
        return cls(kind, kind.pair_scores(W), kind.ndcg(kind.candidates.base)[0])

    def improvement(self, weight: float) -> NDArray[np.float64]:
        """The change of nDCG@10 of every query."""
        return self.kind.ndcg(self.kind.candidates.base + np.float32(weight) * self.pairs)[0] - self.before


def add_source(
    folds: Sequence[AcceptanceFold], pairs: Sequence[csr_array]
) -> tuple[SourceResult, list[AcceptanceFold]]:
    """Choose the weight of a source, whose pairs are given for each fold; return the folds with it in the score.

    The best weight is that with the largest improvement of the kind of queries that improves least.
    """
    gains = [PairScores.of(kind, W) for fold, W in zip(folds, pairs, strict=True) for kind in fold.gains]
    guards = [[PairScores.of(kind, W) for kind in fold.guards] for fold, W in zip(folds, pairs, strict=True)]
    start = float(np.mean([one.before.mean() for one in gains]))
    deviation = float(np.std(np.concatenate([one.pairs for one in gains]), dtype=np.float64))
    base = float(np.std(np.concatenate([one.kind.candidates.base for one in gains]), dtype=np.float64))
    tried = [weight * base / deviation for weight in WEIGHTS if deviation]
    weights = [weight for weight in tried if all(_is_harmless(one, weight) for one in zip(*guards, strict=True))]
    nothing = SourceResult(0.0, start, start, 1.0), list(folds)
    if not weights:
        return nothing
    improvement = [[one.improvement(weight) for one in gains] for weight in weights]
    groups = np.concatenate([one.kind.groups for one in gains])
    p_value = improvement_p_value(np.array([[np.concatenate(one) for one in improvement]]), groups)
    n_kinds = len(folds[0].gains)
    by_kind = [[np.mean([part.mean() for part in one[k::n_kinds]]) for k in range(n_kinds)] for one in improvement]
    best = max(range(len(weights)), key=lambda i: (min(by_kind[i]), np.mean(by_kind[i])))
    gain = float(np.mean(by_kind[best]))
    if p_value > SIGNIFICANCE_LEVEL or min(by_kind[best]) < 0.0 or gain <= 0.0:
        return replace(nothing[0], p_value=p_value), nothing[1]
    added = [fold.with_pairs(W, weights[best]) for fold, W in zip(folds, pairs, strict=True)]
    return SourceResult(weights[best], start, start + gain, p_value), added


def add_sources(folds: Sequence[AcceptanceFold], pairs: Mapping[str, Sequence[csr_array]]) -> dict[str, SourceResult]:
    """Add the source with the largest improvement, then the next one, until none improves the score significantly.

    pairs : the pairs of each source, for each fold.
    """
    results: dict[str, SourceResult] = {}
    while rest := [name for name in pairs if name not in results]:
        tried = {name: add_source(folds, pairs[name]) for name in rest}
        best = max(rest, key=lambda name: tried[name][0].ndcg)
        if tried[best][0].weight == 0.0:
            results |= {name: result for name, (result, _) in tried.items()}
        else:
            results[best], folds = tried[best]
    return {name: results[name] for name in pairs}


def _is_harmless(guard: Sequence[PairScores], weight: float) -> bool:
    """Return whether a kind of queries, given for each fold, is not worse by more than MAX_STANDARD_ERRORS."""
    change = np.concatenate([one.improvement(weight) for one in guard])
    return bool(change.mean() >= -MAX_STANDARD_ERRORS * change.std() / np.sqrt(len(change)))


def page_folds(
    data: TrainingData, lexical: LexicalModel, vocabulary: QueryVocabulary, random_state: int, n_jobs: int | None
) -> list[tuple[NDArray[np.int64], AcceptanceFold]]:
    """Return the numbers of held-out pages and their tests, for each fold; empty if there are too few pages.

    data : the documents with their lexical rows.
    """
    documents = data.documents
    position = {page: i for i, page in enumerate(documents.ids)}
    made = training_queries(documents, ["titles", "openings"])
    titles, openings = made["titles"], made["openings"]
    words = QueryVocabulary.from_texts(lexical.features, titles.queries.values())
    groups = encode_source(titles, lexical, words, data).grouped(words).group_numbers
    pages = np.array([position[page] for page in titles.qrels], np.int64)
    if len(np.unique(groups)) < PARTS or len(pages) < MIN_PAGES:
        return []
    part = divide_groups(groups, PARTS, random_state)
    parts = range(PARTS) if len(pages) <= MAX_ROTATED else range(1)
    drawn = [np.random.default_rng(random_state).permutation(np.flatnonzero(part == one)) for one in parts]
    tested = [some[: MAX_TESTED // len(drawn)] for some in drawn]
    at = np.concatenate(tested)
    near = neighbors(document_rows(lexical.features, lexical.documents(titles.documents)), pages[at])
    relevant = {
        documents.ids[page]: {documents.ids[other]: 1.0 for other in row}
        for page, row in zip(pages[at].tolist(), near.tolist(), strict=True)
    }
    group_of = {documents.ids[page]: group for page, group in zip(pages[at], groups[at].tolist(), strict=True)}
    gains = [
        replace(
            one,
            documents=documents,
            exclude_self=True,
            qrels={page: relevant[page] for page in one.qrels if page in relevant},
        )
        for one in (titles, openings)
    ]
    guards = [replace(titles, documents=documents), openings]
    encoded = [encode_source(one, lexical, vocabulary, data) for one in (*gains, *guards)]
    searches = [CandidateSearch.of(one, n_jobs) for one in encoded]
    out = []
    for number, some in zip(parts, tested, strict=True):
        here, kinds = {documents.ids[page] for page in pages[some]}, []
        for one, matrices, search in zip((*gains, *guards), encoded, searches, strict=True):
            rows = np.array([i for i, page in enumerate(one.qrels) if page in here], np.intp)
            numbers = np.array([group_of[page] for page in one.qrels if page in here], np.int64)
            kinds.append(HeldOut.search(replace(matrices[rows], groups=numbers), search))
        out.append((pages[part == number], AcceptanceFold(tuple(kinds[:2]), tuple(kinds[2:]))))
    return out


def encode_source(
    source: TrainingQueries, lexical: LexicalModel, vocabulary: QueryVocabulary, data: TrainingData
) -> TrainingMatrices:
    """Return the queries of a source as matrices, with the documents that it is to be learned from."""
    rows = data.lexical_rows if source.documents is data.documents else lexical.documents(source.documents)
    weight = {query: source.weights[query] for query in source.qrels}
    own = TrainingData.validate(
        data.documents, source.queries, source.qrels, exclude_self=source.exclude_self, query_weight=weight
    )
    return replace(own, lexical_rows=rows).encode(lexical, vocabulary)


def neighbors(D: csr_array, pages: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each of these pages the NEIGHBORS closest others, by latent semantic analysis of the rows."""
    from scipy.sparse.linalg import svds

    step = -(-D.shape[0] // MAX_ANALYZED)
    some = D[::step].astype(np.float64)
    k = min(DIMENSIONS, min(some.shape) - 1)
    _, _, axes = svds(some, k=k, v0=np.ones(min(some.shape)))
    X: Any = np.asarray(D @ axes.T, np.float32)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    out = np.empty((len(pages), min(NEIGHBORS, D.shape[0] - 1)), np.int64)
    for row, page in enumerate(pages.tolist()):
        similarity = X @ X[page]
        similarity[page] = -np.inf
        out[row] = np.argsort(-similarity, kind="stable")[: out.shape[1]]
    return out
