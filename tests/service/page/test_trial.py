"""A candidate on trial in the model view, and links between collections."""

from __future__ import annotations

import shutil

import pytest

from sparserank.service.config import CollectionConfig
from sparserank.service.interleaving import Tally
from sparserank.versions import VersionRegistry
from sparserank.versions.trials import current_trial, start_trial

from .browsing import Running, ServiceConfig, expect, search


@pytest.fixture
def trial(run, tmp_path):
    """A service with a candidate that was never served, and two visitors who preferred it."""
    _ = Tally(1).p_value  # imports scipy.stats, which takes long on a busy machine
    running = run(tokens={"judge": "the-token-of-a-judge"})
    registry = VersionRegistry.open(running.settings.model)
    registry.load().set_pair("car", "boat", 50.0).save(tmp_path / "candidate.safetensors")
    start_trial(registry, tmp_path / "candidate.safetensors", share=1.0)
    return running, registry


def visit(page, url: str, number: int) -> None:
    """A visitor who looks for a car and follows the boat, which the candidate found."""
    token = {"Authorization": "Bearer secret"}
    query = ("red car", "blue car")[number]
    found = page.request.post(f"{url}search", data={"query": query, "k": 5}).json()
    shown = [one["id"] for one in found["results"]]
    boat = next(one for one in shown if one.startswith("boat"))
    click = {"id": f"visit-{number}", "kind": "click", "query": query, "document": boat, "shown": shown,
             "impression": found["impression"], "visitor": f"visitor-{number}"}  # fmt: skip
    assert page.request.post(f"{url}feedback", data=click, headers=token).json()["counted"]


def open_model(visits, running, token: str):
    visits.expected = "401|403"
    page = visits.open(f"{running.url}?view=model#token={token}")
    expect(page.locator(".trial")).to_be_visible()
    return page


def test_the_trial_shows_its_figures_and_a_candidate_has_no_second_button(trial, visits):
    running, _ = trial
    page = visits.open(f"{running.url}?view=model#token=secret")
    page.wait_for_function("() => fetch('model').then(got => got.json()).then(found => found.trial)")
    for number in range(2):
        visit(page, running.url, number)
    page.reload()
    expect(page.locator(".trial h3")).to_have_text("Version 2 is on trial")
    expect(page.locator(".trial")).to_contain_text("It takes part in 100 % of the searches")
    expect(page.locator(".trial")).to_contain_text("Users preferred it in 2 of 2 searches that had a winner: 100 %")
    expect(page.locator(".versions > li")).to_have_count(2)
    expect(page.locator(".versions .restore")).to_have_count(0)
    page.click("text=End the trial")
    expect(page.locator(".trial")).to_have_count(0)
    expect(page.locator(".versions .restore")).to_have_text("Serve again")


def test_serve_it_needs_an_administrator_and_keeps_the_result(trial, visits):
    running, registry = trial
    page = open_model(visits, running, "")
    page.click("text=Serve it")
    expect(page.locator("#token")).to_contain_text("administrator")
    page.fill("#token-input", "secret")
    page.keyboard.press("Enter")
    expect(page.locator(".trial")).to_have_count(0)
    expect(page.locator(".versions .current h3")).to_have_text("Version 2")
    assert registry.current().check["interleaving"]["wins"] == 0


def test_a_judge_cannot_end_a_trial_and_an_administrator_can(trial, visits):
    running, registry = trial
    page = open_model(visits, running, "the-token-of-a-judge")
    page.click("text=End the trial")
    expect(page.locator("#token-input")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".trial")).to_be_visible()
    assert current_trial(registry).version == 2
    page.click("text=End the trial")
    page.fill("#token-input", "secret")
    page.keyboard.press("Enter")
    expect(page.locator(".trial")).to_have_count(0)
    assert (current_trial(registry), registry.current().number) == (None, 1)


def test_a_link_to_another_collection_keeps_the_query(model, visits, tmp_path):
    collections = []
    for name in ("here", "there"):
        shutil.copytree(model.parent, tmp_path / name)
        collections.append(CollectionConfig(name, str(tmp_path / name / model.name)))
    running = Running(ServiceConfig("", token="secret", learn=False, collections=tuple(collections))).start()
    page = visits.open(f"{running.url}here/#token=secret")
    search(page, "red & blue car")
    expect(page.locator("#collections a[aria-current=true]")).to_have_text("here")
    page.click("#collections >> text=there")
    expect(page.locator("#results")).to_have_attribute("data-query", "red & blue car")
    expect(page.locator("#collections a[aria-current=true]")).to_have_text("there")
    assert page.url.startswith(f"{running.url}there/")
    running.stop()
