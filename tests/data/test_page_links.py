"""Headings, links and mentions in texts."""

from __future__ import annotations

import pytest

from sparserank.data import Documents
from sparserank.data.page_links import iterate_links, iterate_mentions, split_headings


def links_of(docs):
    return [tuple(link) for link in iterate_links(Documents.of(docs))]


@pytest.mark.parametrize(
    "text",
    ["# Stable sorts #\nbody", "Stable sorts\n============\nbody", "<h2 class='x'>Stable <b>sorts</b></h2>\nbody"],
    ids=["markdown", "underlined", "html"],
)
def test_a_heading_is_taken_out_of_the_text(text):
    headings, rest = split_headings(text)
    assert headings == ["Stable sorts"]
    assert rest.split() == ["body"]


def test_a_row_of_dashes_without_a_line_above_is_no_heading():
    assert split_headings("one\n\n-----\ntwo")[0] == []


@pytest.mark.parametrize(
    "text",
    [
        "see [the guide](/docs/guide.html#top)", "see [[Long guide|the guide]]", '<a href="guide">the  guide</a>',
        "see [the guide](https://example.org/guide)",
    ],
    ids=["path", "wiki", "html", "address"],
)  # fmt: skip
def test_a_link_names_its_target_by_id_title_or_address(text):
    guide = {"title": "Long guide", "text": "x", "metadata": {"url": "http://example.org/guide"}}
    assert links_of({"a": text, "docs/guide": guide}) == [("a", "docs/guide", "the guide")]


def test_images_unknown_targets_and_links_to_the_page_itself_are_no_links():
    assert links_of({"a": "![x](b) [y](gone) [z](a)", "b": "x"}) == []


def test_a_name_of_two_pages_is_no_target():
    assert links_of({"a": "[x](guide)", "one/guide": "x", "two/guide": "y"}) == []


def test_links_in_fields_have_no_anchor():
    docs = {"a": {"text": "x", "see_also": ["b"]}, "b": {"text": "y", "metadata": {"related": "A"}}, "c": "z"}
    assert links_of(docs | {"a": docs["a"] | {"title": "A"}}) == [("a", "b", ""), ("b", "a", "")]


def test_a_common_word_is_a_mention_only_in_backticks():
    docs = {
        "1": {"title": "np.sort", "text": "sort them"},
        "2": {"title": "np.take", "text": "first `sort`, then take"},
    }
    assert [tuple(link)[:2] for link in iterate_mentions(Documents.of(docs))] == [("2", "1")]
