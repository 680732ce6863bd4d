"""Load text rankers and the index beside the model, the file `MODEL.index`; `sr.load` loads any ranker."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..base.registry import class_of_file
from ..bilinear.persistence import PairMatrixRanker
from ..data.files import PathLike
from ..data.formats.tensors import read_tensors
from ..data.records import Documents
from ..errors import ModelError
from ..search.builder import build_index_file
from .indexed_model import Docs, warn_not_searched
from .ranker import TextRanker

if TYPE_CHECKING:
    from scipy.sparse import csr_array

log = logging.getLogger(__name__)


def load_model(path: PathLike) -> TextRanker:
    """Load a text ranker without its index.

    Parameters
    ----------
    path : str or path
        The model file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     TextRanker("bm25").fit({"d1": "red apples"}).save(f"{folder}/model.safetensors")
    ...     load_model(f"{folder}/model.safetensors").ranker
    'bm25'
    """
    return TextRanker.from_file(read_tensors(path, TextRanker._file_kind))


def load_text(path: PathLike, index: PathLike | None = None) -> TextRanker:
    """Load a text ranker and its index; raises OtherIndex if the index was built for another model.

    It ranks by words and pairs alone, as commands, the service and integrations do: they have no vectors of queries.
    `sr.load` returns a ranker that needs them if the model has a dense score.

    Parameters
    ----------
    path, index : str or path
        The model file and the index file; None is `PATH.index`, if it exists.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     TextRanker("bm25").fit({"d1": "red apples"}).save(f"{folder}/model.safetensors")
    ...     [hit.id for hit in load_text(f"{folder}/model.safetensors").search("apple")]
    ['d1']
    """
    ranker = load_model(path)
    ranker._load_index(path, index)
    if ranker.model_.dense is not None and ranker.model_.dense.weight:
        log.warning("%s: ranked by words and pairs alone, without vectors of %s", path, ranker.model_.dense)
        return ranker.words_only()
    return ranker


def load_pairs(path: PathLike) -> TextRanker | PairMatrixRanker:
    """Load a ranker of word pairs; raises ModelError if it has none.

    Parameters
    ----------
    path : str or path
        The model file.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> from sparserank import LabelRanker
    >>> with TemporaryDirectory() as folder:
    ...     LabelRanker(max_pairs=2).fit(np.eye(4), [0, 0, 1, 1]).save(f"{folder}/model.safetensors")
    ...     load_pairs(f"{folder}/model.safetensors").W_.shape
    (4, 4)
    """
    file = read_tensors(path)
    if file.kind == TextRanker._file_kind:
        ranker = TextRanker.from_file(file)
        if ranker.model_.W is None:
            raise ModelError(f"{path}: this {ranker.model_.lexical.kind} model has no word pairs")
        return ranker
    if file.kind != PairMatrixRanker._file_kind:
        raise ModelError(f"{path}: expected a model with word pairs, found one of kind {file.kind!r}")
    return class_of_file(file).from_file(file)  # type: ignore[return-value]


def write_index(
    ranker: TextRanker, path: PathLike, parts: Iterable[Docs], callback: Callable[[str], None] | None = None
) -> None:
    """Write the index of a collection that comes in parts, in bounded memory; `TextRanker.index` takes it as a whole.

    Parameters
    ----------
    ranker : TextRanker
        A fitted ranker.
    path : str or path
        The index file.
    parts : iterable of mappings
        Some documents each: {id: text} or {id: {"title": …, "text": …}}.
    callback : callable or None, default=None
        Called with messages about the progress.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> ranker = TextRanker("bm25").fit({"d1": "red apples"})
    >>> with TemporaryDirectory() as folder:
    ...     ranker.save(f"{folder}/model.safetensors")
    ...     write_index(ranker, f"{folder}/other.index", [{"a": "an apple"}, {"b": "a pear", "c": "apples, apples"}])
    ...     loaded = load_text(f"{folder}/model.safetensors", f"{folder}/other.index")
    ...     [hit.id for hit in loaded.search("apple")]
    ['c', 'a']
    """
    model, not_searched = ranker.fitted_model(), Counter[str]()

    def encoded() -> Iterator[tuple[csr_array, Documents]]:
        for part in map(Documents.of, parts):
            not_searched.update(model.lexical.not_searched(part))
            yield model.encode_documents(part), part

    build_index_file(path, encoded(), ranker.fingerprint(), callback)
    warn_not_searched(model.lexical, not_searched)
