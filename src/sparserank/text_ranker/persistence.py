"""Rankers from their files. The index of the documents a text ranker was fitted on lies beside it, as `MODEL.index`."""

from __future__ import annotations

from ..bilinear.ranker import BilinearRanker
from ..data.files import PathLike
from ..data.formats.tensors import read_tensors
from ..errors import ModelError
from .ranker import TextRanker


def load_model(path: PathLike) -> TextRanker:
    """Read a saved ranker without any index: enough to make one, whatever has become of the one beside it."""
    return TextRanker.from_file(read_tensors(path, TextRanker._file_kind))


def load_pairs(path: PathLike) -> TextRanker | BilinearRanker:
    """Read a ranker of word pairs; one that has none is refused."""
    file = read_tensors(path)
    if file.kind == TextRanker._file_kind:
        ranker = TextRanker.from_file(file)
        if ranker.model_.W is None:
            kind = file.settings.get("kind")
            raise ModelError(f"{path}: a text model ({kind}) has no word pairs: each word looks for itself alone")
        return ranker
    if file.kind != BilinearRanker._file_kind:
        raise ModelError(f"{path}: holds a {file.kind!r}; a {BilinearRanker._file_kind!r} is wanted")
    return BilinearRanker.from_file(file)


def load_text(path: PathLike, index: PathLike | None = None) -> TextRanker:
    """Read a text ranker and the index beside it (or another one); an index of another model is refused."""
    ranker = load_model(path)
    ranker._load_index(path, index)
    return ranker
