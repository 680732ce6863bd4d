"""The version registry keeps every version, serves one, and survives crashes and damaged files."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import sparserank as sr
from sparserank.errors import DataError, ModelError
from sparserank.versions import VersionRegistry

from ..text_ranker.test_learning import world


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model file with its index, to be copied."""
    folder = tmp_path_factory.mktemp("trained")
    sr.TextRanker(max_pairs=200).fit(*world()).save(folder / "model")
    return folder


@pytest.fixture
def model(trained, tmp_path):
    for name in ("model", "model.index"):
        shutil.copy(trained / name, tmp_path / name)
    return tmp_path / "model"


def add_version(versions, weight=2.0, **about):
    """One more version: the served one with one pair set."""
    ranker = versions.load().set_pair("car", "boat", weight)
    return versions.add(ranker, f"car looks for boat: {weight}", {"held_out": [0.5, 0.6]}, **about)


def weight_of(ranker):
    return ranker.model_.named_pairs().get(("car", "boat"), 0.0)


def test_the_model_becomes_version_1_when_it_is_first_opened(model):
    versions = VersionRegistry.open(model)
    (only,) = versions.list()
    assert only == versions.current()
    assert (only.number, only.parent, only.learned_through, only.index) == (1, None, 0, None)
    assert only.pairs == sr.load(model).model_.n_pairs
    assert versions.path(1).read_bytes() == model.read_bytes()
    assert versions.load().search("red car") == sr.load(model).search("red car")
    assert datetime.fromisoformat(only.made).tzinfo is not None


def test_opening_again_changes_nothing(model):
    before = VersionRegistry.open(model).stamp()
    assert VersionRegistry.open(model).stamp() == before


def test_a_version_that_is_added_is_served_and_keeps_what_was_said_about_it(model):
    versions = VersionRegistry.open(model)
    before = versions.stamp()
    made = add_version(versions, learned_through=17)
    assert versions.stamp() != before
    assert (made.number, made.parent, made.learned_through) == (2, 1, 17)
    again = VersionRegistry.open(model)
    assert again.current() == made
    assert again.current().check == {"held_out": [0.5, 0.6]}
    assert weight_of(again.load()) == pytest.approx(2.0)
    assert weight_of(again.load(1)) == pytest.approx(weight_of(sr.load(model)))


def test_another_process_sees_a_new_version_by_its_stamp(model):
    versions, other = VersionRegistry.open(model), VersionRegistry.open(model)
    before = other.stamp()
    add_version(versions)
    assert other.stamp() != before
    assert other.current().number == 2


def test_rollback_goes_to_the_parent_or_to_any_other_and_keeps_every_file(model):
    versions = VersionRegistry.open(model)
    add_version(versions, 1.0)
    add_version(versions, 2.0)
    files = {path: path.read_bytes() for path in versions.folder.glob("*.safetensors")}
    assert versions.rollback().number == 2
    assert versions.rollback(3).number == 3
    assert versions.rollback(1).number == 1
    assert versions.current().number == 1
    with pytest.raises(DataError, match="version 1 has no parent to go back to"):
        versions.rollback()
    with pytest.raises(DataError, match="there is no version 9; the versions are: 1, 2, 3"):
        versions.rollback(9)
    assert {path: path.read_bytes() for path in versions.folder.glob("*.safetensors")} == files
    assert add_version(versions, 3.0).parent == 1, "what comes after a rollback is learned from what is served"


def test_going_back_to_the_version_that_is_served_changes_nothing(model):
    versions = VersionRegistry.open(model)
    before = versions.stamp()
    assert versions.rollback(1).number == 1
    assert versions.stamp() == before


def test_what_was_learned_from_a_version_that_is_no_longer_served_is_not_added(model):
    versions = VersionRegistry.open(model)
    add_version(versions)
    ranker = versions.load()
    versions.rollback()
    with pytest.raises(DataError, match="version 1 is served now, not version 2"):
        versions.add(ranker, "late", parent=2)
    assert versions.current().number == 1


