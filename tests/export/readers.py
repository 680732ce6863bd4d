"""Readers of exported files: they read back what the package writes."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal.decoder import _DecodeVarint32
from scipy.sparse import csr_array

from sparserank.data.files import numbered_lines
from sparserank.export.ciff import Ciff
from sparserank.export.synonyms import Rule
from sparserank.export.vectors import LEARNED

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


def ciff_messages():
    """The classes that protobuf makes of the published definition, by name."""
    file = descriptor_pb2.FileDescriptorProto(name="ciff.proto", package="io.osirrc.ciff", syntax="proto3")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, start=1):
            repeated = kind in FIELDS
            added = message.field.add(name=field, number=number, label=3 if repeated else 1)
            added.type = kinds.TYPE_MESSAGE if repeated else getattr(kinds, f"TYPE_{kind}")
            if repeated:
                added.type_name = f".io.osirrc.ciff.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"io.osirrc.ciff.{name}")) for name in FIELDS
    }


def parse_ciff(path):
    """(header, postings lists, document records) of a file, as protobuf reads them; nothing may follow them."""
    raw, at, kinds = path.read_bytes(), 0, ciff_messages()

    def read(kind):
        nonlocal at
        length, at = _DecodeVarint32(raw, at)
        at += length
        return kinds[kind].FromString(raw[at - length : at])

    header = read("Header")
    lists = [read("PostingsList") for _ in range(header.num_postings_lists)]
    records = [read("DocRecord") for _ in range(header.num_docs)]
    assert at == len(raw)
    return header, lists, records


def read_ciff(path):
    """The index in a file."""
    header, lists, records = parse_ciff(path)
    assert [record.docid for record in records] == list(range(len(records)))
    impacts = np.zeros((len(records), len(lists)), np.int64)
    for column, one in enumerate(lists):
        assert one.df == len(one.postings)
        assert one.cf == sum(posting.tf for posting in one.postings)
        impacts[np.cumsum([posting.docid for posting in one.postings]), column] = [p.tf for p in one.postings]
    terms, ids = tuple(one.term for one in lists), tuple(record.collection_docid for record in records)
    return Ciff(terms, ids, csr_array(impacts), header.description)


def read_vectors(path):
    """{id: {term: weight}} of a file of vectors, in which no id occurs twice."""
    records = [json.loads(line) for _, line in numbered_lines(path)]
    vectors = {record["id"]: {term: float(weight) for term, weight in record["vector"].items()} for record in records}
    assert len(vectors) == len(records)
    return vectors


def read_synonyms(path):
    """The rules of a file: `a, b => c, d`."""
    lines = [line for _, line in numbered_lines(path) if not line.lstrip().startswith("#")]
    sides = [re.split(r"(?<!\\)=>", line) for line in lines]
    return [Rule(split_words(words), split_words(replacements)) for words, replacements in sides]


def split_words(side):
    return tuple(re.sub(r"\\(.)", r"\1", word.strip()) for word in re.split(r"(?<!\\),", side))


def term_word(name):
    """The word of a term, and whether the term is of the learned column."""
    return unquote(name.removesuffix(LEARNED).replace("+", " ")), name.endswith(LEARNED)
