"""Weak supervision: word pairs from queries that a collection has without judgments (`data.training_queries`).

Each source of queries gives a W of its own with few pairs: the closed form of the squared loss, pruned to PAIRS. Each
source also learns the names of pages, so that these keep finding their pages. Then one source after the other is added
to the score of the model, the best one first, at the weight that is best on held-out queries, or not at all if the
improvement is not significant (`weak_tests`). The constants were chosen on training queries:
`python -m benchmarks.learn_from --tune`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..data.page_queries import SOURCES, TrainingQueries, training_queries
from ..errors import DataError
from ..optim.closed_form import ClosedForm
from ..optim.penalties import Ridge
from .candidates import CandidateSearch
from .held_out import HeldOut
from .learn_again import PairRelearner
from .memory import MemoryPlan
from .model import TextModel
from .model_selection import make_folds
from .query_log import log_queries
from .query_vocabulary import QueryVocabulary
from .training import Trainer
from .training_data import TrainingData, TrainingMatrices
from .weak_tests import AcceptanceFold, SourceResult, add_sources, encode_source, page_folds

if TYPE_CHECKING:
    from scipy.sparse import csr_array

WEAK_SOURCES = (*SOURCES, "log")
"""Sources without judgments."""
PAIRS = 20_000
"""Pairs of one source. Further pairs come from single pages and do not help other pages."""
RIDGE, QUERY_NORMALIZATION = Ridge(1.0, 10.0), 0.25
MAX_QUERIES = 20_000
"""Queries of a source to learn from; of more, an even sample."""
MIN_QUERIES = 20
"""A source with fewer queries is left out."""


@dataclass(frozen=True)
class WeakSupervision:
    """Add the pairs of sources without judgments to a model.

    data : the documents with their lexical rows, and judgments or none.
    made : the queries of each source.
    """

    trainer: Trainer
    model: TextModel
    data: TrainingData
    made: Mapping[str, TrainingQueries]

    @classmethod
    def of(
        cls,
        trainer: Trainer,
        model: TextModel,
        data: TrainingData,
        sources: Sequence[str],
        typed: Mapping[str, str],
    ) -> WeakSupervision:
        """Make the queries of sources; those of "log" are what people typed."""
        made = training_queries(data.documents, [source for source in sources if source in SOURCES])
        if "log" in sources:
            made["log"] = log_queries(typed, data.documents, model.lexical, data.lexical_rows)
        return cls(trainer, model, data, made)

    @cached_property
    def sources(self) -> dict[str, TrainingQueries]:
        """The sources with enough queries, each with the names of pages."""
        return {name: _sample(one).with_names() for name, one in self.made.items() if len(one) >= MIN_QUERIES}

    @cached_property
    def vocabulary(self) -> QueryVocabulary:
        """The words of the model, and of the queries of all sources."""
        start = self.model.vocabulary or QueryVocabulary(self.model.lexical.features)
        return start.extend(source.queries[query] for source in self.sources.values() for query in source.qrels)

    def train(self) -> TextModel:
        """Return the model with the pairs of every source that helps."""
        callback = self.trainer.callback
        counts = {"typed queries with results" if name == "log" else name: len(one) for name, one in self.made.items()}
        if not self.data.qrels and not any(counts.values()):
            raise DataError(f"there are no {' and no '.join(counts)} to learn from")
        callback("made queries from " + ", ".join(f"{n:,} {name}" for name, n in counts.items()))
        encoded = {
            name: encode_source(source, self.model.lexical, self.vocabulary, self.data)
            for name, source in self.sources.items()
        }
        if not encoded:
            return self._combine({}, {})
        folds = self._judged_folds() if self.data.qrels else self._page_folds()
        pairs: dict[str, list[csr_array]] = {}
        for name, matrices in encoded.items() if folds else ():
            if self.data.qrels:
                pairs[name] = [self._learn(name, matrices)] * len(folds)
            else:
                pages = self._pages(name)
                parts = [np.flatnonzero(~np.isin(pages, held_out)) for held_out, _ in folds]
                pairs[name] = [self._learn(name, matrices[part]) for part in parts]
        callback("testing pairs")
        results = add_sources([fold for _, fold in folds], pairs)
        accepted = [name for name, one in results.items() if one.weight]
        if self.data.qrels:
            return self._combine({name: pairs[name][0] for name in accepted}, results)
        return self._combine({name: self._learn(name, encoded[name]) for name in accepted}, results)

    def _learn(self, name: str, data: TrainingMatrices) -> csr_array:
        self.trainer.callback(f"learning pairs from {name}: {len(data):,} queries")
        learner, shape = self.trainer.learner, data.lists.shape
        D = data.lists.D
        budget = replace(learner.budget, max_pairs=PAIRS, density=None, megabytes=None).for_shape(shape)
        plan = MemoryPlan.of(D.nnz, (len(data), int(D.shape[0])), shape, budget.pairs, self.trainer.memory_limit)
        learner = replace(
            learner, budget=budget, loss="squared", penalty="ridge", max_size=plan.max_size,
            constraints=self.trainer.constraints.index(self.vocabulary),
        )  # fmt: skip
        return learner.fit(ClosedForm(D, plan.max_size), data.lists, QUERY_NORMALIZATION, RIDGE, refit=False)

    def _pages(self, name: str) -> NDArray[np.int64]:
        """The page that each query was made from, or that it is for."""
        position = {page: i for i, page in enumerate(self.data.documents.ids)}
        qrels = self.sources[name].qrels
        return np.array([position[query if query in position else next(iter(qrels[query]))] for query in qrels])

    def _page_folds(self) -> list[tuple[NDArray[np.int64], AcceptanceFold]]:
        learner = self.trainer.learner
        self.trainer.callback("holding out pages")
        return page_folds(self.data, self.model.lexical, self.vocabulary, learner.random_state, learner.n_jobs)

    def _judged_folds(self) -> list[tuple[NDArray[np.int64], AcceptanceFold]]:
        """Return held-out judged queries, scored by the pairs of the other judged queries if the model has pairs."""
        model, learner = self.model, self.trainer.learner
        no_pages = np.empty(0, np.int64)
        matrices = self.data.encode(model.lexical, self.vocabulary)
        matrices = matrices.grouped(self.vocabulary, self.data.declared_groups)
        search = CandidateSearch.of(matrices, learner.n_jobs)
        if model.W is None:
            return [(no_pages, AcceptanceFold((HeldOut.search(matrices, search),)))]
        learner, _, _ = self.trainer.prepare(self.data)
        learner = replace(learner, constraints=self.trainer.constraints.index(self.vocabulary))
        folds, again = [], PairRelearner(learner, model, matrices)
        for fold in make_folds(matrices, learner.random_state):
            self.trainer.callback("learning pairs without the held-out queries")
            W = again.learn(fold.train)
            test = AcceptanceFold((HeldOut.search(fold.held_out, search, W),))
            folds.append((no_pages, test.with_pairs(W, model.pair_weight)))
        return folds

    def _combine(self, pairs: Mapping[str, csr_array], results: Mapping[str, SourceResult]) -> TextModel:
        """Return the model with the pairs of the accepted sources; its pair weight stays if it has pairs."""
        model, accepted = self.model, {name: one for name, one in results.items() if one.weight}
        learned = {
            name: {"queries": len(source)} | (asdict(results[name]) if name in results else {"weight": 0.0})
            for name, source in self.made.items()
        }
        info = dict(model.info) | {"learned_from": learned}
        if not accepted:
            if model.W is not None:
                return replace(model, info=info)
            return self.trainer.lexical_only(_reason(results), info)
        pair_weight = model.pair_weight if model.W is not None else sum(one.weight for one in accepted.values())
        W = sum(pairs[name] * np.float32(one.weight / pair_weight) for name, one in accepted.items())
        if model.W is not None:
            before = model.W.copy()
            before.resize((len(self.vocabulary.words), before.shape[1]))
            W = before + W
        first, last = (edge(accepted.values(), key=lambda one: one.ndcg) for edge in (min, max))
        info.pop("no_pairs", None)
        info["queries"] = info.get("queries", 0) + sum(len(self.made[name]) for name in accepted)
        if model.W is None:
            info |= {"query_normalization": QUERY_NORMALIZATION, "loss": "squared", "refitted": False, "epochs": 0}
            info |= {"ridge_query": RIDGE.query, "ridge_document": RIDGE.document, "learning_rate": 0.0}
        info |= {"held_out_lexical": first.ndcg_before, "held_out_learned": last.ndcg, "held_out_p_value": last.p_value}
        rest = (self.trainer.constraints, info, model.names)
        out = TextModel(model.lexical, self.vocabulary, W.tocsr(), pair_weight, *rest)
        return out.with_constraints(self.trainer.constraints) if self.trainer.constraints else out


def _reason(results: Mapping[str, SourceResult]) -> str:
    if not results:
        return "too few pages or queries to learn from"
    tried = ", ".join(f"{name} p = {one.p_value:.2g}" for name, one in results.items())
    return f"word pairs did not beat the lexical score on held-out queries ({tried})"


def _sample(source: TrainingQueries) -> TrainingQueries:
    """Return at most MAX_QUERIES of the queries, evenly spaced."""
    ids = list(source.qrels)
    if len(ids) <= MAX_QUERIES:
        return source
    some = [ids[i] for i in np.linspace(0, len(ids) - 1, MAX_QUERIES).astype(np.intp)]
    return replace(source, qrels={query: source.qrels[query] for query in some})
