"""Raw posts to a tf-idf matrix: ours against scikit-learn's TfidfVectorizer, with equal matrices."""

from __future__ import annotations

import json
from typing import Any

from sklearn.feature_extraction.text import TfidfVectorizer

from sparserank.text import TextFeatures

from .measure import best_seconds, peak_megabytes
from .newsgroups import training_texts


def run(quick: bool = False) -> dict[str, Any]:
    """Megabytes of text a second, to fit and to transform, and how many times scikit-learn's that is."""
    texts = training_texts()[: 1000 if quick else None]
    megabytes = sum(len(t.encode()) for t in texts) / 1e6
    ours, theirs = TextFeatures("sublinear"), TfidfVectorizer(sublinear_tf=True)
    a, b = ours.fit_transform(texts), theirs.fit_transform(texts)
    if ours.words_ != tuple(theirs.get_feature_names_out()) or abs(a - b).max() > 1e-6:
        raise AssertionError("the two matrices differ")
    rows = []
    for job in ("fit_transform", "transform"):
        seconds = best_seconds(
            {"SparseRank": lambda: getattr(ours, job)(texts), "scikit-learn": lambda: getattr(theirs, job)(texts)},  # noqa: B023
            repetitions=1 if quick else 3,
        )
        rows += [
            {
                "name": f"{name} {job}",
                "mb_per_s": round(megabytes / s, 2),
                "ratio": round(seconds["scikit-learn"] / s, 2),
            }
            for name, s in seconds.items()
        ]
    return {
        "case": "text features",
        "size": f"20 Newsgroups, {len(texts)} posts, {megabytes:.1f} MB, {a.shape[1]} words",
        "peer": "scikit-learn TfidfVectorizer",
        "rows": rows,
        "peak_mb": peak_megabytes(),
    }


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
