"""Choose the settings of Sparse-R+ and the default `slack` of `BilinearRanker`, on held-out training items.

    python -m benchmarks.tune_word_pairs --output benchmarks/tune_word_pairs.json

prints a table for each choice and writes all numbers as JSON. No test item is read: of the training items of each of
the paper's data sets about 2,000 are held out, W is learned from the others, and MAP is measured among the held-out
ones. The posts of one thread of 20 Newsgroups (same subject line) stay on one side. There is one setting for all sets:
the one with the best mean over the sets of MAP / best MAP of the table.

What is smaller than in `sparserank reproduce chen2010`, so that all of it takes at most 25 minutes on two busy cores:

- 25,000 steps instead of 100,000 for all methods, and so 25,000 for each pass of Sparse-R+;
- the 3,000 words that most training items have, instead of 10,000 (pixels: all 784).

The rates are not scaled: rows have unit length however many words there are, so a step is as long as its rate. The best
rate may depend on the number of steps, so a full run may have a slightly better one. The settings of Sparse-R+ are
chosen one after the other, starting from the defaults of `BilinearRanker`. Passes are limited to 3, because they
multiply the cost.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array

from sparserank.data import load
from sparserank.data.files import write_bytes
from sparserank.experiments.chen2010 import measure
from sparserank.experiments.chen_methods import MethodTrainer, PlusSettings
from sparserank.experiments.datasets import PAPER_DATASETS, LabeledDataset, load_labeled
from sparserank.optim.losses import Hinge
from sparserank.optim.penalties import L1, NoPenalty
from sparserank.optim.pruning import keep_largest
from sparserank.optim.scores import Bilinear
from sparserank.optim.sparse_sgd import SparseSGD
from sparserank.preferences import Preferences
from sparserank.text import TextFeatures

STEPS, WORDS, HELD_OUT, SEED = 25_000, 3_000, 2_000, 0
MOST = 10.0
RULES = ((0.0, 1.0), (0.1, MOST), (0.2, MOST), (0.3, MOST))
"""(F, M): while it is learned W holds the density F, and at most M times and at least 1 time what it keeps.

