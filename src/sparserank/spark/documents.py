"""ClusterDocuments: the documents of a training, whose rows are made on the executors and stay there.

Documents are numbered in the order of the DataFrame. The driver receives sums over documents, scores of candidates, and
the numbers of judged documents; no text and no row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from ..optim.candidate_lists import CandidateLists, RerankingProblem
from ..optim.closed_form import MAX_SIZE, Side, compute_gram, make_row_blocks, transposed_product
from ..optim.document_source import DocumentSource
from ..optim.penalties import Ridge
from ..optim.problems import ListProblem, Matrix, compute_squared_norms
from ..search.encoded_query import EncodedQuery
from ..search.top_k import TopK
from ..text_ranker.document_names import DocumentNames
from ..text_ranker.lexical import LexicalModel
from ..text_ranker.query_vocabulary import document_rows
from .blocks import compact_csr, ordered_sum
from .document_part import DocumentPart, Replica
from .features import SparkTextFeatures
from .list_gradient import CandidateParts, ClusterListGradient
from .normal_equations import ClusterOperator, Product, cluster_operator
from .worker_parts import WorkerParts

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from scipy.sparse import csr_array

PairRows = DocumentPart | Replica
BLOCK_BYTES = 1 << 25
"""Bytes of a block of columns of a sum, from each partition."""
RESULTS_AT_ONCE = 1 << 22
"""Results of all partitions that the driver merges at a time."""
NAMES_DEPTH = 4
"""The depth of the tree in which names of documents are joined: the driver receives at most about a dozen parts."""


class ClusterDocuments:
    """The rows of the documents of a DataFrame with the columns id, title and text.

    products : one record for each product of `PatternRidge`.
    """

    def __init__(self, frame: DataFrame, lexical: LexicalModel) -> None:
        self._spark, self._frame, self.training = frame.sparkSession, frame, uuid4().hex
        features = self.context.broadcast(lexical.features)
        width = len(lexical.words)
        rows = SparkTextFeatures(lexical.features).rows(frame, ["title", "text"], field_weights=lexical.field_weights)

        def join(blocks: Iterable[tuple[list[str], csr_array]]) -> Iterator[DocumentPart]:
            from scipy.sparse import csr_array, vstack

            ids: list[str] = []
            parts = [csr_array((0, width), dtype=np.float32)]
            for some, matrix in blocks:
                ids += some
                parts.append(matrix)
            matrix = compact_csr(csr_array(vstack(parts, format="csr"), dtype=np.float32))
            yield DocumentPart(ids, matrix, document_rows(features.value, matrix).data)

        self.parts = WorkerParts(rows.mapPartitions(join), self.training, "documents")
        self.starts = np.concatenate([[0], np.cumsum(self.parts.map(lambda _, part: len(part)))]).astype(np.int64)
        self.shape = (int(self.starts[-1]), width)
        self.products: list[Product] = []
        self.is_small = self.shape[0] <= MAX_SIZE
        self.lexical_rows, self.pair_rows = ClusterRows(self, "lexical"), ClusterRows(self, "pairs")

    @property
    def context(self) -> Any:
        """The SparkContext."""
        return self._spark.sparkContext

    def find(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the numbers of those ids that there are."""
        wanted, starts = self.context.broadcast(frozenset(ids)), self.starts

        def look(number: int, part: DocumentPart) -> list[tuple[str, int]]:
            return [(one, int(starts[number]) + row) for row, one in enumerate(part.ids) if one in wanted.value]

        found = dict(self.parts.flat_map(look).collect())
        wanted.destroy()
        return found

    def names(self, lexical: LexicalModel) -> DocumentNames:
        """Return the names of the documents; partitions are joined on the executors, so this machine sees a few."""
        features = self.context.broadcast(lexical.features)

        def compute(rows: Iterable[Any]) -> Iterator[DocumentNames]:
            pairs = [(row.title or "", row.text or "") for row in rows]
            yield DocumentNames.of(features.value, [title for title, _ in pairs], [text for _, text in pairs])

        parts = self._frame.select("title", "text").rdd.mapPartitions(compute)
        out: DocumentNames = parts.treeReduce(lambda one, other: DocumentNames.join([one, other]), depth=NAMES_DEPTH)
        return out

    @cached_property
    def replicated(self) -> WorkerParts:
        """All pair rows in each partition, for a small collection; the executors exchange them."""
        n_copies = len(self.parts)

        def send(number: int, part: DocumentPart) -> Iterator[tuple[int, tuple[int, csr_array]]]:
            return ((copy, (number, part.pairs)) for copy in range(n_copies))

        def join(parts: Iterable[tuple[int, tuple[int, csr_array]]]) -> Iterator[Replica]:
            from scipy.sparse import csr_array, vstack

            in_order = sorted((part for _, part in parts), key=lambda one: one[0])
            yield Replica(csr_array(vstack([rows for _, rows in in_order], format="csr")))

        copies = self.parts.flat_map(send).partitionBy(n_copies).mapPartitions(join)
        return WorkerParts(copies, self.training, "replicated")

    def candidate_parts(self, candidates: CandidateLists) -> CandidateParts:
        """The rows of the documents in these lists, where they were brought together by query; the last are kept."""
        last: CandidateParts | None = getattr(self, "_candidate_parts", None)
        if last is None or not last.is_of(candidates):
            if last is not None:
                last.parts.release()
            self._candidate_parts = last = CandidateParts(self.parts, self.starts, candidates, self.training)
        return last

    def close(self) -> None:
        """Delete the rows on the executors."""
        self.parts.release()
        if "replicated" in vars(self):
            self.replicated.release()
        if (last := getattr(self, "_candidate_parts", None)) is not None:
            last.parts.release()


