"""When the model file is trained again on other documents, earlier versions keep their own index."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sparserank as sr
from sparserank.errors import DataError, ModelError
from sparserank.versions import VersionRegistry

from ..text_ranker.test_learning import world

PLANE = {"x": {"title": "purple plane", "text": "It flies over violet mountains"}}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A model, and the one that it is trained anew to be."""
    folder = tmp_path_factory.mktemp("trained")
    docs, queries, qrels = world()
    sr.TextRanker(max_pairs=200).fit(docs, queries, qrels).save(folder / "old")
    sr.TextRanker(max_pairs=200).fit(docs | PLANE, queries, qrels).save(folder / "new")
    return folder


def put(trained, name, model, endings=("", ".index")):
    """As `save` does it: each file appears in the place of the one before."""
    for ending in endings:
        beside = Path(f"{model}.tmp")
        shutil.copy(f"{trained / name}{ending}", beside)
        beside.replace(f"{model}{ending}")


@pytest.fixture
def model(trained, tmp_path):
    put(trained, "old", tmp_path / "model")
    return tmp_path / "model"


def test_every_version_keeps_a_copy_of_the_index_that_lay_beside_the_model(trained, model):
    versions = VersionRegistry.open(model)
    kept = versions.folder / "000001.index"
    assert kept.read_bytes() == Path(f"{model}.index").read_bytes()
    assert not kept.samefile(f"{model}.index"), "a version owns its bytes"
    before = versions.load().search("red car")
    versions.add(versions.load().set_pair("car", "boat", 2.0), "taught")
    put(trained, "new", model)
    versions = VersionRegistry.open(model)
    assert versions.current().number == 3
    assert versions.load().search("purple plane")[0].id == "x"
    assert versions.load(1).search("red car") == before
    assert len(versions.load(2).index_) == len(world()[0])
    assert versions.rollback(1).number == 1
    assert versions.load().search("red car") == before
    assert sorted(path.name for path in versions.folder.iterdir() if path.suffix != ".safetensors") == [
        "000001.index", "000003.index", "versions.json", "versions.lock",
    ]  # fmt: skip


def test_a_model_trained_again_is_not_served_before_it_is_registered(trained, model):
    VersionRegistry.open(model)
    put(trained, "new", model)
    versions = VersionRegistry.open(model, register=False)
    assert [one.number for one in versions.list()] == [1]
    assert versions.writable
    assert len(versions.load().index_) == len(world()[0])
    assert VersionRegistry.open(model).current().number == 2


def test_on_first_use_the_model_is_version_1_whoever_uses_it(model):
    assert VersionRegistry.open(model, register=False).current().number == 1


def test_an_index_that_comes_after_its_model_is_kept_when_it_is_there(trained, model, caplog):
    VersionRegistry.open(model)
    put(trained, "new", model, [""])
    versions = VersionRegistry.open(model)
    assert "model.index: it was not copied: " in caplog.text
    assert versions.load_last_good()[0].number == 1, "the index of version 2 is not there yet"
    put(trained, "new", model, [".index"])
    assert VersionRegistry.open(model).load_last_good()[0].number == 2
    assert (versions.folder / "000002.index").read_bytes() == Path(f"{model}.index").read_bytes()


def test_an_index_that_was_made_again_is_the_one_that_is_kept(model):
    versions = VersionRegistry.open(model)
    docs = world()[0] | PLANE
    sr.load(model).over(docs).index_.save(f"{model}.index")
    assert len(versions.load().index_) == len(docs)
    VersionRegistry.open(model)
    Path(f"{model}.index").unlink()
    assert len(VersionRegistry.open(model).load().index_) == len(docs)


def test_an_index_that_is_named_is_not_passed_over(trained, model):
    versions = VersionRegistry.open(model)
    with pytest.raises(ModelError, match=r"new\.index: built for another model"):
        versions.load(index=trained / "new.index")


@pytest.mark.parametrize("damage", [b"nonsense", b"", None])
def test_a_damaged_index_is_named_and_the_copy_stays(trained, model, caplog, damage):
    versions = VersionRegistry.open(model)
    before, index = versions.load().search("red car"), Path(f"{model}.index")
    index.write_bytes(index.read_bytes()[:-100] if damage is None else damage)
    assert versions.load().search("red car") == before
    assert VersionRegistry.open(model).load().search("red car") == before
    assert f"{index}: " in caplog.text
    assert "the last intact copy of the index stays" in caplog.text


def test_a_damaged_index_without_a_copy_is_rejected_by_name(model):
    Path(f"{model}.index").write_bytes(b"nonsense")
    with pytest.raises((DataError, ModelError), match=r"model\.index"):
        VersionRegistry.open(model).load()


def test_an_index_with_wrong_bytes_in_the_middle_is_not_copied(model, monkeypatch):
    """Also a file that is too large to be checked each time it is opened."""
    monkeypatch.setattr("sparserank.search.index.MAX_CHECKED_BYTES", 0)
    versions, index = VersionRegistry.open(model), Path(f"{model}.index")
    copy, content = (versions.folder / "000001.index").read_bytes(), bytearray(index.read_bytes())
    content[-40:-20] = b"\x5a" * 20
    index.write_bytes(content)
    versions.load()
    assert (versions.folder / "000001.index").read_bytes() == copy


def test_a_folder_that_cannot_be_written_has_its_copy_in_the_cache(model, monkeypatch, tmp_path):
    monkeypatch.setattr("sparserank.versions.index_copies.platformdirs.user_cache_dir", lambda name: tmp_path / "cache")
    versions = VersionRegistry(model, writable=False)
    versions._unsaved = VersionRegistry.open(model)._manifest()
    own = versions.own_index(versions.current())
    assert own.is_relative_to(tmp_path / "cache")
    assert own.read_bytes() == Path(f"{model}.index").read_bytes()


def test_a_file_system_that_can_share_blocks_is_asked_to(tmp_path, monkeypatch):
    import fcntl

    from sparserank.versions.index_copies import FICLONE, copy_file

    (tmp_path / "a").write_bytes(b"x" * 5000)
    asked = []

    def ioctl(target, request, source):
        asked.append(request)
        raise OSError("Operation not supported")

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    copy_file(tmp_path / "a", tmp_path / "b")
    assert asked == [FICLONE]
    assert (tmp_path / "b").read_bytes() == b"x" * 5000
