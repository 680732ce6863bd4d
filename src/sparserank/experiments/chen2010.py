"""Chen et al., *Learning Preferences with Millions of Parameters by Enforcing Sparsity* (2010): its tables and figure.

Every number is measured here, on the whole test part, with a 95 % interval over queries; the paper's own number is a
key of the same row. A seed gives the same numbers always, apart from the seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bilinear.progress import Follow
from ..bilinear.ranker import CONFIGURATIONS
from ..evaluation import ClassEvaluation, bilinear_blocks, evaluate_classes
from . import tables
from .methods import MANY_COLUMNS, PLUS, PLUS_SETTINGS, Learned, Stage, learn, learn_plus, refit
from .order import order_sentence
from .problems import Problem, problem

if TYPE_CHECKING:
    from scipy.sparse import csr_array

STEPS = 100_000
SAMPLE = 1_000
"""Test items of the learning curves: the error is the mean over these queries, with all triples among the items."""
RELATED = 5
HEATMAP_WORDS = 40
FULL_FROM = 0.02
FULL_BYTES = 1 << 30
"""A W denser than `FULL_FROM` is multiplied faster as a full array, as long as that is no larger than this."""

Tell = Callable[[str], None]


def reproduce(
    dataset: str,
    *,
    steps: int = STEPS,
    seed: int = 0,
    words: Sequence[str] = (),
    tell: Tell = lambda message: None,
    follow: Follow | None = None,
) -> dict[str, Any]:
    """All of the paper on one data set, as plain numbers.

    `tell` hears what is going on, and `follow` is handed each training every few batches.

    >>> found = reproduce("digits", steps=200)
    >>> [row["method"] for row in found["table2"]][-2:]
    ['Sparse-R', 'Sparse-R+']
    """
    validation.count("steps", steps, low=1)
    validation.count("seed", seed)
    tell(f"{dataset}: reading")
    given = problem(dataset)
    learned, rows = _methods(given, steps, seed, tell, follow)
    related = table_3(given, learned["Sparse"].W, words)
    return {
        "paper": "chen2010",
        "dataset": given.name,
        "steps": steps,
        "seed": seed,
        "own_split": given.own_split,
        "table1": table_1(given),
        "empty_rows": {"training": empty_rows(given.train), "test": empty_rows(given.test)},
        "table2": rows,
        "order": order_sentence(rows),
        **related,
        "heatmap": heatmap(given, learned["Sparse"].W, list(related["table3"])),
        "figure1": _figure_1(given, {method: told.curve for method, told in learned.items()}),
        "differs": f"{given.differs} {_sampling(steps, seed)}",
    }


def _sampling(steps: int, seed: int) -> str:
    return (
        f"Here {steps:,} triples are drawn with replacement (seed {seed}); the paper trains for 100,000 and names no "
        "seed. W's density is asked for: λ follows it, and what is too much is cut in the end; the paper tries λ. "
        "Every test item is a query, and all its triples are counted: `error` is the mean over queries of the share of "
        "a query's triples in the wrong order, `error of triples` is the share of all triples in the wrong order; the "
        "paper does not say how it draws its test triples. W's megabytes are those of float32 values with 32-bit "
        f"indices. Steps count every pass: Sparse-R takes Sparse's triples twice, and Sparse-R+ takes "
        f"{PLUS_SETTINGS.passes} times as many triples as Sparse and then the first {steps:,} of them again."
    )


def _methods(
    given: Problem, steps: int, seed: int, tell: Tell, follow: Follow | None
) -> tuple[dict[str, Learned], list[dict[str, Any]]]:
    """Train and measure every method; of the dense ones only the curve is kept."""
    learned: dict[str, Learned] = {}
    rows = []
    sample = _sample(given)
    for method in (*CONFIGURATIONS, PLUS):

        def look(done: int, W: csr_array) -> Stage:
            return Stage(done, measured(given, W, sample).error.value, density(W), density(W))

        tell(f"{given.name}: {method}")
        if method == PLUS:
            told = learn_plus(given, steps, seed, follow)
        elif method == "Sparse-R":
            told = refit(given, learned["Sparse"], steps, seed, look, follow)
        else:
            told = learn(method, given, steps, seed, look, follow)
        tell(f"{given.name}: {method}, measuring on {given.test.shape[0]:,} test items")
        rows.append(_row(given, method, told, measured(given, told.W)))
        learned[method] = told if method == "Sparse" else Learned(given.train[:0], told.steps, told.seconds, told.curve)
    return learned, rows


def _row(given: Problem, method: str, told: Learned, evaluation: ClassEvaluation) -> dict[str, Any]:
    printed = tables.TABLE_II.get(given.name, {}).get(method)
    row = {
        "method": method,
        "map": evaluation.map.value,
        "map_low": evaluation.map.low,
        "map_high": evaluation.map.high,
        "error": evaluation.error.value,
        "error_low": evaluation.error.low,
        "error_high": evaluation.error.high,
        "error_of_triples": evaluation.error_of_triples.value,
        "error_of_triples_low": evaluation.error_of_triples.low,
        "error_of_triples_high": evaluation.error_of_triples.high,
        "density": density(told.W),
        "megabytes": megabytes(told.W),
        "seconds": round(told.seconds, 3),
        "steps": told.steps,
        "paper_map": printed and printed.map,
        "paper_error": printed and printed.error,
        "paper_megabytes": printed and printed.megabytes,
    }
    note = tables.OTHER_SPLIT if given.own_split else tables.MISPRINTS.get((given.name, method))
    return row | ({"note": note} if note else {})


def density(W: csr_array) -> float:
    """Nonzeros over all places."""
    return float(W.nnz / (W.shape[0] * W.shape[1]))


def megabytes(W: csr_array) -> float:
    """Of W as values of 32 bits, columns of 32 bits, and the starts of its rows."""
    return float((4 * W.nnz + 4 * W.nnz + 4 * (W.shape[0] + 1)) / 1e6)


def _sample(given: Problem) -> NDArray[np.int64]:
    """The same test items for every method and every seed."""
    n = given.test.shape[0]
    return np.sort(np.random.default_rng(0).choice(n, min(n, SAMPLE), replace=False))


def measured(given: Problem, W: csr_array, items: NDArray[np.int64] | None = None) -> ClassEvaluation:
    """MAP and error of W on the test part, or on some of its items."""
    rows, classes = given.test, given.test_classes
    if items is not None:
        rows, classes = rows[items], classes[items]
    vectors = rows.toarray() if given.columns <= MANY_COLUMNS else rows
    full = density(W) > FULL_FROM and 4 * given.columns**2 <= FULL_BYTES
    return evaluate_classes(bilinear_blocks(vectors, W.toarray() if full else W, vectors), classes)


def table_1(given: Problem) -> list[dict[str, Any]]:
    """Rows of Table I: what is counted, here and in the paper.

    >>> table_1(problem("digits"))[0]
    {'statistic': 'training samples', 'ours': 1297, 'paper': None}
    """
    ours = tables.Statistics(
        given.train.shape[0],
        given.test.shape[0],
        len(np.unique(given.train_classes)),
        given.columns,
        given.columns**2,
    )
    paper = tables.TABLE_I.get(given.name, (None,) * len(ours))
    names = (name.replace("_", " ") for name in ours._fields)
    return [
        {"statistic": name, "ours": here, "paper": there} for name, here, there in zip(names, ours, paper, strict=True)
    ]


def table_3(given: Problem, W: csr_array, words: Sequence[str] = ()) -> dict[str, Any]:
    """Table III: for each word the five document words of largest size in its row of W; words without a row apart.

    The query words of the paper and of its authors' slides are used on text, and the words given on any set whose
    columns have names.
    """
    asked = [*(tables.QUERY_WORDS if given.name == "20newsgroups" else ()), *words]
    place = {word: column for column, word in enumerate(given.words or ())}
    found = {word: strongest(W, place[word], given.words or ()) for word in asked if word in place}
    printed = {word: list(quoted) for word, quoted in (tables.TABLE_III | tables.SLIDES).items() if word in found}
    unknown = [word for word in dict.fromkeys(asked) if word not in place]
    return {"table3": found, "paper_table3": printed, "unknown_words": unknown}


def heatmap(given: Problem, W: csr_array, words: Sequence[str]) -> dict[str, Any] | None:
    """W between the first 40 of these words, query words down and document words across; None for fewer than two.

    >>> from scipy.sparse import eye_array
    >>> heatmap(problem("digits"), eye_array(64).tocsr(), ["r0c0", "r0c1"])
    {'words': ['r0c0', 'r0c1'], 'values': [[1.0, 0.0], [0.0, 1.0]]}
    """
    if len(words) < 2:
        return None
    place = {word: column for column, word in enumerate(given.words or ())}
    shown = list(words[:HEATMAP_WORDS])
    columns = [place[word] for word in shown]
    return {"words": shown, "values": W[columns][:, columns].toarray().tolist()}


def empty_rows(rows: csr_array) -> int:
    """Rows with no known word: as queries and as documents they score 0."""
    return int(np.count_nonzero(np.diff(rows.indptr) == 0))


def strongest(W: csr_array, row: int, words: Sequence[str], k: int = RELATED) -> list[list[Any]]:
    """The k entries of largest size of one row of W, whatever their sign, as [word, weight].

    >>> from scipy.sparse import csr_array
    >>> strongest(csr_array([[1.0, -3.0], [0.0, 2.0]]), 0, ["a", "b"])
    [['b', -3.0], ['a', 1.0]]
    """
    start, stop = W.indptr[row], W.indptr[row + 1]
    order = np.argsort(-np.abs(W.data[start:stop]), kind="stable")[:k]
    return [[words[int(W.indices[start + i])], float(W.data[start + i])] for i in order]


def _figure_1(given: Problem, curves: Mapping[str, Sequence[Stage]]) -> dict[str, Any]:
    """Every method's curve from the identity on; that of Sparse-R starts where Sparse has ended, on its W."""
    (begin,) = curves["Identity"]
    drawn = {}
    for method, curve in curves.items():
        if method == "Identity" or not curve:
            continue
        first = (
            curves["Sparse"][-1]._replace(steps=0, held=curves["Sparse"][-1].density) if method == "Sparse-R" else begin
        )
        drawn[method] = {
            "steps": [stage.steps for stage in (first, *curve)],
            "error": [stage.error for stage in (first, *curve)],
            "density": [stage.density for stage in (first, *curve)],
            "density_in_training": [stage.held for stage in (first, *curve)],
        }
    return {
        "steps": drawn["Sparse"]["steps"],
        "error": drawn["Sparse"]["error"],
        "density": drawn["Sparse"]["density"],
        "curves": drawn,
        "test_items": min(given.test.shape[0], SAMPLE),
    }
