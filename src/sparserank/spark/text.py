"""SparkTextRanker: the squared loss over all judged lists with its matrix products made on a cluster.

    ((QᵀQ + a) W (DᵀD + b))_P = (Qᵀ Y D)_P

Both sides are sums over documents, so each partition of documents makes its share of every product by the kernels of
one machine, and conjugate gradients go on here. Documents are sent once for each problem, the pairs of the pattern once
for each refit, and in a step one number for each pair, each way. The result is an ordinary `TextRanker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from .. import validation
from ..data.records import Qrels
from ..errors import ConfigError, DataError
from ..optim.list_problem import JudgedLists, Matrix, Ridge
from ..optim.pattern_ridge import Operator, PatternRidge, Products
from ..optim.pruning import PairBudget
from ..text_ranker.learning import How
from ..text_ranker.ranker import TextRanker
from ..text_ranker.searching import Docs
from .blocks import Csr, ordered_sum
from .refusals import told_plainly
from .sent import Sent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Product:
    """One product over all partitions: the weights sent to each executor, the sums that came from all, and the time."""

    pairs: int
    bytes_out: int
    bytes_in: int
    seconds: float


class SparkTextRanker:
    """Learns a `TextRanker` whose squared loss is solved on a cluster.

    ranker : its settings; loss must be 'squared' and penalty 'ridge'. partitions : of documents; by itself, the
        cluster's default parallelism. What is chosen on held-out queries, and the closed form that names the pairs to
        start with, are this machine's work.

    After `fit`: products_, one record for every product.
    """

    def __init__(self, ranker: TextRanker | None = None, *, partitions: int | None = None) -> None:
        self.ranker = TextRanker(loss="squared") if ranker is None else ranker
        self.partitions = partitions

    def fit(
        self,
        spark: SparkSession,
        docs: Docs,
        queries: Mapping[str, str],
        qrels: Qrels,
        *,
        query_weight: Mapping[str, float] | None = None,
        drop_self: bool = False,
        tell: Callable[[str], None] = lambda message: None,
    ) -> TextRanker:
        """Learn from documents and judged queries, as `TextRanker.fit` does."""
        self._judged()
        if not isinstance(qrels, Mapping):
            raise DataError(f"judgments {{query id: {{document id: grade}}}} are wanted; got {type(qrels).__name__}")
        partitions = self.partitions or spark.sparkContext.defaultParallelism
        products: list[Product] = []

        with ExitStack() as held:

            def solver(lists: JudgedLists, evenness: float, ridge: Ridge, n_jobs: int | None) -> PatternRidge:
                held.close()  # problems are solved one after another
                found = SparkPatternRidge(lists, evenness, ridge, n_jobs).on(spark, partitions, products)
                held.callback(found.let_go)
                return found

            fitting = _Fitting(**self.ranker.get_params(deep=False))
            fitting.solved_by = solver
            with told_plainly():
                fitting.fit(docs, queries, qrels, query_weight=query_weight, drop_self=drop_self, tell=tell)
        out = TextRanker(**self.ranker.get_params(deep=False))
        out.model_, out.index_ = fitting.model_, fitting.index_
        self.products_ = tuple(products)
        return out

    def _judged(self) -> None:
        if self.partitions is not None:
            validation.count("partitions", self.partitions, low=1)
        ranker = self.ranker
        if not isinstance(ranker, TextRanker):
            raise ConfigError(f"a TextRanker's settings are wanted; got {type(ranker).__name__}")
        if (ranker.ranker, ranker.loss, ranker.penalty) != ("text", "squared", "ridge"):
            raise ConfigError(
                "on Spark a TextRanker learns by ranker='text', loss='squared' and penalty='ridge'; got "
                f"ranker={ranker.ranker!r}, loss={ranker.loss!r} and penalty={ranker.penalty!r}"
            )


class _Fitting(TextRanker):
    """A TextRanker whose squared loss is solved by another solver."""

    solved_by: Callable[..., PatternRidge]

    def _how(self, budget: PairBudget) -> How:
        return replace(super()._how(budget), solver=self.solved_by)


class SparkPatternRidge(PatternRidge):
    """Lists, a penalty, and solves on any pattern over them, with products made by partitions of documents."""

    def on(self, spark: SparkSession, partitions: int, told: list[Product]) -> SparkPatternRidge:
        """Send each partition its documents, even numbers of entries to each; `told` is added to with every product."""
        self._spark, self._told = spark, told
        entries = self._lists.D.indptr
        wanted = np.linspace(0, entries[-1], partitions + 1)[1:-1]
        bounds = [0, *np.searchsorted(entries, wanted).tolist(), self._lists.D.shape[0]]
        self._parts = Sent(spark, [self.part(*span) for span in pairwise(bounds)])
        return self

    def let_go(self) -> None:
        """The executors may forget the documents."""
        self._parts.destroy()

    def refit(self, W: csr_array, steps: int, fixed: Any = None) -> csr_array:
        """W's entries after so many steps of conjugate gradients from where they are; `fixed` entries stay."""
        try:
            return super().refit(W, steps, fixed)
        finally:
            self._pattern.destroy()

    def _products(self, W: csr_array, pool: ThreadPoolExecutor) -> Operator:
        self._pattern = self._spark.sparkContext.broadcast(Csr.of(W))
        return SparkProducts(self, W, pool, self._pattern)


