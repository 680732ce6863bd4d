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


def no_link(self, target):
    raise OSError("Operation not permitted")


@pytest.mark.parametrize("linked", [True, False])
def test_every_version_keeps_the_index_that_lay_beside_the_model(trained, model, monkeypatch, linked):
    if not linked:
        monkeypatch.setattr(Path, "hardlink_to", no_link)
    versions = VersionRegistry.open(model)
    kept = versions.folder / "000001.index"
    assert kept.samefile(f"{model}.index") == linked
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
    assert (versions.folder / "000002.index").samefile(f"{model}.index")


def test_an_index_that_was_made_again_is_the_one_that_is_kept(model):
    versions = VersionRegistry.open(model)
    docs = world()[0] | PLANE
    sr.load(model).over(docs).index_.save(f"{model}.index")
    assert len(versions.load().index_) == len(docs)
    VersionRegistry.open(model)
    Path(f"{model}.index").unlink()
    assert len(VersionRegistry.open(model).load().index_) == len(docs)


def test_an_index_that_is_named_or_damaged_is_not_passed_over(trained, model):
    versions = VersionRegistry.open(model)
    with pytest.raises(ModelError, match=r"new\.index: built for another model"):
        versions.load(index=trained / "new.index")
    Path(f"{model}.index").unlink()
    Path(f"{model}.index").write_bytes(b"nonsense")
    with pytest.raises((DataError, ModelError), match=r"model\.index"):
        versions.load()
