"""Model files: what is written comes back, and what is not whole and ours is refused by name."""

from __future__ import annotations

import json
import re
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save

from sparserank.data.formats.tensors import VERSION, Tensors, pack_strings, read_tensors, write_tensors
from sparserank.errors import ModelError


@given(st.lists(st.text(st.characters())))
def test_strings_come_back(strings):
    assert Tensors("x", "k", {}, pack_strings("s", strings)).strings("s") == tuple(strings)


def test_a_file_comes_back(tmp_path):
    write_tensors(tmp_path / "m", "thing", {"a": [1, 2]}, {"x": np.arange(3.0)})
    file = read_tensors(tmp_path / "m", "thing")
    assert (file.kind, file.settings) == ("thing", {"a": [1, 2]})
    assert file.array("x", "float64", 3).tolist() == [0, 1, 2]
    assert file.setting("a", list) == [1, 2]


def test_every_truncation_raises(tmp_path):
    write_tensors(tmp_path / "m", "thing", {}, {"x": np.arange(3.0)})
    whole = (tmp_path / "m").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "cut").write_bytes(whole[:length])
        with pytest.raises(ModelError, match="truncated, damaged or not a model file"):
            read_tensors(tmp_path / "cut")


def ours(**about):
    header = json.dumps({"format": VERSION, "kind": "thing", "settings": {}} | about)
    return save({"x": np.zeros(1)}, metadata={"sparserank": header})


def typed(name):
    """A file of ours with one array of a type that numpy does not have."""
    about = json.dumps({"format": VERSION, "kind": "thing", "settings": {}})
    array = {"dtype": name, "shape": [2 if name.startswith("F8") else 1], "data_offsets": [0, 2]}
    header = json.dumps({"__metadata__": {"sparserank": about}, "x": array}).encode()
    return struct.pack("<Q", len(header)) + header + b"\0\0"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "truncated, damaged or not"),
        (b"\xff" * 100, "truncated, damaged or not"),
        (b"PK\x03\x04" + b"\0" * 50, "truncated, damaged or not"),
        (save({"x": np.zeros(1)}), "SparseRank did not write it"),
        (ours(format="99"), "format '99'"),
        (ours(kind="other"), "contains a 'other', not a 'thing'"),
        (save({"x": np.zeros(1)}, metadata={"sparserank": "{"}), "metadata is not valid JSON"),
        (ours(settings=[1]), "metadata has no settings"),
        (save({"x": np.zeros(1)}, metadata={"sparserank": "[" * 200_000}), "metadata is not valid JSON"),
        (save({"x": np.zeros(1)}, metadata={"sparserank": "9" * 5_000}), "metadata is not valid JSON"),
        *((typed(name), "truncated, damaged or not") for name in ("BF16", "F8_E4M3", "F8_E5M2")),
    ],
)
def test_a_foreign_file_is_rejected_by_name(tmp_path, content, says):
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(ModelError, match=re.escape(says)):
        read_tensors(tmp_path / "m", "thing")


def test_missing_parts_are_named(tmp_path):
    with pytest.raises(ModelError, match="no such file"):
        read_tensors(tmp_path / "none")
    with pytest.raises(ModelError, match="is a folder"):
        read_tensors(tmp_path)
    file = Tensors("p", "k", {"n": "text"}, {})
    with pytest.raises(ModelError, match="p: has no array 'x'"):
        file.array("x", "int64")
    with pytest.raises(ModelError, match="the setting 'n' is missing or of the wrong type"):
        file.setting("n", int)