M is not compared: it limits the memory of a small W."""
SHARES = (1.0, 0.1)
"""The rules are compared at these shares of the density: 9.5 % and .95 % of word pairs, 50 % and 5 % of pixel pairs."""
START = PlusSettings(passes=1, rate=1.0, slack=1.0, refit_scale=1.0)
RATES, PASSES, SLACKS, REFIT_SCALES = (1.0, 2.0, 4.0, 8.0, 16.0), (1, 3), (1.0, 2.0, 3.0), (1 / 16, 1 / 4, 1.0)

# ---- held-out training items


def held_out(name: str, words: int = WORDS, items: int = HELD_OUT) -> LabeledDataset:
    """The training items of a set as a problem of its own: `test` are those held out."""
    if name == "20newsgroups":
        return _held_out_posts(words, items)
    given = load_labeled(name)
    out = hold_out(np.arange(given.train.shape[0]), items)
    rows = given.train
    if given.columns > words:
        frequency = np.bincount(rows[~out].indices, minlength=given.columns)
        rows = unit_rows(rows[:, np.sort(np.argsort(-frequency, kind="stable")[:words])])
    y = given.train_classes
    return replace(given, train=rows[~out], train_classes=y[~out], test=rows[out], test_classes=y[out], words=None)


def _held_out_posts(words: int, items: int) -> LabeledDataset:
    posts = load("20newsgroups").train
    out = hold_out(np.unique([thread(post) for post in posts.items], return_inverse=True)[1], items)
    features = TextFeatures("sublinear", columns=words)
    train = features.fit_transform([post for post, held in zip(posts.items, out, strict=True) if not held])
    test = features.transform([post for post, held in zip(posts.items, out, strict=True) if held])
    return LabeledDataset(
        "20newsgroups", train, posts.y[~out], test, posts.y[out], None, 0.095, "held-out training posts"
    )


def thread(post: str) -> str:
    """The subject line without Re:, in lower case; a post without one is a thread of its own.

    >>> thread("From: a\\nSubject: Re: RE: Brake fluid \\n\\nThanks")
    'brake fluid'
    """
    found = re.search(r"^Subject:(.*)$", post, re.MULTILINE)
    subject = re.sub(r"^(\s*re\s*:)+", "", found.group(1).lower()).strip() if found else ""
    return subject or post


def hold_out(groups: NDArray[np.int64], items: int) -> NDArray[np.bool_]:
    """Which items to hold out: whole groups, in a random order, until there are so many items."""
    sizes = np.bincount(groups)
    order = np.random.default_rng(SEED).permutation(len(sizes))
    taken = order[: np.searchsorted(np.cumsum(sizes[order]), items) + 1]
    return np.isin(groups, taken)


def unit_rows(rows: csr_array) -> csr_array:
    """Rows of length 1; a row of zeros stays as it is."""
    length = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return csr_array(diags_array(scale.astype(np.float32)) @ rows)


# ---- the result of a setting


@dataclass
class Trials:
    """MAP on held-out items for any setting; what was computed once is kept."""

    problems: dict[str, LabeledDataset]
    steps: int
    known: dict[Any, Any] = field(default_factory=dict)

    def once(self, key: Any, compute: Callable[[], Any]) -> Any:
        """What `compute` returns, computed for the first call with this key."""
        if key not in self.known:
            started = perf_counter()
            self.known[key] = compute()
            print(f"{key}: {perf_counter() - started:.0f} s", file=sys.stderr, flush=True)
        return self.known[key]

    def map(self, name: str, W: csr_array) -> float:
        """MAP of W among the held-out items."""
        return measure(self.problems[name], W).map.value

    def sparse(self, name: str, fill: float) -> csr_array:
        """W of Algorithm 1 with the paper's settings, held at this density."""
        given = self.problems[name]

        def train() -> csr_array:
            start = csr_array(eye_array(given.columns, dtype=np.float32, format="csr"))
            score = Bilinear.of(given.train, given.train)
            training = SparseSGD().training(score, Hinge(), L1(1e-5), start, max_pairs=round(fill * given.columns**2))
            training.advance(Preferences.from_labels(given.train_classes).draw(self.steps, SEED))
            return training.weights()

        return self.once((name, f"learned at density {fill:.4g}"), train)

    def kept(self, name: str, fill: float, density: float) -> tuple[float, float]:
        """MAP of that W cut to a density (Sparse), and refitted (Sparse-R)."""
        given = self.problems[name]

        def refit() -> tuple[float, float]:
            W = keep_largest(self.sparse(name, fill), round(density * given.columns**2))
            score = Bilinear.of(given.train, given.train)
            training = SparseSGD().training(score, Hinge(), NoPenalty(), W, pattern=True)
            training.advance(Preferences.from_labels(given.train_classes).draw(self.steps, SEED))
            return self.map(name, W), self.map(name, training.weights())

        return self.once((name, f"cut from {fill:.4g} to {density:.4g}"), refit)

    def plus(self, name: str, settings: PlusSettings) -> tuple[float, float]:
        """MAP of Sparse-R+ before and after its refit."""
        trainer = MethodTrainer(self.problems[name], self.steps, SEED)
        before = settings._replace(refit_scale=0.0)
        W = self.once((name, before), lambda: trainer.train_plus_pattern(settings).W)

        def refit() -> tuple[float, float]:
            return self.map(name, W), self.map(name, trainer.refit_plus(W, settings).W)

        return self.once((name, settings), refit)


def held_density(rule: tuple[float, float], density: float) -> float:
    """The density that W holds while it is learned, by a rule (F, M)."""
    full, most = rule
    return density * max(1.0, min(most, full / density))


def compare_rules(trials: Trials) -> dict[str, dict[str, float]]:
    """For every rule, MAP of Sparse and of Sparse-R on each set and at each density."""
    rows: dict[str, dict[str, float]] = {}
    for rule in RULES:
        row = rows[rule_name(rule)] = {}
        for name, given in trials.problems.items():
            for share in SHARES:
                density = share * given.density
                plain, refitted = trials.kept(name, held_density(rule, density), density)
                row[f"{name} {100 * density:.3g} % Sparse"] = plain
                row[f"{name} {100 * density:.3g} % Sparse-R"] = refitted
    return rows


def rule_name(rule: tuple[float, float]) -> str:
    """A rule in words."""
    return "slack 1" if rule[1] == 1 else f"{100 * rule[0]:.0f} % dense, at most {rule[1]:.0f} times"


