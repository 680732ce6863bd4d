"""Tables 1.2 and 1.3 of Stevens et al. (2010): one w per topic, learned from a matrix of items × topics."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from ..data import load
from ..evaluation.items import Items
from ..evaluation.measures import compute
from ..letor.domination import DominationRanker
from ..letor.pamir import PAMIR
from .datasets import unit_rows
from .peers import FirstFits, LinearModelPerTopic, l1_logistic, linear_svc
from .published import NOT_PRINTED, TABLE_1_2, TABLE_1_3, TopicResult
from .runner import Progress, choose, note, parameter_grid

if TYPE_CHECKING:
    from scipy.sparse import csr_array

MIN_TRAINING_STORIES, MIN_TEST_STORIES = 10, 5
TOLERANCE = 1e-3
"""Which weights are zero is settled long before the last digits of the loss."""
PAMIR_STEPS = 100_000
MNIST_IMAGES = 24_000
"""Training images of MNIST that are used: five sixths for training, one sixth for validation."""
MEASURES = "AP P@10 DominationError PairError"

Make = Callable[..., Any]


@dataclass(frozen=True)
class TopicData:
    """Items for training, validation and test; `feedback` has other training grades than Y."""

    X: tuple[csr_array, ...]
    Y: tuple[csr_array, ...]
    feedback: Mapping[str, Any]


@dataclass(frozen=True)
class Method:
    """How to make the ranker from a setting, the settings to try, and the grades to learn from (None: Y).

    All methods of a table try equally many settings and choose on the same validation items.
    """

    make: Make
    grid: Sequence[Mapping[str, Any]]
    feedback: str | None = None


def table_1_2(seed: int, items: int | None, progress: Progress) -> dict[str, Any]:
    """MNIST: each digit is a query over all images."""
    data = _load_images(seed, items)
    alphas = parameter_grid(alpha=(0.5, 1.0, 2.0, 3.0, 5.0, 10.0))
    margins = parameter_grid(alpha=(1.0, 3.0), margin=(0.3, 1.0, 3.0))
    l2_alphas = parameter_grid(alpha=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0))
    methods = {
        "PAMIR": _pamir(seed),
        "Domination (base, L2²)": Method(_domination(penalty="l2"), l2_alphas),
        "Domination (base, L1)": Method(_domination(), alphas),
        "Domination (multi-valued)": Method(_domination(), alphas, "three-valued"),
        "Domination (margin)": Method(_domination(loss="base"), margins, "real-valued"),
    }
    rows = [_evaluate("mnist", name, method, data, TABLE_1_2, progress) for name, method in methods.items()]
    n, n_validation = (X.shape[0] for X in data.X[:2])
    differences = note("stevens", "table_1_2", training=n, validation=n_validation)
    return {"dataset": "mnist", "rows": rows, "differs": differences, "items": n}


def table_1_3(seed: int, items: int | None, progress: Progress) -> dict[str, Any]:
    """RCV1: each topic is a query over all stories."""
    data, topics = _load_stories(seed, items)
    n_weights = data.X[0].shape[1] // 100
    svms: FirstFits = {}
    dominations: FirstFits = {}
    costs = parameter_grid(C=(0.03, 0.1, 0.3, 1.0, 3.0, 10.0))
    shares = [
        {"alpha": alpha, "margin": margin, "share": share}
        for alpha, margin in ((0.03, 1.0), (0.03, 3.0), (0.1, 3.0))
        for share in (0.25, 0.5)
    ]
    methods = {
        "PAMIR": _pamir(seed),
        "Domination (L1)": Method(_domination(), parameter_grid(alpha=(0.05, 0.1, 0.2, 0.3, 0.5, 1.0))),
        "Domination (L2², shared, 1 %)": Method(partial(_shared_domination, n_weights, dominations), shares),
        "LinearSVC": Method(partial(linear_svc, first_fits=svms), costs),
        "LinearSVC (cut to 1 %)": Method(partial(linear_svc, first_fits=svms, largest=n_weights), costs),
        "LinearSVC (shared, prune_features to 1 %)": Method(
            partial(linear_svc, first_fits=svms, pruned=n_weights),
            parameter_grid(C=(0.1, 0.3, 1.0), share=(0.25, 0.5)),
        ),
        "L1 logistic (liblinear)": Method(l1_logistic, parameter_grid(C=(2.0, 3.0, 5.0, 10.0, 20.0, 30.0))),
    }
    rows = [_evaluate("rcv1", name, method, data, TABLE_1_3, progress) for name, method in methods.items()]
    differences = note(
        "stevens", "table_1_3", stories=sum(X.shape[0] for X in data.X), seed=seed, topics=topics, weights=n_weights,
        min_training=MIN_TRAINING_STORIES, min_test=MIN_TEST_STORIES,
    )  # fmt: skip
    return {"dataset": "rcv1", "rows": rows, "differs": differences, "items": data.X[0].shape[0], "topics": topics}


def _pamir(seed: int) -> Method:
    grid = parameter_grid(C=(0.1, 1.0, 10.0), average=(False, True))
    return Method(lambda **settings: PAMIR(max_iter=PAMIR_STEPS, random_state=seed, **settings), grid)


def _domination(**fixed: Any) -> Make:
    return partial(DominationRanker, tol=TOLERANCE, max_iter=200, **fixed)


def _shared_domination(
    n_weights: int, first_fits: FirstFits, alpha: float, margin: float, share: float
) -> LinearModelPerTopic:
    """`DominationRanker(penalty="l2", share=…)` pruned to `n_weights` weights per topic."""
    make = _domination(penalty="l2", alpha=alpha, margin=margin)

    def fit_weights(X: Any, Y: Any) -> NDArray[np.float64]:
        return np.asarray(make().fit(X, Y).coef_.toarray())

    return LinearModelPerTopic(fit_weights, (alpha, margin), first_fits, share, pruned=n_weights)


def _evaluate(
    dataset: str, name: str, method: Method, data: TopicData, printed: Mapping[str, TopicResult], progress: Progress
) -> dict[str, Any]:
    """Fit every setting, choose by average precision on validation items, measure on test items."""
    grades = data.Y[0] if method.feedback is None else data.feedback[method.feedback]

    def fit(**settings: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return method.make(**settings).fit(data.X[0], grades)

    def validate(ranker: Any) -> float:
        return mean_over_topics(ranker.predict(data.X[1]), data.Y[1], "AP")["AP"]

    settings, ranker, value, seconds = choose(
        method.grid, fit, validate, lambda message: progress(f"{dataset}: {name}, {message}")
    )
    seconds += getattr(ranker, "reused_seconds_", 0.0)
    test = mean_over_topics(ranker.predict(data.X[2]), data.Y[2], MEASURES)
    coef = ranker.coef_
    nonzero = coef.nnz if hasattr(coef, "nnz") else int(np.count_nonzero(coef))
    zero_percent = 100.0 * (1.0 - nonzero / (coef.shape[0] * coef.shape[1]))
    ours = TopicResult(*(test[measure] for measure in MEASURES.split()), zero_percent)  # type: ignore[call-arg]
    return {
        "method": name,
        **ours._asdict(),
        **{f"paper_{key}": number for key, number in printed.get(name, NOT_PRINTED)._asdict().items()},
        "validation_ap": value,
        "settings": settings,
        "settings_tried": len(method.grid),
        "seconds": round(seconds, 3),
    }


def mean_over_topics(scores: NDArray[np.float64], Y: Any, measures: str) -> dict[str, float]:
    """The mean of each measure over the topics that have a relevant item; every item is ranked for every topic.

    >>> from scipy.sparse import csr_array
    >>> mean_over_topics(np.array([[2.0, 1.0], [1.0, 2.0]]), csr_array([[1, 1], [0, 0]]), "AP")
    {'AP': 0.75}
    """
    grades = Y.toarray()
    values: dict[str, list[float]] = {}
    for topic in np.flatnonzero(grades.any(axis=0)):
        items = Items.from_rows(scores[:, topic], grades[:, topic], np.zeros(len(grades), np.int64))
        for column in compute(items, measures):
            values.setdefault(str(column.measure), []).append(column.mean)
    return {name: float(np.mean(column)) for name, column in values.items()}


def _load_images(seed: int, items: int | None) -> TopicData:
    split = load("mnist")
    order = np.random.default_rng(seed).permutation(len(split.train))[: MNIST_IMAGES if items is None else items]
    parts = np.split(order, [len(order) * 5 // 6])
    rows = [unit_rows(pixels) for pixels in (*(split.train.items[part] for part in parts), split.test.items)]
    digits = [*(split.train.y[part] for part in parts), split.test.y]
    nearness = _cosine_with_class_mean(rows[0], digits[0])
    median = np.array([np.median(nearness[digits[0] == digit]) for digit in range(10)])
    tier = np.where(nearness >= median[digits[0]], 2.0, 1.0)
    feedback = {"three-valued": _digit_columns(digits[0], tier), "real-valued": _digit_columns(digits[0], nearness)}
    return TopicData(tuple(rows), tuple(_digit_columns(y, np.ones(len(y))) for y in digits), feedback)


def _cosine_with_class_mean(X: csr_array, classes: NDArray[np.int64]) -> NDArray[np.float64]:
    cosine = np.empty(len(classes))
    for one in np.unique(classes):
        members = classes == one
        mean = np.asarray(X[members].mean(axis=0)).ravel()
        cosine[members] = X[members] @ (mean / np.linalg.norm(mean))
    return cosine


def _digit_columns(digit: NDArray[np.int64], grade: NDArray[np.float64]) -> csr_array:
    from scipy.sparse import csr_array

    return csr_array((grade, (np.arange(len(digit)), digit)), shape=(len(digit), 10))


def _load_stories(seed: int, items: int | None) -> tuple[TopicData, int]:
    stories = load("rcv1")
    order = np.random.default_rng(seed).permutation(len(stories))[:items]
    n = len(order)
    parts = [np.sort(part) for part in np.split(order, [n // 2, 3 * n // 4])]
    count = [np.asarray(stories.Y[rows].sum(axis=0)).ravel() for rows in parts]
    topics = np.flatnonzero((count[0] >= MIN_TRAINING_STORIES) & (count[2] >= MIN_TEST_STORIES))
    X = tuple(stories.X[rows] for rows in parts)
    Y = tuple(stories.Y[rows][:, topics] for rows in parts)
    return TopicData(X, Y, {}), len(topics)
