"""Draw the pictures of the gallery from the embedded collections: `python docs/pictures.py [--again] [FOLDER]`.

A picture that is there already is left as it is, unless `--again` is given. `explanation.svg` is the README's picture.
docs/page_pictures.py photographs the search page.
"""

from __future__ import annotations

import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.patches
import numpy as np

import sparserank as sr

sys.path.insert(0, str(Path(__file__).parent))
import page_pictures

GALLERY = Path(__file__).parents[1] / "build/gallery"
QUERY, DOCUMENT = "Mask an array inside a given interval.", "numpy.ma.masked_where"
PACKAGES = ("numpy.linalg", "scipy.stats", "scipy.sparse", "scipy.signal", "sklearn.metrics", "sklearn.linear_model")
WORDS = ("matrix", "eigenvalues", "distribution", "probability", "filter", "frequency", "score", "regression")
BLUE, ORANGE, GREY = "#2a6fdb", "#d4691e", "#6a7380"


def figure(width: float = 7.0, height: float = 3.4) -> tuple[Any, Any]:
    """A figure and its axes."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    axes = drawn.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return drawn, axes


def save(drawn: Any, path: Path) -> None:
    """Write a figure; the same numbers give the same bytes."""
    with matplotlib.rc_context({"svg.hashsalt": "sparserank", "svg.fonttype": "none"}):
        drawn.savefig(path, metadata={"Date": None})


@cache
def pydocs_ranker() -> sr.TextRanker:
    """A ranker of the docstrings."""
    pydocs = sr.data.load("pydocs")
    ranker = sr.TextRanker(max_pairs=200_000, loss="squared", random_state=0)
    return ranker.fit(pydocs.documents, pydocs.queries, pydocs.qrels["train"], exclude_self=True)


def explanation(path: Path) -> None:
    """The ten largest contributions to one score, BM25's and the word pairs'."""
    explained = pydocs_ranker().explain(QUERY, DOCUMENT)
    largest = sorted(explained.pairs, key=lambda pair: -abs(pair.contribution))[:10][::-1]
    drawn, axes = figure(7.0, 3.6)
    colours = [GREY if pair.query == pair.document else BLUE for pair in largest]
    names = [pair.query if pair.query == pair.document else f"{pair.query} → {pair.document}" for pair in largest]
    axes.barh(names, [pair.contribution for pair in largest], color=colours)
    axes.axvline(0, color="black", linewidth=0.6)
    axes.set_xlabel("contribution to the score")
    axes.set_title(f"“{QUERY}”\n{DOCUMENT}: {explained.score:.2f}", fontsize=10, loc="left")
    kinds = {"a word of both": GREY, "a learned pair": BLUE}
    handles = [matplotlib.patches.Patch(color=colour, label=kind) for kind, colour in kinds.items()]
    axes.legend(handles=handles, loc="lower right", frameon=False)
    save(drawn, path)


def digits() -> tuple[Any, Any, Any, Any]:
    """Rows of unit length and preferences, of training and of test digits."""
    loaded = sr.data.load("digits")
    rows = (part.items / np.linalg.norm(part.items, axis=1, keepdims=True) for part in (loaded.train, loaded.test))
    train, test = rows
    return train, sr.Preferences.from_labels(loaded.train.y), test, sr.Preferences.from_labels(loaded.test.y)


def size_path(path: Path) -> None:
    """Held-out triples in order against the number of pairs."""
    train, prefs, test, held_out = digits()
    ranker = sr.BilinearRanker(density=0.5, max_iter=8000, refit=True, random_state=0)
    sizes = [10, 30, 100, 200, 400, 800, 1200, 2048]
    sr.size_path(ranker, train, train, prefs, sizes, held_out=(test, test, held_out)).plot(path)


def learning_curve(path: Path) -> None:
    """Violated triples and pairs of W while Algorithm 1 learns."""
    train, prefs, _, _ = digits()
    ranker = sr.BilinearRanker(density=0.5, max_iter=20_000, random_state=0).fit(train, train, prefs)
    curve = ranker.solution_.history
    steps = [point.steps for point in curve]
    drawn, axes = figure()
    axes.plot(steps, [100 * point.violations for point in curve], color=ORANGE)
    axes.set_xlabel("steps")
    axes.set_ylabel("violated triples, %", color=ORANGE)
    right = axes.twinx()
    right.plot(steps, [point.nonzeros for point in curve], color=BLUE)
    right.set_ylabel("pairs in W", color=BLUE)
    save(drawn, path)


def heat_map(path: Path) -> None:
    """W between some words, learned from the packages that docstrings belong to."""
    pydocs = sr.data.load("pydocs")
    texts, labels = [], []
    for name, text in zip(pydocs.documents.ids, pydocs.documents.texts, strict=True):
        package = next((number for number, one in enumerate(PACKAGES) if name.startswith(f"{one}.")), None)
        if package is not None:
            texts.append(text)
            labels.append(package)
    features = sr.text.TextFeatures("sublinear", columns=2000)
    X = features.fit_transform(texts)
    ranker = sr.BilinearRanker(density=0.05, max_iter=20_000, refit=True, random_state=0)
    ranker.fit(X, X, sr.Preferences.from_labels(labels), query_words=features.words_, document_words=features.words_)
    ranker.heatmap(WORDS, path)


def scale_curve(path: Path) -> None:
    """Seconds of one fit of the domination ranker against the rows of one query."""
    rng, rows, seconds = np.random.default_rng(0), [10_000, 30_000, 100_000, 300_000], []
    for number in [1000, *rows]:  # the first one compiles
        X = rng.normal(size=(number, 10))
        y = np.clip(np.round(X[:, 0] + rng.normal(size=number)), 0, 2)
        started = time.perf_counter()
        sr.DominationRanker(alpha=1.0, max_iter=10).fit(X, y)
        seconds.append(time.perf_counter() - started)
    drawn, axes = figure()
    axes.loglog(rows, seconds[1:], marker="o", color=BLUE, label="DominationRanker, 10 passes")
    linear = [seconds[1] * number / rows[0] for number in rows]
    axes.loglog(rows, linear, "--", color=GREY, label="proportional to the rows")
    axes.set_xlabel("rows of one query")
    axes.set_ylabel("seconds")
    axes.legend(frameon=False)
    save(drawn, path)


PICTURES = {
    "size-path.png": size_path,
    "heat-map.png": heat_map,
    "learning-curve.svg": learning_curve,
    "scale-curve.svg": scale_curve,
    "explanation.svg": explanation,
    **dict.fromkeys(page_pictures.VIEWS, page_pictures.draw),
}


def main(words: list[str]) -> None:
    """Draw what is not there."""
    again, folders = "--again" in words, [word for word in words if not word.startswith("--")]
    folder = Path(folders[0]) if folders else GALLERY
    folder.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        if again or not (folder / name).exists():
            started = time.perf_counter()
            draw(folder / name)
            print(f"{folder / name}: {time.perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
