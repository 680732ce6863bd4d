"""CIFF: protobuf reads back what is written."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.internal.decoder import _DecodeVarint
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparserank.errors import DataError
from sparserank.export.ciff import Ciff, varint, write_ciff
from sparserank.export.impacts import Impacts
from sparserank.export.trec import ciff_index

from .readers import parse_ciff, read_ciff
from .worlds import vectors_and_queries


def test_protobuf_reads_what_is_written(tmp_path):
    impacts = csr_array(np.array([[3, 0, 200], [0, 0, 1], [1, 0, 70_000]], np.int64))
    write_ciff(tmp_path / "x.ciff", Ciff(("pear", "gone", "äpple~"), ("a", "b", "c"), impacts, "words"))
    header, lists, records = parse_ciff(tmp_path / "x.ciff")
    assert (header.version, header.num_postings_lists, header.num_docs) == (1, 2, 3)
    assert (header.total_postings_lists, header.total_docs, header.total_terms_in_collection) == (2, 3, 70_205)
    assert header.average_doclength == pytest.approx(70_205 / 3)
    assert header.description == "words"
    assert [(one.term, one.df, one.cf, [(p.docid, p.tf) for p in one.postings]) for one in lists] == [
        ("pear", 2, 4, [(0, 3), (2, 1)]),
        ("äpple~", 3, 70_201, [(0, 200), (1, 1), (1, 70_000)]),
    ]
    assert [(one.docid, one.collection_docid, one.doclength) for one in records] == [
        (0, "a", 203),
        (1, "b", 1),
        (2, "c", 70_001),
    ]


def test_an_index_comes_back_as_it_was(tmp_path):
    vectors, _ = vectors_and_queries(1)
    index = ciff_index(vectors, Impacts.over(float(vectors.largest.max())))
    write_ciff(tmp_path / "x.ciff", index)
    read = read_ciff(tmp_path / "x.ciff")
    assert read.ids == index.ids
    assert list(read.terms) == sorted(read.terms, key=str.encode)
    columns = [index.terms.index(term) for term in read.terms]
    assert (read.impacts.toarray() == index.impacts.toarray()[:, columns]).all()
    assert read.impacts.nnz == index.impacts.nnz
    assert "score by products" in read.description


@given(st.integers(0, 2**63 - 1))
def test_numbers_are_written_as_protobuf_reads_them(value):
    assert _DecodeVarint(varint(value), 0) == (value, len(varint(value)))


@pytest.mark.parametrize("impact", [0, 2**31])
def test_impacts_that_are_no_int32_above_0_are_not_written(tmp_path, impact):
    wrong = csr_array((np.array([impact]), (np.array([0]), np.array([0]))), shape=(1, 1))
    with pytest.raises(DataError, match="above 0 and below"):
        write_ciff(tmp_path / "x.ciff", Ciff(("a",), ("d",), wrong))
