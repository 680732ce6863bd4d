"""The gradient of a listwise loss on candidate lists whose documents are on a cluster.

The rows of the documents in the lists are brought together by query once, by the executors. In a batch the weights go
out, and each query returns what it adds to the gradient at the pairs of its words. The driver adds these in the order
of one machine, so the result has the same bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from ..optim.candidate_lists import CandidateLists, RerankingProblem
from ..optim.pattern_adagrad import PARTS, loss_arguments
from ..optim.problems import csr_arrays
from .document_part import CandidateRows, DocumentPart
from .worker_parts import WorkerParts

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Entries = NDArray[np.int64]


class CandidateParts:
    """The rows of documents in candidate lists: partition g has those of queries bounds[g] … bounds[g + 1] - 1."""

    def __init__(
        self, documents: WorkerParts, starts: NDArray[np.int64], candidates: CandidateLists, training: str
    ) -> None:
        self._start, self._document = candidates.start, candidates.document
        count = len(documents)
        places = np.linspace(0, candidates.start[-1], count + 1)[1:-1]
        self.bounds = np.array([0, *np.searchsorted(candidates.start, places), len(candidates)], np.int64)
        start, document, bounds = self._start, self._document, self.bounds
        needed = [np.unique(document[start[bounds[g]] : start[bounds[g + 1]]]) for g in range(count)]

        def send(number: int, part: DocumentPart) -> Iterator[tuple[int, tuple[NDArray[np.int32], csr_array]]]:
            for group, some in enumerate(needed):
                here = some[np.searchsorted(some, starts[number]) : np.searchsorted(some, starts[number + 1])]
                yield group, (here, part.pairs[here - starts[number]])

        def join(parts: Iterable[tuple[int, tuple[NDArray[np.int32], csr_array]]]) -> Iterator[CandidateRows]:
            from scipy.sparse import csr_array, vstack

            in_order = sorted((part for _, part in parts if len(part[0])), key=lambda part: int(part[0][0]))
            if not in_order:
                yield CandidateRows(np.zeros(0, np.int32), csr_array((0, 1), dtype=np.float32))
                return
            documents, rows = zip(*in_order, strict=True)
            yield CandidateRows(np.concatenate(documents), csr_array(vstack(rows, format="csr")))

        self.parts = WorkerParts(documents.flat_map(send).partitionBy(count).mapPartitions(join), training, "lists")

    def is_of(self, candidates: CandidateLists) -> bool:
        """Whether these lists have the same documents."""
        return candidates.start is self._start and candidates.document is self._document


class ClusterListGradient:
    """As `ListGradient`, with the lists on a cluster."""

    def __init__(self, context: Any, candidates: CandidateParts, problem: RerankingProblem, pattern: csr_array) -> None:
        self._context, self._candidates, self._name = context, candidates, uuid4().hex
        self._Q = csr_arrays(problem.Q)
        self._start, column, _ = csr_arrays(pattern)
        lists = problem.candidates
        shared = problem.Q, self._start, column, pattern.shape[1], lists.start, lists.document, lists.base, lists.share
        self._shared = context.broadcast((*shared, loss_arguments(problem.loss)))
        self.parts = np.zeros((PARTS, pattern.nnz), np.float32)

    def add(self, queries: NDArray[np.intp], weight: NDArray[np.float32], pool: Any) -> float:
        """Add the gradient of some queries to `parts`; return their loss."""
        sent, shared, name, bounds = self._context.broadcast(weight), self._shared, self._name, self._candidates.bounds

        def evaluate(number: int, part: CandidateRows) -> tuple[NDArray[np.intp], list[float], NDArray[np.float32]]:
            first, last = bounds[number], bounds[number + 1]
            some = queries[(queries >= first) & (queries < last)]
            if not len(some):
                return some, [], np.zeros(0, np.float32)
            if part.cache.get("name") != name:
                part.cache |= {"name": name, "gradient": _QueryGradients(part, shared.value, int(first), int(last))}
            return some, *part.cache["gradient"].evaluate(some - first, sent.value)

        results = self._candidates.parts.map(evaluate)
        sent.destroy()
        added = {}
        for some, losses, values in results:
            at = 0
            for query, loss in zip(some.tolist(), losses, strict=True):
                entries = _entries(query, self._Q, self._start)
                added[query] = loss, entries, values[at : at + len(entries)]
                at += len(entries)
        total = 0.0
        for part in range(PARTS):
            for query in queries[part * len(queries) // PARTS : (part + 1) * len(queries) // PARTS].tolist():
                loss, entries, values = added[query]
                self.parts[part][entries] += values
                total += loss
        return total


class _QueryGradients:
    """On an executor: the gradient of single queries of a part."""

    def __init__(self, part: CandidateRows, shared: Any, first: int, last: int) -> None:
        Q, self._start, self._column, width, start, document, base, share, self._loss = shared
        places = slice(start[first], start[last])
        self._Q, self._D = csr_arrays(Q[first:last]), csr_arrays(part.rows)
        local = np.searchsorted(part.documents, document[places]).astype(np.int32)
        self._lists = start[first : last + 1] - start[first], local, base[places], share[places]
        self._work = np.zeros((2, width), np.float32)
        self._gradient = np.zeros(len(self._column), np.float32)

    def evaluate(self, queries: NDArray[np.intp], weight: NDArray[np.float32]) -> tuple[list[float], Any]:
        """The losses of some queries, and what each adds to the gradient at the pairs of its words."""
        from .._kernels.candidate_lists import evaluate

        losses, values = [], []
        for query in queries.tolist():
            entries = _entries(query, self._Q, self._start)
            matrices = *self._Q, self._start, self._column, weight, *self._D
            one, work = np.array([query], np.int64), (*self._work, self._gradient)
            losses.append(float(evaluate(one, *matrices, *self._lists, *self._loss, *work)))
            values.append(self._gradient[entries])
            self._gradient[entries] = 0.0
        return losses, np.concatenate(values)


def _entries(query: int, Q: Any, start: NDArray[np.int64]) -> Entries:
    """The places of the pattern in the rows of a query's words."""
    words = Q[1][Q[0][query] : Q[0][query + 1]]
    first, length = start[words], start[words + 1] - start[words]
    before = np.cumsum(length) - length
    return np.repeat(first - before, length) + np.arange(length.sum())
