"""Chen et al., *Learning Preferences with Millions of Parameters by Enforcing Sparsity* (2010): its tables and figure.

Every number is measured on the whole test part, with a 95 % interval over queries; the paper's number is a key of the
same row. A seed always gives the same numbers, apart from the seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import validation
from ..bilinear.progress import Callback
from ..bilinear.ranker import METHODS_OF_PAPER
from ..evaluation import ClassEvaluation, bilinear_blocks, evaluate_classes
from ..optim.pruning import find_row_largest
from . import published
from .chen_methods import MANY_COLUMNS, PLUS, PLUS_SETTINGS, CurvePoint, MethodTrainer, TrainedMethod
from .datasets import LabeledDataset, load_labeled
from .runner import Progress, note

if TYPE_CHECKING:
    from scipy.sparse import csr_array

STEPS = 100_000
CURVE_ITEMS = 1_000
"""Test items of the learning curves; every curve uses the same ones."""
RELATED_WORDS = 5
HEATMAP_WORDS = 40
DENSE_FROM_DENSITY = 0.02
MAX_DENSE_BYTES = 1 << 30
"""A W above `DENSE_FROM_DENSITY` is multiplied faster as a dense array, if that fits in `MAX_DENSE_BYTES`."""


def reproduce(
    dataset: str,
    *,
    steps: int = STEPS,
    seed: int = 0,
    words: Sequence[str] = (),
    progress: Progress = lambda message: None,
    callback: Callback | None = None,
) -> dict[str, Any]:
    """Reproduce all tables and the figure of the paper on one data set, as plain numbers for JSON.

    steps : training steps of every method. seed : of the triples. words : more query words for Table III.
    progress : called with a line of text at every phase. callback : called with the training every few batches.

    >>> result = reproduce("digits", steps=200)
    >>> [row["method"] for row in result["table2"]][-2:]
    ['Sparse-R', 'Sparse-R+']
    """
    validation.count("steps", steps, low=1)
    validation.count("seed", seed)
    progress(f"{dataset}: reading")
    data = load_labeled(dataset)
    trained, rows = _train_methods(data, steps, seed, progress, callback)
    related = table_3(data, trained["Sparse"].W, words)
    sampling = note("chen", "sampling", steps=steps, seed=seed, passes=PLUS_SETTINGS.passes)
    return {
        "paper": "chen2010",
        "dataset": data.name,
        "steps": steps,
        "seed": seed,
        "own_split": data.own_split,
        "table1": table_1(data),
        "empty_rows": {"training": count_empty_rows(data.train), "test": count_empty_rows(data.test)},
        "table2": rows,
        "order": order_note(rows),
        **related,
        "heatmap": heatmap(data, trained["Sparse"].W, list(related["table3"])),
        "figure1": _figure_1(data, {method: one.curve for method, one in trained.items()}),
        "differs": f"{data.differences} {sampling}",
    }


def _train_methods(
    data: LabeledDataset, steps: int, seed: int, progress: Progress, callback: Callback | None
) -> tuple[dict[str, TrainedMethod], list[dict[str, Any]]]:
    """Train and measure every method; only Sparse keeps its W."""
    trained: dict[str, TrainedMethod] = {}
    rows = []
    n = data.test.shape[0]
    sample = np.sort(np.random.default_rng(0).choice(n, min(n, CURVE_ITEMS), replace=False))

    def measure_point(done: int, W: csr_array) -> CurvePoint:
        return CurvePoint(done, measure(data, W, sample).error.value, density(W), density(W))

    trainer = MethodTrainer(data, steps, seed, callback)
    for method in (*METHODS_OF_PAPER, PLUS):
        progress(f"{data.name}: {method}")
        if method == PLUS:
            result = trainer.train_plus()
        elif method == "Sparse-R":
            result = trainer.refit(trained["Sparse"], measure_point)
        else:
            result = trainer.train(method, measure_point)
        progress(f"{data.name}: {method}, measuring on {n:,} test items")
        rows.append(_table_2_row(data, method, result, measure(data, result.W)))
        W = result.W if method == "Sparse" else data.train[:0]
        trained[method] = TrainedMethod(W, result.steps, result.seconds, result.curve)
    return trained, rows


def _table_2_row(
    data: LabeledDataset, method: str, result: TrainedMethod, evaluation: ClassEvaluation
) -> dict[str, Any]:
    printed = published.TABLE_II.get(data.name, {}).get(method)
    row: dict[str, Any] = {"method": method}
    for name in ("map", "error", "error_of_triples"):
        estimate = getattr(evaluation, name)
        row |= {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
    row |= {
        "density": density(result.W),
        "megabytes": megabytes(result.W),
        "seconds": round(result.seconds, 3),
        "steps": result.steps,
        "paper_map": printed and printed.map,
        "paper_error": printed and printed.error,
        "paper_megabytes": printed and printed.megabytes,
    }
    remark = published.OTHER_SPLIT if data.own_split else published.MISPRINTS.get((data.name, method))
    return row | ({"note": remark} if remark else {})


def density(W: csr_array) -> float:
    """Nonzeros over all places."""
    return float(W.nnz / (W.shape[0] * W.shape[1]))


def megabytes(W: csr_array) -> float:
    """Size of W with 32-bit values, column indices and row pointers."""
    return float((8 * W.nnz + 4 * (W.shape[0] + 1)) / 1e6)


def measure(data: LabeledDataset, W: csr_array, items: NDArray[np.int64] | None = None) -> ClassEvaluation:
    """MAP and error of W on the test part, or on some of its items."""
    rows, classes = data.test, data.test_classes
    if items is not None:
        rows, classes = rows[items], classes[items]
    vectors = rows.toarray() if data.columns <= MANY_COLUMNS else rows
    dense = density(W) > DENSE_FROM_DENSITY and 4 * data.columns**2 <= MAX_DENSE_BYTES
    return evaluate_classes(bilinear_blocks(vectors, W.toarray() if dense else W, vectors), classes)


def order_note(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Which methods of Table II are not in the paper's order by MAP; None if the paper has no numbers.

    >>> order_note([{"method": "a", "map": 0.4, "paper_map": 0.5}, {"method": "b", "map": 0.3, "paper_map": 0.4}])
    'MAP orders the methods as in the paper.'
    """
    printed = [row for row in rows if row["paper_map"] is not None]
    if not printed:
        return None
    pairs = (sorted(pair, key=lambda row: -row["paper_map"]) for pair in combinations(printed, 2))
    swapped = "; ".join(
        f"{a['method']} {a['map']:.3f} is not above {b['method']} {b['map']:.3f} "
        f"(paper: {a['paper_map']:.3f} and {b['paper_map']:.3f})"
        for a, b in pairs
        if a["paper_map"] > b["paper_map"] and not a["map"] > b["map"]
    )
    if not swapped:
        return "MAP orders the methods as in the paper."
    return f"MAP does not order all methods as in the paper: {swapped}."


