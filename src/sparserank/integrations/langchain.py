"""LangChain retrievers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from ..data.files import PathLike
from ..data.records import Qrels
from ..search.filters import FilterLike
from ..text_ranker import TextRanker
from .fusion import Fusion
from .requirement import require
from .results import MAX_EXPLAINED_PAIRS, FromModel, as_docs, find

require("langchain-core", "0.3")

from langchain_core.callbacks import CallbackManagerForRetrieverRun  # noqa: E402
from langchain_core.documents import Document  # noqa: E402
from langchain_core.retrievers import BaseRetriever  # noqa: E402

__all__ = ["HybridRetriever", "SparseRankRetriever"]


class SparseRankRetriever(FromModel, BaseRetriever):
    """A text ranker as a LangChain retriever: `invoke`, `ainvoke`, `batch`, and a step of any chain.

    A document has the text in `page_content`, and in `metadata` its `id`, `title`, `score` and `explanation` beside its
    own metadata. `invoke(query, k=…, filter=…)` replaces k and the filter for one call.

    Parameters
    ----------
    ranker : TextRanker
        A ranker with an index. `from_model` loads it from a file.
    k : int, default=10
        The largest number of documents.
    filter : str, mapping or None, default=None
        Only documents with this metadata, as in `TextRanker.search`.
    explain : int or None, default=5
        The number of word pairs in an explanation; None is all of them, and with 0 there is no explanation.

    Examples
    --------
    >>> ranker = TextRanker("bm25").fit({"d1": "red apples", "d2": "a pear"})
    >>> (document,) = SparseRankRetriever(ranker=ranker).invoke("an apple")
    >>> document.page_content, document.metadata["id"]
    ('red apples', 'd1')
    """

    ranker: TextRanker
    k: int = 10
    filter: str | dict[str, Any] | None = None
    explain: int | None = MAX_EXPLAINED_PAIRS

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        queries: Mapping[str, str] | None = None,
        qrels: Qrels | None = None,
        *,
        ranker: TextRanker | None = None,
        **settings: Any,
    ) -> Self:
        """Train a ranker on LangChain documents.

        Parameters
        ----------
        documents : iterable of Document
            The documents. One without an id has the `id` in its metadata, or else its position.
        queries, qrels : mapping, default=None
            As in `TextRanker.fit`; without them the ranker is the lexical one.
        ranker : TextRanker or None, default=None
            The ranker to train; None is `TextRanker()`.
        **settings : object
            More parameters of the retriever.
        """
        docs = as_docs((one.id, one.page_content, one.metadata) for one in documents)
        return cls(ranker=(TextRanker() if ranker is None else ranker).fit(docs, queries, qrels), **settings)

    def save(self, path: PathLike) -> None:
        """Write the model and its index, for `from_model`.

        Parameters
        ----------
        path : path-like
            The model file; the index is `PATH.index`.
        """
        self.ranker.save(path)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        filter: FilterLike | None = None,
    ) -> list[Document]:
        results = find(
            self.ranker, query, self.k if k is None else k, self.filter if filter is None else filter, self.explain
        )
        return [Document(id=one.id, page_content=one.text, metadata=one.metadata) for one in results]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: Any, k: int | None = None, filter: FilterLike | None = None
    ) -> list[Document]:
        from asyncio import to_thread

        return await to_thread(
            self._get_relevant_documents, query, run_manager=run_manager.get_sync(), k=k, filter=filter
        )


class HybridRetriever(BaseRetriever):
    """Several LangChain retrievers as one: their rankings are fused.

    Documents are the same if their ids are: `metadata["id"]`, or else `id`, or else the text. A result has
    the fused `score` in its metadata; the rest comes from the first retriever that found it. A document without a
    `score` in its metadata, as vector stores return them, enters by its rank, also into a weighted fusion.

    Parameters
    ----------
    retrievers : list of BaseRetriever
        The retrievers, such as a `SparseRankRetriever` and that of a vector store.
    fusion : Fusion, default=Fusion()
        How to fuse; `fusion.tune_fusion` chooses it on judged queries.
    k : int, default=10
        The largest number of documents.
    """

    retrievers: list[BaseRetriever]
    fusion: Fusion = Fusion()
    k: int = 10

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        config = {"callbacks": run_manager.get_child()}
        return self._fuse([one.invoke(query, config=config) for one in self.retrievers])

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        from asyncio import gather

        config = {"callbacks": run_manager.get_child()}
        return self._fuse(await gather(*(one.ainvoke(query, config=config) for one in self.retrievers)))

    def _fuse(self, found: Sequence[Sequence[Document]]) -> list[Document]:
        documents = {_key(one): one for group in reversed(found) for one in reversed(group)}
        rankings = [{_key(one): _score(one, -n) for n, one in enumerate(group)} for group in found]
        best = list(self.fusion.fuse(rankings).items())[: self.k]
        copies = ((documents[key], score) for key, score in best)
        return [one.model_copy(update={"metadata": {**one.metadata, "score": score}}) for one, score in copies]


def _key(document: Document) -> str:
    return str(document.metadata.get("id") or document.id or document.page_content)


def _score(document: Document, order: float) -> float:
    """The score in the metadata; retrievers of vector stores have none, and their order counts."""
    score = document.metadata.get("score")
    return float(order if score is None else score)
