"""A LlamaIndex retriever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self

from ..data.files import PathLike
from ..data.records import Qrels
from ..search.filters import FilterLike
from ..text_ranker import TextRanker
from .filters import combine, comparison
from .requirement import require
from .results import MAX_EXPLAINED_PAIRS, FromModel, as_docs, find

require("llama-index-core", "0.12")

from llama_index.core.base.base_retriever import BaseRetriever  # noqa: E402
from llama_index.core.schema import BaseNode, NodeWithScore, QueryBundle, TextNode  # noqa: E402
from llama_index.core.vector_stores import MetadataFilters  # noqa: E402

__all__ = ["SparseRankRetriever", "metadata_filter"]
_HIDDEN = ["id", "score", "explanation"]
"""Metadata that neither a language model nor an embedding reads."""
_OPERATORS = {"nin": "not in", "any": "in", "contains": "=="}


class SparseRankRetriever(FromModel, BaseRetriever):
    """A text ranker as a LlamaIndex retriever: `retrieve`, `aretrieve`, and a part of any query engine.

    The `node_id` of a node is the id of the document. Its metadata has `id`, `title`, `score` and `explanation` beside
    the metadata of the document; prompts leave the explanation out.

    Parameters
    ----------
    ranker : TextRanker
        A ranker with an index. `from_model` loads it from a file.
    k : int, default=10
        The largest number of nodes.
    filter : str, mapping, MetadataFilters or None, default=None
        Only documents with this metadata, as in `TextRanker.search` or as filters of LlamaIndex.
    explain : int or None, default=5
        The number of word pairs in an explanation; None is all of them, and with 0 there is no explanation.
    **settings : object
        Parameters of LlamaIndex' `BaseRetriever`, such as `callback_manager`.

    Examples
    --------
    >>> ranker = TextRanker("bm25").fit({"d1": "red apples", "d2": "a pear"})
    >>> (found,) = SparseRankRetriever(ranker).retrieve("an apple")
    >>> found.node.node_id, found.text
    ('d1', 'red apples')
    """

    def __init__(
        self,
        ranker: TextRanker,
        k: int = 10,
        filter: FilterLike | MetadataFilters | None = None,
        explain: int | None = MAX_EXPLAINED_PAIRS,
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.ranker, self.k, self.explain = ranker, k, explain
        self.filter = metadata_filter(filter) if isinstance(filter, MetadataFilters) else filter

    @classmethod
    def from_nodes(
        cls,
        nodes: Iterable[BaseNode],
        queries: Mapping[str, str] | None = None,
        qrels: Qrels | None = None,
        *,
        ranker: TextRanker | None = None,
        **settings: Any,
    ) -> Self:
        """Train a ranker on nodes or documents of LlamaIndex.

        Parameters
        ----------
        nodes : iterable of BaseNode
            The nodes.
        queries, qrels : mapping, default=None
            As in `TextRanker.fit`, with node ids as document ids; without them the ranker is the lexical one.
        ranker : TextRanker or None, default=None
            The ranker to train; None is `TextRanker()`.
        **settings : object
            More parameters of the retriever.
        """
        docs = as_docs((node.node_id, node.get_content(), node.metadata) for node in nodes)
        return cls((TextRanker() if ranker is None else ranker).fit(docs, queries, qrels), **settings)

    def save(self, path: PathLike) -> None:
        """Write the model and its index, for `from_model`.

        Parameters
        ----------
        path : path-like
            The model file; the index is `PATH.index`.
        """
        self.ranker.save(path)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hidden = {"excluded_llm_metadata_keys": _HIDDEN, "excluded_embed_metadata_keys": _HIDDEN}
        return [
            NodeWithScore(node=TextNode(id_=one.id, text=one.text, metadata=one.metadata, **hidden), score=one.score)
            for one in find(self.ranker, query_bundle.query_str, self.k, self.filter, self.explain)
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        from asyncio import to_thread

        return await to_thread(self._retrieve, query_bundle)


def metadata_filter(filters: MetadataFilters) -> str:
    """Return filters of LlamaIndex in the notation of `TextRanker.search`.

    Parameters
    ----------
    filters : MetadataFilters
        The filters. An operator that compares texts loosely, such as TEXT_MATCH, raises FilterError.

    Examples
    --------
    >>> from llama_index.core.vector_stores import MetadataFilter
    >>> metadata_filter(MetadataFilters(filters=[MetadataFilter(key="year", value=2000, operator=">=")]))
    '("year">="2000")'
    """
    parts = []
    for one in filters.filters:
        if isinstance(one, MetadataFilters):
            parts.append(metadata_filter(one))
        else:
            operator = one.operator.value
            parts.append(comparison(one.key, _OPERATORS.get(operator, operator), one.value))
    return combine((filters.condition or "and").upper(), parts)