def table_1(data: LabeledDataset) -> list[dict[str, Any]]:
    """Rows of Table I: each statistic, here and in the paper.

    >>> table_1(load_labeled("digits"))[0]
    {'statistic': 'training samples', 'ours': 1297, 'paper': None}
    """
    n_train, n_test, n_classes = data.train.shape[0], data.test.shape[0], len(np.unique(data.train_classes))
    ours = published.DatasetSize(n_train, n_test, n_classes, data.columns, data.columns**2)
    paper = published.TABLE_I.get(data.name, (None,) * len(ours))
    return [
        {"statistic": name.replace("_", " "), "ours": here, "paper": there}
        for name, here, there in zip(ours._fields, ours, paper, strict=True)
    ]


def table_3(data: LabeledDataset, W: csr_array, words: Sequence[str] = ()) -> dict[str, Any]:
    """Table III: the five largest entries by size of each query word's row of W; unknown words are listed apart.

    Text data use the query words of the paper and of its slides; `words` adds more on any data with column names.
    """
    quoted = published.TABLE_III | published.SLIDES
    query_words = dict.fromkeys([*(quoted if data.name == "20newsgroups" else ()), *words])
    place = {word: column for column, word in enumerate(data.words or ())}
    table = {word: largest_entries(W, place[word], data.words or ()) for word in query_words if word in place}
    return {
        "table3": table,
        "paper_table3": {word: list(related) for word, related in quoted.items() if word in table},
        "unknown_words": [word for word in query_words if word not in place],
    }


def heatmap(data: LabeledDataset, W: csr_array, words: Sequence[str]) -> dict[str, Any] | None:
    """W between the first 40 words, query words in rows and document words in columns; None for fewer than two words.

    >>> from scipy.sparse import eye_array
    >>> heatmap(load_labeled("digits"), eye_array(64).tocsr(), ["r0c0", "r0c1"])
    {'words': ['r0c0', 'r0c1'], 'values': [[1.0, 0.0], [0.0, 1.0]]}
    """
    if len(words) < 2:
        return None
    place = {word: column for column, word in enumerate(data.words or ())}
    shown = list(words[:HEATMAP_WORDS])
    columns = [place[word] for word in shown]
    return {"words": shown, "values": W[columns][:, columns].toarray().tolist()}


def count_empty_rows(rows: csr_array) -> int:
    """Rows without a known word; they score 0 as queries and as documents."""
    return int(np.count_nonzero(np.diff(rows.indptr) == 0))


def largest_entries(W: csr_array, row: int, words: Sequence[str], k: int = RELATED_WORDS) -> list[list[Any]]:
    """The k entries of largest absolute value of one row of W, as [word, weight].

    >>> from scipy.sparse import csr_array
    >>> largest_entries(csr_array([[1.0, -3.0], [0.0, 2.0]]), 0, ["a", "b"])
    [['b', -3.0], ['a', 1.0]]
    """
    return [[words[int(W.indices[i])], float(W.data[i])] for i in find_row_largest(W, row, k)]


def _figure_1(data: LabeledDataset, curves: Mapping[str, Sequence[CurvePoint]]) -> dict[str, Any]:
    """The learning curves: from the identity, and for Sparse-R from the final W of Sparse."""
    (identity,) = curves["Identity"]
    sparse = curves["Sparse"][-1]
    starts = {"Sparse-R": sparse._replace(steps=0, training_density=sparse.density)}
    drawn = {}
    for method, curve in curves.items():
        if method != "Identity" and curve:
            columns = zip(*(starts.get(method, identity), *curve), strict=True)
            names = ("steps", "error", "density", "density_in_training")
            drawn[method] = {name: list(column) for name, column in zip(names, columns, strict=True)}
    shown = {name: drawn["Sparse"][name] for name in ("steps", "error", "density")}
    return shown | {"curves": drawn, "test_items": min(data.test.shape[0], CURVE_ITEMS)}
