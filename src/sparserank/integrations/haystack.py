"""A Haystack retriever component."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from .. import validation
from ..data.files import PathLike
from ..text_ranker import TextRanker
from .filters import combine, comparison
from .requirement import require
from .results import MAX_EXPLAINED_PAIRS, find, load_searcher

require("haystack-ai", "2.0")

from haystack import Document, component, default_from_dict, default_to_dict  # noqa: E402

__all__ = ["SparseRankRetriever", "haystack_filter"]


@component
class SparseRankRetriever:
    """A text ranker as a Haystack component with the input `query` and the output `documents`.

    A pipeline stores the path of the model, not the model. The model is loaded by `warm_up`, or by the first query. A
    document has the id of the document, its `score`, and in `meta` its `id`, `title`, `score` and `explanation` beside
    its own metadata.

    Parameters
    ----------
    model : str
        A model file that `sparserank train` or `TextRanker.save` wrote.
    top_k : int, default=10
        The largest number of documents.
    filters : dict, str or None, default=None
        Only documents with this metadata: a filter of Haystack, or one of `TextRanker.search`.
    explain : int or None, default=5
        The number of word pairs in an explanation; None is all of them, and with 0 there is no explanation.
    index : str or None, default=None
        The search index; None is the index beside the model.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     TextRanker("bm25").fit({"d1": "red apples", "d2": "a pear"}).save(f"{folder}/m.safetensors")
    ...     (found,) = SparseRankRetriever.from_model(f"{folder}/m.safetensors").run("an apple")["documents"]
    >>> found.id, found.content
    ('d1', 'red apples')
    """

    def __init__(
        self,
        model: str,
        top_k: int = 10,
        filters: dict[str, Any] | str | None = None,
        explain: int | None = MAX_EXPLAINED_PAIRS,
        index: str | None = None,
    ) -> None:
        self.model, self.top_k, self.filters, self.explain, self.index = model, top_k, filters, explain, index
        self._ranker: TextRanker | None = None

    @classmethod
    def from_model(cls, path: PathLike, k: int = 10, *, index: PathLike | None = None, **settings: Any) -> Self:
        """Load a model that `sparserank train` or `TextRanker.save` wrote.

        Parameters
        ----------
        path : path-like
            The model file.
        k : int, default=10
            The largest number of documents, `top_k`.
        index : path-like or None, default=None
            The search index; None is the index beside the model.
        **settings : object
            More parameters of the component.
        """
        retriever = cls(
            str(path), validation.count("k", k, low=1), index=None if index is None else str(index), **settings
        )
        retriever.warm_up()
        return retriever

    def warm_up(self) -> None:
        """Load the model, unless it is loaded."""
        if self._ranker is None:
            self._ranker = load_searcher(self.model, self.index)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for the YAML file of a pipeline."""
        settings = {"filters": self.filters, "explain": self.explain, "index": self.index}
        return default_to_dict(self, model=self.model, top_k=self.top_k, **settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Make a component from what `to_dict` returned.

        Parameters
        ----------
        data : dict
            The parameters.
        """
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, top_k: int | None = None, filters: dict[str, Any] | str | None = None
    ) -> dict[str, list[Document]]:
        """Search.

        Parameters
        ----------
        query : str
            The query.
        top_k : int or None, default=None
            The largest number of documents; None is that of the component.
        filters : dict, str or None, default=None
            Replaces the filter of the component.
        """
        self.warm_up()
        assert self._ranker is not None
        given = self.filters if filters is None else filters
        text = haystack_filter(given) if isinstance(given, Mapping) and "operator" in given else given
        results = find(self._ranker, query, self.top_k if top_k is None else top_k, text or None, self.explain)
        documents = [Document(id=one.id, content=one.text, meta=one.metadata, score=one.score) for one in results]
        return {"documents": documents}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, top_k: int | None = None, filters: dict[str, Any] | str | None = None
    ) -> dict[str, list[Document]]:
        """Search in a thread.

        Parameters
        ----------
        query, top_k, filters : str, int or None, and filter
            As in `run`.
        """
        from asyncio import to_thread

        return await to_thread(self.run, query, top_k, filters)


def haystack_filter(filters: Mapping[str, Any]) -> str:
    """Return a filter of Haystack in the notation of `TextRanker.search`.

    Parameters
    ----------
    filters : mapping
        A comparison {"field", "operator", "value"}, or {"operator", "conditions"}. The name of a field may begin with
        "meta.".

    Examples
    --------
    >>> comparisons = [{"field": "meta.year", "operator": ">=", "value": 2000}]
    >>> haystack_filter({"operator": "AND", "conditions": comparisons})
    '("year">="2000")'
    """
    if "conditions" in filters:
        return combine(filters["operator"], [haystack_filter(one) for one in filters["conditions"]])
    return comparison(str(filters.get("field", "")).removeprefix("meta."), filters["operator"], filters.get("value"))
