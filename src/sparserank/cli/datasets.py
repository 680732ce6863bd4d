"""sparserank datasets"""

from __future__ import annotations

from dataclasses import asdict

from .arguments import Json


def datasets(as_json: Json = False) -> None:
    """List the named data sets, their paths on this machine, and how to get the missing ones.

    A data set is read from $SPARSERANK_DATA/NAME or from the user's cache; otherwise it is downloaded.
    """
    from ..data import list_datasets
    from .output import print_json, print_table

    sets = list_datasets()
    if as_json:
        print_json({"datasets": [asdict(one) | {"path": one.path and str(one.path)} for one in sets]})
        return
    rows = [(one.name, f"{one.what} {one.size}", str(one.path) if one.path else one.how, one.terms) for one in sets]
    print_table("", ("name", "what it is", "where it is, or how to get it", "terms"), rows)
