"""Triples and click logs: TSV and Parquet alike, lazily, in batches, refused by row and column."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sparserank.data.formats.text_tables import scan_clicks
from sparserank.data.formats.triples import Triples, read_triples, scan_triples, stream_triples
from sparserank.errors import ConfigError, DataError

TRIPLES = {
    "query": ["q1", "q1", "q2"],
    "better": ["d1", "d1", "d3"],
    "worse": ["d2", "d3", "d1"],
    "weight": [1.0, 0.5, 0.0],
}
CLICKS = {
    "session": ["s1", "s1", "s2"],
    "query": ["q", "q", "r"],
    "document": ["d1", "d2", "d1"],
    "position": [1, 2, 1],
    "clicked": [0, 1, 1],
}
KINDS = ["tsv", "parquet"]


def written(folder: Path, kind: str, columns: dict[str, list[Any]]) -> Path:
    path = folder / f"log.{kind}"
    frame = pl.DataFrame(columns)
    if kind == "tsv":
        frame.write_csv(path, separator="\t", quote_style="never")
    else:
        frame.write_parquet(path)
    return path


def changed(columns: dict[str, list[Any]], name: str, row: int, value: Any) -> dict[str, list[Any]]:
    """The same columns with one cell, of row `row` counted from 1, set to another value."""
    cells = list(columns[name])
    cells[row - 1] = value
    return {**columns, name: cells}


def rows(triples: Triples) -> list[tuple[Any, ...]]:
    return list(
        zip(
            triples.query.tolist(),
            triples.better.tolist(),
            triples.worse.tolist(),
            triples.weight.tolist(),
            strict=True,
        )
    )


@pytest.mark.parametrize("kind", KINDS)
def test_triples_are_found_by_the_names_of_their_columns(tmp_path: Path, kind: str) -> None:
    shuffled = {"note": ["a", "b", "c"], **dict(reversed(TRIPLES.items()))}
    path = written(tmp_path, kind, shuffled)
    frame = scan_triples(path)
    assert isinstance(frame, pl.LazyFrame)
    assert frame.collect().to_dict(as_series=False) == TRIPLES
    triples = read_triples(path)
    assert len(triples) == 3
    assert rows(triples) == list(zip(*TRIPLES.values(), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_triples_without_weights_all_weigh_one(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, {name: TRIPLES[name] for name in ("query", "better", "worse")})
    assert scan_triples(path).collect_schema().names() == ["query", "better", "worse"]
    assert read_triples(path).weight.tolist() == [1.0, 1.0, 1.0]


def test_ids_are_text_in_tsv_and_stay_numbers_in_parquet(tmp_path: Path) -> None:
    numbers = {"query": [7, 8], "better": [1, 2], "worse": [3, 4]}
    assert read_triples(written(tmp_path, "tsv", numbers)).query.tolist() == ["7", "8"]
    read = read_triples(written(tmp_path, "parquet", numbers))
    assert read.query.dtype == np.int64
    assert rows(read) == [(7, 1, 3, 1.0), (8, 2, 4, 1.0)]


def test_categories_are_read_as_their_names(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame(TRIPLES).with_columns(pl.col("better").cast(pl.Categorical)).write_parquet(path)
    assert read_triples(path).better.tolist() == TRIPLES["better"]


@pytest.mark.parametrize("kind", KINDS)
def test_clicks_come_with_positions_as_numbers_and_clicks_as_yes_or_no(tmp_path: Path, kind: str) -> None:
    frame = scan_clicks(written(tmp_path, kind, CLICKS)).collect()
    assert frame.schema["position"] == pl.Int64
    assert frame.to_dict(as_series=False) == {**CLICKS, "clicked": [False, True, True]}


def test_clicks_may_be_yes_or_no_in_parquet(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet", {**CLICKS, "clicked": [False, True, True]})
    assert scan_clicks(path).collect()["clicked"].to_list() == [False, True, True]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)]
)
def test_packed_tables_read_as_plain_ones(
    tmp_path: Path, kind: str, suffix: str, pack: Callable[[bytes], bytes]
) -> None:
    plain = written(tmp_path, kind, TRIPLES)
    packed = tmp_path / f"log.{kind}{suffix}"
    packed.write_bytes(pack(plain.read_bytes()))
    assert rows(read_triples(packed)) == rows(read_triples(plain))
    assert [row for batch in stream_triples(packed, 2) for row in rows(batch)] == rows(read_triples(plain))


@given(
    kind=st.sampled_from(KINDS),
    batch_size=st.integers(1, 8),
    cells=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(10, 19), st.floats(0, 1e6)), min_size=1),
)
def test_batches_set_end_to_end_are_the_whole_file(
    tmp_path_factory: pytest.TempPathFactory, kind: str, batch_size: int, cells: list[tuple[int, int, int, float]]
) -> None:
    names = ("query", "better", "worse", "weight")
    path = written(
        tmp_path_factory.mktemp("logs"), kind, dict(zip(names, map(list, zip(*cells, strict=True)), strict=True))
    )
    batches = list(stream_triples(path, batch_size))
    assert all(1 <= len(batch) <= batch_size for batch in batches)
    assert [row for batch in batches for row in rows(batch)] == rows(read_triples(path))


def test_batches_cross_the_row_groups_of_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame({"query": [1] * 10, "better": list(range(10)), "worse": [99] * 10}).write_parquet(
        path, row_group_size=3
    )
    assert [item for batch in stream_triples(path, 4) for item in batch.better.tolist()] == list(range(10))


BAD_TRIPLES = [
    ("query", 2, None, "must not be empty; got None"),
    ("worse", 3, "d3", "must differ from column 'better'; got 'd3'"),
    ("weight", 2, -1.0, "must be a finite number, 0 or more; got"),
    ("weight", 3, float("nan"), "must be a finite number, 0 or more; got"),
    ("weight", 1, float("inf"), "must be a finite number, 0 or more; got"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "row", "value", "sentence"), BAD_TRIPLES)
@pytest.mark.parametrize("read", [scan_triples, read_triples, lambda path: list(stream_triples(path, 1))])
def test_a_bad_triple_is_named_by_row_and_column(
    tmp_path: Path, read: Callable[[Path], Any], kind: str, name: str, row: int, value: Any, sentence: str
) -> None:
    path = written(tmp_path, kind, changed(TRIPLES, name, row, value))
    with pytest.raises(DataError) as caught:
        read(path)
    place = f"{path}:{row + 1}" if kind == "tsv" else f"{path}"
    assert str(caught.value).startswith(f"{place}: row {row}, column {name!r} {sentence}")


BAD_CLICKS = [
    ("document", 1, None, "must not be empty; got None"),
    ("position", 3, 0, "must be a whole number, counted from 1; got"),
    ("clicked", 2, 2, "must be 0 or 1; got"),
    ("clicked", 2, -1, "must be 0 or 1; got"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "row", "value", "sentence"), BAD_CLICKS)
def test_a_bad_click_is_named_by_row_and_column(
    tmp_path: Path, kind: str, name: str, row: int, value: Any, sentence: str
) -> None:
    path = written(tmp_path, kind, changed(CLICKS, name, row, value))
    with pytest.raises(DataError) as caught:
        scan_clicks(path)
    place = f"{path}:{row + 1}" if kind == "tsv" else f"{path}"
    assert str(caught.value).startswith(f"{place}: row {row}, column {name!r} {sentence}")


def test_the_first_of_several_bad_rows_is_named(tmp_path: Path) -> None:
    twice_bad = changed(changed(TRIPLES, "worse", 3, "d3"), "weight", 2, -1.0)
    with pytest.raises(DataError, match="row 2, column 'weight'"):
        scan_triples(written(tmp_path, "parquet", twice_bad))


@pytest.mark.parametrize(("value", "name"), [("first", "position"), ("1.5", "position"), ("yes", "clicked")])
def test_text_that_is_no_number_is_rejected_in_tsv(tmp_path: Path, value: str, name: str) -> None:
    path = written(tmp_path, "tsv", {**CLICKS, name: ["1", value, "1"]})
    with pytest.raises(DataError, match=f"log.tsv:3: row 2, column '{name}' must be .*; got '{value}'"):
        scan_clicks(path)


@pytest.mark.parametrize(
    ("columns", "name", "sentence"),
    [
        (
            {**CLICKS, "position": ["1", "2", "3"]},
            "position",
            "must be a whole number, counted from 1; its type is String",
        ),
        ({**CLICKS, "clicked": [0.0, 1.0, 1.0]}, "clicked", "must be 0 or 1; its type is Float64"),
        ({**CLICKS, "session": [0.5, 1.0, 1.0]}, "session", "must be text or a whole number; its type is Float64"),
    ],
)
def test_a_parquet_column_of_the_wrong_type_raises(
    tmp_path: Path, columns: dict[str, list[Any]], name: str, sentence: str
) -> None:
    with pytest.raises(DataError, match=f"log.parquet: column '{name}' {sentence}"):
        scan_clicks(written(tmp_path, "parquet", columns))


def test_items_that_are_text_here_and_numbers_there_raise(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet", {**TRIPLES, "worse": [1, 2, 3]})
    with pytest.raises(DataError, match="'better' and 'worse' must both be text or both be whole numbers"):
        read_triples(path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_column_is_named_with_those_there_are(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind, {"query": ["q"], "item": ["d"], "worse": ["e"]})
    for read in (read_triples, stream_triples):
        with pytest.raises(DataError, match="no column 'better'; the columns must be query, better, worse, weight"):
            read(path)
    with pytest.raises(DataError, match=r"no column 'session'; .* got query, item, worse"):
        scan_clicks(path)


def test_blank_lines_are_passed_over_and_still_counted(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    path.write_bytes(b"query\tbetter\tworse\r\nq\ta\tb\r\n\r\nq\ta\tc\r\n\r\n")
    assert rows(read_triples(path)) == [("q", "a", "b", 1.0), ("q", "a", "c", 1.0)]
    assert [len(batch) for batch in stream_triples(path, 1)] == [1, 1]
    path.write_bytes(b"query\tbetter\tworse\nq\ta\tb\n\nq\ta\ta\n")
    for read in (read_triples, lambda path: list(stream_triples(path, 1))):
        with pytest.raises(DataError, match=r"log.tsv:4: row 3, column 'worse'"):
            read(path)


def test_quotes_are_marks_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "log.tsv"
    path.write_text('query\tbetter\tworse\n"q\ta"\t"b"\n')
    assert rows(read_triples(path)) == [('"q', 'a"', '"b"', 1.0)]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"query\tbetter\tworse\nq\ta\tb\nq\ta\tb\tc\n", ":3: 4 fields; the first line names 3 columns"),
        (b"query\tbetter\tworse\nq\ta\tb\nq\t\xff\tb\n", ":3: not UTF-8 text (byte 0xff)"),
        (b"query\tbetter\tworse\nq\ta\n", ":2: row 1, column 'worse' must not be empty"),
        (b"query\tbetter\tworse\n", ": contains no rows"),
        (b"", ": "),
    ],
)
def test_a_broken_tsv_is_rejected_by_its_line(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "log.tsv"
    path.write_bytes(content)
    for read in (read_triples, lambda path: list(stream_triples(path, 2))):
        with pytest.raises(DataError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}{sentence}")


def test_a_parquet_file_cut_off_raises(tmp_path: Path) -> None:
    path = written(tmp_path, "parquet", TRIPLES)
    path.write_bytes(path.read_bytes()[:-20])
    for read in (read_triples, stream_triples):
        with pytest.raises(DataError, match=r"log.parquet: not a complete Parquet file"):
            read(path)


def test_a_parquet_file_without_rows_raises(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    pl.DataFrame(TRIPLES).clear().write_parquet(path)
    for read in (read_triples, stream_triples):
        with pytest.raises(DataError, match="contains no rows"):
            read(path)


def test_other_names_and_missing_files_raise(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("query,better,worse\n")
    with pytest.raises(DataError, match=r"log.txt: the name of a table must end in .csv, .tsv or .parquet"):
        scan_triples(tmp_path / "log.txt")
    with pytest.raises(DataError, match=r"no.tsv: no such file"):
        scan_clicks(tmp_path / "no.tsv")
    with pytest.raises(ConfigError, match="'batch_size'"):
        stream_triples(tmp_path / "no.tsv", 0)
