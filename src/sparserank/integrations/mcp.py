"""An MCP server: language models search, explain and look up related words over the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .. import __version__, validation
from ..data.files import PathLike
from ..errors import SparseRankError
from ..text_ranker import TextRanker
from .requirement import require
from .results import load_searcher

require("mcp", "2.0")

from mcp.server.mcpserver import MCPServer  # noqa: E402
from mcp.server.mcpserver.exceptions import ToolError  # noqa: E402

__all__ = ["create_server"]
MAX_RESULTS = 100
INSTRUCTIONS = (
    "Search a collection of documents. `search` finds documents, `document` returns the whole text of one, `explain` "
    "says which word pairs made its score, and `related` lists the document words that a query word looks for."
)


def create_server(model: TextRanker | PathLike, *, index: PathLike | None = None) -> MCPServer:
    """Return an MCP server of a model with the tools `search`, `document`, `explain` and `related`.

    Parameters
    ----------
    model : TextRanker or path-like
        A ranker with an index, or the model file.
    index : path-like or None, default=None
        The search index of the model file; None is the index beside it.

    Returns
    -------
    MCPServer
        `run()` answers on standard input and output.

    Examples
    --------
    >>> server = create_server(TextRanker("bm25").fit({"d1": "red apples"}))
    >>> server.name
    'sparserank'
    """
    ranker = model if isinstance(model, TextRanker) else load_searcher(model, index)
    tools = Tools(ranker)
    server = MCPServer("sparserank", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING")
    for tool in (tools.search, tools.document, tools.explain, tools.related):
        server.tool()(tool)
    return server


class Tools:
    """The tools of the server; their docstrings are what a language model reads.

    Parameters
    ----------
    ranker : TextRanker
        A ranker with an index.
    """

    def __init__(self, ranker: TextRanker) -> None:
        self.ranker = ranker

    def search(self, query: str, k: int = 10, filter: str | None = None) -> dict[str, Any]:
        """Find the best documents for a query, with their scores and the passages that match best.

        Parameters
        ----------
        query : str
            The query.
        k : int, default=10
            The largest number of documents, at most 100.
        filter : str or None, default=None
            Only documents with this metadata, such as: kind:function AND year>=2000
        """
        with _readable_errors():
            hits = self.ranker.search(query, validation.count("k", k, 1, MAX_RESULTS), filter=filter)
            explainer = self.ranker.explainer(query)
            results = [
                {**hit._asdict(), "text": explainer.passage(hit.id).text, "metadata": hit.metadata} for hit in hits
            ]
            return {"results": results, "unknown": self.ranker.unknown(query)}

    def document(self, id: str) -> dict[str, Any]:
        """Return the title, the whole text and the metadata of a document.

        Parameters
        ----------
        id : str
            The id of the document, as `search` returns it.
        """
        with _readable_errors():
            index = self.ranker.index_
            text = {"title": index.title_of(id), "text": index.text_of(id)}
            return {"id": id, **text, "metadata": index.metadata_of(id)}

    def explain(self, query: str, id: str) -> dict[str, Any]:
        """Explain the score of a document: what each pair of a query word and a document word adds to it.

        Parameters
        ----------
        query : str
            The query.
        id : str
            The id of the document.
        """
        with _readable_errors():
            return self.ranker.explain(query, id).to_dict()

    def related(self, word: str, k: int = 10) -> dict[str, Any]:
        """List the document words that a query word looks for, as the model learned, with their weights.

        Parameters
        ----------
        word : str
            A query word.
        k : int, default=10
            The largest number of words.
        """
        with _readable_errors():
            pairs = self.ranker.related(word, validation.count("k", k, 1, MAX_RESULTS))
            return {"word": word, "related": [{"word": other, "weight": weight} for other, weight in pairs]}


@contextmanager
def _readable_errors() -> Iterator[None]:
    """Let the language model read our errors; the library hides the text of others."""
    try:
        yield
    except SparseRankError as error:
        raise ToolError(str(error)) from None
