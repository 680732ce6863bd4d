"""One contract for the retrievers of LangChain, LlamaIndex and Haystack: the results of `TextRanker.search`."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from sparserank.errors import ConfigError, FilterError, ModelError, NotFitted, NotInstalled
from sparserank.integrations.filters import comparison
from sparserank.integrations.requirement import require
from sparserank.integrations.results import find
from tests.test_docstrings import faults

from .conftest import TEXTS

PACKAGES = {"langchain": "langchain_core", "llamaindex": "llama_index.core", "haystack": "haystack"}
PIP = {"langchain": "langchain-core", "llamaindex": "llama-index-core", "haystack": "haystack-ai"}


class Found(NamedTuple):
    id: str
    score: float
    text: str
    metadata: dict[str, Any]


def langchain(retriever: Any, query: str, wait: bool = False, **options: Any) -> list[Found]:
    call = (lambda *a, **b: asyncio.run(retriever.ainvoke(*a, **b))) if wait else retriever.invoke
    documents = call(query, **options)
    return [Found(one.id, one.metadata["score"], one.page_content, one.metadata) for one in documents]


def llamaindex(retriever: Any, query: str, wait: bool = False) -> list[Found]:
    nodes = asyncio.run(retriever.aretrieve(query)) if wait else retriever.retrieve(query)
    return [Found(one.node.node_id, one.score, one.node.text, one.node.metadata) for one in nodes]


def haystack(retriever: Any, query: str, wait: bool = False, **options: Any) -> list[Found]:
    out = asyncio.run(retriever.run_async(query, **options)) if wait else retriever.run(query, **options)
    return [Found(one.id, one.score, one.content, one.meta) for one in out["documents"]]


SEARCH: dict[str, Callable[..., list[Found]]] = {"langchain": langchain, "llamaindex": llamaindex, "haystack": haystack}
FILTER = {"langchain": "filter", "llamaindex": "filter", "haystack": "filters"}


def missing(module: str) -> str:
    package = {PACKAGES[library]: PIP[library] for library in PACKAGES}[module]
    return f"{package} is not installed: pip install 'sparserank[integrations]'"


@pytest.fixture(params=list(SEARCH), scope="module")
def library(request: pytest.FixtureRequest) -> str:
    pytest.importorskip(PACKAGES[request.param], reason=missing(PACKAGES[request.param]))
    return request.param


@pytest.fixture(scope="module")
def retriever_class(library: str) -> Any:
    return importlib.import_module(f"sparserank.integrations.{library}").SparseRankRetriever


def test_results_are_those_of_search(library, retriever_class, ranker, model):
    retriever = retriever_class.from_model(model, k=3)
    for query in TEXTS:
        hits = ranker.search(query, 3)
        found = SEARCH[library](retriever, query)
        assert [(one.id, one.score) for one in found] == [(hit.id, hit.score) for hit in hits], query
        assert [one.text for one in found] == [ranker.index_.text_of(hit.id) for hit in hits]
    assert len(SEARCH[library](retriever_class.from_model(model), "engine boat car")) == 3
    assert len(SEARCH[library](retriever_class.from_model(model, k=1), "engine boat car")) == 1


def test_metadata_has_id_title_score_and_an_explanation_that_sums_to_the_score(library, retriever_class, ranker, model):
    (found, *_) = SEARCH[library](retriever_class.from_model(model, explain=None), "motor engine")
    assert found.metadata["id"] == found.id
    assert found.metadata["title"] == found.id.upper()
    assert found.metadata["year"] in (1990, 2000, 2010, 2020)
    pairs = found.metadata["explanation"]
    assert sum(pair["contribution"] for pair in pairs) == pytest.approx(found.score, rel=1e-6)
    assert {pair["learned"] for pair in pairs} == {True, False}
    assert ("motor", "engin") in {(pair["query"], pair["document"]) for pair in pairs}
    (one, *_) = SEARCH[library](retriever_class.from_model(model, explain=1), "motor engine")
    assert one.metadata["explanation"] == pairs[:1]
    (none, *_) = SEARCH[library](retriever_class.from_model(model, explain=0), "motor engine")
    assert "explanation" not in none.metadata


@pytest.mark.parametrize("filter", ["year<2005", {"year": {"<": 2005}}])
def test_filters_are_those_of_search(library, retriever_class, model, filter):
    retriever = retriever_class.from_model(model, **{FILTER[library]: filter})
    assert {one.id for one in SEARCH[library](retriever, "engine boat car")} == {"a", "b"}
    with pytest.raises(FilterError, match="unknown"):
        SEARCH[library](retriever_class.from_model(model, **{FILTER[library]: "unknown:1"}), "engine")


def test_async_search_returns_the_same(library, retriever_class, model):
    retriever = retriever_class.from_model(model)
    assert SEARCH[library](retriever, "ship car", wait=True) == SEARCH[library](retriever, "ship car")


def test_a_wrong_model_or_k_is_one_clear_error(library, retriever_class, ranker, model, tmp_path):
    with pytest.raises(ConfigError, match="'k' parameter must be a whole number"):
        retriever_class.from_model(model, k=0)
    assert "index" in inspect.signature(retriever_class.from_model).parameters
    (tmp_path / "no.safetensors").write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"no\.safetensors"):
        retriever_class.from_model(tmp_path / "no.safetensors")
    (tmp_path / "alone.safetensors").write_bytes(model.read_bytes())
    with pytest.raises(NotFitted, match="no index"):
        retriever_class.from_model(tmp_path / "alone.safetensors")


def test_every_public_function_and_method_describes_its_parameters(library, retriever_class):
    module = importlib.import_module(f"sparserank.integrations.{library}")
    for owner in (module, retriever_class):
        for value in (getattr(owner, name) for name in vars(owner) if not name.startswith("_")):
            if inspect.isroutine(value) and value.__module__ == module.__name__:
                assert not faults(value), value


def test_native_filters_match_like_those_of_haystack():
    haystack = pytest.importorskip(
        "haystack", reason="haystack-ai is not installed: pip install 'sparserank[integrations]'"
    )
    from haystack.utils.filters import document_matches_filter

    from sparserank import TextRanker
    from sparserank.integrations.haystack import haystack_filter

    meta = {"a": {"year": 1990, "kind": 'a "b\\c'}, "b": {"year": 2000, "kind": "x"}, "c": {"year": 2010}}
    ranker = TextRanker("bm25").fit({key: {"text": "word", "metadata": value} for key, value in meta.items()})
    comparisons = [
        {"field": "meta.year", "operator": operator, "value": 2000} for operator in ("==", "!=", ">", ">=", "<", "<=")
    ]
    comparisons += [{"field": "meta.kind", "operator": operator, "value": 'a "b\\c'} for operator in ("==", "!=")]
    comparisons += [{"field": "meta.year", "operator": name, "value": [1990, 2010]} for name in ("in", "not in")]
    comparisons += [{"field": "kind", "operator": operator, "value": None} for operator in ("==", "!=")]
    nested = [{"operator": name, "conditions": comparisons[2:9:3]} for name in ("AND", "OR", "NOT")]
    for one in comparisons + nested + [{"operator": "OR", "conditions": nested}]:
        expected = {key for key, value in meta.items() if document_matches_filter(one, haystack.Document(meta=value))}
        assert {hit.id for hit in ranker.search("word", filter=haystack_filter(one))} == expected, one


def test_filters_of_llamaindex():
    pytest.importorskip(
        "llama_index.core", reason="llama-index-core is not installed: pip install 'sparserank[integrations]'"
    )
    from llama_index.core.vector_stores import MetadataFilter, MetadataFilters

    from sparserank import TextRanker
    from sparserank.integrations.llamaindex import SparseRankRetriever, metadata_filter

    meta = {"a": {"year": 1990, "tags": ["x", "y"]}, "b": {"year": 2000, "tags": ["y"]}, "c": {"year": 2010}}
    ranker = TextRanker("bm25").fit({key: {"text": "word", "metadata": value} for key, value in meta.items()})

    def found(*filters: tuple[str, str, Any], condition: str = "and") -> set[str]:
        parts = [MetadataFilter(key=key, operator=operator, value=value) for key, operator, value in filters]
        given = MetadataFilters(filters=[MetadataFilters(filters=parts, condition=condition)])
        return {one.node.node_id for one in SparseRankRetriever(ranker, filter=given).retrieve("word")}

    assert found(("year", ">=", 2000), ("year", "<", 2010)) == {"b"}
    assert found(("year", "==", 1990), ("year", "==", 2010), condition="or") == {"a", "c"}
    assert found(("year", "==", 1990), condition="not") == {"b", "c"}
    assert found(("tags", "any", ["x", "z"])) == {"a"}
    assert found(("tags", "all", ["x", "y"])) == {"a"}
    assert found(("tags", "contains", "y")) == {"a", "b"}
    assert found(("tags", "is_empty", None)) == {"c"}
    assert found(("year", "nin", [1990, 2000])) == {"c"}
    with pytest.raises(FilterError, match="'text_match' of 'year' is not supported"):
        metadata_filter(MetadataFilters(filters=[MetadataFilter(key="year", operator="text_match", value="2")]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("year", "in", []), "needs a list of values"),
        (("year", "==", {"a": 1}), "a value must be text, a number"),
        (("year", "~", 1), "'~' of 'year' is not supported"),
    ],
)
def test_a_wrong_comparison_raises_a_filter_error(arguments, message):
    with pytest.raises(FilterError, match=message):
        comparison(*arguments)


def test_a_missing_or_old_package_is_one_line_with_the_command():
    with pytest.raises(NotInstalled) as error:
        require("no-such-package", "1.5")
    assert str(error.value) == (
        "this needs no-such-package 1.5 or newer, which is not installed; "
        "install it with: pip install 'no-such-package>=1.5'"
    )
    with pytest.raises(NotInstalled, match=r"found \d.*pip install 'numpy>=99'"):
        require("numpy", "99")
    assert issubclass(NotInstalled, ImportError)


def test_own_fields_win_over_metadata_of_the_same_name():
    from sparserank import TextRanker

    (one,) = find(TextRanker("bm25").fit({"d": {"text": "word", "metadata": {"id": "other", "score": 9}}}), "word", 5)
    assert one.metadata["id"] == "d"
    assert one.metadata["score"] == one.score


# ---- what only one library has


def test_langchain_k_and_filter_of_one_call_and_a_chain(model):
    core = pytest.importorskip("langchain_core", reason=missing("langchain_core"))
    from langchain_core.runnables import RunnableLambda

    from sparserank.integrations.langchain import SparseRankRetriever

    retriever = SparseRankRetriever.from_model(model)
    assert [one.id for one in langchain(retriever, "engine car", k=1, filter="year>=2000")] == ["d"]
    assert [one.id for one in langchain(retriever, "engine car", wait=True, k=1, filter="year>=2000")] == ["d"]
    chain = retriever | RunnableLambda(lambda documents: [one.metadata["id"] for one in documents])
    assert chain.batch(["plum", "boat car"]) == [["c"], ["d", "b", "a"]], core.__version__


def test_langchain_documents_train_a_ranker_that_is_saved_as_our_files(tmp_path):
    pytest.importorskip("langchain_core", reason=missing("langchain_core"))
    from langchain_core.documents import Document

    from sparserank.integrations.langchain import SparseRankRetriever

    documents = [
        Document(id="d1", page_content="red apples", metadata={"title": "Fruit", "year": 1999}),
        Document(page_content="a pear", metadata={"id": "d2"}),
        Document(page_content="an apple pie"),
    ]
    retriever = SparseRankRetriever.from_documents(documents, k=2)
    found = retriever.invoke("apple")
    assert {one.metadata["id"] for one in found} == {"d1", "2"}
    retriever.save(tmp_path / "m.safetensors")
    assert SparseRankRetriever.from_model(tmp_path / "m.safetensors", k=2).invoke("apple") == found
    for file in tmp_path.iterdir():
        with pytest.raises((pickle.UnpicklingError, ValueError, EOFError, IndexError, KeyError)):
            pickle.loads(file.read_bytes())


def test_llamaindex_nodes_train_a_ranker_and_prompts_leave_the_explanation_out(tmp_path):
    pytest.importorskip("llama_index.core", reason=missing("llama_index.core"))
    from llama_index.core.schema import Document, MetadataMode, TextNode

    from sparserank.integrations.llamaindex import SparseRankRetriever

    nodes = [TextNode(id_="d1", text="red apples", metadata={"year": 1999}), Document(id_="d2", text="a pear")]
    retriever = SparseRankRetriever.from_nodes(nodes)
    retriever.save(tmp_path / "m.safetensors")
    (found,) = SparseRankRetriever.from_model(tmp_path / "m.safetensors").retrieve("apple")
    assert found.node.node_id == "d1"
    prompt = found.node.get_content(metadata_mode=MetadataMode.LLM)
    assert "year: 1999" in prompt
    assert "explanation" not in prompt


def test_a_haystack_pipeline_stores_the_path_of_the_model(model):
    pytest.importorskip("haystack", reason=missing("haystack"))
    from haystack import Pipeline

    from sparserank.integrations.haystack import SparseRankRetriever

    pipeline = Pipeline()
    pipeline.add_component("search", SparseRankRetriever(str(model), top_k=2, filters="year<2015"))
    text = pipeline.dumps()
    assert str(model) in text
    again = Pipeline.loads(text, allowed_modules=["sparserank.integrations.haystack"])
    asked = {"search": {"query": "engine boat car"}}
    assert [one.id for one in again.run(asked)["search"]["documents"]] == ["b", "a"]
    asked["search"] |= {"top_k": 1, "filters": {"field": "meta.year", "operator": ">", "value": 2015}}
    assert [one.id for one in again.run(asked)["search"]["documents"]] == ["d"]
