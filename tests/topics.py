"""A collection whose titles and texts share no words: only pairs connect them."""

from __future__ import annotations

import numpy as np

from sparserank.data import Documents

TOPICS, PAGES = 12, 240


def topic_of(page: str) -> int:
    return int(page[1:]) % TOPICS


def topics(*, random_titles: bool = False, seed: int = 0) -> Documents:
    """Pages of some topics: a title has two of twelve title words of its topic, a text eight of twelve other words."""
    rng, docs = np.random.default_rng(seed), {}
    for n in range(PAGES):
        named = int(rng.integers(TOPICS)) if random_titles else n % TOPICS
        title = " ".join(f"name{named}x{i}" for i in rng.choice(12, 2, replace=False)) + f" id{n}"
        words = [f"word{n % TOPICS}x{i}" for i in rng.choice(12, 8, replace=False)]
        docs[f"p{n}"] = {"title": title, "text": f"{' '.join(words[:3])} page. {' '.join(words[3:])} own{n}"}
    return Documents.of(docs)
