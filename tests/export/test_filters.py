"""Filters in the language of each engine: Qdrant runs them, and a reader of Elasticsearch's queries does."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from elasticsearch.dsl import Q
from qdrant_client.http import models
from qdrant_edge import (
    FieldCondition,
    Filter,
    IsEmptyCondition,
    MatchAny,
    MatchValue,
    Query,
    QueryRequest,
    RangeDateTime,
    RangeFloat,
    SparseVector,
)

import sparserank as sr
from sparserank.errors import ConfigError, FilterError
from sparserank.export import export, qdrant, query_body, synonyms, vectors_of

DOCS = {
    "a": {"kind": "pome", "n": 3, "ripe": True, "at": "2024-01-31", "a.b": "x", "tags": ["old", "red"]},
    "b": {"kind": "stone", "n": 2.5, "ripe": False, "at": ["2024-02-01T08:00:00", "2023-01-01"]},
    "c": {"kind": 'say "x"', "n": [1, 10], "at": "2024-01-31T23:00:00"},
    "d": {},
}
EVERYWHERE = [
    "kind:pome", 'kind:"say \\"x\\""', "n:3", "n>2.5", "n>=2.5 AND n<=3", "n:[2 TO 9]", "n<3",
    "NOT kind:pome", "kind:pome OR n:2.5", "NOT (kind:pome OR kind:stone)", "at<=2024-01-31", "at>2024-01-31",
    "at:[2024-01-31 TO 2024-01-31]", "at<2024-01-31T23:00:00",
]  # fmt: skip
"""Filters that all engines can express."""
NOT_IN_VESPA = ["n:*", "NOT ripe:*"]
BOOLEANS = ["ripe:true", "tags:red AND NOT ripe:false"]
"""Qdrant Edge for Python takes a boolean for a number, a server does not."""


@pytest.fixture(scope="module")
def ranker():
    return sr.TextRanker("bm25").fit({name: {"text": "fruit", "metadata": one} for name, one in DOCS.items()})


def ours(ranker, given):
    return {hit.id for hit in ranker.search("fruit", filter=given)}


# ---- Elasticsearch and OpenSearch


def lucene_matches(query, metadata):
    """Whether a document matches, as the documentation of the query DSL says."""
    [(kind, inner)] = query.items()
    if kind == "bool":
        should = inner.get("should")
        return (
            all(lucene_matches(part, metadata) for part in inner.get("filter", []))
            and not any(lucene_matches(part, metadata) for part in inner.get("must_not", []))
            and (should is None or any(lucene_matches(part, metadata) for part in should))
        )
    name = inner["field"] if kind == "exists" else next(iter(inner))
    found = metadata.get(name.removeprefix("metadata.").replace("%2E", "."), [])
    values = [typed(one) for one in (found if isinstance(found, list) else [found])]
    if kind == "exists":
        return bool(values)
    if kind == "terms":
        return any(value in [typed(one) for one in inner[name]] for value in values)
    tests = {"gte": "__ge__", "gt": "__gt__", "lte": "__le__", "lt": "__lt__"}
    assert kind == "range"
    return any(all(getattr(value, tests[end])(typed(one)) for end, one in inner[name].items()) for value in values)


def typed(value):
    """A number, a boolean, a text, or a time."""
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value if isinstance(value, bool | str) else float(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


@pytest.mark.parametrize("given", [*EVERYWHERE, *NOT_IN_VESPA, *BOOLEANS])
def test_lucene_engines_choose_the_same_documents(ranker, given):
    body = query_body(ranker, "elasticsearch", "fruit", filter=given)
    [chosen] = body["query"]["bool"]["filter"]
    assert Q(chosen).to_dict() == chosen  # the engine's own client reads it
    assert {name for name, one in DOCS.items() if lucene_matches(chosen, one)} == ours(ranker, given)
    plain = query_body(ranker, "elasticsearch", "fruit")
    assert body["query"]["bool"]["must"] == [plain["query"]]
    assert query_body(ranker, "opensearch", "fruit", filter=given)["query"]["bool"]["filter"] == [chosen]


@pytest.mark.parametrize(
    ("given", "ends"),
    [
        ("at<=9999-12-31", {"lte": "9999-12-31T23:59:59.999999+00:00"}),
        ("at>9999-12-31", {"gt": "9999-12-31T23:59:59.999999+00:00"}),
        ("at>=0001-01-01T00:00+14:00", {"gte": "0001-01-01T00:00:00+00:00"}),
        ("at<0001-01-01T00:00+14:00", {"lt": "0001-01-01T00:00:00+00:00"}),
    ],
)
def test_the_first_and_the_last_day_are_ends_of_a_range(ranker, given, ends):
    [chosen] = query_body(ranker, "elasticsearch", "fruit", filter=given)["query"]["bool"]["filter"]
    assert chosen == {"range": {"metadata.at": ends}}
    assert {name for name, one in DOCS.items() if lucene_matches(chosen, one)} == ours(ranker, given)
    assert query_body(ranker, "qdrant", "fruit", filter=given)["filter"]["must"][0]["range"] == ends


# ---- Qdrant


def edge_filter(given):
    """The same filter as objects of Qdrant Edge."""
    return Filter(**{name: [edge_condition(one) for one in parts] for name, parts in given.items()})


def edge_condition(given):
    if "is_empty" in given:
        return IsEmptyCondition(given["is_empty"]["key"])
    if "key" not in given:
        return edge_filter(given)
    if "match" in given:
        match = given["match"]
        return FieldCondition(given["key"], match=MatchAny(match["any"]) if "any" in match else MatchValue(**match))
    ends = given["range"]
    if any(isinstance(end, str) for end in ends.values()):
        return FieldCondition(given["key"], range=RangeDateTime(**ends))
    return FieldCondition(given["key"], range=RangeFloat(**ends))


def test_qdrant_finds_the_same_documents(ranker, tmp_path):
    vectors = vectors_of(ranker)
    shard = qdrant.make_shard(vectors, tmp_path / "shard")
    weights = vectors.query("fruit")
    nearest = Query.Nearest(SparseVector(list(weights), list(weights.values())), using=qdrant.NAME)
    for given in (*EVERYWHERE, *NOT_IN_VESPA):
        body = query_body(ranker, "qdrant", "fruit", filter=given)
        models.QueryRequest.model_validate(body)
        request = QueryRequest(limit=9, query=nearest, filter=edge_filter(body["filter"]), with_payload=True)
        assert {point.payload["id"] for point in shard.query(request)} == ours(ranker, given), given
    shard.close()
    boolean = query_body(ranker, "qdrant", "fruit", filter="ripe:true")["filter"]
    assert boolean == {"must": [{"key": "metadata.ripe", "match": {"value": True}}]}
    models.Filter.model_validate(boolean)


# ---- Vespa


@pytest.mark.parametrize(
    ("given", "condition"),
    [
        ("kind:pome", 'metadata_kind contains "pome"'),
        ('kind:"say \\"x\\""', 'metadata_kind contains "say \\"x\\""'),
        ({"kind": ["pome", "stone"]}, '(metadata_kind contains "pome" or metadata_kind contains "stone")'),
        ("n:3 AND ripe:true", "(metadata_n = 3.0 and metadata_ripe = true)"),
        ("n>2.5", '({bounds:"leftOpen"}range(metadata_n, 2.5, Infinity))'),
        ("n:[2 TO 9]", "range(metadata_n, 2.0, 9.0)"),
        ("NOT n:3", "(true and !(metadata_n = 3.0))"),
        ("at<=1970-01-02", '({bounds:"rightOpen"}range(metadata_at, -62135596800, 172800))'),
        ("at:1970-01-02", "metadata_at = 86400"),
    ],
)
def test_vespa_gets_conditions_of_yql(ranker, given, condition):
    plain, filtered = (query_body(ranker, "vespa", "fruit", filter=one)["yql"] for one in (None, given))
    assert filtered == f"{plain} and {condition}"


# ---- what cannot be said


@pytest.mark.parametrize(
    ("target", "given", "sentence"),
    [
        ("vespa", "kind:*", "filter: Vespa cannot test whether a document has a field; got 'kind':*"),
        ("vespa", "kind>pome", "filter: Vespa cannot compare texts by order; the field 'kind' is text"),
        ("qdrant", "kind>pome", "filter: Qdrant cannot compare texts by order; the field 'kind' is text"),
        ("qdrant", "n:many", "filter: the field 'n' is a number in the export; got 'many'"),
        ("vespa", "n<=1e400", "filter: the field 'n' is a number in the export; got '1e400'"),
        ("elasticsearch", "kind>3", "filter: 'kind' is text in the export and cannot be compared as a number or date"),
        ("elasticsearch", "ripe>a", "filter: 'ripe' is a boolean in the export and has no range"),
        (
            "qdrant",
            "knd:x",
            "filter: there is no field 'knd' at position 0; the fields are a.b, at, kind, n, ripe, tags",
        ),
    ],
)
def test_a_condition_that_an_engine_cannot_express_is_one_clear_line(ranker, target, given, sentence):
    with pytest.raises(FilterError) as caught:
        query_body(ranker, target, "fruit", filter=given)
    assert str(caught.value) == sentence


def test_a_target_without_filters_says_so(ranker):
    with pytest.raises(ConfigError, match="requests for trec have no filter; those for elasticsearch, opensearch"):
        query_body(ranker, "trec", "fruit", filter="kind:pome")


@pytest.mark.parametrize("target", ["elasticsearch", "qdrant", "vespa"])
def test_a_folder_has_filtered_requests(ranker, target, tmp_path):
    export(ranker, target, tmp_path / "made", {"q": "fruit"}, filter="kind:pome")
    made = (tmp_path / "made" / "query.json").read_text()
    assert "pome" in made
    assert "pome" in (tmp_path / "made" / "queries.jsonl").read_text()


def test_requests_for_an_engine_with_synonym_rules_have_the_filter_too(ranker):
    [chosen] = query_body(ranker, "elasticsearch", "fruit", filter="kind:pome")["query"]["bool"]["filter"]
    assert synonyms.body("fruit", 10, chosen)["query"] == {
        "bool": {"must": [{"match": {"content": {"query": "fruit"}}}], "filter": [chosen]}
    }
