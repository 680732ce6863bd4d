"""20 Newsgroups in the form that two benchmarks use."""

from __future__ import annotations

import re

from sparserank import data


def training_texts() -> list[str]:
    """The training posts."""
    return list(data.load("20newsgroups").train.items)


def subject_lines() -> list[str]:
    """The subject line of every test post, without its label; empty where a post has none."""
    found = (re.search(r"^Subject:(.*)$", post, re.MULTILINE) for post in data.load("20newsgroups").test.items)
    return [match.group(1).strip() if match else "" for match in found]