class ClusterRows(DocumentSource):
    """The lexical rows or the pair rows of documents on a cluster, in place of a CSR matrix."""

    def __init__(self, documents: ClusterDocuments, kind: str) -> None:
        self._documents, self._parts, self._kind = documents, documents.parts, kind
        self._starts, self.shape = documents.starts, documents.shape

    @cached_property
    def _squared_norms(self) -> NDArray[np.float64]:
        if self._documents.is_small:
            whole = self._documents.replicated
            norms = whole.flat_map(lambda n, part: [] if n else [(0, compute_squared_norms(part.pairs))])
        else:
            norms = self._parts.flat_map(lambda n, part: [(n, compute_squared_norms(part.pairs))])
        return np.asarray(ordered_sum(norms))

    def squared_norms(self) -> NDArray[np.float64]:
        """The diagonal of DᵀD."""
        return self._squared_norms

    def gram(self, words: NDArray[np.intp] | None) -> Matrix:
        """DᵀD at the words, in blocks of columns; or D Dᵀ, in parts of rows."""
        if words is None:
            return self._gram_of_documents()

        def product(part: PairRows, _: int, first: int, last: int) -> Matrix:
            return transposed_product(part.columns_at(words), part.at_words(words)[:, first:last], threads=1)

        return self._sum_in_blocks(product, len(words), len(words))

    def _gram_of_documents(self) -> Matrix:
        starts = self._starts

        def product(number: int, replica: Replica) -> Matrix:
            rows = replica.pairs[starts[number] : starts[number + 1]]
            return compute_gram(rows, replica.pairs, threads=1)

        out = np.zeros((self.shape[0], self.shape[0]), np.float32)
        numbered = self._documents.replicated.flat_map(lambda number, replica: [(number, product(number, replica))])
        for number, block in numbered.toLocalIterator():
            out[starts[number] : starts[number + 1]] = block
        return out

    def sums(self, words: NDArray[np.intp]) -> Matrix:
        """Dᵀ1 at the words."""
        return self._sum(lambda part, _: np.asarray(part.at_words(words).sum(axis=0)).ravel())

    def middle(self, left: csr_array | None, targets: csr_array, words: NDArray[np.intp]) -> Matrix:
        """leftᵀ Y D at the words, or Y D, in blocks of columns."""
        sent = self._documents.context.broadcast((None if left is None else left.tocsc(), targets))

        def product(part: PairRows, number: int, first: int, last: int) -> Matrix:
            from scipy.sparse import csr_array

            left, targets = sent.value
            Y = csr_array(targets[:, number : number + len(part)])
            Y_D = csr_array(Y @ part.at_words(words)[:, first:last])
            return Y_D.toarray() if left is None else transposed_product(left, Y_D, threads=1)

        rows = int(targets.shape[0] if left is None else left.shape[1])
        out = self._sum_in_blocks(product, rows, len(words))
        sent.destroy()
        return out

    def _sum_in_blocks(self, product: Any, rows: int, columns: int) -> Matrix:
        """The sum of product(part, its first document, first, last): columns first … last - 1 of the result."""
        out, width = np.empty((rows, columns), np.float32), max(1, BLOCK_BYTES // (8 * max(rows, 1)))
        for first in range(0, columns, width):
            span = first, min(first + width, columns)
            out[:, slice(*span)] = self._sum(lambda part, number, span=span: product(part, number, *span))
        return out

    def _sum(self, compute: Any) -> Matrix:
        """The sum of compute(part, number of its first document) over the partitions.

        A small collection is in one part, so that the sum has the bits of one machine: after it W is pruned, and the
        smallest difference would exchange pairs.
        """
        if self._documents.is_small:
            replicated = self._documents.replicated.flat_map(lambda n, part: [] if n else [(0, compute(part, 0))])
            return np.asarray(ordered_sum(replicated), np.float32)
        starts = self._starts
        sums = self._parts.flat_map(lambda n, part: [(n, compute(part, int(starts[n])).astype(np.float64))])
        return np.asarray(ordered_sum(sums, fan=4), np.float32)

    def prune_products(self, left: Side, M: Matrix, prune: Any) -> csr_array:
        """prune(the rows of Qᵀ M D); each partition makes some of the rows."""
        parts, n_parts = self._documents.replicated, len(self._parts)
        sent = self._documents.context.broadcast((Side(left.X, left.weight, left.words), M, replace(prune, n_jobs=1)))

        def compute(number: int, replica: Replica) -> csr_array:
            left, M, prune = sent.value
            return prune(make_row_blocks(left, Side(replica.pairs), M, (number, n_parts)))

        out: csr_array = prune.merge(parts.map(compute))
        sent.destroy()
        return out

    def score(self, candidates: CandidateLists, Q: csr_array, W: csr_array) -> Matrix:
        """qᵀ W d of every document in the list of every query."""
        kind = self._kind
        return self._score(
            candidates, (Q, W), lambda lists, part, sent: lists.score(*sent, getattr(part, kind), threads=1)
        )

    def score_expanded(self, candidates: CandidateLists, expanded: Matrix, words: NDArray[np.intp]) -> Matrix:
        """expanded[i] · d, at the words, of every document in the list of query i."""
        return self._score(
            candidates, expanded, lambda lists, part, sent: lists.score_expanded(sent, part.at_words(words))
        )

    def _score(self, candidates: CandidateLists, queries: Any, score: Any) -> Matrix:
        """score(lists, part, queries) with the lists of each part, in the order of all lists."""
        starts, none = self._starts, np.zeros(0, np.float32)
        places = CandidateLists(candidates.start, candidates.document, none, none, none)
        sent = self._documents.context.broadcast((places, queries))

        def compute(number: int, part: DocumentPart) -> Matrix:
            places, queries = sent.value
            return np.asarray(score(part.select(places, int(starts[number])), part, queries))

        out = np.zeros(len(candidates.document), np.float32)
        spans = pairwise(starts.tolist())
        for (first, last), scores in zip(spans, self._parts.map(compute), strict=True):
            out[(candidates.document >= first) & (candidates.document < last)] = scores
        sent.destroy()
        return out

    def index(self) -> ClusterIndex:
        """An index to search."""
        return ClusterIndex(self._documents)

    def list_gradient(self, problem: RerankingProblem, pattern: csr_array) -> ClusterListGradient:
        """The gradient of a reranking problem by the weights of a pattern."""
        parts = self._documents.candidate_parts(problem.candidates)
        return ClusterListGradient(self._documents.context, parts, problem, pattern)

    def operator(self, problem: ListProblem, ridge: Ridge, W: csr_array) -> AbstractContextManager[ClusterOperator]:
        """The normal equations on the pattern of W."""
        return cluster_operator(self._documents, problem, ridge, W)


class ClusterIndex:
    """Searches the documents of each partition in an index of their own and merges the results."""

    def __init__(self, documents: ClusterDocuments) -> None:
        self._documents, self.n_terms = documents, 2 * documents.shape[1]

    def top(self, queries: EncodedQuery, k: int, n_jobs: int | None = None) -> TopK:
        """The numbers and scores of the best k documents of every query; of equal scores the smaller number first."""
        k = min(k, max(self._documents.shape[0], 1))
        out = TopK.empty(len(queries), k)
        at_once = max(64, RESULTS_AT_ONCE // (k * max(len(self._documents.parts), 1)))
        for first in range(0, len(queries), at_once):
            rows = np.arange(first, min(first + at_once, len(queries)))
            out.put(rows, self._search(queries.take(rows), k))
        return out

    def _search(self, queries: EncodedQuery, k: int) -> TopK:
        sent, starts = self._documents.context.broadcast(queries), self._documents.starts

        def search(number: int, part: DocumentPart) -> TopK | None:
            if not len(part):
                return None
            docs, scores, counts = part.index.top(sent.value, k, n_jobs=1)
            return TopK(docs + starts[number], scores, counts)

        parts = [part for part in self._documents.parts.map(search) if part is not None]
        sent.destroy()
        scores = np.hstack([np.where(part.is_found, part.scores, -np.inf) for part in parts])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        docs = np.take_along_axis(np.hstack([part.docs for part in parts]), order, axis=1)
        scores = np.take_along_axis(scores, order, axis=1)
        counts = np.isfinite(scores).sum(axis=1)
        return _padded(TopK(docs, scores.astype(np.float32), counts), k)


def _padded(top: TopK, k: int) -> TopK:
    """Results in k columns, with -1 and 0 beyond the last one of a query."""
    out = TopK.empty(len(top.counts), k)
    out.docs[:, : top.docs.shape[1]] = np.where(top.is_found, top.docs, -1)
    out.scores[:, : top.docs.shape[1]] = np.where(top.is_found, top.scores, 0.0)
    out.counts[:] = top.counts
    return out
