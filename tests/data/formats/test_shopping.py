"""ESCI and WANDS, on small files of their public layout."""

from __future__ import annotations

import polars as pl
import pytest

from sparserank import TextRanker, data
from sparserank.errors import DataError


@pytest.fixture
def esci(tmp_path):
    examples = {
        "example_id": [0, 1, 2, 3, 4],
        "query": ["red tv", "red tv", "usb cable", "tv rojo", "easy"],
        "query_id": [7, 7, 8, 9, 10],
        "product_id": ["P1", "P2", "P3", "P4", "P1"],
        "product_locale": ["us", "us", "us", "es", "us"],
        "esci_label": ["E", "C", "S", "E", "I"],
        "small_version": [1, 1, 1, 1, 0],
        "large_version": [1] * 5,
        "split": ["train", "train", "test", "train", "train"],
    }
    products = {
        "product_id": ["P1", "P2", "P3", "P4", "P5", "P1"],
        "product_title": ["Red TV", "TV stand", "USB cable", "TV rojo", "Never judged", "TV"],
        "product_description": ["a television set", None, "two metres", None, None, "de"],
        "product_bullet_point": ["large screen\nred", None, None, None, None, None],
        "product_brand": ["Acme", "Acme", None, None, None, None],
        "product_color": ["red", None, None, None, None, None],
        "product_locale": ["us", "us", "us", "es", "us", "es"],
    }
    pl.DataFrame(examples).write_parquet(tmp_path / "shopping_queries_dataset_examples.parquet")
    pl.DataFrame(products).write_parquet(tmp_path / "shopping_queries_dataset_products.parquet")
    return tmp_path


def test_esci_has_the_judged_products_of_a_market(esci):
    collection = data.read_esci(esci)
    assert sorted(collection.documents.ids) == ["P1", "P2", "P3"]
    assert collection.queries == {"7": "red tv", "8": "usb cable"}
    assert collection.qrels == {"train": {"7": {"P1": 3.0, "P2": 1.0}}, "test": {"8": {"P3": 2.0}}}
    assert collection.documents.rows()["P1"][:2] == ("Red TV", "a television set")
    assert [hit.id for hit in TextRanker("bm25").fit(collection.documents).search("screen")] == ["P1"]
    assert data.read_esci(esci, small=False).qrels["train"]["10"] == {"P1": 0.0}
    assert data.read_esci(esci, "es").documents.ids == ("P4",)
    with pytest.raises(DataError, match="no judged queries"):
        data.read_esci(esci, "jp")


def test_wands_is_read_from_its_tab_separated_files(tmp_path):
    (tmp_path / "query.csv").write_text(
        'query_id\tquery\tquery_class\n0\tsalon chair\tMassage Chairs\n1\t"oak" desk\tDesks\n'
    )
    (tmp_path / "product.csv").write_text(
        "product_id\tproduct_name\tproduct_class\tcategory hierarchy\tproduct_description\tproduct_features\t"
        "rating_count\taverage_rating\treview_count\n"
        "10\t21.7 '' chair\tChairs\tFurniture / Chairs\tsoft\tcolor:red|legs:4\t15\t4.5\t\n"
        "11\tdesk\tDesks\tFurniture / Desks\t\toak\t\t\t\n"
    )
    (tmp_path / "label.csv").write_text(
        "id\tquery_id\tproduct_id\tlabel\n0\t0\t10\tExact\n1\t0\t11\tIrrelevant\n2\t1\t11\tPartial\n"
    )
    collection = data.read_wands(tmp_path)
    assert collection.queries == {"0": "salon chair", "1": '"oak" desk'}
    assert collection.qrels == {"all": {"0": {"10": 2.0, "11": 0.0}, "1": {"11": 1.0}}}
    assert collection.documents.rows()["10"][:2] == ("21.7 '' chair", "soft")
    (tmp_path / "label.csv").write_text("id\tquery_id\tproduct_id\tlabel\n0\t0\t10\tGood\n")
    with pytest.raises(DataError, match="a label must be one of Exact, Partial, Irrelevant; got 'Good'"):
        data.read_wands(tmp_path)
