"""What a text ranker has learned, for other engines: its documents, its index settings and its queries.

A ranker's score is one inner product of a query's weights and a document's (`Vectors`). Each target gets what it can
use of that; docs/guides/export.md has what each loses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import validation
from ..data.files import PathLike
from ..errors import ConfigError, NotFitted
from ..text_ranker import TextRanker
from . import lucene, qdrant, synonyms, trec, vespa
from .folder import MANIFEST, Folder, check_free, exporting, utf8
from .stages import RESCORED
from .vectors import Vectors

TARGETS = ("qdrant", "elasticsearch", "opensearch", "vespa", "trec", "ciff", "synonyms")

__all__ = ["RESCORED", "TARGETS", "Vectors", "check_free", "export", "query_body", "vectors_of"]


def vectors_of(ranker: TextRanker) -> Vectors:
    """The term weights of a fitted ranker and its index; one without documents is refused."""
    if not isinstance(ranker, TextRanker):
        raise ConfigError(
            f"only a text ranker has words and documents to export; got a {type(ranker).__name__}. "
            "Train one with `sparserank train DATA --output MODEL`"
        )
    if not hasattr(ranker, "model_") or not hasattr(ranker, "index_"):
        raise NotFitted(
            "there are no documents to export: the model has no index; "
            "make one with `sparserank index MODEL DATA --output MODEL.index`"
        )
    if len(ranker.index_) == 0:
        raise ConfigError("the index has no documents; there is nothing to export")
    return Vectors(ranker.model_, ranker.index_)


def example(vectors: Vectors) -> dict[str, str]:
    """A query to show: the beginning of a document that has words."""
    records = vectors.index.documents
    for title, text in zip(records.titles, records.texts, strict=True):
        words = " ".join((title or text).encode(errors="ignore").decode().split()[:6])
        if vectors.query(words):
            return {"example": words}
    raise ConfigError("no document of the index has a word the model knows; there is nothing to export")


def _asked(vectors: Vectors, queries: Mapping[str, str] | None) -> Mapping[str, str]:
    """The queries to write; ids and queries that are no UTF-8 are refused before anything is."""
    if queries is not None and not queries:
        raise ConfigError("there are no queries: give at least one, or leave them out and one is made up")
    for number, doc_id in enumerate(vectors.index.documents.ids, start=1):
        utf8(f"the id of document {number} of {len(vectors.index)} in the index", doc_id)
    asked = example(vectors) if queries is None else queries
    for number, (name, text) in enumerate(asked.items(), start=1):
        utf8(f"the id of query {number} of {len(asked)}", name)
        utf8(f"the text of query {name!r}", text)
    return asked


def export(
    ranker: TextRanker,
    target: str,
    output: PathLike,
    queries: Mapping[str, str] | None = None,
    rescored: int = RESCORED,
    embedded: bool = False,
) -> dict[str, Any]:
    """Write a folder for one of TARGETS, with a README.md that tells how to use it; returns what export.json says.

    queries : {id: text}, each of which is written as the target wants it; where there is None, one is made up.
    rescored : how many documents engines without signs score again, see `stages`.
    embedded : for Qdrant, also the folder `shard`, which Qdrant Edge opens in a process of yours.

    >>> from tempfile import TemporaryDirectory
    >>> ranker = TextRanker().fit({"d1": "red apples", "d2": "a pear"})
    >>> with TemporaryDirectory() as folder:
    ...     told = export(ranker, "elasticsearch", f"{folder}/made", {"q": "apple"})
    >>> told["documents"], sorted(told["files"])
    (2, ['README.md', 'bulk-00000.ndjson', 'index.json', 'queries.jsonl', 'query.json'])
    """
    validation.choice("to", target, TARGETS)
    validation.count("rescored", rescored, low=10, high=10_000)
    if embedded and target != "qdrant":
        raise ConfigError(f"only qdrant can be embedded; got {target!r}")
    if embedded:
        validation.installed("qdrant_edge", extra="export")
    vectors = vectors_of(ranker)
    asked = _asked(vectors, queries)
    with exporting(output) as folder:
        _writer(target, rescored)(folder, vectors, asked)
        if embedded:
            qdrant.make_shard(vectors, folder.path / "shard").close()
        told = {
            "target": target,
            "documents": len(vectors.index),
            "terms": len(vectors.names),
            "weights": int(vectors.matrix.nnz),
            "pairs": vectors.model.n_pairs,
            "queries": len(asked),
            "rescored": rescored if target in ("elasticsearch", "opensearch", "vespa") else None,
            "files": dict(folder.files),
        }
        folder.json(MANIFEST, told)
    return told


def _writer(target: str, rescored: int) -> Callable[[Folder, Vectors, Mapping[str, str]], None]:
    if target in lucene.ENGINES:
        return lambda folder, vectors, asked: lucene.write(target, folder, vectors, asked, rescored)
    if target == "vespa":
        return lambda folder, vectors, asked: vespa.write(folder, vectors, asked, rescored)
    plain = {"qdrant": qdrant.write, "trec": trec.write, "ciff": trec.write_to_ciff, "synonyms": synonyms.write}
    return plain[target]


def query_body(ranker: TextRanker, target: str, text: str, k: int = 10, rescored: int = RESCORED) -> dict[str, Any]:
    """What to send to the engine for one text.

    >>> ranker = TextRanker().fit({"d1": "red apples", "d2": "a pear"})
    >>> query_body(ranker, "opensearch", "apple")["query"]
    {'neural_sparse': {'sparserank': {'query_tokens': {'appl': 1.0}}}}
    """
    validation.choice("to", target, TARGETS)
    validation.count("k", k, low=1, high=10_000)
    utf8("the text of the query", text)
    vectors = vectors_of(ranker)
    if target in lucene.ENGINES:
        return lucene.body(lucene.ENGINES[target], vectors, text, k, rescored)
    if target == "vespa":
        return vespa.body(vectors, text, k, rescored)
    if target == "qdrant":
        return qdrant.body(vectors, text, k)
    if target == "synonyms":
        met = synonyms.met(synonyms.rules(vectors), vectors, text)
        return {"rules": [str(rule) for rule in met], "body": synonyms.body(text, k)}
    return {"vector": vectors.named(vectors.query(text)), "topic": trec.topic(vectors, text)}