def test_at_says_what_was_served_then(model):
    versions = VersionRegistry.open(model)
    start = datetime.now(UTC)
    add_version(versions)
    middle = datetime.now(UTC)
    versions.rollback()
    assert versions.served_at(start - timedelta(days=1)).number == 1
    assert versions.served_at(start).number == 1
    assert versions.served_at(middle).number == 2
    assert versions.served_at(datetime.now(UTC)).number == 1


def test_loading_a_damaged_version_raises_and_the_last_good_one_is_served(model, caplog):
    versions = VersionRegistry.open(model)
    add_version(versions, 1.0)
    add_version(versions, 2.0)
    bad = versions.path(3)
    content = bytearray(bad.read_bytes())
    content[-10] ^= 1
    bad.write_bytes(content)
    with pytest.raises(ModelError, match=r"000003\.safetensors: damaged"):
        versions.load()
    version, ranker = versions.load_last_good()
    assert version.number == 2
    assert weight_of(ranker) == pytest.approx(1.0)
    assert "000003.safetensors" in caplog.text
    assert "serving version 2 instead of 3" in caplog.text
    with pytest.raises(ModelError, match=r"000003\.safetensors"):
        versions.rollback(1), versions.rollback(3)
    assert versions.current().number == 1
    versions.path(1).unlink()
    with pytest.raises(ModelError, match=r"000001\.safetensors: the file of this version is missing"):
        versions.load_last_good()


def test_where_two_are_damaged_the_newest_whole_one_is_served(model):
    versions = VersionRegistry.open(model)
    add_version(versions, 1.0)
    add_version(versions, 2.0)
    for number in (2, 3):
        versions.path(number).write_bytes(b"")
    assert versions.load_last_good()[0].number == 1


def test_a_damaged_model_file_harms_no_version(model, caplog):
    VersionRegistry.open(model)
    model.write_bytes(model.read_bytes()[:-100])
    versions = VersionRegistry.open(model)
    assert versions.load_last_good()[0].number == 1
    assert "version 1 stays" in caplog.text
    model.unlink()
    assert VersionRegistry.open(model).current().number == 1


def test_a_damaged_model_file_without_versions_raises(model):
    model.write_bytes(b"noise")
    with pytest.raises(ModelError, match="model: truncated, damaged or not a model file"):
        VersionRegistry.open(model)
    with pytest.raises(ModelError, match="absent: no such file"):
        VersionRegistry.open(model.parent / "absent")
    assert not (model.parent / "absent.versions").exists()


def test_a_model_that_was_trained_again_is_the_next_version(model):
    versions = VersionRegistry.open(model)
    add_version(versions, learned_through=9)
    sr.load(model).set_pair("car", "boat", 7.0).save(model)
    versions = VersionRegistry.open(model)
    assert (versions.current().number, versions.current().parent, versions.current().learned_through) == (3, 2, 0)
    assert weight_of(versions.load()) == pytest.approx(7.0)
    assert versions.root(2) == 1
    add_version(versions)
    assert versions.root() == versions.root(4) == 3


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b'{"format": 2}', b'{"format": 1, "versions": [], "served": [], "source": ""}', b"\xff",
     b'{"format": 1, "versions": [], "served": [{"version": 1, "since": "2026-01-01T00:00:00+00:00"}], "source": ""}'],
)  # fmt: skip
def test_a_damaged_manifest_raises(model, content):
    versions = VersionRegistry.open(model)
    (versions.folder / "versions.json").write_bytes(content)
    for look in (lambda: VersionRegistry.open(model), versions.current):
        with pytest.raises(ModelError, match=r"versions\.json: "):
            look()


def test_a_file_that_a_killed_writer_left_is_never_written_over(model):
    versions = VersionRegistry.open(model)
    left = versions.folder / "000002.safetensors"
    left.write_bytes(b"left behind")
    assert add_version(versions).number == 3
    assert left.read_bytes() == b"left behind"


