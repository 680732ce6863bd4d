"""sparserank mcp"""

from __future__ import annotations

from .arguments import IndexFile, ModelFile


def mcp(model: ModelFile, index: IndexFile = None) -> None:
    """Serve MODEL to language models over the Model Context Protocol, on standard input and output.

    An MCP client starts this command itself. The tools are search, document, explain and related.

    Example: sparserank mcp pydocs.safetensors
    """
    from ..integrations.mcp import create_server

    create_server(model, index=index).run()