def compare_plus(trials: Trials, settings: Iterable[PlusSettings]) -> dict[PlusSettings, dict[str, float]]:
    """For every setting, MAP of Sparse-R+ on each set."""
    return {one: {name: trials.plus(name, one)[1] for name in trials.problems} for one in settings}


# ---- choosing


def scores(rows: Mapping[Any, Mapping[str, float]]) -> dict[Any, float]:
    """Every candidate's mean over the columns of its number / the largest number of the column.

    >>> scores({"a": {"x": 0.5, "y": 0.8}, "b": {"x": 0.4, "y": 0.8}})
    {'a': 1.0, 'b': 0.9}
    """
    columns = list(next(iter(rows.values())))
    best = {column: max(row[column] for row in rows.values()) for column in columns}
    return {key: float(np.mean([row[column] / best[column] for column in columns])) for key, row in rows.items()}


def chosen(rows: Mapping[Any, Mapping[str, float]]) -> Any:
    """The candidate of the best score; of equal ones the first."""
    found = scores(rows)
    return max(found, key=found.__getitem__)


def table(title: str, rows: Mapping[str, Mapping[str, float]]) -> str:
    """A Markdown table of the candidates; the chosen one is bold."""
    columns, score, best = list(next(iter(rows.values()))), scores(rows), chosen(rows)
    lines = [f"| {title} | {' | '.join(columns)} | mean of MAP / best MAP |", "|---" * (len(columns) + 2) + "|"]
    for key, row in rows.items():
        name = f"**{key}**" if key == best else key
        lines.append(f"| {name} | {' | '.join(f'{row[column]:.4f}' for column in columns)} | {score[key]:.4f} |")
    return "\n".join(lines)


def search(trials: Trials) -> tuple[PlusSettings, dict[str, dict[str, dict[str, float]]]]:
    """Sparse-R+ one setting after the other: the rate, the passes with half the rate or all of it, slack, the refit."""
    now, tables = START, {}
    stages: list[tuple[str, Callable[[PlusSettings], list[PlusSettings]]]] = [
        ("rate", lambda s: [s._replace(rate=rate) for rate in RATES]),
        ("passes, rate", lambda s: [s._replace(passes=n, rate=part * s.rate) for n in PASSES for part in (0.5, 1.0)]),
        ("slack", lambda s: [s._replace(slack=slack) for slack in SLACKS]),
        ("refit_scale", lambda s: [s._replace(refit_scale=scale) for scale in REFIT_SCALES]),
    ]
    for title, candidates in stages:
        found = compare_plus(trials, candidates(now))
        fields = title.split(", ")
        named = {", ".join(f"{getattr(key, name):.4g}" for name in fields): row for key, row in found.items()}
        now, tables[f"Sparse-R+: {title}"] = chosen(found), named
        print(f"\n{table(f'Sparse-R+: {title}', named)}\n", flush=True)
    return now, tables


def run(quick: bool = False) -> dict[str, Any]:
    """All choices and the numbers behind them."""
    started, steps = perf_counter(), 400 if quick else STEPS
    trials = Trials(
        {name: held_out(name, 300 if quick else WORDS, 300 if quick else HELD_OUT) for name in PAPER_DATASETS}, steps
    )
    rules = compare_rules(trials)
    rule = next(rule for rule in RULES if rule_name(rule) == chosen(rules))
    print(f"\n{table('slack', rules)}\n", flush=True)
    settings, tables = search(trials)
    return {
        "steps": steps,
        "seed": SEED,
        "held_out": {name: int(given.test.shape[0]) for name, given in trials.problems.items()},
        "learned_from": {name: int(given.train.shape[0]) for name, given in trials.problems.items()},
        "columns": {name: given.columns for name, given in trials.problems.items()},
        "chosen": {"full_enough": rule[0], "most_slack": rule[1], "plus": settings._asdict()},
        "tables": {"slack": rules, **tables},
        "before_refit": {name: trials.plus(name, settings)[0] for name in trials.problems},
        "seconds": round(perf_counter() - started),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="400 steps and 300 words: to see that it runs")
    parser.add_argument("--output", type=Path, default=Path("reports/tune_word_pairs.json"))
    given = parser.parse_args()
    found = run(given.quick)
    given.output.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(given.output, (json.dumps(found, indent=1) + "\n").encode())
    print(json.dumps(found["chosen"]))


if __name__ == "__main__":
    main()
