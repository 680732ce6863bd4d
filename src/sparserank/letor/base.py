"""What every ranker of graded rows shares: fit(X, y, qid), predict(X), and scikit-learn's manners.

X stays as it is: dense or sparse (CSR or CSC), float32 or float64, never copied into another form. What cannot be
learned from is refused before anything is learned, and `predict` wants the columns that `fit` has seen: a matrix with
more or fewer is refused, since nothing is known about a column that was never seen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from ..base.ranker import Ranker, State
from ..data.formats.tensors import Tensors, pack_strings
from ..errors import DataError, ModelError, NotFitted
from ..evaluation.items import Items
from ..evaluation.measures import compute, parse
from ..preferences.queries import Queries

LARGEST = 1e100
"""Numbers beyond this are refused: sums of their squares would leave the range of a double."""


class Unfitted(NotFitted, NotFittedError):  # type: ignore[misc]
    """`fit` has not been called yet; also what scikit-learn expects to be raised then."""


class ByQueryRanker(Ranker, BaseEstimator, ABC):  # type: ignore[misc]
    """A ranker of rows by query. A kind of it writes `_learn(X, queries)` and `_scores(X)`.

    `_learn` gets X as the user gave it, validated, and `Queries` that refer to its rows; it sets what ends in `_`.
    `_scores` gives one number a row. For the model file, `_arrays()` gives the arrays that were learned and
    `_restore_arrays(file)` takes them back, judged; attributes named in `_told` are kept besides.
    """

    _file_kind = "by-query"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}
    _told: ClassVar[tuple[str, ...]] = ("skipped_queries_", "n_iter_", "converged_", "zero_based_")
    """Plain numbers and texts that were learned, which the model file keeps."""
    zero_based_: bool
    """Whether the LETOR file that was learned from counts features from 0; only where it was a file."""
    _compares = True
    """Whether some row must have another one to beat, for there to be anything to learn."""

    def fit(self, X: Any, y: Any, qid: Any = None, **weights: Any) -> Self:
        """Learn from rows X with grades y; within a qid every higher grade should score above every lower one.

        X : dense or sparse, finite numbers. y : one grade a row; floats are fine.
        qid : one query id a row, in any order, numbers or texts; None: all rows are one query. Queries with one row or
            one grade teach nothing and are counted in `skipped_queries_`; where no other is left, it is a DataError.
        sample_weight : what a row's term counts as a *winner*. (Not the same as repeating the row, which would also
            have to be beaten twice. So it goes by name, and scikit-learn's checks of repetition do not apply.)
        """
        with self._refitting():
            X, queries = self._checked(X, y, qid, weights)
            self._learn(X, queries.require_pairs() if self._compares else queries)
        return self

    @contextmanager
    def _refitting(self) -> Iterator[None]:
        """Forget the previous fit; if this one raises an error, the previous one stays."""
        before = dict(vars(self))
        try:
            for name in before:
                if name.endswith("_") and not name.startswith("_"):
                    delattr(self, name)
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def predict(self, X: Any) -> NDArray[np.float64]:
        """A score for every row; within a query, higher is better."""
        return np.asarray(self._fitted()._scores(self._rows(X, reset=False)), dtype=np.float64)

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """Mean nDCG@10 over queries, each counted with the mean of its weights; see also `sr.ranking_scorer`."""
        return measure_by_query(y, self.predict(X), qid=qid, sample_weight=sample_weight)

    def _fitted(self) -> Self:
        if not hasattr(self, "n_features_in_"):
            raise Unfitted(f"this {type(self).__name__} has learned nothing yet; call fit first")
        return self

    @abstractmethod
    def _learn(self, X: Any, queries: Queries) -> None:
        """Learn from validated rows."""

    @abstractmethod
    def _scores(self, X: Any) -> Any:
        """A score for every validated row."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """What the model file holds."""

    @abstractmethod
    def _restore_arrays(self, file: Tensors) -> None:
        """Take it back."""

    def _state(self) -> State:
        arrays = self._fitted()._arrays()
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            arrays |= pack_strings("feature_names", [str(name) for name in names])
        told = {name: _plain(getattr(self, name)) for name in self._told if hasattr(self, name)}
        return {"features": int(self.n_features_in_), "told": told}, arrays

    def _restore(self, file: Tensors) -> None:
        self.n_features_in_ = file.setting("features", int)
        if self.n_features_in_ < 1:
            raise ModelError(f"{file.path}: a model of {self.n_features_in_} features")
        told = file.setting("told", dict)
        for attribute in set(told) & set(self._told):
            setattr(self, attribute, told[attribute])
        self._restore_arrays(file)
        if "feature_names.utf8" in file.arrays:
            names = file.strings("feature_names")
            if len(names) != self.n_features_in_:
                raise ModelError(f"{file.path}: {len(names)} feature names for {self.n_features_in_} features")
            self.feature_names_in_ = np.array(names, dtype=object)

    # ---- judging what was given

    def _checked(self, X: Any, y: Any, qid: Any, weights: dict[str, Any]) -> tuple[Any, Queries]:
        """X, and its rows by query."""
        weight = weights.pop("sample_weight", None)
        if weights:
            raise TypeError(f"{type(self).__name__}.fit() got an unexpected keyword argument {next(iter(weights))!r}")
        X = self._rows(X, reset=True)
        queries = Queries.of(_grades(y, X.shape[0]), qid, weight)
        self.skipped_queries_ = queries.skipped
        return X, queries

    def _rows(self, X: Any, reset: bool) -> Any:
        """X as a float32 or float64 array, CSR or CSC matrix in canonical form; its numbers are judged here."""
        try:
            X = validate_data(
                self, X, reset=reset, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32),
                ensure_all_finite=False,
            )  # fmt: skip
        except ValueError as error:
            raise DataError(str(error)) from None
        if not isinstance(X, np.ndarray) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        _refuse_numbers(X)
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _plain(value: Any) -> Any:
    """A number, text or list of them as JSON has it."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _grades(y: Any, rows: int) -> NDArray[np.float64]:
    if y is None:
        raise DataError("this ranker requires y to be passed, but the target y is None: give every row its grade")
    grades = np.asarray(y)
    if grades.dtype.kind == "c":
        raise DataError("Complex data not supported: grades are real numbers")
    if grades.shape != (rows,):
        raise DataError(f"y should be a 1d array with a grade for each of the {rows} rows; got shape {grades.shape}")
    try:
        grades = grades.astype(np.float64)
    except (TypeError, ValueError):
        raise DataError(f"Unknown label type: grades must be numbers; got {y!r:.100}") from None
    if not np.isfinite(grades).all():
        row = int((~np.isfinite(grades)).argmax())
        raise DataError(f"y[{row}] is {grades[row]}: a grade must not be NaN or infinite")
    return grades


