"""SMART files: records, strays, and Cranfield's codes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sparserank.data.formats.smart import read_smart, read_smart_qrels
from sparserank.data.formats.trec import read_qrels
from sparserank.errors import DataError


def written(folder: Path, content: str) -> Path:
    path = folder / "file"
    path.write_bytes(content.encode())
    return path


def test_a_record_has_every_field_and_those_it_lacks_are_empty(tmp_path: Path) -> None:
    path = written(
        tmp_path, "\n.I 1\n.T\na title\nin two lines\n.A\nsomebody\n.W\n  text .\n\nmore\n.I 002\n.W\n.I 3\n"
    )
    assert read_smart(path) == (
        {"I": "1", "T": "a title\nin two lines", "A": "somebody", "B": "", "W": "text .\n\nmore"},
        {"I": "002", "T": "", "A": "", "B": "", "W": ""},
        {"I": "3", "T": "", "A": "", "B": "", "W": ""},
    )


def test_windows_line_ends_and_text_beside_a_tag_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, ".I 1\r\n.T a title\r\n.W\r\n.3 of a text\r\n.K key\r\n")
    assert read_smart(path) == ({"I": "1", "T": "a title", "A": "", "B": "", "W": ".3 of a text", "K": "key"},)


def test_a_tag_said_twice_does_not_end_the_field(tmp_path: Path) -> None:
    path = written(tmp_path, ".I 1\n.A\nsomebody\n.W\none\n.A\ntwo\n.W three\nfour\n")
    (record,) = read_smart(path)
    assert (record["A"], record["W"]) == ("somebody", "one\ntwo\nthree\nfour")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", ": contains no records"),
        ("\n\n", ": contains no records"),
        ("\nwords\n.I 1\n", ":2: a SMART file begins with '.I <id>'; got 'words'"),
        (".T\nwords\n.I 1\n", ":1: a SMART file begins with '.I <id>'; got '.T'"),
        (".I\n.W\nx\n", ":1: '.I' must be followed by the record's id"),
        (".I 1\n.W\nx\n.I 1\n", ":4: record '1' occurs a second time"),
        (".I 1\nwords\n", ":2: text before the first field of the record"),
    ],
)
def test_a_file_of_another_shape_is_rejected_by_its_line(tmp_path: Path, content: str, sentence: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_smart(path)
    assert str(caught.value).startswith(f"{path}{sentence}")


def test_codes_become_grades_that_rise_with_relevance(tmp_path: Path) -> None:
    path = written(tmp_path, "1 10 1 \n1 11 2\n1 12 3\r\n1 13 4\n1 14 5\n002 15 -1\n1 10 1\n")
    assert read_smart_qrels(path) == {"1": {"10": 4, "11": 3, "12": 2, "13": 1, "14": 0}, "2": {"15": 4}}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", ": contains no judgments"),
        ("1 10 1\n1 11\n", ":2: a line has 3 fields, 'query document code'; got 2"),
        ("1 2 10 1\n", ":1: a line is 'query document 0 0' or 'query 0 document grade'; got '2' second"),
        ("x 10 1\n", ":1: the query must be its position"),
        ("0 10 1\n", ":1: the query must be its position"),
        ("1 10 6\n", ":1: the code must be 1, 2, 3, 4, 5 or -1; got '6'"),
        ("1 10 1\n1 10 2\n", ":2: document '10' has the grades 3 and 4 for query '1'"),
    ],
)
def test_judgments_of_another_shape_are_rejected_by_their_line(tmp_path: Path, content: str, sentence: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(DataError) as caught:
        read_smart_qrels(path)
    assert str(caught.value).startswith(f"{path}{sentence}")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("01 1410  0 0\n01 1572  0 0\n2 28 0 0.000000\n", {"1": {"1410": 1.0, "1572": 1.0}, "2": {"28": 1.0}}),
        ("1 0 13 1\n1 0 14 2\n", {"1": {"13": 1.0, "14": 2.0}}),
    ],
)
def test_judgments_of_four_columns_are_those_of_cacm_and_cisi_or_of_med(tmp_path: Path, content, expected) -> None:
    assert read_smart_qrels(written(tmp_path, content)) == expected


@pytest.mark.data
def test_cranfield_has_what_its_readme_counts(real: Callable[[str], Path]) -> None:
    folder = real("cranfield")
    abstracts, queries = read_smart(folder / "cran.all.1400.xz"), read_smart(folder / "cran.qry")
    qrels = read_smart_qrels(folder / "cranqrel")
    assert [record["I"] for record in abstracts] == [str(number) for number in range(1, 1401)]
    assert len(queries) == 225
    assert list(qrels) == [str(number) for number in range(1, 226)]
    assert Counter(grade for grades in qrels.values() for grade in grades.values()) == {
        4: 128 + 225,
        3: 387,
        2: 734,
        1: 363,
    }


@pytest.mark.data
def test_cranfields_judged_pairs_are_those_of_its_trec_file(real: Callable[[str], Path]) -> None:
    trec = read_qrels(real("cranfield") / "cranqrel.correct_trec")
    smart = read_smart_qrels(real("cranfield") / "cranqrel")
    assert {query: set(grades) for query, grades in smart.items()} == {
        query: set(grades) for query, grades in trec.items()
    }


@pytest.mark.data
def test_cranfields_abstracts_go_on_after_a_stray_tag(real: Callable[[str], Path]) -> None:
    abstracts = read_smart(real("cranfield") / "cran.all.1400.xz")
    assert abstracts[239]["A"] == "dean r. chapman"
    assert abstracts[239]["B"] == "naca technote 3792"
    assert "prandtl number of\nunity in low-speed flow" in abstracts[239]["W"]
