"""The model being served. A request takes it once and uses it to its end; a new version takes its place between."""

from __future__ import annotations

import gc
import logging
import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..data.files import stamp
from ..errors import DataError, ModelError, SparseRankError
from ..versions import Version, VersionRegistry

if TYPE_CHECKING:
    from scipy.sparse import csr_array

    from ..data.files import PathLike
    from ..text_ranker import TextRanker

log = logging.getLogger(__name__)

EVERY = 0.5
"""Seconds between two looks for a new version."""

Weights = list[tuple[str, float]]


@dataclass(frozen=True)
class Serving:
    """One version, ready to answer."""

    ranker: TextRanker
    version: Version

    def warm(self) -> Serving:
        """Answer once, so that no request waits for what is made on first use."""
        self.ranker.search("warm", 1)
        self.ranker.search_lexical("warm", 1)
        self.ranker.unknown("warm")
        _ = self._columns, self._rows
        return self

    def around(self, word: str, k: int) -> tuple[Weights, Weights]:
        """What a word looks for and what looks for it, the largest weights first; nothing where it has no pairs."""
        pairs = self.ranker.model_.pairs
        try:
            counted = self.ranker.counted(word)
        except DataError:
            return [], []
        if pairs is None or self._columns is None or pairs.query_words_ is None or pairs.document_words_ is None:
            return [], []
        row, column = self._rows.get(counted), self.ranker.lexical_.features.vocabulary_.get(counted)
        looks_for = [] if row is None else _largest(pairs.W_, row, pairs.document_words_, k)
        looked_for_by = [] if column is None else _largest(self._columns, column, pairs.query_words_, k)
        return looks_for, looked_for_by

    @cached_property
    def _rows(self) -> dict[str, int]:
        pairs = self.ranker.model_.pairs
        return {} if pairs is None or pairs.query_words_ is None else {w: i for i, w in enumerate(pairs.query_words_)}

    @cached_property
    def _columns(self) -> csr_array | None:
        pairs = self.ranker.model_.pairs
        return None if pairs is None else pairs.W_.T.tocsr()


def _largest(W: csr_array, row: int, words: tuple[str, ...], k: int) -> Weights:
    begin, end = W.indptr[row], W.indptr[row + 1]
    best = np.argsort(-W.data[begin:end], kind="stable")[:k]
    return [(words[W.indices[begin + i]], float(W.data[begin + i])) for i in best]


class Served:
    """The current version, looked for every half second once `start` was called."""

    def __init__(self, versions: VersionRegistry, index: PathLike | None = None) -> None:
        self.versions = versions
        self._index = index
        self._stamp = self._watched()
        self._serving = self._loaded()
        self._looking = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def now(self) -> Serving:
        """What to answer a request with."""
        return self._serving

    def look(self) -> bool:
        """Take up another version where there is one; True where one was taken up."""
        with self._looking:
            stamp = self._watched()
            if stamp == self._stamp:
                return False
            before = self._serving.version.number
            if self.versions.current().number != before:
                self._serving = self._loaded()
            self._stamp = stamp
            if self._serving.version.number == before:
                return False
            log.info("version %d is served", self._serving.version.number)
            return True

    def listed(self) -> tuple[Version, ...]:
        """Every version; where their list has been damaged since, the one that is served."""
        try:
            return self.versions.list()
        except SparseRankError:
            return (self._serving.version,)

    def rollback(self, to: int) -> Version:
        """Serve another version from now on."""
        chosen = self.versions.rollback(to, self._index)
        self.look()
        return chosen

    def start(self) -> None:
        """Look for new versions from now on."""
        self._thread = threading.Thread(target=self._watch, name="versions", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(EVERY):
            try:
                self.look()
            except (SparseRankError, OSError) as error:
                log.warning("version %d stays: %s", self._serving.version.number, error)

    def _watched(self) -> object:
        """What differs once there is another version, or the files of this one have changed: they may be whole now."""
        version = self.versions.current()
        files = self.versions.path(version.number), self.versions.index_path_of(version, self._index)
        return self.versions.stamp(), [None if file is None else stamp(file) for file in files]

    def _loaded(self) -> Serving:
        version, ranker = self.versions.load_last_good(self._index)
        if not hasattr(ranker, "index_"):
            raise ModelError("this model has no index; make one with `sparserank index MODEL DATA -o MODEL.index`")
        serving = Serving(ranker, version).warm()
        gc.collect()
        gc.freeze()  # a million words and pairs that stay: looking through them now and then held up answers by 50 ms
        return serving
