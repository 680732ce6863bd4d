"""Training queries without judgments: which queries a collection gives, and the documents without them."""

from __future__ import annotations

import pytest

from sparserank.data import Documents, training_queries
from sparserank.data.page_queries import MAX_LINKED, as_sources, split_opening, without_beginning
from sparserank.errors import ConfigError

PAGES = Documents.of(
    {
        "sort": {
            "title": "Sorting",
            "text": "Sorting: Put items in order. See [how to search](search).\n\n# Stable sorts\nx",
        },
        "search": {"title": "Searching", "text": "Find an item. It must be sorted.\n\n# Examples\ny"},
    }
)


def test_the_words_of_a_title_are_taken_out_of_its_page():
    made = training_queries(PAGES, "titles")["titles"]
    assert made.queries == {"sort": "Sorting", "search": "Searching"}
    assert made.qrels == {"sort": {"sort": 1.0}, "search": {"search": 1.0}}
    assert made.documents.titles == ("", "")
    assert made.documents.texts[0].startswith("Put items in order.")
    assert made.documents.texts[1] == PAGES.texts[1]


def test_a_text_without_a_title_gives_its_first_sentence():
    docs = Documents.of({"a": "Heat in slabs. A slab is heated. It cools."})
    made = training_queries(docs, ["titles", "openings"])
    assert made["titles"].queries == {"a": "Heat in slabs."}
    assert made["titles"].documents.texts == ("A slab is heated. It cools.",)
    assert made["openings"].queries == {"a": "A slab is heated."}


def test_the_first_sentence_is_taken_out_and_the_title_stays():
    made = training_queries(PAGES, "openings")["openings"]
    assert made.queries["search"] == "Find an item."
    assert made.documents.texts[1].startswith("It must be sorted.")
    assert made.documents.titles == PAGES.titles


def test_names_are_queries_for_their_pages_beside_the_others():
    made = training_queries(PAGES, "openings")["openings"].with_names()
    assert made.queries["sort#name"] == "Sorting"
    assert made.qrels["sort#name"] == {"sort": 1.0}
    titles = training_queries(PAGES, "titles")["titles"]
    assert titles.with_names().queries == titles.queries, "its documents have no titles"


def test_headings_of_many_pages_and_the_title_are_no_queries():
    docs = {str(n): {"title": f"Page {n}", "text": f"# Page {n}\n\n# Examples\n\n# About {n}\nx"} for n in range(9)}
    made = training_queries(Documents.of(docs), "headings")["headings"]
    assert sorted(made.queries.values()) == [f"About {n}" for n in range(9)]
    assert all("#" not in text for text in made.documents.texts)


def test_headings_of_one_page_share_its_weight_and_a_field_gives_headings():
    docs = Documents.of({"a": {"text": "some text", "headings": ["First part", "Second part"]}})
    made = training_queries(docs, "headings")["headings"]
    assert list(made.weights.values()) == [0.5, 0.5]
    assert made.documents.column("headings") == ("",)


def test_links_give_queries_for_linked_pages_and_anchor_texts_for_targets():
    made = training_queries(PAGES, "links")
    assert made["links"].queries == {"sort": "Put items in order."}
    assert made["links"].qrels == {"sort": {"search": 1.0}}
    assert made["links"].exclude_self
    assert list(made["anchors"].queries.values()) == ["how to search"]
    assert list(made["anchors"].qrels.values()) == [{"search": 1.0}]


def test_a_page_that_all_pages_link_to_is_relevant_to_none():
    docs = {f"p{n}": {"text": f"page {n} of many", "links": ["home", f"p{n + 1}"]} for n in range(MAX_LINKED + 1)}
    made = training_queries(Documents.of(docs | {"home": "start here"}), "links")["links"]
    assert made.qrels["p0"] == {"p1": 1.0}


def test_an_unknown_source_is_named():
    with pytest.raises(ConfigError, match=r"learn_from must be of titles, .*, clicks. Got 'headlines' instead."):
        as_sources("titles,headlines")
    with pytest.raises(ConfigError, match="source"):
        training_queries(PAGES, "judgments")


def test_a_long_sentence_and_a_text_without_blanks_are_cut():
    query, rest = split_opening("word " * 100)
    assert len(query.split()) == 16
    assert len(rest.split()) == 84
    query, rest = split_opening("整列。" + "並べ替え" * 100)
    assert query == "整列。"
    assert len(split_opening("並べ替え" * 100)[0]) == 160


@pytest.mark.parametrize("text", ["Sorting items", "SORTING-ITEMS", "Sort", ""])
def test_only_the_whole_title_is_removed_from_the_beginning(text):
    rest = without_beginning(text, "sorting items")
    assert rest == ("" if "items" in text.lower() else text)
