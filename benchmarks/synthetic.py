"""A synthetic collection of any size in which queries use other words than documents.

Words follow Zipf's law. A document has a title of 4 and a text of 36 words: half of them from its topic, which is 60
words that go together, half from the whole vocabulary. A query is made from one document, its only relevant one: 4 of
its words, each replaced by its synonym with probability .8. Synonyms occur in no document, so BM25 cannot match them; a
word pair (synonym, word) can.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparserank.data.records import Documents

WORDS, TOPICS, TOPIC_WORDS = 20_000, 500, 60
TITLE, TEXT, QUERY, SYNONYMS = 4, 36, 4, 0.8


def collection(
    n_documents: int, n_queries: int, seed: int = 0, n_words: int = WORDS
) -> tuple[Documents, dict[str, str], dict[str, dict[str, int]]]:
    """Documents, queries and judgments."""
    rng = np.random.default_rng(seed)
    chance = 1.0 / (np.arange(n_words) + 10.0)
    chance /= chance.sum()
    topics = rng.choice(n_words, (TOPICS, TOPIC_WORDS), p=chance)
    topic, length = rng.integers(0, TOPICS, n_documents), TITLE + TEXT
    words = np.where(
        rng.random((n_documents, length)) < 0.5,
        topics[topic[:, None], rng.integers(0, TOPIC_WORDS, (n_documents, length))],
        rng.choice(n_words, (n_documents, length), p=chance),
    )
    ids = tuple(f"d{i}" for i in range(n_documents))
    titles, texts = (tuple(_text(row) for row in part) for part in (words[:, :TITLE], words[:, TITLE:]))
    source = rng.choice(n_documents, n_queries, replace=n_queries > n_documents)
    chosen = np.take_along_axis(words[source], rng.permuted(np.tile(np.arange(length), (n_queries, 1)), axis=1), 1)
    synonym = rng.random((n_queries, QUERY)) < SYNONYMS
    queries = {
        f"q{i}": " ".join(f"s{w}" if other else f"w{w}" for w, other in zip(row, change, strict=True))
        for i, (row, change) in enumerate(zip(chosen[:, :QUERY].tolist(), synonym.tolist(), strict=True))
    }
    return Documents(ids, titles, texts), queries, {f"q{i}": {ids[d]: 1} for i, d in enumerate(source.tolist())}


def _text(words: NDArray[np.int64]) -> str:
    return " ".join(f"w{word}" for word in words.tolist())
