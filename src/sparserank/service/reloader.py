"""The served model. A request uses one loaded model to its end; a new version replaces it between requests."""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ..bilinear.word_pairs import WordPairs
from ..data.files import file_id
from ..errors import DataError, ModelError, SparseRankError
from ..text_ranker import diff, load_model
from ..versions import Version, VersionRegistry
from ..versions.manifest import Trial
from ..versions.trials import current_trial

if TYPE_CHECKING:
    from ..data.files import PathLike
    from ..text_ranker import TextRanker

log = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.5
"""Time between two checks for a new version."""
MAX_CHANGES = 1000
"""Changed pairs that are kept for a pair of versions."""
MAX_COMPARISONS = 64
"""Pairs of versions whose changes are kept; the first to come is the first to go."""
MAX_EXAMPLES = 6
"""Example queries on the page."""

Weights = list[tuple[str, float]]


class Busy(SparseRankError):
    """Two other versions are being compared; the same request may be sent again."""


@dataclass(frozen=True)
class LoadedModel:
    """A version that is ready to answer requests."""

    ranker: TextRanker
    version: Version

    def warm_up(self) -> LoadedModel:
        """Answer once as the page asks, so that no request waits for caches and compilation."""
        index = self.ranker.index_
        forgiving: dict[str, Any] = {"typos": True, "prefix": True}
        self.ranker.search("warm", 1)
        self.ranker.search("warm", 1, facets=index.fields[:1], total=True, **forgiving)
        self.ranker.search_lexical("warm", 1, **forgiving)
        if len(index):
            explainer, first = self.ranker.explainer("warm", **forgiving), index.id_at(0)
            explainer.top(first, 1)
            explainer.snippets([first], 1)
        self.ranker.unknown("warm")
        _ = self._reverse_pairs, self._row_of, self.examples
        return self

    def related(self, word: str, k: int) -> tuple[Weights, Weights]:
        """Return the largest pairs of a query word, and of the same document word; empty lists if it has none."""
        pairs = self.ranker.model_.pairs
        try:
            form = self.ranker.normalize(word)
        except DataError:
            return [], []
        if pairs is None or self._reverse_pairs is None:
            return [], []
        column = self.ranker.lexical_.features.vocabulary_.get(form)
        is_known = any(one in self._row_of for one in (form, *form.split(" ")))
        forward = pairs.related_to(form, k) if is_known else []
        return forward, [] if column is None else self._reverse_pairs.related(column, k)

    @cached_property
    def examples(self) -> list[str]:
        """Query words with the largest weights of other words, or titles if there are none, as example queries."""
        pairs, index = self.ranker.model_.pairs, self.ranker.index_
        if pairs is None or not pairs.W_.nnz:
            titles = (index.title_at(number) for number in np.linspace(0, len(index) - 1, 40).astype(int).tolist())
            return list(islice(dict.fromkeys(title for title in titles if 0 < len(title) <= 60), MAX_EXAMPLES))
        columns = self.ranker.lexical_.features.vocabulary_
        own = np.array([columns.get(word, -1) for word in self._query_words])
        W = pairs.W_.copy()
        W.data[W.indices == np.repeat(own, np.diff(W.indptr))] = 0.0
        largest = W.max(axis=1).toarray().ravel()
        words = (self._query_words[row] for row in np.argsort(-largest, kind="stable")[:200].tolist())
        chosen: dict[str, None] = {}
        for word in words:
            parts = word.split()
            new = not any(part in other.split() for other in chosen for part in parts)
            if new and all(part.isalpha() and len(part) > 2 for part in parts):
                chosen[word] = None
        spelled = self.ranker.lexical_.surface_forms(chosen)
        return [spelled.get(word, word) for word in islice(chosen, MAX_EXAMPLES)]

    @cached_property
    def _query_words(self) -> Sequence[str]:
        pairs = self.ranker.model_.pairs
        return () if pairs is None else pairs.query_words_ or ()

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self._query_words)}

    @cached_property
    def _reverse_pairs(self) -> WordPairs | None:
        pairs = self.ranker.model_.pairs
        if pairs is None:
            return None
        reverse = WordPairs()
        reverse.W_ = pairs.W_.T.tocsr()
        reverse.query_words_, reverse.document_words_ = pairs.document_words_, pairs.query_words_
        return reverse


@dataclass(frozen=True)
class LoadedTrial:
    """A candidate that is ready to answer a share of the searches, and its trial."""

    model: LoadedModel
    trial: Trial


