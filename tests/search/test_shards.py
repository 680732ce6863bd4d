"""A folder of shards gives the answers of one index, to the bit, and is complete or not an index at all."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sparserank as sr
from sparserank.errors import DataError, ModelError
from sparserank.search import Index
from sparserank.search.shards import MANIFEST, shard_name, write_shards
from sparserank.text_ranker import index_path
from sparserank.versions import VersionRegistry

from .test_index import world


def save_shards(path, D, documents, bounds, made_for=""):
    with write_shards(path) as folder:
        for number, rows in enumerate(np.split(np.arange(len(documents)), bounds)):
            if len(rows):
                Index.build(D[rows], documents.take(rows), made_for).save(folder / shard_name(number))


@given(st.integers(0, 10**6), st.lists(st.integers(0, 40), min_size=0, max_size=4))
@settings(max_examples=15)
def test_a_folder_answers_like_one_index(tmp_path_factory, seed, bounds):
    D, Q, documents = world(seed, signed=True, coarse=seed % 2 == 0)
    path = tmp_path_factory.mktemp("shards") / "index"
    save_shards(path, D, documents, sorted(bounds))
    loaded, one = Index.load(path), Index.build(D, documents)
    assert loaded.search(Q, 7) == one.search(Q, 7)
    assert loaded.run(Q, documents.ids[:6], 50, exclude_self=True) == one.run(Q, documents.ids[:6], 50, True)
    assert loaded.documents == one.documents
    assert len(Index.check(path)) == len(documents)


def test_an_error_while_shards_are_written_leaves_the_old_index(tmp_path):
    D, Q, documents = world(1)
    path = tmp_path / "index"
    Index.build(D, documents).save(path)
    with pytest.raises(ZeroDivisionError), write_shards(path):
        print(1 / 0)
    with pytest.raises(DataError, match="no documents to index"), write_shards(path):
        pass
    with pytest.raises(DataError, match="cannot be written"), write_shards(tmp_path / "none" / "index"):
        pass
    assert [file.name for file in tmp_path.iterdir()] == ["index"]
    before = Index.load(path).search(Q)
    save_shards(path, D, documents, [10])
    assert path.is_dir()
    assert Index.load(path).search(Q) == before


def test_an_index_of_shards_is_saved_as_one_file(tmp_path, monkeypatch):
    D, Q, documents = world(2)
    path = tmp_path / "index"
    save_shards(path, D, documents, [10, 20, 30])
    loaded = Index.load(path)
    before = loaded.search(Q)
    monkeypatch.setattr("sparserank.search.index.MAX_SEGMENTS", 3)
    loaded.save(path)
    assert path.is_file()
    assert len(Index.load(path).segments) == 1
    assert Index.load(path).search(Q) == before
    assert [file.name for file in tmp_path.iterdir()] == ["index"]


def test_a_folder_that_is_not_complete_raises_an_error(tmp_path):
    D, _, documents = world(3)
    path = tmp_path / "index"
    save_shards(path, D, documents, [20])
    first, second = path / shard_name(0), path / shard_name(1)
    content = first.read_bytes()
    first.write_bytes(second.read_bytes())
    with pytest.raises(ModelError, match=r"shard-00000.index: not the shard that the manifest names"):
        Index.load(path)
    first.unlink()
    with pytest.raises(ModelError, match="shard-00000"):
        Index.load(path)
    first.write_bytes(content)
    Index.build(D[:20], documents.take(range(20)), "another").save(first)
    manifest = json.loads((path / MANIFEST).read_text())
    for text, words in (("{", "damaged"), ('{"format": 9, "shards": {"a": "b"}}', "not a manifest of this version")):
        (path / MANIFEST).write_text(text)
        with pytest.raises(ModelError, match=words):
            Index.load(path)
    link = tmp_path / "other"
    with write_shards(link) as folder:
        for shard in (first, second):
            (folder / shard.name).write_bytes(shard.read_bytes())
    with pytest.raises(ModelError, match="built for different models"):
        Index.load(link)
    (path / MANIFEST).write_text(json.dumps(manifest))
    (path / MANIFEST).unlink()
    with pytest.raises(ModelError, match="a folder of shards has a file"):
        Index.load(path)


def test_a_model_with_a_folder_beside_it_is_loaded_served_and_saved(tmp_path):
    docs = {f"d{i}": f"apple pear w{i}" for i in range(10)}
    ranker = sr.TextRanker("bm25").fit(docs)
    path = tmp_path / "model.safetensors"
    ranker.save(path)
    whole = ranker.index_
    save_shards(index_path(path), whole.matrix(), whole.documents, [4], whole.made_for)
    loaded = sr.load(path)
    assert index_path(path).is_dir()
    assert loaded.search("apple w3") == ranker.search("apple w3")
    _, served = VersionRegistry.open(path).load_last_good()
    assert served.search("apple w3") == ranker.search("apple w3")
    loaded.add({"new": "apple"}).save(path)
    assert index_path(path).is_file()
    assert len(sr.load(path).index_) == 11
