"""ESCI and WANDS by name: small files of their public layout, downloaded from a real HTTP server on this machine."""

from __future__ import annotations

import hashlib
import io
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import sparserank as sr
from sparserank.data.datasets import load as loading
from sparserank.data.datasets.catalog import CATALOG
from sparserank.errors import ConfigError, DataError

from .test_download import Server, cache, server

__all__ = ["cache", "server"]

WANDS = {
    "query.csv": b"query_id\tquery\tquery_class\n0\tsalon chair\tMassage Chairs\n1\toak desk\tDesks\n",
    "product.csv": b"product_id\tproduct_name\tproduct_class\tcategory hierarchy\tproduct_description\t"
    b"product_features\n"
    b"10\tgrey chair\tChairs\tFurniture / Chairs\tsoft\tlegs:4\n11\tdesk\tDesks\tFurniture / Desks\t\toak\n",
    "label.csv": b"id\tquery_id\tproduct_id\tlabel\n0\t0\t10\tExact\n1\t0\t11\tIrrelevant\n2\t1\t11\tPartial\n",
}


def parquet(table: dict[str, list[object]]) -> bytes:
    out = io.BytesIO()
    pl.DataFrame(table).write_parquet(out)
    return out.getvalue()


def esci_files() -> dict[str, bytes]:
    examples = {
        "query": ["red tv", "usb cable", "tv rojo"],
        "query_id": [7, 8, 9],
        "product_id": ["P1", "P2", "P3"],
        "product_locale": ["us", "us", "es"],
        "esci_label": ["E", "S", "E"],
        "small_version": [1, 1, 1],
        "split": ["train", "test", "train"],
    }
    products: dict[str, list[object]] = {"product_id": ["P1", "P2", "P3"], "product_title": ["TV", "cable", "TV rojo"]}
    for name in ("description", "bullet_point", "brand", "color"):
        products[f"product_{name}"] = ["some", None, None]
    products["product_locale"] = ["us", "us", "es"]
    raw = {"examples": parquet(examples), "products": parquet(products)}
    return {f"shopping_queries_dataset_{name}.parquet": content for name, content in raw.items()}


@pytest.fixture
def offered(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server has the files of both sets under the paths that the catalog names."""
    for name, files in (("wands", WANDS), ("esci", esci_files())):
        (edition,) = CATALOG[name].editions
        for file, urls in edition.sources.items():
            server.offer(urls[0].removeprefix("https://github.com"), files[file])
        local = {file: tuple(url.replace("https://github.com", server.base) for url in urls)
                 for file, urls in edition.sources.items()}  # fmt: skip
        row = replace(CATALOG[name], editions=(replace(edition, sources=local),))
        monkeypatch.setitem(loading.CATALOG, name, row)
    return server


def test_wands_is_downloaded_once_and_its_checksums_are_recorded(offered: Server, cache: Path) -> None:
    collection = sr.data.load("wands")
    assert collection.qrels == {"all": {"0": {"10": 2.0, "11": 0.0}, "1": {"11": 1.0}}}
    assert len(offered.asked) == 3
    assert sr.data.load("wands").queries == collection.queries
    assert len(offered.asked) == 3
    lines = (cache / "data/wands/SHA256SUMS").read_text().splitlines()
    assert lines == [f"{hashlib.sha256(raw).hexdigest()}  {name}" for name, raw in WANDS.items()]


def test_a_file_that_changed_since_its_download_is_an_error(offered: Server, cache: Path) -> None:
    sr.data.load("wands")
    with (cache / "data/wands/label.csv").open("a") as file:
        file.write("3\t1\t10\tExact\n")
    with pytest.raises(DataError, match=r"label\.csv: changed since its download.*Remove the folder"):
        sr.data.load("wands")


def test_an_error_page_is_neither_kept_nor_recorded(offered: Server, cache: Path) -> None:
    offered.offer("/wayfair/WANDS/raw/main/dataset/query.csv", b"<html>Not here</html>")
    with pytest.raises(
        DataError, match=r"query\.csv: begins with b'<html>Not", check=lambda error: "\n" not in str(error)
    ):
        sr.data.load("wands")
    assert not list(cache.rglob("*.csv"))
    assert not list(cache.rglob("SHA256SUMS"))


def test_files_that_a_user_put_there_are_read_without_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARSERANK_DATA", str(tmp_path))
    (tmp_path / "wands").mkdir()
    for name, raw in WANDS.items():
        (tmp_path / "wands" / name).write_bytes(raw)
    assert len(sr.data.load("wands", download=False).documents) == 2


def test_esci_takes_the_market_as_an_option(offered: Server) -> None:
    assert sr.data.load("esci").qrels == {"train": {"7": {"P1": 3.0}}, "test": {"8": {"P2": 2.0}}}
    assert sr.data.load("esci", locale="es").queries == {"9": "tv rojo"}
    with pytest.raises(ConfigError, match="'esci' has no option 'market'; its options: locale, small"):
        sr.data.load("esci", market="us")
