"""How often one user's feedback on one query is learned in one round, and its cost on held-out judgments.

    python benchmarks/teaching.py MODEL [--data pydocs] [--queries 30]

For queries drawn from the train and dev parts, the document at rank 3, 4 or 5 gets a thumbs-up and two clicks, or a
thumbs-down; each piece of feedback is learned alone, starting from MODEL. Every round is measured on the dev judgments.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Collection
from pathlib import Path

import numpy as np

from sparserank.service.feedback import Feedback, normalize_query
from sparserank.service.learning.gate import HeldOutJudgments
from sparserank.service.learning.grades import is_held_out
from sparserank.service.learning.rounds import run_round
from sparserank.text_ranker import index_path
from sparserank.versions import VersionRegistry


class FeedbackLog:
    """Feedback in a list."""

    def __init__(self, said: list[Feedback]) -> None:
        self.said = said

    def since(self, number: int, limit: int = 10_000) -> list[Feedback]:
        return self.said[number:][:limit]

    def of_queries(self, queries: Collection[str]) -> list[Feedback]:
        selected = {normalize_query(query) for query in queries}
        return [one for one in self.said if normalize_query(one.query) in selected]

    def last(self) -> int:
        return len(self.said)


def opinion(query: str, document: str, shown: tuple[str, ...], grade: float) -> FeedbackLog:
    """A thumb, and two clicks where it is up."""
    said = [Feedback("thumb", "judgment", query, document, shown, grade, 1)]
    if grade > 0:
        said += [Feedback(f"click {n}", "click", query, document, shown, 1.0, n) for n in (2, 3)]
    return FeedbackLog(said)


def taught(
    model: Path, judgments: HeldOutJudgments, query: str, place: int, grade: float
) -> tuple[bool, str, float, float]:
    """Whether the document moved as wished; the outcome; how much nDCG@10 of dev changed; seconds."""
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(shutil.copy(model, Path(folder) / "model"))
        shutil.copy(index_path(model), index_path(copied))
        versions = VersionRegistry.open(copied)
        shown = tuple(hit.id for hit in versions.load().search(query, 10))
        document = shown[min(place, len(shown) - 1)]
        done = run_round(versions, opinion(query, document, shown, grade), judgments=judgments)
        now = [hit.id for hit in versions.load().search(query, 100)]
        moved = shown.index(document) - (now.index(document) if document in now else len(now))
        change = judgments.ndcg(versions.load())[0] - judgments.ndcg(versions.load(1))[0]
    return moved * grade > 0, done.outcome, change, done.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--data", default="pydocs")
    parser.add_argument("--queries", type=int, default=30)
    options = parser.parse_args()
    judgments = HeldOutJudgments.load(options.data, "dev")
    texts = sorted({*judgments.queries.values(), *HeldOutJudgments.load(options.data, "train").queries.values()})
    rng = np.random.default_rng(0)
    for name, grade in (("thumbs-up", 1.0), ("thumbs-down", -1.0)):
        drawn = [texts[i] for i in rng.choice(len(texts), options.queries, replace=False)]
        found = [taught(options.model, judgments, query, int(rng.integers(2, 5)), grade) for query in drawn]
        works, held = sum(one[0] for one in found), sum(is_held_out(query) for query in drawn)
        seconds = statistics.median(one[3] for one in found)
        print(
            f"{name:12s} learned in {works} of {len(found)} ({held} held out, "
            f"{sum(one[1] == 'refused' for one in found)} refused); dev nDCG@10 changes by "
            f"{min(one[2] for one in found):+.5f} to {max(one[2] for one in found):+.5f}; {seconds:.1f} s a round"
        )


if __name__ == "__main__":
    main()
