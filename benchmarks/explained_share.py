"""How much of the learned part of a score do five lines of an explanation show, and what does a larger share cost?

The learned part of a score is a sum of contributions, one for each pair of a query word and a document word. Its
explained share is the sum of the five largest absolute lines, divided by the sum of all. A line is

- a pair;
- a document word: all pairs that have it (`by_document_word`);
- a family: a document word and at most five others whose columns of W have a cosine of at least .5 (`by_family`);
- a group: a query word and at most `WORDS_PER_LINE` document words of one sign, to which it contributes most
  (`by_group`). Groups of other sizes are `by_group_of_…`.

Held-out training queries are ranked by a W of the other training queries with the default loss; the median is over the
first ten results that have learned contributions. `--dev` reports the share and nDCG@10 of dev for the default model,
in a collection of links also without the judgments whose reverse is in training.
Rows are sizes of W, and ways to concentrate a score: fewer pairs per query word (the freed budget goes to other words);
the same with weights reduced by the largest one that was left out, which is a row-wise L1 penalty; and expanded queries
of fewer words (Wᵀq, its most important entries).

    python -m benchmarks.explained_share nfcorpus pydocs [--sizes 300000] [--per-word 30 100] [--dev]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import sparserank as sr
from sparserank.optim.closed_form import ClosedForm
from sparserank.optim.penalties import Ridge
from sparserank.optim.pruning import Importance, PairBudget, prune
from sparserank.search.explanation import WORDS_PER_LINE, group_words, shown_share
from sparserank.text_ranker.candidates import CandidateSearch
from sparserank.text_ranker.held_out import searched_ndcg
from sparserank.text_ranker.model_selection import make_folds, score_held_out, tune_loss, tune_pair_weight, tune_ridge
from sparserank.text_ranker.training_data import TrainingData

from .measure import in_new_process, peak_megabytes, reverses_of, without_reverses
from .text_training import queries_are_pages

SIZES = (30_000, 300_000, 1_000_000)
PER_WORD = (30, 100)
EXPANDED = (80, 160, 320)
GROUP_SIZES = (4, 5, 8)
"""Document words in a group, beside WORDS_PER_LINE."""
FAMILY_COSINE, FAMILY_SIZE = 0.5, 6
QUERIES = 100
"""Held-out queries whose results are explained."""


def shares(queries: Any, top: Any, W: Any) -> dict[str, float]:
    """The median explained share over all results, for each kind of line."""
    found: dict[str, list[float]] = {}
    Q, D, columns = queries.lists.Q, queries.lists.D, W.tocsc().astype(np.float64)
    norm = np.sqrt(np.bincount(W.indices, W.data.astype(np.float64) ** 2, minlength=W.shape[1]))
    for query in range(min(len(queries), QUERIES)):
        row = Q[[query]]
        entries = W[row.indices].tocoo()
        weight = row.data[entries.row] * entries.data
        for document in top[query][top[query] >= 0].tolist():
            values = weight * D[[document]].toarray()[0][entries.col]
            if values.any():
                by_word = np.bincount(entries.col, values)
                words = np.flatnonzero(by_word)
                cosine = (columns[:, words].T @ columns[:, words]).toarray() / np.outer(norm[words], norm[words])
                pairs = [(str(i), str(j), v) for i, j, v in zip(entries.row, entries.col, values.tolist(), strict=True)]
                lines = {
                    "by_pair": values, "by_document_word": by_word, "by_family": families(by_word[words], cosine),
                    "by_group": [group.contribution for group in group_words(pairs)],
                } | {
                    f"by_group_of_{size}": [group.contribution for group in group_words(pairs, size)]
                    for size in GROUP_SIZES
                }  # fmt: skip
                for kind, contributions in lines.items():
                    found.setdefault(kind, []).append(shown_share(contributions))
    return {kind: round(float(np.median(values)), 3) for kind, values in found.items()}


def families(value: Any, cosine: Any) -> list[float]:
    """The contributions of families of words: the largest word that is left, and the words most similar to it."""
    out, free = [], np.ones(len(value), np.bool_)
    for leader in np.argsort(-np.abs(value)).tolist():
        if free[leader]:
            free[leader] = False
            similar = np.flatnonzero(free & (cosine[leader] >= FAMILY_COSINE))
            members = similar[np.argsort(-cosine[leader][similar])][: FAMILY_SIZE - 1]
            free[members] = False
            out.append(float(value[leader] + value[members].sum()))
    return out


@dataclass(frozen=True)
class Fold:
    """Training queries and held-out ones of a collection, and the pairs of the training queries."""

    name: str

    @cached_property
    def parts(self) -> Any:
        """The learner, all matrices, the fold, and its regularization."""
        collection = sr.data.load(self.name)
        trainer, exclude_self = sr.TextRanker().trainer(), queries_are_pages(collection)
        qrels = collection.qrels["train"]
        data = TrainingData.validate(collection.documents, collection.queries, qrels, exclude_self=exclude_self)
        data = replace(data, lexical_rows=trainer.lexical.fit(collection.documents))
        learner, matrices, _ = trainer.prepare(data)
        (fold, *_) = make_folds(matrices, 0)
        choice = tune_ridge([fold], CandidateSearch.of(matrices), lambda message: None)
        return learner, matrices, fold, (choice.query_normalization, Ridge(choice.ridge_query, choice.ridge_document))

    @cached_property
    def search(self) -> CandidateSearch:
        """The index of the documents."""
        return CandidateSearch.of(self.parts[1])

    @cached_property
    def largest(self) -> Any:
        """The most important pairs of the closed form, as many as the largest size."""
        learner, matrices, fold, settings = self.parts
        form = ClosedForm(matrices.lists.D, learner.max_size)
        learner = replace(learner, budget=PairBudget(max(SIZES)))
        return learner.find_pairs(form, fold.train.lists, *settings, refit=False)

    @cached_property
    def importance(self) -> Importance:
        """The importance of a pair for the squared loss."""
        _, _, fold, (normalization, ridge) = self.parts
        return Importance.of(replace(fold.train.lists, query_normalization=normalization), ridge)

    @cached_property
    def lists(self) -> Any:
        """The candidate lists of the training queries."""
        learner, _, fold, _ = self.parts
        return learner.candidate_lists(fold.train, self.search)

    def refit(self, W: Any) -> tuple[Any, float]:
        """W after the default loss with its rate and epochs tuned, and the pair weight."""
        learner, _, fold, settings = self.parts
        result = tune_pair_weight([score_held_out(fold.held_out, self.search, W)], *settings)
        tuned = learner, [W], [fold], self.search, result, lambda message: None, lambda: [self.lists]
        _, rate, epochs, _ = tune_loss(*tuned)
        if epochs:
            *_, W = learner.refit_by_loss(W, fold.train, self.lists, result.pair_weight, rate, epochs)
        return W, result.pair_weight

    def row(self, label: str, W: Any, pair_weight: float, held_out: Any = None) -> dict[str, Any]:
        """Measure one W; `held_out` : other vectors of the held-out queries."""
        held_out = self.parts[2].held_out if held_out is None else held_out
        ndcg = searched_ndcg(held_out, self.search, W, pair_weight).mean()
        kinds = shares(held_out, self.search.top(held_out, 10, W, pair_weight), W)
        ratio = round(kinds["by_group"] / kinds["by_pair"], 2)
        return {
            "name": f"{self.name}, {label}",
            "ratio": ratio,
            "pairs": int(W.nnz),
            "ndcg": round(float(ndcg), 4),
        } | kinds

    def expanded_row(self, W: Any, pair_weight: float, words: int) -> dict[str, Any]:
        """Measure expanded queries of so many words: a W with a row for each held-out query."""
        from scipy.sparse import csr_array, eye_array

        held_out = self.parts[2].held_out
        expanded = (held_out.lists.Q @ W).tocsr()
        ones = np.ones(expanded.shape[0], np.float32)
        limit = PairBudget(max(1, expanded.nnz), pairs_per_word=words)
        own = csr_array(eye_array(len(ones), format="csr", dtype=np.float32))
        pruned = prune(expanded, Importance(ones, self.importance.columns), limit).astype(np.float32)
        queries = replace(held_out, lists=replace(held_out.lists, Q=own))
        row = self.row(f"expanded queries of {words} words", pruned, pair_weight, queries)
        kinds = ("by_pair", "by_family", *(kind for kind in row if kind.startswith("by_group")))
        return {kind: share for kind, share in row.items() if kind not in kinds} | {
            "ratio": 1.0
        }  # one row of W a query


def shrink_rows(W: Any, importance: Importance, pairs: int, budget: int) -> Any:
    """Each row of W with at most so many pairs, each reduced by the importance of the largest one that is left out."""
    more = prune(W, importance, PairBudget(W.nnz, pairs_per_word=pairs + 1))
    row = np.repeat(np.arange(more.shape[0]), np.diff(more.indptr))
    value = np.abs(more.data) * importance.columns[more.indices] * importance.rows[row]
    least = np.full(more.shape[0], np.inf)
    np.minimum.at(least, row, value)
    least[np.diff(more.indptr) <= pairs] = 0.0
    more.data *= ((value - least[row]) / value).astype(np.float32)
    return prune(more, importance, PairBudget(budget, pairs_per_word=pairs))


def measure(name: str, sizes: Sequence[int] = SIZES, per_word: Sequence[int] = PER_WORD) -> list[dict[str, Any]]:
    """A row for each size, and for each way to concentrate a score at the default size."""
    fold, rows = Fold(name), []
    default = PairBudget().pairs
    for size in sizes:
        W, weight = fold.refit(prune(fold.largest, fold.importance, PairBudget(size)))
        rows.append(fold.row(f"{size:,} pairs", W, weight))
        if size == default:
            rows += [fold.expanded_row(W, weight, words) for words in EXPANDED]
    for limit in per_word:
        W, weight = fold.refit(prune(fold.largest, fold.importance, PairBudget(default, pairs_per_word=limit)))
        rows.append(fold.row(f"at most {limit} pairs per query word", W, weight))
        W, weight = fold.refit(shrink_rows(fold.largest, fold.importance, limit, default))
        rows.append(fold.row(f"row-wise L1, at most {limit} pairs", W, weight))
    rows[0]["peak_mb"] = peak_megabytes()
    return rows


def on_dev(name: str) -> dict[str, Any]:
    """The median share of the default model, over the first ten results of dev queries."""
    collection = sr.data.load(name)
    exclude_self, dev = queries_are_pages(collection), collection.qrels["dev"]
    ranker = sr.TextRanker()
    ranker.fit(collection.documents, collection.queries, collection.qrels["train"], exclude_self=exclude_self)
    found = []
    for query in list(dev)[:QUERIES]:
        text = collection.queries[query]
        hits = [hit.id for hit in ranker.search(text, 11) if not (exclude_self and hit.id == query)]
        found += [ranker.explain(text, document).explained_share for document in hits[:10]]
    learned = [share for share in found if share is not None]
    run = ranker.run({query: collection.queries[query] for query in dev}, 100, exclude_self)
    ndcg = sr.evaluation.evaluate_run(run, dev, "nDCG@10")
    alone = without_reverses(reverses_of(collection, dev), dev, {"ndcg": run})
    share, value = round(float(np.median(learned)), 3), round(float(ndcg["nDCG@10"].value), 4)
    return {"name": f"{name}, dev", "by_group": share, "results": len(learned), "ndcg": value} | alone


def run(quick: bool = False) -> dict[str, Any]:
    """A row for each collection and size."""
    rows: list[dict[str, Any]] = []
    for name in ("pydocs",) if quick else ("nfcorpus", "pydocs"):
        rows += in_new_process("explained_share", "measure", name)
    return {
        "case": "explained share",
        "size": f"held-out training queries; shares are medians over the first ten results of {QUERIES} queries; a "
        f"group has at most {WORDS_PER_LINE} document words",
        "peer": "lines that are single pairs (the ratio is that of the shares)",
        "rows": rows,
        "peak_mb": max(row.pop("peak_mb", 0.0) for row in rows),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("collections", nargs="*", default=["nfcorpus", "pydocs"])
    parser.add_argument("--sizes", nargs="*", type=int, default=SIZES, help="pairs of W")
    parser.add_argument("--per-word", nargs="*", type=int, default=PER_WORD, help="limits of the pairs of a query word")
    parser.add_argument("--dev", action="store_true", help="the default model on dev queries instead")
    given = parser.parse_args()
    for name in given.collections:
        if given.dev:
            print(json.dumps(on_dev(name)), flush=True)
            continue
        for row in measure(name, given.sizes, given.per_word):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
