"""Words of scripts without blanks are marked in titles, passages, documents and in the judging view."""

from __future__ import annotations

import pytest

import sparserank as sr

from .browsing import expect, picture, search

DOCS = {
    "value": {"title": "CSS属性の値", "text": "この属性値は省略できる。属性の一覧と、性質。"},
    "data": {"title": "データ型", "text": "ﾃﾞｰﾀの型。大きいデータ。"},
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "japanese.safetensors"
    sr.TextRanker("bm25", analyzer="japanese").fit(DOCS).save(path)
    return path


def test_japanese_words_are_marked_in_titles_passages_documents_and_when_judged(service, visits):
    page = visits.open(service.url)
    search(page, "属性値 css")
    assert page.locator(".card .passage mark").all_inner_texts() == ["属性値", "属性"]
    assert page.locator(".card .title mark").all_inner_texts() == ["属性"], "the passage does not have CSS"
    picture(page, "japanese")
    page.click(".title")
    expect(page.locator(".full-text mark")).to_have_text(["属性値", "属性"])
    page.go_back()
    search(page, "データ")
    assert page.locator(".card .title mark").all_inner_texts() == ["データ"]
    page.click("nav >> text=Judge")
    page.fill("#new-queries", "属性値")
    page.click(".add-queries button")
    expect(page.locator(".to-judge .passage mark")).to_have_text(["属性値", "属性"])
