"""The base classes of LETOR rankers: fit(X, y, qid), predict(X) and the scikit-learn API.

X is used as it is: dense or sparse (CSR or CSC), float32 or float64, without a copy. `fit` validates its input
before it trains. `predict` requires the columns that `fit` has seen.
"""

from __future__ import annotations

import secrets
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from .. import validation
from ..base.ranker import Ranker, State
from ..data.formats.tensors import Tensors, pack_strings
from ..deprecated import renamed_names
from ..errors import DataError, ModelError, NotFitted
from ..evaluation.items import Items
from ..evaluation.measures import compute, parse
from ..preferences.queries import Queries

NO_QID = (
    "the score has no query ids, so all rows count as one query; give qid, in cross-validation by scikit-learn's "
    "metadata routing (set_fit_request(qid=True), set_score_request(qid=True), params={'qid': qid})"
)
MAX_ABS_VALUE = 1e100
"""Larger numbers raise DataError: sums of their squares would leave the range of a double."""


class Unfitted(NotFitted, NotFittedError):  # type: ignore[misc]
    """`fit` has not been called yet; also a NotFittedError of scikit-learn."""


class LetorRanker(Ranker, BaseEstimator, ABC):  # type: ignore[misc]
    """A ranker of feature vectors with grades and query ids. A subclass implements `_train` and `_scores`.

    `_train(X, queries)` gets the validated X and its rows by query, and sets the attributes that end in `_`.
    `_scores(X)` returns one number per row. For the model file, `_arrays()` returns the trained arrays and
    `_restore_arrays(file)` validates and reads them; the file holds the attributes of `_saved_attributes` too.
    """

    _file_kind = "by-query"
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}
    _saved_attributes: ClassVar[tuple[str, ...]] = ("skipped_queries_", "n_iter_", "converged_", "zero_based_")
    """Numbers and strings that the model file holds."""
    zero_based_: bool
    """Whether the LETOR file of the training rows numbers features from 0; set only if it was a file."""
    _requires_pairs = True
    """Whether some row must have another one to beat."""

    def fit(self, X: Any, y: Any, qid: Any = None, **weights: Any) -> Self:
        """Train on rows with grades: within a query, every higher grade should score above every lower one.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Feature vectors, finite numbers.
        y : array-like of shape (n_rows,)
            Grades, any finite numbers.
        qid : array-like of shape (n_rows,), default=None
            Query ids, numbers or strings, in any order. None means that all rows are one query. Queries with one row or
            one grade are counted in `skipped_queries_`; if no other is left, `fit` raises DataError.
        **weights
            `sample_weight`: weight of each row's term as a *winner*. This is not the same as repeating the row, which
            would also have to be beaten twice.

        Returns
        -------
        self
        """
        with self._refitting():
            X, queries = self._validate(X, y, qid, weights)
            self._train(X, queries.require_pairs() if self._requires_pairs else queries)
        return self

    @contextmanager
    def _refitting(self) -> Iterator[None]:
        """Discard the previous fit; restore it if this one raises an error."""
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
        """Score rows; within a query, higher is better.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Feature vectors with the columns of `fit`.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        return np.asarray(self._fitted()._scores(self._rows(X, reset=False)), dtype=np.float64)

    def score(self, X: Any, y: Any, qid: Any = None, sample_weight: Any = None) -> float:
        """Return the mean nDCG@10 over queries; for other measures see `sr.ranking_scorer`.

        Parameters
        ----------
        X, y, qid
            Rows, grades and query ids, as for `fit`.
        sample_weight : array-like of shape (n_rows,), default=None
            A query counts with the mean weight of its rows.

        Returns
        -------
        float
        """
        return measure_by_query(y, self.predict(X), qid=qid, sample_weight=sample_weight)

    def _fitted(self) -> Self:
        if not hasattr(self, "n_features_in_"):
            raise Unfitted(f"this {type(self).__name__} is not fitted yet; call fit first")
        return self

    @abstractmethod
    def _train(self, X: Any, queries: Queries) -> None:
        """Train on validated rows."""

    @abstractmethod
    def _scores(self, X: Any) -> Any:
        """The score of every validated row."""

    @abstractmethod
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays of the model file."""

    @abstractmethod
    def _restore_arrays(self, file: Tensors) -> None:
        """Read the arrays of the model file."""

    def _state(self) -> State:
        arrays = self._fitted()._arrays()
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            arrays |= pack_strings("feature_names", [str(name) for name in names])
        attributes = {name: _as_json(getattr(self, name)) for name in self._saved_attributes if hasattr(self, name)}
        return {"features": int(self.n_features_in_), "told": attributes}, arrays

    def _restore(self, file: Tensors) -> None:
        self.n_features_in_ = file.setting("features", int)
        if self.n_features_in_ < 1:
            raise ModelError(f"{file.path}: the number of features must be positive; found {self.n_features_in_}")
        attributes = file.setting("told", dict)
        for name in set(attributes) & set(self._saved_attributes):
            setattr(self, name, attributes[name])
        self._restore_arrays(file)
        if "feature_names.utf8" in file.arrays:
            names = file.strings("feature_names")
            if len(names) != self.n_features_in_:
                raise ModelError(f"{file.path}: {len(names)} feature names for {self.n_features_in_} features")
            self.feature_names_in_ = np.array(names, dtype=object)

    def _validate(self, X: Any, y: Any, qid: Any, weights: dict[str, Any]) -> tuple[Any, Queries]:
        """X, and its rows by query."""
        weight = weights.pop("sample_weight", None)
        if weights:
            raise TypeError(f"{type(self).__name__}.fit() got an unexpected keyword argument {next(iter(weights))!r}")
        X = self._rows(X, reset=True)
        queries = Queries.of(_grades(y, X.shape[0]), qid, weight)
        self.skipped_queries_ = queries.skipped
        return X, queries

    def _rows(self, X: Any, reset: bool) -> Any:
        """X as a float32 or float64 array, or as a CSR or CSC matrix in canonical form, with finite numbers."""
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
        _check_numbers(X)
        return X

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def _as_json(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_as_json(one) for one in value] if isinstance(value, list | tuple) else value


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


