"""Term weights in the files that research engines read, and CIFF.

vectors.jsonl   {"id", "contents", "vector": {term: weight}}      documents, exact
impacts.jsonl   the same with integers                             JsonVectorCollection of Anserini and Pyserini
queries.jsonl   {"id", "vector": {term: weight}}                   queries, exact, signed
topics.tsv      id, tab, each term repeated by its weight          the positive part of the queries
run.txt         the results of the model, to compare with
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..data.formats.trec import write_run
from ..errors import DataError
from .ciff import Ciff, write_ciff
from .folder import Folder
from .impacts import Impacts
from .stages import SignedQuery
from .vectors import Vectors

BITS, QUERY_BITS = 8, 6


def vector_lines(vectors: Vectors, impacts: Impacts | None = None) -> Iterator[dict[str, object]]:
    """Yield the documents with exact weights, or with impacts."""
    for document in vectors.documents():
        vector = vectors.by_name(document.vector())
        contents = " ".join(filter(None, (document.title, document.text)))
        if impacts is not None:
            contents, vector = "", dict(zip(vector, impacts.of(document.weights).tolist(), strict=True))
        yield {"id": document.id, "contents": contents, "vector": vector}


def topic(vectors: Vectors, text: str) -> dict[str, int]:
    """Return the positive part of a query as {term: repetitions}, without terms that round to 0.

    It has at most MAX_CLAUSES terms, the heaviest, because Lucene, and so Anserini, supports no more.
    """
    positive = SignedQuery.split(vectors.query(text), vectors.largest).first
    largest = max(positive.values(), default=1.0)
    counts = {term: round(weight / largest * (2**QUERY_BITS - 1)) for term, weight in positive.items()}
    return {vectors.names[term]: count for term, count in counts.items() if count}


def topic_line(vectors: Vectors, text: str) -> str:
    """Return a topic as text.

    >>> from sparserank import TextRanker
    >>> ranker = TextRanker().fit({"a": "red apple", "b": "pear"})
    >>> topic_line(Vectors(ranker.model_, ranker.index_), "apple").split()[:2]
    ['appl', 'appl']
    """
    return " ".join(" ".join([term] * count) for term, count in topic(vectors, text).items())


def ciff_index(vectors: Vectors, impacts: Impacts) -> Ciff:
    """Return the documents as a CIFF index."""
    matrix = vectors.matrix.astype(np.int64)
    matrix.data = impacts.of(vectors.matrix.data)
    unit = f"one unit of weight is {impacts.scale:.6g}; score by products"
    description = f"SparseRank impacts of {impacts.bits} bits; {unit}"
    return Ciff(vectors.names, vectors.index.documents.ids, matrix, description)


def write(folder: Folder, vectors: Vectors, queries: Mapping[str, str]) -> None:
    """Write vectors, impacts, topics and a run."""
    impacts = Impacts.over(float(vectors.largest.max(initial=0.0)), BITS)
    folder.lines("vectors.jsonl", vector_lines(vectors))
    folder.lines("impacts/impacts.jsonl", vector_lines(vectors, impacts))
    encoded = ((name, vectors.by_name(vectors.query(text))) for name, text in queries.items())
    folder.lines("queries.jsonl", ({"id": name, "vector": weights} for name, weights in encoded))
    folder.text("topics.tsv", _topics(vectors, queries, "\t"))
    run = vectors.index.run(vectors.model.encode_queries(queries.values()), list(queries))
    write_run(folder.path / "run.txt", run)
    folder.add("run.txt")
    _readme(folder, "trec", vectors, impacts, queries)


def write_to_ciff(folder: Folder, vectors: Vectors, queries: Mapping[str, str]) -> None:
    """Write a CIFF index and topics."""
    impacts = Impacts.over(float(vectors.largest.max(initial=0.0)), BITS)
    write_ciff(folder.path / "index.ciff", ciff_index(vectors, impacts))
    folder.add("index.ciff")
    for name in queries:
        if ":" in name or name.split() != [name]:
            raise DataError(f"a query id in topics.txt must have no colon and no white space; got {name!r}")
    folder.text("topics.txt", _topics(vectors, queries, ":"))
    _readme(folder, "ciff", vectors, impacts, queries)


def _topics(vectors: Vectors, queries: Mapping[str, str], separator: str) -> str:
    """Return one line per query, without queries that have no terms: readers fail on an empty topic."""
    lines = ((name, topic_line(vectors, text)) for name, text in queries.items())
    return "".join(f"{name}{separator}{line}\n" for name, line in lines if line)


def _readme(folder: Folder, target: str, vectors: Vectors, impacts: Impacts, queries: Mapping[str, str]) -> None:
    largest, repeats = 2**impacts.bits - 1, 2**QUERY_BITS - 1
    folder.readme(target, vectors, queries, largest=largest, repeats=repeats, scale=impacts.scale)
