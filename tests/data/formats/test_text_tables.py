"""Documents, queries and judgments as tables; the columns themselves are tested in test_logs."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import polars as pl
import pytest

from sparserank.data import read_documents, read_judgments, read_query_texts, read_triples, stream_triples
from sparserank.data.formats.tables import columns_of
from sparserank.errors import DataError


def written(path: Path, **columns: list[object]) -> Path:
    frame = pl.DataFrame(columns)
    frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path, separator="\t")
    return path


@pytest.mark.parametrize("kind", ["tsv", "parquet"])
def test_documents_come_in_the_order_of_the_table(tmp_path, kind):
    path = written(tmp_path / f"d.{kind}", text=["red", "green"], id=["b", "a"], title=["T", "U"], other=[1, 2])
    found = read_documents(path)
    assert (found.ids, found.titles, found.texts) == (("b", "a"), ("T", "U"), ("red", "green"))


@pytest.mark.parametrize("kind", ["tsv", "parquet"])
def test_a_title_may_be_empty_or_missing(tmp_path, kind):
    assert read_documents(written(tmp_path / f"d.{kind}", id=["a"], text=["red"])).titles == ("",)
    nothing = written(tmp_path / f"e.{kind}", id=["a", "b"], title=[None, "T"], text=["red", "green"])
    assert read_documents(nothing).titles == ("", "T")
    untitled = written(tmp_path / f"f.{kind}", id=["a"], title=[None], text=["red"])
    assert read_documents(untitled).titles == ("",)


def test_whole_numbers_are_ids_by_their_digits(tmp_path):
    assert read_documents(written(tmp_path / "d.parquet", id=[7, 12], text=["x", "y"])).ids == ("7", "12")
    path = written(tmp_path / "j.parquet", query=[1, 1], document=[7, 12], grade=[2, 0])
    assert read_judgments(path) == {"1": {"7": 2.0, "12": 0.0}}
    assert read_query_texts(written(tmp_path / "q.parquet", id=[1], text=["red"])) == {"1": "red"}


def test_other_columns_are_metadata_without_empty_cells_and_vectors(tmp_path, caplog):
    (tmp_path / "d.tsv").write_text("id\tkind\ttext\tyear\na\tfruit\tx\t1999\nb\t\ty\t\n")
    assert read_documents(tmp_path / "d.tsv").metadata == ({"kind": "fruit", "year": "1999"}, {})
    columns = {"id": [1, 2], "text": ["x", "y"], "n": [1.5, None], "is": [True, False], "tags": [["p", "q"], []]}
    others = {"at": [date(2024, 1, 31)] * 2, "vector": [[0.5], [1.5]], "raw": [b"", b""]}
    pl.DataFrame(columns | others).write_parquet(tmp_path / "d.parquet")
    assert read_documents(tmp_path / "d.parquet").metadata == (
        {"n": 1.5, "is": True, "tags": ["p", "q"], "at": "2024-01-31"},
        {"is": False, "tags": [], "at": "2024-01-31"},
    )
    left_out = [record.getMessage() for record in caplog.records if "is left out" in record.getMessage()]
    assert len(left_out) == 2
    assert "the column 'vector' of type List(Float64) holds neither text nor metadata" in left_out[0]
    assert "'raw'" in left_out[1]


def test_an_empty_cell_is_an_empty_text_in_tsv_and_an_error_in_parquet(tmp_path):
    assert read_documents(written(tmp_path / "d.tsv", id=["a", "b"], text=[None, "x"])).texts == ("", "x")
    with pytest.raises(DataError, match="row 1, column 'text' must not be empty"):
        read_documents(written(tmp_path / "d.parquet", id=["a", "b"], text=[None, "x"]))


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"id": ["a", "a"], "text": ["x", "y"]}, "document id 'a' occurs more than once"),
        (
            {"name": ["a"], "text": ["x"]},
            "no column 'id'; the columns must be id, title, text (title and text may be left out)",
        ),
        ({"id": ["a"], "text": [1]}, "column 'text' must be text; its type is Int64"),
    ],
)
def test_wrong_documents_are_rejected_with_their_file(tmp_path, columns, said):
    with pytest.raises(DataError) as refused:
        read_documents(written(tmp_path / "d.parquet", **columns))
    assert said in str(refused.value)
    assert "d.parquet: " in str(refused.value)


def test_a_query_given_twice_and_grades_that_disagree_raise(tmp_path):
    with pytest.raises(DataError, match="query id 'q' occurs more than once"):
        read_query_texts(written(tmp_path / "q.tsv", id=["q", "q"], text=["x", "y"]))
    same = written(tmp_path / "j.tsv", query=["q", "q"], document=["d", "d"], grade=[1, 1])
    assert read_judgments(same) == {"q": {"d": 1.0}}
    with pytest.raises(DataError, match="document 'd' has the grades 0 and 1 for query 'q'; keep one of them"):
        read_judgments(written(tmp_path / "k.tsv", query=["q", "q"], document=["d", "d"], grade=[1, 0]))


@pytest.mark.parametrize("grade", ["nan", "inf", "much"])
def test_a_grade_is_a_finite_number(tmp_path, grade):
    path = written(tmp_path / "j.tsv", query=["q", "q"], document=["d", "e"], grade=["-2.5", grade])
    with pytest.raises(DataError, match=r"j.tsv:3: row 2, column 'grade' must be a finite number"):
        read_judgments(path)


def test_a_folder_of_parts_is_one_table(tmp_path):
    folder = tmp_path / "t.parquet"
    folder.mkdir()
    (folder / "_SUCCESS").touch()
    for part, rows in enumerate([["a", "b"], ["c"]]):
        written(folder / f"part-{part}.parquet", query=["q"] * len(rows), better=rows, worse=["z"] * len(rows))
    assert columns_of(folder) == ("query", "better", "worse")
    assert read_triples(folder).better.tolist() == ["a", "b", "c"]
    assert [batch.better.tolist() for batch in stream_triples(folder, 5)] == [["a", "b"], ["c"]]
    (tmp_path / "none.parquet").mkdir()
    with pytest.raises(DataError, match=r"the folder contains no \.parquet file"):
        read_triples(tmp_path / "none.parquet")


def test_csv_has_quotes_and_line_breaks_within_them(tmp_path):
    path = tmp_path / "d.csv"
    path.write_text('text,id,title\n"red, ""ripe""\nand round",a,Apples\n,b,\n')
    found = read_documents(path)
    assert (found.ids, found.titles, found.texts) == (("a", "b"), ("Apples", ""), ('red, "ripe"\nand round', ""))
    triples = tmp_path / "t.csv"
    triples.write_text('query,better,worse\n"a\nb",x,y\nq,x,y\nq,y,x\n')
    assert [batch.query.tolist() for batch in stream_triples(triples, 2)] == [["a\nb", "q"], ["q"]]
    triples.write_text("query,better,worse\nq,x,y\nq,,x\n")
    with pytest.raises(DataError, match=r"t.csv: row 2, column 'better' must not be empty"):
        read_triples(triples)
