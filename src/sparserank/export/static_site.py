"""A folder that searches in the browser: shards of words, postings and documents, and a JavaScript module.

The module computes the scores of the model from the same 32-bit weights. It loads `search.json` and `documents.json`
first; a search then loads the shards of its words (`words/`), of the words that they are paired with (`postings/`), and
of the documents that it shows (`documents/`). Documents are numbered in the order of their ids, by which equal scores
are ranked.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

from ..errors import ModelError
from ..text.normalization import strip_accents
from ..text_ranker.document_names import digest_of, names_of
from ..text_ranker.model import TextModel
from .folder import Folder, template, utf8
from .synonyms import spellings
from .vectors import Vectors, short, shorts

SCRIPTS = ("search.js", "stemmer.js", "page.js", "worker.js")
SHARD_BYTES = 24_000
"""Size of a shard before compression."""
_FNV_START, _FNV_PRIME = 0x811C9DC5, 0x01000193


def write(folder: Folder, vectors: Vectors, queries: Mapping[str, str]) -> None:
    """Write the shards, the scripts and a page that shows how to use them."""
    model = vectors.model
    _check(model)
    ids = vectors.index.documents.ids
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), np.int64)
    n = len(model.lexical.words)
    columns = _column_order(model)
    weights = csr_array(vectors.matrix[order][:, :n])
    counts, lengths = _counts(vectors, order)
    has_counts = counts is not None and _same(model, counts, lengths, weights)
    first_documents = _write_shards(folder, "documents", _documents(vectors, order))
    first_columns = _write_shards(folder, "postings", _postings(model, columns, counts if has_counts else weights))
    settings = _analyzer(model) | {
        "documents": len(order),
        "values": "counts" if has_counts else "weights",
        "pair_weight": model.pair_weight if model.W is not None else 0,
        "pinned": sorted({word for word, _ in model.constraints.pinned}),
        "word_shards": _write_words(folder, vectors, np.argsort(columns)),
        "first_columns": first_columns,
        "first_documents": first_documents,
    }
    folder.text("search.json", _compact(settings))
    norms = [] if model.W is None else _norms(model, weights)
    rounded = shorts(lengths) if has_counts else []
    folder.text("documents.json", _compact({"lengths": rounded, "norms": norms}))
    for name in (*SCRIPTS, "index.html"):
        folder.text(name, template(f"static/{name}"))
    folder.readme("static", vectors, queries)


def _check(model: TextModel) -> None:
    """Raise ModelError for a model that the module cannot compute."""
    lexical, analyzer = model.lexical, model.lexical.analyzer
    if lexical.kind != "bm25" or (model.vocabulary is not None and model.vocabulary.queries_are_documents):
        raise ModelError("search in the browser needs BM25 scores; train the model with lexical='bm25'")
    if analyzer.splits_scripts not in (None, "bigrams") or analyzer.compounds or analyzer.ngrams > 1:
        raise ModelError(
            "search in the browser splits words by itself: it has no segmenter, compounds or n-grams of documents; "
            "train the model with segmenter='bigrams', compounds=False and ngrams=1"
        )


def _analyzer(model: TextModel) -> dict[str, Any]:
    """Return how the module splits texts into words; a stem other than an English one is looked up in a table."""
    analyzer = model.lexical.analyzer
    return {
        "lowercase": analyzer.lowercase,
        "normalize": analyzer.normalizes,
        "bigrams": analyzer.splits_scripts == "bigrams",
        "shortest": analyzer.shortest,
        "stop_words": sorted(analyzer.stop_word_set),
        "stemmer": "table" if _needs_table(model) else analyzer.stemmer,
    }


def _needs_table(model: TextModel) -> bool:
    analyzer = model.lexical.analyzer
    return bool(analyzer.stemmers) and (analyzer.stemmers != ("english",) or analyzer.folds_accents)


def _counts(vectors: Vectors, order: NDArray[np.int64]) -> tuple[csr_array | None, NDArray[np.float32]]:
    """Return the counts of words and the length normalization of BM25; None if counts are not whole numbers."""
    lexical, documents = vectors.model.lexical, vectors.index.documents
    if lexical.bm25f is not None:
        return None, np.zeros(0, np.float32)
    fields = (documents.titles, documents.texts)
    if lexical.fields or lexical.text_field != "text":
        return None, np.zeros(0, np.float32)
    features = lexical.features
    counts = csr_array(features.field_counts(*fields, field_weights=lexical.field_weights)[order])
    length = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    norm = features.k1 * (1.0 - features.b + features.b * length / (features.mean_length_ or 1.0))
    return (counts if np.array_equal(counts.data, np.round(counts.data)) else None), norm.astype(np.float32)


def _same(model: TextModel, counts: csr_array, lengths: NDArray[np.float32], weights: csr_array) -> bool:
    """Return whether the counts give the weights of the index to the bit."""
    counts.sort_indices()
    tf = counts.data.astype(np.float32)
    tf = tf / (tf + np.repeat(lengths, np.diff(counts.indptr))) * model.lexical.features.idf_[counts.indices]
    same = np.array_equal(counts.indptr, weights.indptr) and np.array_equal(counts.indices, weights.indices)
    return same and np.array_equal(tf.astype(np.float32), weights.data)


def _norms(model: TextModel, weights: csr_array) -> list[float]:
    """Return the number that the pair weights of each document are divided by."""
    divided = weights.data / np.sqrt(model.lexical.features.idf_)[weights.indices]
    squares = csr_array((divided.astype(np.float64) ** 2, weights.indices, weights.indptr), shape=weights.shape)
    return [float(f"{norm:.12g}") for norm in np.sqrt(np.asarray(squares.sum(axis=1)).ravel()).tolist()]


def _documents(vectors: Vectors, order: NDArray[np.int64]) -> Iterator[dict[str, Any]]:
    rows = list(vectors.index.documents.rows().items())
    for number in order.tolist():
        doc_id, (title, text, metadata) = rows[number]
        record: dict[str, Any] = {"id": doc_id, "title": title, "text": text}
        yield record | ({"metadata": dict(metadata)} if metadata else {})


def _column_order(model: TextModel) -> NDArray[np.intp]:
    """Return the columns by falling number of pairs: the words that most searches read are in the same shards."""
    n = len(model.lexical.words)
    n_pairs = np.zeros(n, np.intp) if model.W is None else np.bincount(model.W.indices, minlength=n)
    return np.argsort(-n_pairs, kind="stable")


def _postings(model: TextModel, columns: NDArray[np.intp], rows: csr_array | None) -> Iterator[list[Any]]:
    """Yield for each word: the word, its most frequent spelling, idf, and its postings.

    A posting is the gap to the last document if its value is 1, else the negative gap and the value.
    """
    lists = csc_array(rows)
    lists.sort_indices()
    words, idf = model.lexical.words, model.lexical.features.idf_
    shown = model.lexical.surface_forms(words)
    for column in columns.tolist():
        part = slice(lists.indptr[column], lists.indptr[column + 1])
        postings: list[float] = []
        for gap, value in zip(_gaps(lists.indices[part]), lists.data[part].tolist(), strict=True):
            postings += [gap] if value == 1.0 else [-gap, int(value) if value.is_integer() else short(value)]
        yield [words[column], shown.get(words[column], ""), short(idf[column]), postings]


def _write_words(folder: Folder, vectors: Vectors, place: NDArray[np.intp]) -> int:
    """Write the query words by their hash: place among the postings, weight, and pairs; and stems that need a table.

    A sequence of words is in the shard of its first word, which the search has loaded already.
    """
    model = vectors.model
    entries: dict[str, list[Any]] = {word: [int(place[i]), 0, [], []] for i, word in enumerate(model.lexical.words)}
    if model.W is not None and model.vocabulary is not None:
        W, weight = model.W, shorts(model.vocabulary.column_weights)
        for row, word in enumerate(model.vocabulary.words):
            part = slice(W.indptr[row], W.indptr[row + 1])
            paired = place[W.indices[part]]
            order = np.argsort(paired)
            pairs = [_gaps(paired[order]), shorts(W.data[part][order])]
            entries[word] = [entries.get(word, [-1])[0], weight[row], *pairs]
    forms = _stems(vectors) if _needs_table(model) else {}
    names = _names(vectors)
    size = len(_compact(entries)) + len(_compact(forms)) + 12 * len(names)
    n_shards = max(1, round(size / SHARD_BYTES))
    shards: list[dict[str, Any]] = [{"words": {}, "forms": {}, "names": []} for _ in range(n_shards)]
    for kind, table in (("words", entries), ("forms", forms)):
        for word, entry in table.items():
            shards[hash_of(word.split(" ")[0]) % n_shards][kind][word] = entry
    for name in names:
        shards[hash_of(name.split(" ")[0]) % n_shards]["names"].append(hash_of(name))
    for number, shard in enumerate(shards):
        folder.text(f"words/{number}.json", _compact(shard))
    return n_shards


def _names(vectors: Vectors) -> list[str]:
    """Return the names of documents, which are ranked by the lexical score alone."""
    names, features, documents = vectors.model.names, vectors.model.lexical.features, vectors.index.documents
    if names is None:
        return []
    found = {
        " ".join(words): digest_of(words)
        for title, text in zip(documents.titles, documents.texts, strict=True)
        for words, _ in names_of(features, title, text)
    }
    known = np.isin(np.array(list(found.values()), np.int64), names.digests)
    return [name for name, is_known in zip(found, known.tolist(), strict=True) if is_known]


def _stems(vectors: Vectors) -> dict[str, str]:
    """Return the stems of all words of the documents, as they are spelled there and without accents."""
    words = {word for spelled in spellings(vectors).values() for word in spelled}
    words |= {strip_accents(word) for word in words}
    ordered = sorted(words)
    stems = vectors.model.lexical.analyzer.normal_forms(ordered)
    return {word: stem for word, stem in zip(ordered, stems, strict=True) if stem is not None and stem != word}


def _write_shards(folder: Folder, name: str, records: Iterable[Any]) -> list[int]:
    """Write records to numbered files of about SHARD_BYTES and return the number of the first record of each."""
    firsts: list[int] = []
    part: list[str] = []
    number = size = 0
    for number, record in enumerate(map(_compact, records)):
        if part and size + len(record) > SHARD_BYTES:
            folder.text(f"{name}/{len(firsts)}.json", f"[{','.join(part)}]")
            firsts.append(number - len(part))
            part, size = [], 0
        part.append(record)
        size += len(record)
    folder.text(f"{name}/{len(firsts)}.json", f"[{','.join(part)}]")
    return [*firsts, number + 1 - len(part)]


def _gaps(ascending: NDArray[Any]) -> list[int]:
    """Return the differences of ascending numbers; the first one counts from -1.

    >>> _gaps(np.array([0, 1, 5]))
    [1, 1, 4]
    """
    gaps: list[int] = np.diff(ascending, prepend=-1).tolist()
    return gaps


def hash_of(word: str) -> int:
    """Return the hash of a word by which its shard is found (FNV-1a, 32 bits).

    >>> hash_of("a")
    3826002220
    """
    value = _FNV_START
    for byte in word.encode():
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return value


def _compact(content: Any) -> str:
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return utf8("a document", text).decode()
