"""SparkTextRanker: the squared loss over all judged lists, with its matrix products on a cluster.

    ((QᵀVQ + a) W (DᵀD + b))_P = (Qᵀ V Y D)_P

Both sides are sums over documents, so each partition of documents computes its share of every product with the kernels
of one machine, and conjugate gradient runs on the driver. Documents are sent once per problem, the pattern once per
refit, and in a step one number per pair, each way. The result is an ordinary `TextRanker`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from ..data.records import Qrels
from ..deprecated import renamed_parameters
from ..errors import ConfigError, DataError
from ..optim.pattern_ridge import LocalOperator, NormalEquations, PatternRidge
from ..optim.penalties import Ridge
from ..optim.problems import ListProblem, Matrix
from ..text_ranker.model import TextModel
from ..text_ranker.ranker import TextRanker
from ..text_ranker.searcher import Docs
from .blocks import compact_csr, ordered_sum
from .broadcast import BroadcastParts
from .errors import check_settings, executor_errors
from .features import fit_features

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from scipy.sparse import csr_array


@dataclass(frozen=True)
class Product:
    """One product over all partitions: bytes of the weights sent to each executor and of all sums returned; seconds."""

    pairs: int
    bytes_out: int
    bytes_in: int
    seconds: float


class SparkTextRanker:
    """Learns a `TextRanker` whose squared loss is solved on a cluster.

    Model selection on held-out queries, and the closed form that gives the first pattern, run on the driver.

    Parameters
    ----------
    ranker : TextRanker, optional
        The settings; loss must be 'squared' and penalty 'ridge'.
    partitions : int, optional
        Partitions of documents; by default the cluster's default parallelism.

    Attributes
    ----------
    products_ : tuple of Product
        One record per matrix product, after `fit`.

    Examples
    --------
    >>> docs = {"d1": "red apples", "d2": "green pears"}
    >>> ranker = SparkTextRanker(partitions=1).fit(spark, docs, {"q1": "fruit"}, {"q1": {"d1": 1}})
    >>> ranker.search("pears")[0].id
    'd2'
    """

    def __init__(self, ranker: TextRanker | None = None, *, partitions: int | None = None) -> None:
        self.ranker = TextRanker(loss="squared") if ranker is None else ranker
        self.partitions = partitions

    @renamed_parameters({"drop_self": "exclude_self", "tell": "callback"})
    def fit(
        self,
        spark: SparkSession,
        docs: Docs,
        queries: Mapping[str, str],
        qrels: Qrels,
        *,
        query_weight: Mapping[str, float] | None = None,
        query_group: Mapping[str, str] | None = None,
        exclude_self: bool = False,
        callback: Callable[[str], None] = lambda message: None,
    ) -> TextRanker:
        """Learn from documents and judged queries.

        Parameters
        ----------
        spark : SparkSession
            The cluster.
        docs, queries, qrels, query_weight, query_group, exclude_self, callback
            As in `TextRanker.fit`; qrels must be a mapping.

        Returns
        -------
        TextRanker
            A fitted ranker.
        """
        self.validate()
        if not isinstance(qrels, Mapping):
            raise DataError(f"qrels must be {{query id: {{document id: grade}}}}; got {type(qrels).__name__}")
        partitions = self.partitions or spark.sparkContext.defaultParallelism
        products: list[Product] = []

        operators = ClusterOperators(spark, partitions, products)
        try:
            out = TextRanker(**self.ranker.get_params(deep=False))
            solver = PatternRidge(operator=operators)
            with executor_errors():
                out.fit(
                    docs, queries, qrels,
                    query_weight=query_weight, query_group=query_group, exclude_self=exclude_self, callback=callback,
                    solver=solver,
                )  # fmt: skip
        finally:
            operators.close()
        self.products_ = tuple(products)
        return out

    def validate(self) -> None:
        """Check all parameters; raises ConfigError."""
        ranker = self.ranker
        check_settings(ranker, TextRanker, self.partitions)
        if (ranker.ranker, ranker.loss, ranker.penalty) != ("text", "squared", "ridge"):
            raise ConfigError(
                "on Spark a TextRanker needs ranker='text', loss='squared' and penalty='ridge'; got "
                f"ranker={ranker.ranker!r}, loss={ranker.loss!r} and penalty={ranker.penalty!r}"
            )


def fit_lexical(ranker: TextRanker, documents: DataFrame, callback: Callable[[str], None]) -> TextRanker:
    """Fit a lexical ranker with words counted on the cluster; it has no index, because documents stay there."""
    callback("counting words")
    lexical = ranker.lexical_model()
    features = fit_features(documents, ["title", "text"], lexical.features, field_weights=lexical.field_weights)
    if not features.documents_:
        raise DataError("there are no documents to learn from")
    if not features.words_:
        raise DataError(f"none of the {features.documents_} documents has a word")
    ranker.model_ = TextModel(lexical)
    return ranker


class ClusterOperators:
    """Makes the operators of a `PatternRidge` that computes its products by partitions of documents on a cluster.

    The documents of a problem are sent once, with about as many entries to each partition. Every product is added to
    `products`.
    """

    def __init__(self, spark: SparkSession, partitions: int, products: list[Product]) -> None:
        self._spark, self._partitions, self.products = spark, partitions, products
        self._key: Any = None
        self._parts: BroadcastParts | None = None

    @contextmanager
    def __call__(self, problem: ListProblem, ridge: Ridge, W: csr_array, threads: int) -> Iterator[ClusterOperator]:
        """The operator on the pattern of W."""
        equations = NormalEquations.of(problem, ridge)
        if self._parts is None or self._key[0] is not problem or self._key[1] != ridge:
            self._send(problem, ridge, equations)
        assert self._parts is not None
        pattern = self._spark.sparkContext.broadcast(compact_csr(W))
        try:
            yield ClusterOperator(self._spark, self._parts, pattern, LocalOperator(equations, W), self.products)
        finally:
            pattern.destroy()

    def _send(self, problem: ListProblem, ridge: Ridge, equations: NormalEquations) -> None:
        self.close()
        entries = problem.D.indptr
        targets = np.linspace(0, entries[-1], self._partitions + 1)[1:-1]
        bounds = [0, *np.searchsorted(entries, targets).tolist(), problem.D.shape[0]]
        self._parts = BroadcastParts(self._spark, [equations.select_documents(*span) for span in pairwise(bounds)])
        self._key = problem, ridge

    def close(self) -> None:
        """Delete the documents on the executors."""
        if self._parts is not None:
            self._parts.destroy()
        self._parts = None


class ClusterOperator:
    """The normal equations on one pattern; sums over documents are computed on the cluster."""

    def __init__(
        self, spark: SparkSession, parts: BroadcastParts, pattern: Any, local: LocalOperator, products: list[Product]
    ) -> None:
        self._context, self._parts, self._pattern, self._local = spark.sparkContext, parts, pattern, local
        self._products, self._name, self.diagonal = products, uuid4().hex, local.diagonal

    def right_side(self) -> Matrix:
        """(Qᵀ V Y D)_P"""
        return self._sum(None)

    def __call__(self, weight: Matrix) -> Matrix:
        """((QᵀVQ + a) W (DᵀD + b))_P"""
        out = self._sum(weight)
        self._local.add_document_ridge(weight, out)
        return out

    def _sum(self, weight: Matrix | None) -> Matrix:
        started = perf_counter()
        sent, pattern, name = self._context.broadcast(weight), self._pattern, self._name

        def compute_part(number: int, part: NormalEquations) -> list[tuple[int, Any]]:
            operator = _cached_operator((name, number), part, pattern)
            product = operator.right_side() if sent.value is None else operator(sent.value)
            return [(number, product.astype(np.float64))]

        try:
            total = ordered_sum(self._parts.flat_map(compute_part))
        finally:
            sent.destroy()
        out: Matrix = total.astype(np.float32)
        sent_bytes = 0 if weight is None else weight.nbytes
        self._products.append(Product(len(out), sent_bytes, len(self._parts) * total.nbytes, perf_counter() - started))
        return out


_OPERATORS: dict[tuple[str, int], LocalOperator] = {}


def _cached_operator(key: tuple[str, int], part: NormalEquations, pattern: Any) -> LocalOperator:
    """The part's operator on this pattern; each executor process makes it once and drops those of other patterns."""
    if key not in _OPERATORS:
        for old in [old for old in _OPERATORS if old[0] != key[0]]:
            del _OPERATORS[old]
        _OPERATORS[key] = LocalOperator(part, pattern.value)
    return _OPERATORS[key]
