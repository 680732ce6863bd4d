"""The decision to keep word pairs: compare tests by the real gains that they find and the noise that they pass.

Real gains come from samples of training queries of pydocs and NFCorpus; their dev and test queries are not used. Noise
is synthetic collections with random judgments, with other seeds than those of `never_worse`. Every test uses the gains
of held-out queries in nDCG@10 and in nDCG@100, for all ridges and pair weights that `TextRanker.fit` tries.

The rule, fixed before the script was run with these draws: of the tests and levels that at most 3 % of the noise
passes, take those that find the most real gains; of several, the one that the least noise passes; of several still, the
one that makes the fewest comparisons (the last in `TESTS`), on the smaller depth. Pruned pairs are tested once more:
take the smallest of `PRUNED_LEVELS` that keeps as many of the real gains as the largest one.

`python -m benchmarks.acceptance` prints the table and both choices.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import sparserank as sr
from sparserank.text_ranker import model_selection

from .never_worse import FIRST_SEED, made_up

LEVELS = (0.01, 0.02, 0.05)
DEPTHS = (10, 100)
PRUNED_LEVELS = (0.01, 0.05, 0.1, 0.2, 0.5)
SIZES = {"pydocs": (700, 1_000), "nfcorpus": (120, 240)}
DRAWS, WORLDS = range(200, 204), range(200, 300)
PATTERNS = 2_000


def chosen_setting(gain: Any, groups: Any) -> float:
    """The studentized gain of the setting and weight with the best mean, among all of them."""
    sums, unit = _of_groups(gain.reshape(-1, gain.shape[-1]), groups)
    return _share(unit, float(unit[sums.sum(axis=1).argmax()].sum()))


def largest_of_all(gain: Any, groups: Any) -> float:
    """The largest studentized gain of all settings and weights."""
    _, unit = _of_groups(gain.reshape(-1, gain.shape[-1]), groups)
    return _share(unit, float(unit.sum(axis=1).max()))


def standard_errors(gain: Any, groups: Any) -> float:
    """The best mean against the normal distribution, without any correction: one standard error is p = .16."""
    from scipy.stats import norm

    best = gain.reshape(-1, gain.shape[-1])[gain.mean(axis=-1).argmax()]
    error = best.std(ddof=1) / np.sqrt(len(best))
    return float(norm.sf(best.mean() / error)) if error > 0.0 else 1.0


def group_sums(gain: Any, groups: Any) -> float:
    """The largest studentized gain of all weights, where a group counts by the number of its queries."""
    _, group = np.unique(groups, return_inverse=True)
    return model_selection.improvement_p_value(gain * np.bincount(group)[group], groups)


TESTS: dict[str, Callable[[Any, Any], float]] = {
    "no correction": standard_errors,
    "best setting": chosen_setting,
    "largest of all settings": largest_of_all,
    "largest of all weights": group_sums,
    "all weights, group means": model_selection.improvement_p_value,
}


def _of_groups(rows: Any, groups: Any) -> tuple[Any, Any]:
    _, group = np.unique(groups, return_inverse=True)
    sums = np.stack([np.bincount(group, row, group.max() + 1) for row in rows])
    length = np.sqrt(np.sum(sums**2, axis=1, keepdims=True))
    return sums, (sums / np.where(length > 0.0, length, 1.0)).astype(np.float32)


def _share(unit: Any, observed: float) -> float:
    if observed <= 0.0:
        return 1.0
    signs = np.random.default_rng(0).integers(0, 2, (unit.shape[1], PATTERNS)).astype(np.float32) * 2.0 - 1.0
    return (1 + int(np.sum((unit @ signs).max(axis=0) >= observed - 1e-5))) / (1 + PATTERNS)


def samples(quick: bool) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is tested, and the fit that would learn from it."""
    for name in () if quick else SIZES:
        collection = sr.data.load(name)
        for n in SIZES[name]:
            for draw in DRAWS:
                drawn = np.random.default_rng(draw).permutation(list(collection.qrels["train"]))[:n].tolist()
                yield f"{name}, {n} queries", lambda c=collection, some=drawn: _fitted(c, some)
    for name, world in (
        ("noise, 60 queries", made_up(100, 60, 2)),
        ("noise, 200 queries", made_up(300, 200, 5)),
        ("noise, 600 queries", made_up(200, 600, 3)),
    ):
        for seed in WORLDS[: 2 if quick else None]:
            assert seed < FIRST_SEED
            yield name, lambda world=world, seed=seed: sr.TextRanker(n_jobs=1).fit(*world(seed))


