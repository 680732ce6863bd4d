"""An index file built from parts has the bytes of one built at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparserank.data.records import Documents
from sparserank.errors import DataError
from sparserank.search import Index, block_maxima, builder
from sparserank.search.builder import build_index_file


@given(st.integers(0, 10**6), st.sampled_from([1, 7, 100, 700]), st.sampled_from([1, 50, 10**6]), st.booleans())
def test_parts_give_the_bytes_of_the_whole(tmp_path_factory, seed, part_size, merged, with_blocks):
    folder, rng, n = tmp_path_factory.mktemp("parts"), np.random.default_rng(seed), int(seed % 3) * 300 + 5
    part_size = max(part_size, n // 40)
    full = rng.normal(size=(n, 9)) * (rng.random((n, 9)) < [0.01, 0.02, 0.03, 0.05, 0.1, 0.3, 0.6, 1.0, 0.0])
    ids = tuple(f"{i:x}ä" for i in rng.permutation(n))
    matrix = csr_array(full.astype(np.float32))
    documents = Documents(ids, tuple(f"title {i}" for i in ids), tuple("é" * int(i) for i in rng.integers(0, 5, n)))
    if seed % 2:  # the first documents have none, so that some parts have none
        metadata = [{"n": int(k), "tags": ["é", "b"][: k % 3]} if k > 90 else {} for k in rng.integers(0, 100, n)]
        documents = replace(documents, metadata=({},) * (n // 2) + tuple(metadata[n // 2 :]))
    starts = range(0, n, part_size)
    parts = ((matrix[at : at + part_size], documents.take(range(n)[at : at + part_size])) for at in starts)
    messages = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "MERGED_POSTINGS", merged)
        patch.setattr(block_maxima, "MIN_DOCUMENTS", 1 if with_blocks else 4096)
        build_index_file(folder / "parts", parts, "me", messages.append)
        Index.build(matrix, documents, "me").save(folder / "whole")
    assert (folder / "parts").read_bytes() == (folder / "whole").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == ["parts", "whole"]
    assert messages[-1] == "writing the index"
    assert f"indexing: {n:,} documents" in messages
    assert Index.check(folder / "parts").documents.ids == tuple(sorted(ids, reverse=True))


def test_an_id_in_two_parts_raises_and_leaves_nothing(tmp_path):
    part = csr_array([[1.0]]), Documents.of({"a": ""})
    with pytest.raises(DataError, match="'a' occurs more than once"):
        build_index_file(tmp_path / "i", [part, part])
    with pytest.raises(DataError, match="no documents"):
        build_index_file(tmp_path / "i", [])
    with pytest.raises(DataError, match="cannot be written"):
        build_index_file(tmp_path / "none" / "i", [part])
    assert list(tmp_path.iterdir()) == []
