"""Hybrid search: fuse the rankings of a text ranker and of any other retriever, such as a dense one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .. import validation
from ..data.records import Qrels, Run
from ..errors import ConfigError, DataError
from ..evaluation import evaluate_run

__all__ = ["Fusion", "tune_fusion"]
METHODS = ("reciprocal-rank", "weighted")
WEIGHT_STEPS = 11
"""Weights that `tune` tries: 0, 0.1, …, 1 for the first of two rankings."""
RANK_CONSTANTS = (10.0, 60.0)


@dataclass(frozen=True)
class Fusion:
    """A rule that makes one ranking of several.

        reciprocal-rank   score(d) = sum_r weight_r / (rank_constant + rank_r(d))
        weighted          score(d) = sum_r weight_r · (s_r(d) - min s_r) / (max s_r - min s_r)

    A document that is not in a ranking adds nothing there. If all scores of a ranking are equal, they count 1.

    Parameters
    ----------
    method : {"reciprocal-rank", "weighted"}, default="reciprocal-rank"
        Reciprocal ranks ignore scores (Cormack et al., 2009). The weighted sum scales the scores of a query to 0 … 1.
    weights : tuple of float, default=()
        One weight for each ranking; equal weights if empty.
    rank_constant : float, default=60.0
        For reciprocal ranks: the larger, the less the first ranks count.

    Examples
    --------
    >>> sparse, dense = {"a": 9.0, "b": 8.0, "c": 1.0}, {"b": 0.9, "d": 0.8}
    >>> list(Fusion().fuse([sparse, dense]))
    ['b', 'a', 'd', 'c']
    >>> Fusion("weighted", (0.5, 0.5)).fuse([sparse, dense])
    {'b': 0.9375, 'a': 0.5, 'd': 0.0, 'c': 0.0}
    """

    method: str = "reciprocal-rank"
    weights: tuple[float, ...] = ()
    rank_constant: float = 60.0

    def __post_init__(self) -> None:
        validation.choice("method", self.method, METHODS)
        validation.number("rank_constant", self.rank_constant, low=0.0)
        for weight in self.weights:
            validation.number("weight", weight, low=0.0)
        if self.weights and not any(self.weights):
            raise ConfigError("one of the weights must be larger than 0")

    def fuse(self, rankings: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Fuse the rankings of one query.

        Parameters
        ----------
        rankings : sequence of mappings
            {document id: score} of each retriever.

        Returns
        -------
        dict
            {document id: score}, best first; ties are ordered by descending id.
        """
        if self.weights and len(self.weights) != len(rankings):
            raise DataError(f"the fusion has {len(self.weights)} weights; got {len(rankings)} rankings")
        fused: dict[str, float] = {}
        for weight, ranking in zip(self.weights or (1.0,) * len(rankings), rankings, strict=True):
            for document, part in self._parts(ranking).items():
                fused[document] = fused.get(document, 0.0) + weight * part
        return {document: fused[document] for document in _best_first(fused)}

    def fuse_runs(self, runs: Sequence[Run]) -> dict[str, dict[str, float]]:
        """Fuse the runs of several retrievers.

        Parameters
        ----------
        runs : sequence of mappings
            {query id: {document id: score}} of each retriever; a query may be missing in some.
        """
        queries = dict.fromkeys(query for run in runs for query in run)
        return {query: self.fuse([run.get(query, {}) for run in runs]) for query in queries}

    def _parts(self, ranking: Mapping[str, float]) -> Mapping[str, float]:
        if self.method == "reciprocal-rank":
            return {one: 1.0 / (self.rank_constant + n) for n, one in enumerate(_best_first(ranking), start=1)}
        low, high = min(ranking.values(), default=0.0), max(ranking.values(), default=0.0)
        return {one: (score - low) / (high - low) if high > low else 1.0 for one, score in ranking.items()}


def tune_fusion(runs: Sequence[Run], qrels: Qrels, measure: str = "nDCG@10") -> Fusion:
    """Choose the method and the weights of two rankings on judged queries.

    Parameters
    ----------
    runs : sequence of two mappings
        {query id: {document id: score}} of the two retrievers, on queries that neither was trained on.
    qrels : mapping
        {query id: {document id: grade}}. Report figures on other queries than these.
    measure : str, default="nDCG@10"
        What to maximize.

    Returns
    -------
    Fusion
        The best of 11 weights for each of the weighted sum and reciprocal ranks with the constants 10 and 60. Of
        equally good ones, the first: the simplest method, and the weights that are the most equal.

    Examples
    --------
    >>> sparse, dense = {"q": {"a": 3.0, "b": 2.0}}, {"q": {"c": 0.3, "b": 0.2}}
    >>> tune_fusion([sparse, dense], {"q": {"a": 1}}).weights[0] > 0.5
    True
    """
    if len(runs) != 2:
        raise ConfigError(f"two runs are tuned; got {len(runs)}")
    weights = sorted(np.linspace(0.0, 1.0, WEIGHT_STEPS).round(3).tolist(), key=lambda weight: abs(weight - 0.5))
    candidates = [
        Fusion(method, (weight, round(1.0 - weight, 3)), constant)
        for method, constants in (("reciprocal-rank", RANK_CONSTANTS[::-1]), ("weighted", (60.0,)))
        for constant in constants
        for weight in weights
    ]
    known = [{query: run.get(query, {}) for query in qrels} for run in runs]
    scores = [evaluate_run(one.fuse_runs(known), qrels, measure).mean() or 0.0 for one in candidates]
    return candidates[int(np.argmax(scores))]


def _best_first(scores: Mapping[str, float]) -> list[str]:
    return sorted(scores, key=lambda document: (np.float32(scores[document]), document), reverse=True)
