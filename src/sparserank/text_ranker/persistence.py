"""Rankers from their files. The index of the documents a text ranker was fitted on lies beside it, as `MODEL.index`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.parameters_file import unpack
from ..bilinear import persistence as bilinear_file
from ..data.files import PathLike
from ..data.formats.tensors import Tensors, read_tensors
from ..errors import ModelError
from ..letor import persistence as by_query_file
from ..search import Index
from .model import TextModel
from .ranker import MODEL_KIND, TextRanker, index_path

if TYPE_CHECKING:
    from ..bilinear.ranker import BilinearRanker
    from ..letor.base import ByQueryRanker


class OtherIndex(ModelError):
    """An index that was made for another model."""


def load_model(path: PathLike) -> TextRanker:
    """Read a saved ranker without any index: enough to make one, whatever has become of the one beside it."""
    file = read_tensors(path, MODEL_KIND)
    model = TextModel.from_file(file)
    ranker = _with_params(file) if "params" in file.settings else _of_0_1(model)
    ranker.model_ = model
    return ranker


def _with_params(file: Tensors) -> TextRanker:
    params = unpack(file.setting("params", dict), file)
    try:
        return TextRanker(**params)
    except TypeError as error:
        raise ModelError(f"{file.path}: its settings do not fit: {error}") from None


def _of_0_1(model: TextModel) -> TextRanker:
    """Files of 0.1 hold no parameters but those of the lexical part; the others get their defaults."""
    lexical = model.lexical.settings
    known: dict[str, Any] = {k: getattr(lexical, k) for k in ("k1", "b", "title_weight", "text_weight")}
    analyzer = lexical.analyzer
    return TextRanker(
        lexical.kind if model.W is None else "text", lexical=lexical.kind, **known,
        stem=analyzer.stem, stop_words=analyzer.stop_words, ngrams=analyzer.ngrams, constraints=model.edits or None,
    )  # fmt: skip


def load(path: PathLike, index: PathLike | None = None) -> TextRanker | BilinearRanker | ByQueryRanker:
    """Read a saved ranker of any kind; a text ranker comes with the index beside it, or with another one."""
    file = read_tensors(path)
    if file.kind == by_query_file.KIND:
        return by_query_file.load(file)
    return bilinear_file.load(file) if file.kind == bilinear_file.KIND else load_text(path, index)


def load_pairs(path: PathLike) -> TextRanker | BilinearRanker:
    """Read a ranker of word pairs; one that has none is refused."""
    file = read_tensors(path)
    if file.kind == MODEL_KIND:
        ranker = load_model(path)
        if ranker.model_.W is None:
            kind = file.settings.get("kind")
            raise ModelError(f"{path}: a text model ({kind}) has no word pairs: each word looks for itself alone")
        return ranker
    if file.kind != bilinear_file.KIND:
        raise ModelError(f"{path}: holds a {file.kind!r}; a {bilinear_file.KIND!r} is wanted")
    return bilinear_file.load(file)


def load_text(path: PathLike, index: PathLike | None = None) -> TextRanker:
    """Read a text ranker and the index beside it (or another one); an index of another model is refused."""
    ranker = load_model(path)
    where = index_path(path) if index is None else Path(index)
    if index is not None or where.exists():
        found = Index.load(where)
        if found.made_for != ranker.fingerprint() or found.n_terms != ranker.model_.n_terms:
            raise OtherIndex(f"{where}: made for another model than {path}; make it again with `sparserank index`")
        ranker.index_ = found
    return ranker
