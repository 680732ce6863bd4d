"""Product search sets in the layout of their public repositories: Amazon's ESCI and Wayfair's WANDS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from ...errors import DataError
from ..files import PathLike
from ..records import Collection, Documents

ESCI_GRADES = {"E": 3.0, "S": 2.0, "C": 1.0, "I": 0.0}
"""Exact, substitute, complement and irrelevant."""
WANDS_GRADES = {"Exact": 2.0, "Partial": 1.0, "Irrelevant": 0.0}
_EXAMPLES, _PRODUCTS = (f"shopping_queries_dataset_{name}.parquet" for name in ("examples", "products"))


def read_esci(folder: PathLike, locale: str = "us", *, small: bool = True) -> Collection:
    """Read Amazon's Shopping Queries data set (ESCI; Reddy et al., 2022; Apache 2.0).

    Parameters
    ----------
    folder : path
        A folder with shopping_queries_dataset_examples.parquet and shopping_queries_dataset_products.parquet.
    locale : {"us", "es", "jp"}, default="us"
        The market.
    small : bool, default=True
        Whether to read the smaller version, without easy queries, as the ranking task does.

    Returns
    -------
    Collection
        The judged products of the market and the splits that the examples name (train and test). Grades are 3 (exact),
        2 (substitute), 1 (complement) and 0.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     read_esci(folder)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    sparserank.errors.DataError: ...shopping_queries_dataset_examples.parquet: no such file
    """
    examples = pl.scan_parquet(_file(folder, _EXAMPLES)).filter(pl.col("product_locale") == locale)
    if small:
        examples = examples.filter(pl.col("small_version") == 1)
    rows = examples.select("query_id", "query", "product_id", "esci_label", "split").collect()
    products = pl.scan_parquet(_file(folder, _PRODUCTS)).filter(pl.col("product_locale") == locale)
    names = {"product_title": "title", "product_description": "text", "product_bullet_point": "bullet_points"}
    fields = names | {"product_brand": "brand", "product_color": "color"}
    found = products.join(rows.lazy().select("product_id").unique(), on="product_id", how="semi")
    docs = found.select("product_id", *fields).rename(fields).collect()
    return _collection("esci", folder, docs, rows.rows(), ESCI_GRADES)


def read_wands(folder: PathLike) -> Collection:
    """Read Wayfair's annotation data set (WANDS; Chen et al., 2022; MIT).

    Parameters
    ----------
    folder : path
        A folder with query.csv, product.csv and label.csv, which are separated by tabs.

    Returns
    -------
    Collection
        The products, and one split "all": hold queries out before you train. Grades are 2 (exact), 1 (partial) and 0.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     read_wands(folder)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    sparserank.errors.DataError: ...query.csv: no such file
    """
    options: dict[str, Any] = {"separator": "\t", "quote_char": None, "infer_schema": False}
    queries, products, labels = (
        pl.read_csv(_file(folder, f"{name}.csv"), **options) for name in ("query", "product", "label")
    )
    fields = {"product_name": "title", "product_description": "text", "product_features": "features"}
    fields |= {"product_class": "class", "category hierarchy": "category"}
    judgments = labels.join(queries, on="query_id").select("query_id", "query", "product_id", "label")
    docs = products.select("product_id", *fields).rename(fields)
    return _collection("wands", folder, docs, [(*row, "all") for row in judgments.rows()], WANDS_GRADES)


def _collection(
    name: str, folder: PathLike, docs: pl.DataFrame, judgments: list[tuple[Any, ...]], grades: Mapping[str, float]
) -> Collection:
    """A collection of products, and of rows (query id, query, product id, label, split)."""
    queries: dict[str, str] = {}
    qrels: dict[str, dict[str, dict[str, float]]] = {}
    for query_id, query, product, label, split in judgments:
        if label not in grades:
            raise DataError(f"{folder}: a label must be one of {', '.join(grades)}; got {label!r:.60}")
        queries[str(query_id)] = query
        qrels.setdefault(split, {}).setdefault(str(query_id), {})[str(product)] = grades[label]
    if not queries:
        raise DataError(f"{folder}: has no judged queries of this kind")
    rows = docs.rename({"product_id": "id"}).iter_rows(named=True)
    records = {str(row.pop("id")): {key: value for key, value in row.items() if value} for row in rows}
    return Collection(name, Documents.of(records), queries, qrels)


def _file(folder: PathLike, name: str) -> Path:
    path = Path(folder, name)
    if not path.exists():
        raise DataError(f"{path}: no such file")
    return path
