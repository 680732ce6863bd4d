"""Term weights in the files that research engines read, and CIFF.

vectors.jsonl   {"id", "contents", "vector": {term: weight}}      documents, exact
impacts.jsonl   the same with integers                             JsonVectorCollection of Anserini and Pyserini
queries.jsonl   {"id", "vector": {term: weight}}                   queries, exact, signed
topics.tsv      id, tab, each term repeated by its weight          the positive part of the queries
run.txt         the results of the model, to compare with
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping

import numpy as np

from ..data.files import PathLike, numbered_lines
from ..data.formats.trec import write_run
from ..errors import DataError
from .ciff import Ciff, write_ciff
from .folder import Folder
from .impacts import Impacts
from .stages import SignedQuery
from .vectors import Vectors, shorts

BITS, QUERY_BITS = 8, 6
README_TREC = """# For research engines

{documents:,} documents, {terms:,} terms. `vectors.jsonl` has the exact weights, `impacts.jsonl` has them as integers up
to {largest}; a weight of 1 is an impact of {scale:.6g}. With Anserini:

    java -cp anserini-fatjar.jar io.anserini.index.IndexCollection -collection JsonVectorCollection \\
      -generator DefaultLuceneDocumentGenerator -input impacts -index lucene-index -impact -pretokenized -threads 1
    java -cp anserini-fatjar.jar io.anserini.search.SearchCollection -index lucene-index -topics topics.tsv \\
      -topicreader TsvString -impact -pretokenized -hits 1000 -output run.anserini.txt

`topics.tsv` has the positive part of each query and repeats a term by its weight, at most {repeats} times. These
engines support neither negative weights nor topics without terms. `queries.jsonl` has all signed weights, and
`run.txt` has the model's results for them. The first query is {example!r}; the model encodes any other query:

    sparserank export MODEL --to trec --query {quoted}
"""
README_CIFF = """# CIFF

`index.ciff` holds {documents:,} documents and {terms:,} terms with impacts up to {largest} as term frequencies; a
weight of 1 is an impact of {scale:.6g}. PISA, Terrier, JASS and others read it. Rank by the sum of products (PISA: the
`quantized` scorer), not by BM25, because impacts already are weights. With PISA:

    ciff2pisa --ciff-file index.ciff --output pisa --generate-lexicons
    compress_inverted_index --encoding block_simdbp --collection pisa --output index.simdbp
    create_wand_data --collection pisa --output index.wand --block-size 64 --scorer quantized
    evaluate_queries --encoding block_simdbp --algorithm block_max_wand --index index.simdbp --wand index.wand \\
      --terms pisa.termlex --documents pisa.doclex --tokenizer whitespace --weighted --scorer quantized \\
      --queries topics.txt -k 1000

The tokenizer matters: PISA's default would split `appl~` and `heart+attack`. `topics.txt` has the positive part
of each query and repeats a term by its weight; the first is {example!r}; the model encodes any other query:

    sparserank export MODEL --to ciff --query {quoted}
"""


def vector_lines(vectors: Vectors, impacts: Impacts | None = None) -> Iterator[dict[str, object]]:
    """Yield the documents with exact weights, or with impacts."""
    for document in vectors.documents():
        values = shorts(document.weights) if impacts is None else impacts.of(document.weights).tolist()
        names = (vectors.names[term] for term in document.terms.tolist())
        contents = "" if impacts else " ".join(filter(None, (document.title, document.text)))
        yield {"id": document.id, "contents": contents, "vector": dict(zip(names, values, strict=True))}


def read_vectors(path: PathLike) -> dict[str, dict[str, float]]:
    """Read a file of vectors as {id: {term: weight}}.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "v.jsonl").write_text('{"id": "d", "vector": {"a": 2}}')
    ...     read_vectors(Path(folder, "v.jsonl"))
    {'d': {'a': 2.0}}
    """
    out: dict[str, dict[str, float]] = {}
    for number, line in numbered_lines(path):
        try:
            record = json.loads(line)
            weights = {str(term): float(weight) for term, weight in record["vector"].items()}
            name = record["id"]
        except (ValueError, TypeError, KeyError, AttributeError):
            raise DataError(f"{path}:{number}: not an object with an 'id' and a 'vector' of numbers") from None
        if name in out:
            raise DataError(f"{path}:{number}: the id {name!r} occurs twice")
        if not np.isfinite(list(weights.values())).all():
            raise DataError(f"{path}:{number}: a weight of {name!r} is not finite")
        out[name] = weights
    return out


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
    folder.files["run.txt"] = (folder.path / "run.txt").stat().st_size
    folder.text("README.md", _readme(README_TREC, vectors, impacts, queries))


def write_to_ciff(folder: Folder, vectors: Vectors, queries: Mapping[str, str]) -> None:
    """Write a CIFF index and topics."""
    impacts = Impacts.over(float(vectors.largest.max(initial=0.0)), BITS)
    write_ciff(folder.path / "index.ciff", ciff_index(vectors, impacts))
    folder.files["index.ciff"] = (folder.path / "index.ciff").stat().st_size
    for name in queries:
        if ":" in name or name.split() != [name]:
            raise DataError(f"a query id in topics.txt must have no colon and no white space; got {name!r}")
    folder.text("topics.txt", _topics(vectors, queries, ":"))
    folder.text("README.md", _readme(README_CIFF, vectors, impacts, queries))


def _topics(vectors: Vectors, queries: Mapping[str, str], separator: str) -> str:
    """Return one line per query, without queries that have no terms: readers fail on an empty topic."""
    lines = ((name, topic_line(vectors, text)) for name, text in queries.items())
    return "".join(f"{name}{separator}{line}\n" for name, line in lines if line)


def _readme(template: str, vectors: Vectors, impacts: Impacts, queries: Mapping[str, str]) -> str:
    first = next(iter(queries.values()))
    sizes = {"documents": len(vectors.index), "terms": len(vectors.names), "repeats": 2**QUERY_BITS - 1}
    scale = {"largest": 2**impacts.bits - 1, "scale": impacts.scale}
    return template.format(example=first, quoted=shlex.quote(first), **sizes, **scale)
