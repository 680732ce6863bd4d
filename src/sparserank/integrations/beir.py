"""Text rankers in the search interfaces of BEIR and MTEB; neither library is imported until it calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from .. import __version__
from ..data.files import PathLike
from ..data.records import Documents
from ..text_ranker import TextRanker, load_text

__all__ = ["BeirSearch", "MtebSearch"]


class BeirSearch:
    """A text ranker as a model of BEIR: `EvaluateRetrieval(BeirSearch.from_model(path)).retrieve(corpus, queries)`.

    Parameters
    ----------
    ranker : TextRanker
        A fitted ranker. A corpus that is not that of its index is indexed.
    """

    def __init__(self, ranker: TextRanker) -> None:
        self.ranker = ranker

    @classmethod
    def from_model(cls, path: PathLike, index: PathLike | None = None) -> Self:
        """Load a model that `sparserank train` or `TextRanker.save` wrote.

        Parameters
        ----------
        path : path-like
            The model file.
        index : path-like or None, default=None
            The search index; None is the index beside the model, if there is one.
        """
        return cls(load_text(path, index))

    def search(
        self, corpus: Mapping[str, Mapping[str, str]], queries: Mapping[str, str], top_k: int, *args: Any, **kwargs: Any
    ) -> dict[str, dict[str, float]]:
        """Return {query id: {document id: score}}.

        Parameters
        ----------
        corpus : mapping
            {document id: {"title": …, "text": …}}.
        queries : mapping of str to str
            The text of each query id.
        top_k : int
            The largest number of documents of each query.
        *args, **kwargs : object
            What BEIR passes for dense models; ignored.

        Examples
        --------
        >>> search = BeirSearch(TextRanker("bm25").fit({"d1": "red apples", "d2": "a pear"}))
        >>> list(search.search({"d3": {"title": "", "text": "apples"}}, {"q1": "apple"}, 10, "cos_sim")["q1"])
        ['d3']
        """
        self.ranker = _over(self.ranker, corpus)
        return self.ranker.run(queries, k=top_k)


class MtebSearch:
    """A text ranker as a search model of MTEB: `mteb.evaluate(MtebSearch.from_model(path), task)`.

    Parameters
    ----------
    ranker : TextRanker
        A fitted ranker. A corpus that is not that of its index is indexed.
    name : str, default="sparserank/text"
        The name of the model in MTEB's results.
    """

    def __init__(self, ranker: TextRanker, name: str = "sparserank/text") -> None:
        self.ranker, self.name = ranker, name

    @classmethod
    def from_model(cls, path: PathLike, index: PathLike | None = None, name: str = "sparserank/text") -> Self:
        """Load a model that `sparserank train` or `TextRanker.save` wrote.

        Parameters
        ----------
        path, index : path-like
            As in `BeirSearch.from_model`.
        name : str, default="sparserank/text"
            The name of the model in MTEB's results.
        """
        return cls(load_text(path, index), name)

    def index(self, corpus: Iterable[Mapping[str, Any]], **kwargs: Any) -> None:
        """Index a corpus, unless it is that of the ranker.

        Parameters
        ----------
        corpus : iterable of mappings
            Records with `id`, `text` and, optionally, `title`.
        **kwargs : object
            What MTEB says about the task; ignored.
        """
        docs = {one["id"]: {"title": one.get("title") or "", "text": one.get("text") or ""} for one in corpus}
        self.ranker = _over(self.ranker, docs)

    def search(
        self,
        queries: Iterable[Mapping[str, Any]],
        *,
        top_k: int,
        top_ranked: Mapping[str, list[str]] | None = None,
        **kwargs: Any,
    ) -> dict[str, dict[str, float]]:
        """Return {query id: {document id: score}}.

        Parameters
        ----------
        queries : iterable of mappings
            Records with `id` and `text`.
        top_k : int
            The largest number of documents of each query.
        top_ranked : mapping or None, default=None
            For a task of re-ranking: the documents of each query to score.
        **kwargs : object
            What MTEB says about the task; ignored.

        Examples
        --------
        >>> search = MtebSearch(TextRanker("bm25").fit({"d1": "red apples", "d2": "a pear"}))
        >>> search.index([{"id": "d3", "text": "apples"}, {"id": "d4", "text": "pears"}])
        >>> list(search.search([{"id": "q1", "text": "apple"}], top_k=10)["q1"])
        ['d3']
        """
        texts = {one["id"]: one["text"] for one in queries}
        if top_ranked is None:
            return self.ranker.run(texts, k=top_k)
        scores = {query: self.ranker.scores([text], top_ranked[query])[0].tolist() for query, text in texts.items()}
        return {query: dict(zip(top_ranked[query], scores[query], strict=True)) for query in texts}

    @property
    def mteb_model_meta(self) -> Any:
        """What MTEB's results say about the model."""
        from mteb.models import ModelMeta

        return ModelMeta.create_empty({"name": self.name, "revision": __version__, "model_type": ["sparse"]})


def _over(ranker: TextRanker, corpus: Mapping[str, Any]) -> TextRanker:
    """The ranker with an index of the corpus; the one that it has if the texts are the same."""
    docs = {key: {"title": one.get("title") or "", "text": one.get("text") or ""} for key, one in corpus.items()}
    if hasattr(ranker, "index_"):
        has = ranker.index_.documents.rows()
        if {key: (one["title"], one["text"]) for key, one in docs.items()} == {
            key: row[:2] for key, row in has.items()
        }:
            return ranker
    return ranker.over(Documents.of(docs))
