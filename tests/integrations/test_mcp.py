"""The MCP server, by the client of the official SDK: in this process, and as the command over standard input."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from tests.test_docstrings import faults

mcp = pytest.importorskip("mcp", reason="mcp is not installed: pip install 'sparserank[integrations]'")

from sparserank.integrations.mcp import Tools, create_server  # noqa: E402

TOOLS = {"search", "document", "explain", "related"}


def call(server, *calls):
    """The structured results of calls (tool, arguments), in one session."""

    async def run():
        async with mcp.Client(server) as client:
            return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asyncio.run(run())


@pytest.fixture(scope="module")
def server(model):
    return create_server(model)


def test_the_client_lists_the_tools_with_what_they_are_for(server):
    async def listing():
        async with mcp.Client(server) as client:
            return (await client.list_tools()).tools, client.instructions

    tools, instructions = asyncio.run(listing())
    assert {tool.name for tool in tools} == TOOLS
    assert "related" in instructions
    search = next(tool for tool in tools if tool.name == "search")
    assert search.description.startswith("Find the best documents")
    assert search.input_schema["required"] == ["query"]
    for name in TOOLS:
        assert not faults(getattr(Tools, name))


def test_results_are_those_of_the_ranker(server, ranker):
    found, explained, related, document = call(
        server,
        ("search", {"query": "motor boat unheard", "k": 2}),
        ("explain", {"query": "motor boat", "id": "a"}),
        ("related", {"word": "motors"}),
        ("document", {"id": "a"}),
    )
    hits = ranker.search("motor boat unheard", 2)
    results = found.structured_content["results"]
    assert [(one["id"], one["score"]) for one in results] == [(hit.id, hit.score) for hit in hits]
    assert results[0]["metadata"] == hits[0].metadata
    assert found.structured_content["unknown"] == ["motor", "unheard"]
    assert explained.structured_content == ranker.explain("motor boat", "a").to_dict()
    words = related.structured_content["related"]
    assert [(one["word"], one["weight"]) for one in words] == ranker.related("motors", 10)
    assert document.structured_content["text"] == "car engine"
    assert document.structured_content["metadata"] == ranker.index_.metadata_of("a")


def test_filters_are_passed_through_and_mistakes_can_be_read(server):
    old, wrong, nowhere, many = call(
        server,
        ("search", {"query": "engine boat car", "filter": "year<2005"}),
        ("search", {"query": "engine", "filter": "unknown:1"}),
        ("explain", {"query": "engine", "id": "nowhere"}),
        ("search", {"query": "engine", "k": 1000}),
    )
    assert {one["id"] for one in old.structured_content["results"]} == {"a", "b"}
    for failed, said in ((wrong, "unknown"), (nowhere, "nowhere"), (many, "whole number in [1, 100]")):
        assert failed.is_error
        assert said in failed.content[0].text


def test_the_command_speaks_the_protocol_on_standard_output(model, ranker):
    from mcp import StdioServerParameters

    command = StdioServerParameters(
        command=sys.executable, args=["-m", "sparserank", "mcp", str(model)], env=dict(os.environ)
    )
    (found,) = call(command, ("search", {"query": "sweet"}))
    assert [one["id"] for one in found.structured_content["results"]] == [hit.id for hit in ranker.search("sweet")]


def test_a_wrong_model_is_one_line_and_exit_code_2(tmp_path):
    command = [sys.executable, "-m", "sparserank", "mcp", str(tmp_path / "no.safetensors")]
    done = subprocess.run(command, capture_output=True, text=True, input="")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "no.safetensors" in done.stderr
