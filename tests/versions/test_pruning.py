"""Old versions are removed on request; the served one and what others need stay."""

from __future__ import annotations

import pytest

import sparserank as sr
from sparserank.errors import DataError
from sparserank.versions import VersionRegistry

from ..text_ranker.test_learning import world


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    path = tmp_path_factory.mktemp("trained") / "model"
    sr.TextRanker(max_pairs=200).fit(*world()).save(path)
    return path


@pytest.fixture
def versions(trained, tmp_path):
    for ending in ("", ".index"):
        (tmp_path / f"model{ending}").write_bytes(trained.with_name(f"model{ending}").read_bytes())
    registry = VersionRegistry.open(tmp_path / "model")
    for number in range(2, 7):
        registry.add(registry.load().set_pair("car", "boat", float(number)), f"version {number}")
    return registry


def files(versions) -> list[str]:
    return sorted(path.name for path in versions.folder.glob("0*"))


def test_the_newest_versions_and_their_root_stay(versions):
    versions.prune(2)
    assert [version.number for version in versions.list()] == [1, 5, 6]
    assert files(versions) == ["000001.index", "000001.safetensors", "000005.safetensors", "000006.safetensors"]
    assert versions.load().search("red car")
    assert versions.rollback(5).number == 5
    with pytest.raises(DataError, match="there is no version 3; the versions are: 1, 5, 6"):
        versions.rollback(3)
    reopened = VersionRegistry.open(versions.model)
    assert reopened.current().number == 5
    assert reopened.add(reopened.load(), "next").number == 7


def test_the_served_version_stays_however_old_it_is(versions):
    versions.rollback(2)
    versions.prune(1)
    assert [version.number for version in versions.list()] == [1, 2, 6]
    assert versions.current().number == 2


def test_what_was_served_at_a_time_is_the_next_version_that_is_left(versions):
    from datetime import datetime

    since = dict(versions._manifest().served)
    versions.prune(2)
    assert versions.served_at(datetime.fromisoformat(since[3])).number == 5
    assert versions.served_at(datetime.fromisoformat(since[6])).number == 6


def test_nothing_is_removed_where_there_is_nothing_old(versions):
    before = files(versions)
    versions.prune(10)
    assert files(versions) == before
