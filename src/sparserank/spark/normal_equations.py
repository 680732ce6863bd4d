"""The normal equations of `PatternRidge` as sums over the partitions of documents.

    ((QᵀVQ + a) W (DᵀD + b))_P = (Qᵀ V Y D)_P

Each partition computes its share of every product with the kernels of one machine, and conjugate gradient runs on the
driver. The pattern is sent once per refit, and in a step one number per pair, each way. For a small collection one
executor has all rows and computes the product with the bits of one machine: after that W is pruned, and the smallest
difference would exchange pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from ..optim.pattern_ridge import LocalOperator, NormalEquations
from ..optim.penalties import Ridge
from ..optim.problems import ListProblem, Matrix
from .blocks import compact_csr, ordered_sum
from .document_part import DocumentPart, Replica

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from .documents import ClusterDocuments


@dataclass(frozen=True)
class Product:
    """One product over all partitions: bytes of the weights sent to each executor and of all sums returned; seconds."""

    pairs: int
    bytes_out: int
    bytes_in: int
    seconds: float


@contextmanager
def cluster_operator(
    documents: ClusterDocuments, problem: ListProblem, ridge: Ridge, W: csr_array
) -> Iterator[ClusterOperator]:
    """The operator on the pattern of W."""
    equations = NormalEquations.of(problem, ridge)
    sent = documents.context.broadcast((replace(equations, D=None), compact_csr(W)))
    try:
        yield ClusterOperator(documents, sent, LocalOperator(equations, W))
    finally:
        sent.destroy()


class ClusterOperator:
    """The normal equations on one pattern; sums over documents are computed on the cluster."""

    def __init__(self, documents: ClusterDocuments, sent: Any, local: LocalOperator) -> None:
        self._documents, self._sent, self._local = documents, sent, local
        self._name, self.diagonal = uuid4().hex, local.diagonal

    def right_side(self) -> Matrix:
        """(Qᵀ V Y D)_P"""
        return self._sum(None)

    def __call__(self, weight: Matrix) -> Matrix:
        """((QᵀVQ + a) W (DᵀD + b))_P"""
        out = self._sum(weight)
        self._local.add_document_ridge(weight, out)
        return out

    def _sum(self, weight: Matrix | None) -> Matrix:
        started, documents = perf_counter(), self._documents
        sent, equations, name, starts = documents.context.broadcast(weight), self._sent, self._name, documents.starts
        is_small = documents.is_small

        def compute(number: int, part: DocumentPart | Replica) -> list[tuple[int, Any]]:
            if is_small and number > 0:
                return []
            operator = _local_operator(name, part, equations, 0 if is_small else int(starts[number]))
            product = operator.right_side() if sent.value is None else operator(sent.value)
            return [(number, product.astype(np.float64))]

        try:
            total = ordered_sum((documents.replicated if is_small else documents.parts).flat_map(compute))
        finally:
            sent.destroy()
        out: Matrix = total.astype(np.float32)
        sent_bytes = 0 if weight is None else weight.nbytes
        returned = (1 if is_small else len(documents.parts)) * total.nbytes
        documents.products.append(Product(len(out), sent_bytes, returned, perf_counter() - started))
        return out


def _local_operator(name: str, part: DocumentPart | Replica, sent: Any, first: int) -> LocalOperator:
    """The operator of a part, which keeps it for the next product."""
    if part.cache.get("operator", ("", None))[0] != name:
        equations, W = sent.value
        targets = equations.targets[:, first : first + len(part)]
        share = replace(equations, D=part.pairs, targets=targets, ridge_document=0.0)
        part.cache["operator"] = name, LocalOperator(share, W)
    operator: LocalOperator = part.cache["operator"][1]
    return operator
