"""sparserank explain"""

from __future__ import annotations

from typing import Annotated

import typer

from .arguments import IndexFile, Json, ModelFile, Words


def explain(
    model: ModelFile,
    words: Words,
    document: Annotated[str, typer.Argument(metavar="DOC", help="The id of a document.")],
    index: IndexFile = None,
    as_json: Json = False,
) -> None:
    """Why DOC has its score for WORDS: which word met which, and what it added. The parts sum to the score.

    Example: sparserank explain pydocs.safetensors "solve a linear system" scipy.linalg.solve
    """
    from ..engine import load_text
    from .output import print_json, print_table

    why = load_text(model, index).explain(words, document)
    if as_json:
        print_json(why.to_dict())
        return
    largest = max((abs(pair.contribution) for pair in why.pairs), default=1.0)
    rows = [
        (
            pair.query,
            pair.document,
            f"{pair.contribution:+.3f}",
            "█" * max(1, round(24 * abs(pair.contribution) / largest)),
        )
        for pair in why.pairs
    ]
    print_table(
        f"{document} scores {why.score:.3f} for {words!r}",
        ("query word", "document word", "adds", ""),
        rows,
        right=(2,),
    )