def _check_numbers(X: Any) -> None:
    """Raise DataError for NaN, infinities and huge numbers; valid input needs no temporary array."""
    numbers = X if isinstance(X, np.ndarray) else X.data
    if numbers.size == 0 or (float(numbers.min()) >= -MAX_ABS_VALUE and float(numbers.max()) <= MAX_ABS_VALUE):
        return
    bad = ~(np.abs(numbers.astype(np.float64)) <= MAX_ABS_VALUE)
    if isinstance(X, np.ndarray):
        row, column = (int(i) for i in np.unravel_index(bad.argmax(), X.shape))
        value = X[row, column]
    else:
        at = int(bad.argmax())
        row, column = int(np.searchsorted(X.indptr, at, side="right")) - 1, int(X.indices[at])
        row, column = (row, column) if X.format == "csr" else (column, row)
        value = numbers[at]
    limit = f"numbers must not exceed {MAX_ABS_VALUE:g}" if np.isfinite(value) else "NaN and inf are not allowed"
    raise DataError(f"X[{row}, {column}] is {value}: {limit}; leave the row out or correct the number")


class LinearRanker(LetorRanker):
    """A LETOR ranker whose score is X @ coef_."""

    coef_: NDArray[np.float64]

    def _scores(self, X: Any) -> Any:
        if isinstance(X, np.ndarray) and X.dtype != self.coef_.dtype:
            return np.einsum("ij,j->i", X, self.coef_)  # unlike @, without a copy of X as float64
        return X @ self.coef_

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"coef": self.coef_}

    def _restore_arrays(self, file: Tensors) -> None:
        self.coef_ = file.array("coef", "float64", self.n_features_in_)


class BoostedRanker(LetorRanker):
    """A LETOR ranker that is trained in rounds; a subclass implements `_scores_after`."""

    @abstractmethod
    def _scores_after(self, X: Any, rounds: int) -> Any:
        """The score of every validated row after some rounds."""

    def predict_after(self, X: Any, rounds: int) -> NDArray[np.float64]:
        """Score rows with the first rounds only, to choose their number on validation data.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_rows, n_features)
            Feature vectors.
        rounds : int
            Number of rounds.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        scores = self._fitted()._scores_after(self._rows(X, reset=False), rounds)
        return np.asarray(scores, dtype=np.float64)


def measure_by_query(
    y: ArrayLike, scores: ArrayLike, *, qid: Any = None, sample_weight: Any = None, measure: str = "nDCG@10"
) -> float:
    """The mean of a measure over queries; a query counts with the mean weight of its rows.

    >>> measure_by_query([1, 0, 0, 1], [0.9, 0.1, 0.7, 0.2], qid=["a", "a", "b", "b"], measure="AP")
    0.75
    """
    grades = _grades(y, len(np.asarray(scores)))
    if qid is None:
        warnings.warn(NO_QID, stacklevel=3)
    groups = np.zeros(len(grades), np.int64) if qid is None else np.asarray(qid)
    values = compute(Items.from_rows(scores, grades, groups), measure)[0]
    if sample_weight is None:
        return values.mean
    queries = Queries.of(grades, groups, sample_weight)
    weight = np.bincount(queries.query, queries.weight) / np.diff(queries.start)
    by_id = dict(zip(map(str, queries.ids.tolist()), weight.tolist(), strict=True))
    return replace(values, weights=values.weights * [by_id[query] for query in values.queries]).mean


def ranking_scorer(measure: str = "nDCG@10") -> Callable[..., float]:
    """Return a scorer for GridSearchCV and cross_validate: the mean of a measure over queries.

    With scikit-learn's metadata routing enabled, use `ranking_scorer("AP").set_score_request(qid=True)`, and call the
    search as `fit(X, y, qid=qid, groups=qid)` with a GroupKFold. Errors (`PairError`, …) count as their negative.

    Parameters
    ----------
    measure : str, default="nDCG@10"
        A name of `sparserank.evaluation.measures`.

    Returns
    -------
    callable

    Examples
    --------
    >>> from sklearn import config_context
    >>> with config_context(enable_metadata_routing=True):
    ...     scorer = ranking_scorer("AP").set_score_request(qid=True)
    """
    from sklearn.metrics import make_scorer

    parsed = parse(measure)
    scorer: Callable[..., float] = make_scorer(
        measure_by_query, greater_is_better=not parsed.lower_is_better, measure=str(parsed)
    )
    return scorer


def draw_seed(random_state: int | None) -> int:
    """The seed that the user gave, or a new one."""
    return secrets.randbits(63) if random_state is None else validation.count("random_state", random_state)


def as_columns(X: Any) -> Any:
    """A dense X as it is, a sparse one as CSC."""
    return X if isinstance(X, np.ndarray) else X.tocsc()


def as_rows(X: Any) -> Any:
    """A dense X as it is, a sparse one as CSR."""
    return X if isinstance(X, np.ndarray) else X.tocsr()


def check_features(feature: NDArray[np.int64], n_features: int) -> None:
    """Raise ValueError if a model file names a feature that does not exist."""
    if len(feature) and not 0 <= feature.min() <= feature.max() < n_features:
        raise ValueError(f"a feature outside 0 … {n_features - 1}")


__getattr__ = renamed_names(__name__, {"ByQueryRanker": "LetorRanker"})