class ModelReloader:
    """Holds the served model, and the candidate of a trial if one runs.

    After `start` it checks for new versions every POLL_INTERVAL_S.
    """

    def __init__(
        self, registry: VersionRegistry, index: PathLike | None = None, keep_versions: int | None = None
    ) -> None:
        self.registry = registry
        self._index, self._keep = index, keep_versions
        self._prune()
        self._stamp, self._model = self._current_stamp(), self._load()
        self._trial: LoadedTrial | None = None
        self._index_id = self._own_index_id(self._model.version)
        self._trial = self._load_trial()
        self._reloading, self._comparing = threading.Lock(), threading.Lock()
        self._changes: dict[tuple[int, int], list[dict[str, Any]]] = {}
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def model(self) -> LoadedModel:
        """Return the model that answers a request."""
        return self._model

    def trial(self) -> LoadedTrial | None:
        """Return the candidate that answers a share of the searches, if any."""
        return self._trial

    def reload(self) -> bool:
        """Load the served version if it changed; return whether the model was replaced."""
        with self._reloading:
            stamp = self._current_stamp()
            if stamp == self._stamp:
                return False
            self._prune()
            stamp = self._current_stamp()
            before, current = self._model.version.number, self.registry.current()
            if current.number != before or self._own_index_id(current) != self._index_id:
                self._model = self._load()
            index_id = self._own_index_id(self._model.version)  # an earlier version if the current one lacks its index
            is_new = self._model.version.number != before or index_id != self._index_id
            self._trial = self._load_trial()
            self._stamp, self._index_id = stamp, index_id
            if is_new:
                log.info("serving version %d, %d documents", self._model.version.number, len(self._model.ranker.index_))
            return is_new

    def versions(self) -> tuple[Version, ...]:
        """Return all versions, or only the served one if the manifest is damaged."""
        try:
            return self.registry.list()
        except SparseRankError:
            return (self._model.version,)

    def rollback(self, to: int) -> Version:
        """Serve another version."""
        version = self.registry.rollback(to, self._index)
        self.reload()
        return version

    def changes_since(self, moment: datetime, k: int) -> dict[str, Any]:
        """Return the k pairs that differ most between the served version and the one that was served at a moment."""
        return self._compare(self.registry.served_at(moment).number, self.model().version.number, k)

    def changes_of(self, number: int, k: int) -> dict[str, Any]:
        """Return the k pairs that differ most between a version and its parent, none for the first version."""
        parent = next(version.parent for version in self.versions() if version.number == number)
        return self._compare(number if parent is None else parent, number, k)

    def _compare(self, before: int, after: int, k: int) -> dict[str, Any]:
        """Return what is known, or compute it; versions never change. Only one computation at a time, else Busy."""
        known = [] if before == after else self._changes.get((before, after))
        if known is None:
            if not self._comparing.acquire(blocking=False):
                raise Busy("two other versions are being compared; try again in a moment")
            try:
                known = self._compute_changes(before, after)
            finally:
                self._comparing.release()
        return {"before": before, "after": after, "changes": known[:k]}

    def _compute_changes(self, before: int, after: int) -> list[dict[str, Any]]:
        served = self.model()
        new = served.ranker if after == served.version.number else load_model(self.registry.path(after))
        changes = [one._asdict() for one in diff(load_model(self.registry.path(before)), new, MAX_CHANGES)]
        self._changes[before, after] = changes
        if len(self._changes) > MAX_COMPARISONS:
            del self._changes[next(iter(self._changes))]
        return changes

    def start(self) -> None:
        """Start to check for new versions."""
        self._thread = threading.Thread(target=self._watch, name="versions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop to check."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(POLL_INTERVAL_S):
            try:
                self.reload()
            except (SparseRankError, OSError) as error:
                log.warning("version %d stays: %s", self._model.version.number, error)

    def _prune(self) -> None:
        """Remove old versions, whoever added new ones: a learning round, `sparserank model add` or SIGHUP."""
        if self._keep is None or not self.registry.writable:
            return
        try:
            self.registry.prune(self._keep)
        except (SparseRankError, OSError) as error:
            log.warning("old versions stay: %s", error)

    def _current_stamp(self) -> object:
        """Return a value that changes with the served version or its files, which may be repaired meanwhile."""
        version = self.registry.current()
        files = self.registry.path(version.number), self.registry.index_source(version, self._index)
        return self.registry.stamp(), [file_id(file) for file in files]

    def _own_index_id(self, version: Version) -> object:
        """Return a value that changes with the private copy of a version's index; a new index is copied now."""
        own = self.registry.own_index(version, self._index)
        return None if own is None else file_id(own)

    def _load_trial(self) -> LoadedTrial | None:
        """Load the candidate, unless it is loaded; without it the served version answers alone."""
        trial, before = current_trial(self.registry), self._trial
        if trial is None or (before is not None and before.trial == trial):
            return before if trial is not None else None
        try:
            model = _prepare(self.registry.load(trial.version, self._index), self.registry.get(trial.version))
        except SparseRankError as error:
            log.error("%s; version %d is not on trial", error, trial.version)
            return None
        log.info("version %d is on trial for a share of %g", trial.version, trial.share)
        return LoadedTrial(model, trial)

    def _load(self) -> LoadedModel:
        version, ranker = self.registry.load_last_good(self._index)
        return _prepare(ranker, version)


def _prepare(ranker: TextRanker, version: Version) -> LoadedModel:
    """Return a model that is ready to answer requests."""
    if not hasattr(ranker, "index_"):
        raise ModelError("the model has no index; build one with `sparserank index MODEL DATA -o MODEL.index`")
    model = LoadedModel(ranker, version).warm_up()
    gc.collect()
    gc.freeze()  # collections would scan a million words and pairs and delay responses by 50 ms
    return model