def by_topic(y: Any) -> bool:
    """Whether y is a matrix of items × topics; rows of different lengths are a DataError."""
    try:
        return len(getattr(y, "shape", ())) == 2 or np.ndim(y) == 2
    except ValueError:
        raise DataError("y has rows of different lengths; give one grade a row, or a grade for every topic") from None


def topic_grades(Y: Any) -> Any:
    """Grades of items × topics as CSC; one that is not a finite number raises DataError with its row and column."""
    from scipy.sparse import csc_array, issparse

    given = Y if issparse(Y) else np.asarray(Y)
    if given.dtype.kind not in "biuf":
        what = f"got {given.dtype}; turn labels into numbers, one column a topic, 0 where an item is not relevant"
        raise DataError(f"Y must be a matrix of grades, items × topics; {what}")
    grades = csc_array(given).astype(np.float64)
    grades.sum_duplicates()
    bad = ~np.isfinite(grades.data)
    if bad.any():
        row, topic, value = _first(grades, bad)
        what = "a grade must not be NaN or infinite; use 0 for an item that is not relevant, or leave the row out"
        raise DataError(f"Y[{row}, {topic}] is {value}: {what}")
    return grades


def relevant_items(Y: Any, items: int) -> list[NDArray[np.int64]]:
    """The items with a grade above 0, of each topic; negative grades and topics without a choice raise DataError."""
    grades = topic_grades(Y)
    if grades.shape[0] != items:
        raise DataError(f"Y must have a row for each of the {items} rows of X; got {grades.shape[0]}")
    if (grades.data < 0).any():
        row, topic, value = _first(grades, grades.data < 0)
        what = "a grade above 0 means relevant and 0 not relevant; replace negative grades by 0"
        raise DataError(f"Y[{row}, {topic}] is {value:g}: {what}")
    grades.eliminate_zeros()
    relevant = [grades.indices[a:b].astype(np.int64) for a, b in pairwise(grades.indptr)]
    for topic, rows in enumerate(relevant):
        if not 0 < len(rows) < items:
            found = "no relevant item" if len(rows) == 0 else "no item that is not relevant"
            raise DataError(f"topic {topic} (column {topic} of Y) has {found}, so there is nothing to learn")
    return relevant