def _fitted(collection: Any, queries: list[str]) -> Any:
    qrels = {q: collection.qrels["train"][q] for q in queries}
    return sr.TextRanker().fit(collection.documents, collection.queries, qrels, exclude_self=collection.exclude_self)


def gains(fit: Callable[[], Any], depth: int, accept_first: bool = False) -> list[tuple[Any, Any]]:
    """The gains that each decision of one fit is made on; the first decision is made in nDCG@depth.

    The fit keeps BM25 alone, after its first decision or, with `accept_first`, after that on pruned pairs.
    """
    seen: list[tuple[Any, Any]] = []

    def see(gain: Any, groups: Any) -> float:
        seen.append((gain, groups))
        return 0.0 if accept_first and len(seen) == 1 else 1.0

    usual, model_selection.improvement_p_value, model_selection.TEST_DEPTH = (
        (model_selection.improvement_p_value, model_selection.TEST_DEPTH),
        see,
        depth,
    )
    try:
        fit()
    finally:
        model_selection.improvement_p_value, model_selection.TEST_DEPTH = usual
    return seen


def run(quick: bool = False) -> dict[str, Any]:
    """For every sample, test and level: the share that would keep pairs."""
    logging.getLogger("sparserank").setLevel(logging.ERROR)
    found: dict[str, dict[str, list[float]]] = {}
    pruned: list[tuple[str, float]] = []
    for name, fit in samples(quick):
        for depth in DEPTHS:
            seen = gains(fit, depth, accept_first=depth == DEPTHS[-1])
            for test, p_value in TESTS.items():
                found.setdefault(name, {}).setdefault(f"{test}, @{depth}", []).append(p_value(*seen[0]))
        pruned.append((name, model_selection.improvement_p_value(*seen[1]) if len(seen) > 1 else 1.0))
    rows = [
        {"sample": name, "test": test, "of": len(values)}
        | {f"p <= {level}": round(float(np.mean(np.array(values) <= level)), 3) for level in LEVELS}
        for name, tests in found.items()
        for test, values in tests.items()
    ]
    chosen = choice(rows)
    return {
        "case": "the decision to keep pairs",
        "shares": rows,
        "chosen": chosen,
        "pruned": pruned_level(chosen, found, pruned) if chosen else None,
    }


def choice(rows: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The test and level that the rule takes; None if noise passes all of them."""
    found: list[dict[str, Any]] = []
    for test in reversed(dict.fromkeys(row["test"] for row in rows)):
        for level in LEVELS:
            of = {row["sample"]: row[f"p <= {level}"] for row in rows if row["test"] == test}
            noise, real = (_mean(v for k, v in of.items() if k.startswith("noise") is flag) for flag in (True, False))
            found.append({"test": test, "level": level, "real": real, "noise": noise})
    quiet = [one for one in found if one["noise"] <= 0.03]
    order = list(TESTS)
    return min(
        quiet,
        key=lambda one: (-one["real"], one["noise"], -order.index(one["test"].rsplit(",", 1)[0]), len(one["test"])),
        default=None,
    )


def pruned_level(chosen: Any, found: Any, pruned: list[tuple[str, float]]) -> dict[str, Any]:
    """For each level of the second test: the share of real gains and of noise that passes both tests."""
    at = dict.fromkeys(found, 0)
    both: dict[bool, list[float]] = {True: [], False: []}
    for name, p_value in pruned:
        first = found[name][chosen["test"]][at[name]]
        at[name] += 1
        both[name.startswith("noise")].append(p_value if first <= chosen["level"] else 1.0)
    shares = {
        level: {kind: _mean(p <= level for p in both[flag]) for kind, flag in (("real", False), ("noise", True))}
        for level in PRUNED_LEVELS
    }
    most = shares[PRUNED_LEVELS[-1]]["real"]
    return {"shares": shares, "chosen": next(level for level in PRUNED_LEVELS if shares[level]["real"] == most)}


def _mean(values: Any) -> float:
    values = list(values)
    return round(float(np.mean(values)), 3) if values else 0.0


def main() -> None:
    """Print the table and the choice."""
    result = run()
    print(f"{'sample':24s} {'test':30s} {'of':>3s}  " + "  ".join(f"p <= {level:<5g}" for level in LEVELS))
    for row in result["shares"]:
        cells = "  ".join(f"{row[f'p <= {level}']:<10.3f}" for level in LEVELS)
        print(f"{row['sample']:24s} {row['test']:30s} {row['of']:3d}  {cells}")
    print(json.dumps(result["chosen"]))
    print(json.dumps(result["pruned"]))


if __name__ == "__main__":
    main()