def test_first_pairs_come_with_an_index_of_their_own_which_later_versions_share(tmp_path):
    docs, queries, qrels = world()
    plain = sr.TextRanker("text", max_pairs=200).fit(docs)
    plain.save(tmp_path / "model")
    versions = VersionRegistry.open(tmp_path / "model")
    ranker = versions.load()
    ranker.ranker = "text"
    made = versions.add(ranker.partial_fit(None, queries, qrels), "first pairs")
    assert made.index == "000002.index"
    assert add_version(versions, 0.01).index == "000002.index"
    assert versions.load().search("red car")[0].id == "automobile-red"
    assert versions.load(1).search("red car") == plain.search("red car")
    assert sorted(path.name for path in versions.folder.glob("*.index")) == ["000001.index", "000002.index"]


def test_another_index_can_be_served(model):
    docs = {"x": "a red automobile"}
    sr.load(model).over(docs).index_.save(model.parent / "other.index")
    assert [hit.id for hit in VersionRegistry.open(model).load(index=model.parent / "other.index").search("car")] == [
        "x"
    ]


@pytest.fixture
def unwritable(trained):
    """A model in a folder that its reader may not write to; the superuser becomes someone else for that."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    for name in ("model", "model.index"):
        shutil.copy(trained / name, folder / name)
    yield folder / "model"
    shutil.rmtree(folder)


class Unprivileged:
    """As a user who owns nothing here."""

    def __init__(self, folder):
        self.folder = folder

    def __enter__(self):
        self.folder.chmod(0o555)
        if os.geteuid() == 0:
            os.seteuid(65534)

    def __exit__(self, *_):
        if os.getuid() == 0:
            os.seteuid(0)
        self.folder.chmod(0o755)


def test_where_nothing_can_be_written_the_model_itself_is_version_1(unwritable, caplog):
    with Unprivileged(unwritable.parent):
        versions = VersionRegistry.open(unwritable)
        assert not versions.writable
        assert "versions cannot be added: Permission denied" in caplog.text
        assert versions.current().number == 1
        assert versions.load().search("red car") == sr.load(unwritable).search("red car")
        assert versions.load_last_good()[0] == versions.current()
        assert versions.stamp() is None
        for change in (lambda: versions.add(versions.load(), "no"), versions.rollback):
            with pytest.raises(DataError, match="cannot be written"):
                change()
    assert sorted(path.name for path in unwritable.parent.iterdir()) == ["model", "model.index"]


def test_versions_that_can_only_be_read_are_served(unwritable):
    add_version(VersionRegistry.open(unwritable))
    with Unprivileged(unwritable.parent / "model.versions"):
        versions = VersionRegistry.open(unwritable)
        assert not versions.writable
        assert versions.current().number == 2
        assert weight_of(versions.load()) == pytest.approx(2.0)


ADDER = """
import sys
from sparserank.versions import VersionRegistry
versions = VersionRegistry.open(sys.argv[1])
for turn in range(4):
    versions.add(versions.load(1), f"{sys.argv[2]} {turn}")
"""


def test_processes_that_add_at_once_lose_nothing(model):
    """The folder itself does not exist yet when they start."""
    adders = [subprocess.Popen([sys.executable, "-c", ADDER, str(model), name]) for name in "ab"]
    assert [adder.wait(120) for adder in adders] == [0, 0]
    versions = VersionRegistry.open(model)
    assert [version.number for version in versions.list()] == list(range(1, 10))
    assert sorted(version.why for version in versions.list()[1:]) == [
        f"{name} {turn}" for name in "ab" for turn in range(4)
    ]
    assert [version.parent for version in versions.list()[1:]] == list(range(1, 9))


def test_a_version_is_plain_json(model):
    versions = VersionRegistry.open(model)
    made = add_version(versions)
    assert json.loads(json.dumps(made.to_dict()))["number"] == 2


def test_a_line_in_the_log_says_why_a_version_is_served(model, caplog):
    with caplog.at_level(logging.INFO):
        add_version(VersionRegistry.open(model))
    assert "serving version 2: car looks for boat" in caplog.text
