"""TREC judgments and runs: both ways, in trec_eval's order, refused by line."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank.data.formats.trec import read_qrels, read_run, write_qrels, write_run
from sparserank.errors import ConfigError, DataError

MARKS = st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="\ufeff")
WORDS = st.text(MARKS, min_size=1, max_size=5)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TABLES = st.dictionaries(WORDS, st.dictionaries(WORDS, FINITE, min_size=1, max_size=5), min_size=1, max_size=4)


def written(folder: Path, content: str) -> Path:
    path = folder / "file.txt"
    path.write_bytes(content.encode())
    return path


@given(TABLES)
def test_judgments_read_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, qrels: Any) -> None:
    path = tmp_path_factory.mktemp("trec") / "qrels.txt"
    write_qrels(path, qrels)
    assert read_qrels(path) == qrels


@given(TABLES)
def test_a_run_reads_back_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, run: Any) -> None:
    path = tmp_path_factory.mktemp("trec") / "run.txt.gz"
    write_run(path, run)
    assert read_run(path) == run


@given(st.dictionaries(WORDS, st.sampled_from([0.0, -0.0, 1.0, 1.0 + 1e-12, 1.5, -2.0, 1e300, 2e300]), min_size=1))
def test_ranks_follow_the_score_as_float32_then_the_id_both_descending(
    tmp_path_factory: pytest.TempPathFactory, scores: dict[str, float]
) -> None:
    path = tmp_path_factory.mktemp("trec") / "run.txt"
    write_run(path, {"q": scores}, name="mine")
    rows = [line.split() for line in path.read_text().splitlines()]
    assert [row[3] for row in rows] == [str(rank) for rank in range(1, len(scores) + 1)]
    assert {row[5] for row in rows} == {"mine"}
    with np.errstate(over="ignore"):
        keys = [(float(np.float32(scores[row[2]])), row[2].encode()) for row in rows]
    assert all(above > below for above, below in pairwise(keys))


def test_lines_are_written_as_trec_eval_reads_them(tmp_path: Path) -> None:
    write_qrels(tmp_path / "qrels.txt", {"q1": {"d1": 2, "d2": 0.5}})
    assert (tmp_path / "qrels.txt").read_text() == "q1 0 d1 2\nq1 0 d2 0.5\n"
    write_run(tmp_path / "run.txt", {"q1": {"d1": 0.5, "d2": 0.5, "d0": 7}})
    assert (tmp_path / "run.txt").read_text() == (
        "q1 Q0 d0 1 7 sparserank\nq1 Q0 d2 2 0.5 sparserank\nq1 Q0 d1 3 0.5 sparserank\n"
    )


def test_fields_may_stand_apart_by_any_blanks_and_lines_by_blank_lines(tmp_path: Path) -> None:
    assert read_qrels(written(tmp_path, " q1\t0  d1 \t 1\r\n\nq1 0 d2 -2\n")) == {"q1": {"d1": 1, "d2": -2}}
    assert read_run(written(tmp_path, "\nq1\tQ0 d1  9 1.5e0 t\r\n")) == {"q1": {"d1": 1.5}}


def test_a_judgment_said_twice_is_taken_once(tmp_path: Path) -> None:
    assert read_qrels(written(tmp_path, "q 0 d 1\nq 0 d 1.0\n")) == {"q": {"d": 1}}


@pytest.mark.parametrize(
    ("read", "content", "sentence"),
    [
        (read_qrels, "", ": contains no judgments"),
        (read_qrels, "q 0 d 1\nq d 1\n", ":2: a line has 4 fields, 'query iteration document grade'; got 3"),
        (read_qrels, "q 0 d x\n", ":1: the grade must be a finite number; got 'x'"),
        (read_qrels, "q 0 d nan\n", ":1: the grade must be a finite number; got 'nan'"),
        (read_qrels, "q 0 d 1_0\n", ":1: the grade must be a finite number; got '1_0'"),
        (read_qrels, "q 0 d 1\n\nq 0 d 2\n", ":3: document 'd' has the grades 1 and 2 for query 'q'"),
        (read_run, "\n", ": contains no results"),
        (read_run, "q Q0 d 1 0.5\n", ":1: a line has 6 fields, 'query Q0 document rank score tag'; got 5"),
        (read_run, "q Q0 d 1 0.5 t\nq Q0 d 2 0.5 t\n", ":2: document 'd' occurs a second time for query 'q'"),
        (read_run, "q Q0 d 1 nan t\n", ":1: the score must be a finite number; got 'nan'"),
        (read_run, "q Q0 d 1 1e999 t\n", ":1: the score must be a finite number; got '1e999'"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, read: Callable[[Path], Any], content: str, sentence: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}{sentence}")


@pytest.mark.parametrize(
    ("write", "table", "sentence"),
    [
        (write_qrels, {"a b": {"d": 1}}, "a query id in a TREC file must be text without white space; got 'a b'"),
        (write_qrels, {"q": {"": 1}}, "a document id in a TREC file"),
        (write_qrels, {"q": {7: 1}}, "a document id in a TREC file"),
        (write_qrels, {"q": {"d": math.inf}}, "the grade of query 'q' and document 'd' must be finite"),
        (write_run, {"q": {"d\n": 1}}, "a document id in a TREC file"),
        (write_run, {"q": {"d\ud800": 1}}, "a document id in a TREC file must be valid UTF-8 text"),
        (write_run, {"q": {"d": math.nan}}, "the score of query 'q' and document 'd' must be finite"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(
    tmp_path: Path, write: Callable[[Path, Any], None], table: Any, sentence: str
) -> None:
    path = written(tmp_path, "old")
    with pytest.raises(DataError, match=sentence):
        write(path, table)
    assert path.read_text() == "old"


def test_the_name_of_a_run_is_one_word(tmp_path: Path) -> None:
    for name in ("", "two words"):
        with pytest.raises(ConfigError, match="'name'"):
            write_run(tmp_path / "run.txt", {"q": {"d": 1.0}}, name=name)