class SparkProducts(Products):
    """The operator and the right side at the entries of one pattern; sums over documents are made on the cluster."""

    def __init__(self, problem: SparkPatternRidge, W: csr_array, pool: ThreadPoolExecutor, pattern: Any) -> None:
        super().__init__(problem, W, pool)
        self._context, self._pattern = problem._spark.sparkContext, pattern
        self._parts = problem._parts
        self._told, self._name = problem._told, uuid4().hex

    def right_side(self) -> Matrix:
        """(Qᵀ Y D)_P"""
        return self._summed(None)

    def __call__(self, weight: Matrix) -> Matrix:
        """((QᵀQ + a) W (DᵀD + b))_P"""
        out = self._summed(weight)
        if self._problem._ridge.b > 0.0:
            self.held_back(weight, out)
        return out

    def _summed(self, weight: Matrix | None) -> Matrix:
        started = perf_counter()
        sent, pattern, name = self._context.broadcast(weight), self._pattern, self._name

        def work(number: int, part: PatternRidge) -> list[tuple[int, Any]]:
            products = _kept((name, number), part, pattern)
            found = products.right_side() if sent.value is None else products(sent.value)
            return [(number, found.astype(np.float64))]

        try:
            total = ordered_sum(self._parts.flat_map(work))
        finally:
            sent.destroy()
        out: Matrix = total.astype(np.float32)
        sent_bytes = 0 if weight is None else weight.nbytes
        self._told.append(Product(len(out), sent_bytes, len(self._parts) * total.nbytes, perf_counter() - started))
        return out


_KEPT: dict[tuple[str, int], Products] = {}


def _kept(key: tuple[str, int], part: PatternRidge, pattern: Any) -> Products:
    """The part's products on this pattern: made once by every process that needs them, for as long as it is solved."""
    if key not in _KEPT:
        for old in [old for old in _KEPT if old[0] != key[0]]:
            del _KEPT[old]
        _KEPT[key] = Products(part, pattern.value.matrix(), _OneThread())
    return _KEPT[key]


class _OneThread(ThreadPoolExecutor):
    """Work done at once, by who asks for it: a task of Spark has one core."""

    def __init__(self) -> None:
        super().__init__(1)

    def map(self, fn: Callable[..., Any], *iterables: Any, **_: Any) -> Iterator[Any]:
        """fn of each, in order."""
        return map(fn, *iterables)
