"""Export of a text ranker to other engines: its documents, index settings and queries.

A ranker's score is an inner product of query weights and document weights (`Vectors`). Each target gets as much of it
as it supports; docs/guides/export.md lists what each one loses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import validation
from ..data.files import PathLike
from ..deprecated import renamed_names, renamed_parameters
from ..errors import ConfigError, NotFitted
from ..search.filters import FilterLike
from ..text_ranker import TextRanker
from . import lucene, qdrant, static_site, synonyms, trec, vespa
from .filters import TRANSLATIONS
from .folder import MANIFEST, check_free, export_folder, utf8
from .stages import RESCORE_WINDOW
from .vectors import Vectors

TARGETS = ("qdrant", "elasticsearch", "opensearch", "vespa", "trec", "ciff", "synonyms", "static")

__all__ = ["RESCORE_WINDOW", "TARGETS", "Vectors", "check_free", "export", "query_body", "vectors_of"]
__getattr__ = renamed_names(__name__, {"RESCORED": "RESCORE_WINDOW"})


def vectors_of(ranker: TextRanker) -> Vectors:
    """Return the term weights of a fitted ranker and of the documents in its index.

    Parameters
    ----------
    ranker : TextRanker
        A ranker with an index. Another class, or an index without documents, raises ConfigError.

    Returns
    -------
    vectors : Vectors

    Examples
    --------
    >>> sorted(vectors_of(TextRanker().fit({"d1": "red apples", "d2": "a pear"})).names)
    ['appl', 'pear', 'red']
    """
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


def example_query(vectors: Vectors) -> dict[str, str]:
    """Return the first words of a document that contains known words, as {"example": text}."""
    records = vectors.index.documents
    for title, text in zip(records.titles, records.texts, strict=True):
        words = " ".join((title or text).encode(errors="ignore").decode().split()[:6])
        if vectors.query(words):
            return {"example": words}
    raise ConfigError("no document of the index has a word that the model knows; there is nothing to export")


def _validate_texts(vectors: Vectors, queries: Mapping[str, str]) -> None:
    """Raise DataError for an id or a query that is not UTF-8."""
    for number, doc_id in enumerate(vectors.index.documents.ids, start=1):
        utf8(f"the id of document {number} of {len(vectors.index)} in the index", doc_id)
    for number, (name, text) in enumerate(queries.items(), start=1):
        utf8(f"the id of query {number} of {len(queries)}", name)
        utf8(f"the text of query {name!r}", text)


def _translate(target: str, vectors: Vectors, given: FilterLike | None) -> Any:
    """Return a filter in the language of a target, or None."""
    if given is None:
        return None
    if target not in TRANSLATIONS:
        raise ConfigError(f"requests for {target} have no filter; those for {', '.join(TRANSLATIONS)} can have one")
    return TRANSLATIONS[target](vectors.metadata_fields)(given)


@renamed_parameters({"rescored": "rescore_window"})
def export(
    ranker: TextRanker,
    target: str,
    output: PathLike,
    queries: Mapping[str, str] | None = None,
    rescore_window: int = RESCORE_WINDOW,
    embedded: bool = False,
    filter: FilterLike | None = None,
) -> dict[str, Any]:
    """Write a folder for another engine, with a README.md that shows how to use it.

    Parameters
    ----------
    ranker : TextRanker
        A ranker with an index.
    target : str
        One of `TARGETS`.
    output : path
        The folder to write. An earlier export there is replaced; other files there raise ConfigError.
    queries : mapping of str to str, optional
        {id: text}; each query is written as a request for the target. By default, one example query.
    rescore_window : int
        How many documents Elasticsearch, OpenSearch and Vespa rescore with signed weights.
    embedded : bool
        For Qdrant: also write the folder `shard`, which Qdrant Edge opens within a process.
    filter : str, mapping or None
        A filter by metadata, as in `TextRanker.search`; the requests have it in the engine's language.

    Returns
    -------
    summary : dict
        The content of export.json in the folder.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> ranker = TextRanker().fit({"d1": "red apples", "d2": "a pear"})
    >>> with TemporaryDirectory() as folder:
    ...     summary = export(ranker, "elasticsearch", f"{folder}/exported", {"q": "apple"})
    >>> summary["documents"], sorted(summary["files"])
    (2, ['README.md', 'bulk-00000.ndjson', 'index.json', 'queries.jsonl', 'query.json'])
    """
    validation.choice("to", target, TARGETS)
    validation.count("rescore_window", rescore_window, low=10, high=10_000)
    if embedded and target != "qdrant":
        raise ConfigError(f"only qdrant can be embedded; got {target!r}")
    if embedded:
        validation.installed("qdrant_edge", extra="export")
    vectors = vectors_of(ranker)
    if queries is not None and not queries:
        raise ConfigError("there are no queries: give at least one, or leave them out to write an example query")
    queries = example_query(vectors) if queries is None else queries
    _validate_texts(vectors, queries)
    chosen = _translate(target, vectors, filter)
    with export_folder(output) as folder:
        if target in lucene.ENGINES:
            lucene.write(target, folder, vectors, queries, rescore_window, chosen)
        elif target == "vespa":
            vespa.write(folder, vectors, queries, rescore_window, chosen)
        elif target == "qdrant":
            qdrant.write(folder, vectors, queries, chosen)
        elif target == "synonyms":
            synonyms.write(folder, vectors, queries, chosen)
        else:
            writers = {"trec": trec.write, "ciff": trec.write_to_ciff, "static": static_site.write}
            writers[target](folder, vectors, queries)
        if embedded:
            qdrant.make_shard(vectors, folder.path / "shard").close()
        summary = {
            "target": target,
            "documents": len(vectors.index),
            "terms": len(vectors.names),
            "weights": int(vectors.matrix.nnz),
            "pairs": vectors.model.n_pairs,
            "queries": len(queries),
            "rescored": rescore_window if target in (*lucene.ENGINES, "vespa") else None,
            "files": dict(folder.files),
        }
        folder.json(MANIFEST, summary)
    return summary


@renamed_parameters({"rescored": "rescore_window"})
def query_body(
    ranker: TextRanker,
    target: str,
    text: str,
    k: int = 10,
    rescore_window: int = RESCORE_WINDOW,
    filter: FilterLike | None = None,
) -> dict[str, Any]:
    """Return the request that an engine needs for one query.

    Parameters
    ----------
    ranker : TextRanker
        A ranker with an index.
    target : str
        One of `TARGETS`.
    text : str
        The query.
    k : int
        How many results to request.
    rescore_window : int
        How many documents Elasticsearch, OpenSearch and Vespa rescore with signed weights.
    filter : str, mapping or None
        A filter by metadata, as in `TextRanker.search`, which the request has in the engine's language.

    Returns
    -------
    body : dict

    Examples
    --------
    >>> ranker = TextRanker().fit({"d1": "red apples", "d2": "a pear"})
    >>> query_body(ranker, "opensearch", "apple")["query"]
    {'neural_sparse': {'sparserank': {'query_tokens': {'appl': 1.0}}}}
    """
    validation.choice("to", target, TARGETS)
    if target == "static":
        raise ConfigError("a static site needs no requests: its pages search by themselves; give --output DIR")
    validation.count("k", k, low=1, high=10_000)
    utf8("the text of the query", text)
    vectors = vectors_of(ranker)
    chosen = _translate(target, vectors, filter)
    if target in lucene.ENGINES:
        return lucene.body(lucene.ENGINES[target], vectors, text, k, rescore_window, chosen)
    if target == "vespa":
        return vespa.body(vectors, text, k, rescore_window, chosen)
    if target == "qdrant":
        return qdrant.body(vectors, text, k, chosen)
    if target == "synonyms":
        rules = synonyms.matching_rules(vectors, text)
        return {"rules": [str(rule) for rule in rules], "body": synonyms.body(text, k, chosen)}
    return {"vector": vectors.by_name(vectors.query(text)), "topic": trec.topic(vectors, text)}
