"""How the constants of the text ranker were chosen: each is varied alone, on held-out training queries.

    python -m benchmarks.text_defaults [--collections nfcorpus pydocs] [--turns 1] [--only idf]

prints a Markdown table: nDCG@10 of every value, and its difference from the default on the same queries, with the
standard error of that difference. Defaults are chosen by the mean over NFCorpus and pydocs; Cranfield, which has no
train split, is measured with `--collections cranfield`. In the first block W is not pruned and the query ridge
is tuned; in the second W has `PAIRS` pairs and a fixed ridge, and the last rows are the losses that start from it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np

from sparserank.optim.pruning import Importance, PairBudget, prune_rows
from sparserank.text_ranker import pair_learner
from sparserank.text_ranker.pair_learner import PairLearner

from . import training_queries as queries
from .markdown import table
from .training_queries import QUERY_NORMALIZATION, RIDGE, PerQuery, Split, Weights

COLLECTIONS = ("nfcorpus", "pydocs")
PAIRS = 200_000
CHOICES: dict[str, tuple[float, ...]] = {
    "query_idf": (0.0, 0.25, 0.75, 1.0),
    "document_idf": (0.0, 0.25, 0.75, 1.0),
    "neighbours": (0.0, 0.35, 0.5, 1.0, 1.4),
    "own_words": (0.0,),
}
PENALTIES = (0.1, 0.3, 1.0, 3.0, 10.0)
Measured = Callable[[Split], PerQuery]


def uncut() -> Iterator[tuple[str, Measured]]:
    """Weights, query normalization and penalties, on W as it is before it is cut."""
    yield "W uncut, defaults", queries.dense
    for name, values in CHOICES.items():
        for value in values:
            weights = replace(Weights(), **{name: value})
            yield f"{name} {value:g}", lambda split, weights=weights: queries.dense(split.weighted(weights))
    for value in (0.0, 0.5, 1.0):
        yield (
            f"query normalization {value:g}",
            lambda split, value=value: queries.dense(split, query_normalization=value),
        )
    for value in PENALTIES:
        yield f"query ridge {value:g}", lambda split, value=value: queries.dense(split, query_ridge=(value,))
    for value in PENALTIES:
        yield f"document ridge {value:g}", lambda split, value=value: queries.dense(split, document_ridge=value)


def only_cut(split: Split) -> PerQuery:
    """The closed form's W, cut and not refitted."""
    lists = split.train.lists
    lists = replace(lists, query_normalization=QUERY_NORMALIZATION)
    rows = split.form.iterate_rows(lists, RIDGE)
    return queries.sparse(split, prune_rows(rows, lists.shape, Importance.of(lists, RIDGE), PairBudget(PAIRS)))


def fitted(split: Split, **constants: float) -> Any:
    """W of `PAIRS` pairs with some of the learner's constants changed."""
    with patch.dict(vars(pair_learner), constants):
        return PairLearner(PairBudget(PAIRS)).fit(split.form, split.train.lists, QUERY_NORMALIZATION, RIDGE)


def cut() -> Iterator[tuple[str, Measured]]:
    """Cutting, refitting, and the losses that go on from there."""
    usual = cache(fitted)
    yield f"{PAIRS:,} pairs, defaults", lambda split: queries.sparse(split, usual(split))
    yield "cut, not refitted", only_cut
    for name, values in (
        ("FIRST_FACTOR", (1, 2, 5)),
        ("PATTERN_RIDGE_FACTOR", (1.0, 10.0)),
        ("FIRST_STEPS", (3, 12)),
        ("STEPS", (5, 20)),
    ):
        for value in values:
            yield f"{name} {value:g}", lambda split, c={name: value}: queries.sparse(split, fitted(split, **c))
    for loss in ("domination", "softmax", "hinge"):
        yield f"{loss} loss", lambda split, loss=loss: queries.relearned(split, usual(split), loss)


def compared(found: PerQuery, usual: PerQuery) -> str:
    """The mean, and the mean difference with its standard error."""
    if found is usual:
        return f"{found.mean():.4f}"
    difference = found - usual
    return f"{found.mean():.4f} ({difference.mean():+.4f} ± {difference.std() / np.sqrt(len(difference)):.4f})"


def rows(collections: tuple[str, ...], turns: int, only: str = "") -> list[dict[str, Any]]:
    """A row a value, a column a collection, and the mean difference over collections."""
    parts = {name: list(queries.splits(name, turns)) for name in collections}
    out = [{"name": "BM25"} | {name: f"{_all(part, _lexical).mean():.4f}" for name, part in parts.items()}]
    for block in (uncut(), cut()):
        usual: dict[str, PerQuery] = {}
        for title, measured in block:
            if only not in title and "defaults" not in title:
                continue
            found = {name: _all(part, measured) for name, part in parts.items()}
            usual = usual or found
            row = {"name": title} | {name: compared(found[name], usual[name]) for name in parts}
            mean = float(np.mean([(found[name] - usual[name]).mean() for name in parts]))
            out.append(row | ({} if found is usual else {"mean difference": f"{mean:+.4f}"}))
            print(out[-1], file=sys.stderr, flush=True)
    return out


def _lexical(split: Split) -> PerQuery:
    return split.lexical


def _all(parts: list[Split], measured: Measured) -> PerQuery:
    return np.concatenate([measured(split) for split in parts])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--collections", nargs="+", default=COLLECTIONS)
    parser.add_argument("--turns", type=int, default=1, help="quarters that are set aside, one after another")
    parser.add_argument("--only", default="", help="only rows whose name has this, and the defaults")
    given = parser.parse_args()
    print(table(rows(tuple(given.collections), given.turns, given.only)))


if __name__ == "__main__":
    main()