def _first(grades: Any, bad: NDArray[np.bool_]) -> tuple[int, int, float]:
    """Row, column and value of the first stored number of a CSC matrix that is bad."""
    at = int(bad.argmax())
    return int(grades.indices[at]), int(np.searchsorted(grades.indptr, at, side="right")) - 1, float(grades.data[at])


def _refuse_numbers(X: Any) -> None:
    """NaN, infinities and numbers beyond `LARGEST` by row and column; no temporary array where all is well."""
    numbers = X if isinstance(X, np.ndarray) else X.data
    if numbers.size == 0 or (float(numbers.min()) >= -LARGEST and float(numbers.max()) <= LARGEST):
        return
    bad = ~(np.abs(numbers.astype(np.float64)) <= LARGEST)
    if isinstance(X, np.ndarray):
        row, column = (int(i) for i in np.unravel_index(bad.argmax(), X.shape))
        value = X[row, column]
    else:
        at = int(bad.argmax())
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
        row, column = (row, column) if X.format == "csr" else (column, row)
        value = numbers[at]
    what = (
        f"no finite number beyond {LARGEST:g} can be learned from" if np.isfinite(value) else "NaN and inf are refused"
    )
    raise DataError(f"X[{row}, {column}] is {value}: {what}; leave the row out or mend the number")


class LinearRanker(ByQueryRanker):
    """A by-query ranker whose score is X @ coef_."""

    coef_: NDArray[np.float64]

    def _scores(self, X: Any) -> Any:
        if isinstance(X, np.ndarray) and X.dtype != self.coef_.dtype:
            return np.einsum("ij,j->i", X, self.coef_)  # unlike @, without a copy of X in 64 bits
        return X @ self.coef_

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"coef": self.coef_}

    def _restore_arrays(self, file: Tensors) -> None:
        self.coef_ = file.array("coef", "float64", self.n_features_in_)


def measure_by_query(
    y: ArrayLike, scores: ArrayLike, *, qid: Any = None, sample_weight: Any = None, measure: str = "nDCG@10"
) -> float:
    """The mean of a measure over queries, of scores for graded rows; a query counts with the mean of its weights.

    >>> measure_by_query([1, 0, 0, 1], [0.9, 0.1, 0.7, 0.2], qid=["a", "a", "b", "b"], measure="AP")
    0.75
    """
    grades = _grades(y, len(np.asarray(scores)))
    groups = np.zeros(len(grades), np.int64) if qid is None else np.asarray(qid)
    found = compute(Items.from_rows(scores, grades, groups), measure)[0]
    if sample_weight is None:
        return found.mean
    queries = Queries.of(grades, groups, sample_weight)
    weight = np.bincount(queries.query, queries.weight) / np.diff(queries.start)
    of_query = dict(zip(map(str, queries.ids.tolist()), weight.tolist(), strict=True))
    return replace(found, weights=found.weights * [of_query[query] for query in found.queries]).mean


def ranking_scorer(measure: str = "nDCG@10") -> Callable[..., float]:
    """A scorer for GridSearchCV and cross_validate: the mean of any of our measures over queries.

    With scikit-learn's metadata routing on, say `ranking_scorer("AP").set_score_request(qid=True)`, and give the search
    `fit(X, y, qid=qid, groups=qid)` with a GroupKFold. Errors (`PairError`, …) count as their negative.

    >>> from sklearn import config_context
    >>> with config_context(enable_metadata_routing=True):
    ...     scorer = ranking_scorer("AP").set_score_request(qid=True)
    """
    from sklearn.metrics import make_scorer

    wanted = parse(measure)
    error = wanted.lower_is_better
    scorer: Callable[..., float] = make_scorer(measure_by_query, greater_is_better=not error, measure=str(wanted))
    return scorer
