"""Search results as the other libraries want them: text, score and flat metadata with an explanation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from .. import validation
from ..data.files import PathLike
from ..search.filters import FilterLike
from ..text_ranker import TextRanker, load_text

MAX_EXPLAINED_PAIRS = 5
"""The pairs in the explanation of a result, by default."""


@dataclass(frozen=True)
class Result:
    """A document that a search found.

    Parameters
    ----------
    id : str
        The document.
    score : float
        Its score.
    text : str
        Its text, or its title if it has no text.
    metadata : dict
        The metadata of the document, and its `id`, `title`, `score` and `explanation`, which replace fields of the same
        names. The explanation is a list of {"query", "document", "contribution", "learned"}, the largest first.
    """

    id: str
    score: float
    text: str
    metadata: dict[str, Any]


def load_searcher(path: PathLike, index: PathLike | None = None) -> TextRanker:
    """Load a text ranker that can search; raises NotFitted if it has no index."""
    ranker = load_text(path, index)
    ranker.search("", 1)
    return ranker


class FromModel:
    """A retriever that is made from a ranker and the number of its results; its files are those of the ranker."""

    ranker: TextRanker

    @classmethod
    def from_model(cls, path: PathLike, k: int = 10, *, index: PathLike | None = None, **settings: Any) -> Self:
        """Load a model that `sparserank train` or `TextRanker.save` wrote.

        Parameters
        ----------
        path : path-like
            The model file.
        k : int, default=10
            The largest number of results of a search.
        index : path-like or None, default=None
            The search index; None is the index beside the model.
        **settings : object
            More parameters of the retriever.
        """
        validation.count("k", k, low=1)
        return cls(ranker=load_searcher(path, index), k=k, **settings)  # type: ignore[call-arg]


def find(
    ranker: TextRanker, text: str, k: int, filter: FilterLike | None = None, explain: int | None = MAX_EXPLAINED_PAIRS
) -> list[Result]:
    """Search, and explain each result.

    Parameters
    ----------
    ranker : TextRanker
        A ranker with an index.
    text, k, filter : str, int and filter
        As in `TextRanker.search`.
    explain : int or None, default=5
        The number of pairs in an explanation; None is all of them, and with 0 there is no explanation.

    Examples
    --------
    >>> ranker = TextRanker("bm25").fit({"d1": {"text": "red apples", "metadata": {"year": 1999}}, "d2": "a pear"})
    >>> (result,) = find(ranker, "apple", 10)
    >>> result.id, result.text, result.metadata["year"], result.metadata["explanation"][0]["query"]
    ('d1', 'red apples', 1999, 'appl')
    """
    validation.count("k", k, low=1)
    n_pairs = None if explain is None else validation.count("explain", explain)
    explainer = ranker.explainer(text)
    results = []
    for hit in ranker.search(text, k, filter=filter):
        metadata = {**hit.metadata, "id": hit.id, "title": hit.title, "score": hit.score}
        if n_pairs != 0:
            metadata["explanation"] = [
                {"query": query, "document": document, "contribution": contribution, "learned": learned}
                for query, document, contribution, learned in explainer.top(hit.id, n_pairs).pairs
            ]
        results.append(Result(hit.id, hit.score, ranker.index_.text_of(hit.id) or hit.title, metadata))
    return results


def as_docs(records: Iterable[tuple[str | None, str, Mapping[str, Any]]]) -> dict[str, dict[str, Any]]:
    """Return (id, text, metadata) of documents of another library as the documents of `TextRanker.fit`.

    The `title` in the metadata becomes the title. A document without an id gets its `id` in the metadata, or else its
    position.

    Examples
    --------
    >>> as_docs([(None, "red apples", {"title": "Fruit", "year": 1999})])
    {'0': {'title': 'Fruit', 'text': 'red apples', 'metadata': {'year': 1999}}}
    """
    docs = {}
    for number, (doc_id, text, metadata) in enumerate(records):
        own = {name: value for name, value in metadata.items() if name not in ("id", "title", "score", "explanation")}
        title = metadata.get("title") or ""
        docs[str(doc_id or metadata.get("id", number))] = {"title": str(title), "text": text, "metadata": own}
    return docs
