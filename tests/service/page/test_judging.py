"""The judging view: queries, grades, progress, and files that `sparserank train` and trec_eval read."""

from __future__ import annotations

import json
from pathlib import Path

import sparserank as sr
from sparserank.data.open import open_collection

from .browsing import expect, picture
from .world import world


def open_judging(page, *queries):
    page.click("nav >> text=Judge")
    page.fill("#new-queries", "\n".join(queries))
    page.click(".add-queries button")
    expect(page.locator(".to-judge h3")).to_have_text(queries[0])


def download(page, name):
    with page.expect_download() as found:
        page.get_by_role("button", name=f"Download {name}", exact=True).click()
    return found.value


def test_grades_are_stored_and_progress_is_shown(run, visits):
    running = run()
    page = visits.open(running.url)
    open_judging(page, "red car", "blue ship")
    expect(page.locator("[data-query='red car']")).to_have_text("red car0/10")
    page.click("label[for='grade-0-3']")
    page.click("label[for='grade-1--1']")
    expect(page.locator("[data-query='red car']")).to_have_text("red car2/10")
    expect(page.locator(".progress")).to_have_text("2 results judged, 0 of 2 queries complete")
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 2 sent.")
    picture(page, "judge")
    stored = [(one.kind, one.query, one.document, one.grade) for one in running.store.since(0)]
    ids = [one.id for one in sr.load(running.settings.model).search("red car", 2)]
    assert stored == [("judgment", "red car", ids[0], 3.0), ("judgment", "red car", ids[1], -1.0)]
    page.reload()  # what was judged and what is to be judged is still there
    expect(page.locator("[data-query='red car']")).to_have_text("red car2/10")
    expect(page.locator("[data-query='blue ship']")).to_be_visible()
    expect(page.locator("#grade-0-3")).to_be_checked()


def test_the_keys_0_to_3_grade_and_go_on(run, visits):
    running = run()
    page = visits.open(running.url)
    open_judging(page, "red car")
    page.focus("#grade-0--1")
    for key in "3210123012":
        page.keyboard.press(key)
    expect(page.locator("[data-query='red car']")).to_have_text("red car10/10 ✓")
    expect(page.locator(".progress")).to_contain_text("1 of 1 query complete")
    expect(page.locator("#feedback-status")).to_have_text("Thank you: 10 sent.")
    assert [one.grade for one in running.store.since(0)] == [3, 2, 1, -1, 1, 2, 3, -1, 1, 2]


def test_grades_are_exported_as_files_that_train_and_trec_eval_read(run, visits, tmp_path):
    running = run()
    page = visits.open(running.url)
    open_judging(page, "red car", "Blue  ship")
    page.click("label[for='grade-0-3']")
    page.click("label[for='grade-1--1']")
    page.click("[data-query='Blue  ship']")
    expect(page.locator(".to-judge h3")).to_have_text("Blue ship")
    page.click("label[for='grade-0-1']")
    page.click(".export summary")
    (tmp_path / "qrels").mkdir()
    download(page, "qrels.tsv").save_as(tmp_path / "qrels" / "train.tsv")
    download(page, "queries.jsonl").save_as(tmp_path / "queries.jsonl")
    documents = [json.dumps({"_id": name, **fields}) for name, fields in world()[0].items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(documents))
    read = open_collection(tmp_path)
    queries = {read.queries[query]: dict(graded) for query, graded in read.split("train").items()}
    assert queries["red car"] == {"automobile-red": 3, "boat-red": 0} or list(queries["red car"].values()) == [3, 0]
    assert list(queries["Blue  ship"].values()) == [1]
    rows = Path(download(page, "qrels.txt").path()).read_text().splitlines()
    assert [row.split()[1] for row in rows] == ["0"] * 3
    assert [row.split()[3] for row in rows] == ["3", "0", "1"]


def test_only_judging_asks_for_a_token_and_not_in_a_dialog(run, visits):
    visits.expected = "401"
    running = run()
    page = visits.open(f"{running.url}#")
    page.click("nav >> text=Judge")
    expect(page.locator(".ask-token")).to_contain_text("judging needs a token")
    assert page.locator("dialog[open]").count() == 0
    page.fill("#judge-token", "secret")
    page.keyboard.press("Enter")
    expect(page.locator("#new-queries")).to_be_visible()
    page.go_back()
    expect(page.locator("#welcome")).to_be_visible()


def test_queries_that_others_judged_are_listed_and_own_ones_can_be_removed(run, visits):
    running = run()
    page = visits.open(running.url)
    judged = {"id": "1", "kind": "judgment", "query": "gold bike", "document": "bicycle-gold", "grade": 2}
    page.request.post(f"{running.url}feedback", data=judged, headers={"Authorization": "Bearer secret"})
    open_judging(page, "red car")
    expect(page.locator(".query-list [data-query]")).to_have_count(2)
    expect(page.locator("[data-query='gold bike']")).to_have_text("gold bike1/1 ✓")
    page.click("button[aria-label='Remove red car']")
    expect(page.locator(".query-list [data-query]")).to_have_count(1)
