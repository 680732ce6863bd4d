"""A small world of documents and judged queries for the tests of the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

COLOURS = ("red", "green", "blue", "white", "black", "brown", "grey", "pink", "gold", "teal")
THINGS = (("car", "automobile", "wheels"), ("bike", "bicycle", "chain"), ("ship", "boat", "sails"))


def world() -> tuple[dict[str, dict[str, Any]], dict[str, str], dict[str, dict[str, int]]]:
    """Who asks for a car wants the automobile of that colour, which no document calls a car; boats have an address."""
    docs, queries, qrels = {}, {}, {}
    for number, colour in enumerate(COLOURS):
        for asked, thing, part in THINGS:
            text = f"A {colour} {thing} with {part}. It is number {number} of its kind, and the {thing} is kept dry."
            metadata = {"kind": thing, "year": 2000 + number, "fast": thing != "bicycle"}
            if thing == "boat":
                metadata["url"] = f"https://boats.example/{colour}/boat"
            docs[f"{thing}-{colour}"] = {"title": f"The {colour} {thing}", "text": text, "metadata": metadata}
            queries[f"{asked}-{colour}"] = f"{colour} {asked}"
            qrels[f"{asked}-{colour}"] = {f"{thing}-{colour}": 1}
    return docs, queries, qrels


def write_world(folder: Path) -> Path:
    """The judged queries as a BEIR folder; the split dev has one in three of them."""
    docs, queries, qrels = world()
    (folder / "qrels").mkdir(parents=True)
    corpus = [json.dumps({"_id": name, **fields}) for name, fields in docs.items()]
    (folder / "corpus.jsonl").write_text("\n".join(corpus) + "\n")
    asked = [json.dumps({"_id": name, "text": text}) for name, text in queries.items()]
    (folder / "queries.jsonl").write_text("\n".join(asked) + "\n")
    rows = [f"{query}\t{doc}\t{grade}" for query in list(qrels)[::3] for doc, grade in qrels[query].items()]
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\n" + "\n".join(rows) + "\n")
    return folder
