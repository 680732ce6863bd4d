"""CIFF: what is written is read back, by us and by protobuf itself; what is damaged is refused."""

from __future__ import annotations

import io

import numpy as np
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.decoder import _DecodeVarint32
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from sparserank.errors import DataError
from sparserank.export.ciff import Ciff, read_ciff, varint, write_ciff
from sparserank.export.impacts import Impacts
from sparserank.export.trec import ciff_index

from .worlds import vectors_and_queries

FIELDS = {  # of https://github.com/osirrc/ciff
    "Header": (
        ("version", "INT32"), ("num_postings_lists", "INT32"), ("num_docs", "INT32"), ("total_postings_lists", "INT32"),
        ("total_docs", "INT32"), ("total_terms_in_collection", "INT64"), ("average_doclength", "DOUBLE"),
        ("description", "STRING"),
    ),
    "Posting": (("docid", "INT32"), ("tf", "INT32")),
    "PostingsList": (("term", "STRING"), ("df", "INT64"), ("cf", "INT64"), ("postings", "Posting")),
    "DocRecord": (("docid", "INT32"), ("collection_docid", "STRING"), ("doclength", "INT32")),
}  # fmt: skip


@pytest.fixture(scope="module")
def messages():
    """The classes protobuf makes of the published definition."""
    file = descriptor_pb2.FileDescriptorProto(name="ciff.proto", package="io.osirrc.ciff", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, start=1):
            many = kind in FIELDS
            made = message.field.add(name=field, number=number, label=3 if many else 1)
            made.type = kinds.TYPE_MESSAGE if many else getattr(kinds, f"TYPE_{kind}")
            if many:
                made.type_name = f".io.osirrc.ciff.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"io.osirrc.ciff.{name}")) for name in FIELDS
    }


def small(description="words"):
    impacts = csr_array(np.array([[3, 0, 200], [0, 0, 1], [1, 0, 70_000]], np.int64))
    return Ciff(("pear", "gone", "äpple~"), ("a", "b", "c"), impacts, description)


def delimited(raw, kind, at):
    length, at = _DecodeVarint32(raw, at)
    return kind.FromString(raw[at : at + length]), at + length


def test_protobuf_reads_what_is_written(messages, tmp_path):
    write_ciff(tmp_path / "x.ciff", small())
    raw = (tmp_path / "x.ciff").read_bytes()
    header, at = delimited(raw, messages["Header"], 0)
    assert (header.version, header.num_postings_lists, header.num_docs) == (1, 2, 3)
    assert (header.total_postings_lists, header.total_docs, header.total_terms_in_collection) == (2, 3, 70_205)
    assert header.average_doclength == pytest.approx(70_205 / 3)
    assert header.description == "words"
    lists = []
    for _ in range(2):
        one, at = delimited(raw, messages["PostingsList"], at)
        lists.append((one.term, one.df, one.cf, [(p.docid, p.tf) for p in one.postings]))
    assert lists == [("pear", 2, 4, [(0, 3), (2, 1)]), ("äpple~", 3, 70_201, [(0, 200), (1, 1), (1, 70_000)])]
    records = []
    for _ in range(3):
        one, at = delimited(raw, messages["DocRecord"], at)
        records.append((one.docid, one.collection_docid, one.doclength))
    assert records == [(0, "a", 203), (1, "b", 1), (2, "c", 70_001)]
    assert at == len(raw)


def test_what_protobuf_writes_is_read(messages, tmp_path):
    header = messages["Header"](version=1, num_postings_lists=1, num_docs=2, average_doclength=1.5, description="d")
    postings = messages["PostingsList"](term="x", df=2, cf=9)
    for gap, tf in ((0, 4), (1, 5)):
        postings.postings.add(docid=gap, tf=tf)
    records = [messages["DocRecord"](docid=i, collection_docid=name, doclength=1) for i, name in enumerate("pq")]
    out = io.BytesIO()
    for message in (header, postings, *records):
        raw = message.SerializeToString()
        out.write(varint(len(raw)) + raw)
    (tmp_path / "x.ciff").write_bytes(out.getvalue())
    read = read_ciff(tmp_path / "x.ciff")
    assert (read.terms, read.ids, read.description) == (("x",), ("p", "q"), "d")
    assert read.impacts.toarray().tolist() == [[4], [5]]


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
    from google.protobuf.internal.decoder import _DecodeVarint

    assert _DecodeVarint(varint(value), 0) == (value, len(varint(value)))


def test_a_file_that_is_cut_short_anywhere_is_refused(tmp_path):
    write_ciff(tmp_path / "x.ciff", small())
    raw = (tmp_path / "x.ciff").read_bytes()
    for length in range(len(raw)):
        (tmp_path / "cut.ciff").write_bytes(raw[:length])
        with pytest.raises(
            DataError, match=r"cut\.ciff: not a complete CIFF file" + (": it is empty" if not length else "")
        ):
            read_ciff(tmp_path / "cut.ciff")


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("ciff") / "x.ciff"
    path.write_bytes(raw)
    try:
        read_ciff(path)
    except DataError as error:
        assert "not a complete CIFF file" in str(error)


def test_what_does_not_fit_together_is_refused(tmp_path, messages):
    def refused(match, *made):
        raws = [message.SerializeToString() for message in made]
        (tmp_path / "x.ciff").write_bytes(b"".join(varint(len(raw)) + raw for raw in raws))
        with pytest.raises(DataError, match=match):
            read_ciff(tmp_path / "x.ciff")

    header, record = messages["Header"], messages["DocRecord"]
    refused("more data follows", header(num_docs=1), record(collection_docid="a"), record(docid=1))
    refused("twice", header(num_docs=2), record(collection_docid="a"), record(collection_docid="b"))
    refused("announces 2 documents and lists 0", header(num_postings_lists=1), messages["PostingsList"](term="x", df=2))
    far = messages["PostingsList"](term="x", df=1)
    far.postings.add(docid=7, tf=1)
    refused("names document 7; the file has 1", header(num_postings_lists=1, num_docs=1), far, record())
    (tmp_path / "x.ciff").write_bytes(b"\x01\x0b")
    with pytest.raises(DataError, match="a field of kind 3"):
        read_ciff(tmp_path / "x.ciff")


@pytest.mark.parametrize("impact", [0, 2**31])
def test_impacts_that_are_no_int32_above_0_are_not_written(tmp_path, impact):
    wrong = csr_array((np.array([impact]), (np.array([0]), np.array([0]))), shape=(1, 1))
    with pytest.raises(DataError, match="above 0 and below"):
        write_ciff(tmp_path / "x.ciff", Ciff(("a",), ("d",), wrong))


@pytest.mark.parametrize("impact", [2**31, 2**63, 2**64 - 1])
def test_impacts_that_are_no_int32_are_not_read(tmp_path, impact):
    posting = b"\x10" + varint(impact)
    postings = b"\x0a\x01x\x10\x01\x22" + varint(len(posting)) + posting
    messages = (b"\x10\x01\x18\x01", postings, b"\x12\x01d")
    (tmp_path / "x.ciff").write_bytes(b"".join(varint(len(message)) + message for message in messages))
    with pytest.raises(DataError, match=rf"x\.ciff: not a complete CIFF file: 'x' has an impact of {impact}"):
        read_ciff(tmp_path / "x.ciff")
