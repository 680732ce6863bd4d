"""LETOR files against a slow reader that is the definition, against scikit-learn, and there and back."""

from __future__ import annotations

import gzip
import io
import lzma
import math
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array, random_array
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from sparserank.data.formats import letor as module
from sparserank.data.formats.letor import docids, parse_letor, read_letor, write_letor
from sparserank.data.records import Letor
from sparserank.errors import ConfigError, DataError

SMALL = "2 qid:10 1:0.5 3:1e-3 #docid = GX1 inc = 1\n0 qid:10 2:0.25 #docid = GX7 inc = 1\n1 qid:11\n"


def slowly(content: bytes) -> tuple[list[list[tuple[int, float]]], list[float], list[bytes | None], list[str]]:
    """(features, grades, qids, comments) of a LETOR file, line by line, as the format is defined."""
    features, grades, qids, comments, any_comment = [], [], [], [], False
    for line in content.split(b"\n"):
        head, mark, comment = line.partition(b"#")
        fields = head.split()
        if not fields:
            continue
        grades.append(float(fields.pop(0)))
        qids.append(fields.pop(0)[4:] if fields and fields[0].startswith(b"qid:") else None)
        pairs = [field.split(b":") for field in fields]
        features.append([(int(index), float(value)) for index, value in pairs])
        comments.append(comment.decode().removesuffix("\r"))
        any_comment = any_comment or bool(mark)
    return features, grades, qids, comments if any_comment else []


def assert_same_bits(a: Any, b: Any) -> None:
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def assert_same_rows(a: Letor, b: Letor) -> None:
    assert a.X.shape == b.X.shape
    for name in ("data", "indices", "indptr"):
        assert_same_bits(getattr(a.X, name), getattr(b.X, name))
    assert_same_bits(a.y, b.y)
    assert_same_bits(a.qid, b.qid)
    assert a.comments == b.comments


BLANKS = st.text(" \t\r\v\f", min_size=1, max_size=3)
LINE_TEXT = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=8)
WRITTEN_OUT = st.from_regex(r"[+-]?([0-9]{1,22}\.?[0-9]{0,22}|\.[0-9]{1,22})([eE][+-]?[0-9]{1,3})?", fullmatch=True)
NUMBERS = (
    st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.integers(-5, 5).map(str)
    | WRITTEN_OUT.filter(lambda text: math.isfinite(float(text)))
)
WHOLE_QIDS = st.integers(-(2**63), 2**63 - 1).map(str) | st.from_regex(r"\+?0{0,3}[0-9]{1,5}", fullmatch=True)
WORD_QIDS = st.text(
    st.characters(exclude_characters=" \t\r\v\f\n#\0", exclude_categories=["Cs"]), min_size=1, max_size=6
)


@st.composite
def letor_files(draw: st.DrawFn, qids: st.SearchStrategy[str] | None = None) -> bytes:
    """A valid file with every liberty that the format leaves: blanks, line ends, signs, exponents, comments."""
    if qids is None:
        qids = draw(st.sampled_from([st.none(), WHOLE_QIDS, WHOLE_QIDS | WORD_QIDS]))
    lowest = draw(st.sampled_from([0, 1]))
    lines = []
    for _ in range(draw(st.integers(1, 5))):
        lines += draw(st.lists(st.sampled_from(["", " \t", "#", "# 1 qid:2 3:4"]), max_size=1))
        qid = draw(qids)
        fields = [draw(NUMBERS)] + ([f"qid:{qid}"] if qid is not None else [])
        indices = draw(st.sets(st.integers(lowest, 60), max_size=5))
        fields += [f"{index}:{draw(NUMBERS)}" for index in sorted(indices)]
        line = draw(st.just("") | BLANKS) + "".join(field + draw(BLANKS) for field in fields)
        comment = draw(st.just("") | LINE_TEXT.map(lambda text: f"#{text}"))
        lines.append((line if draw(st.booleans()) else line.rstrip()) + comment)
    end = draw(st.sampled_from(["\n", "\r\n"]))
    return (end.join(lines) + draw(st.sampled_from(["", end]))).encode()


@given(letor_files())
def test_a_file_reads_as_the_slow_reader_reads_it(content: bytes) -> None:
    features, grades, qids, comments = slowly(content)
    letor = parse_letor(content, "made")
    pairs = [pair for row in features for pair in row]
    base = 1 if pairs and min(index for index, _ in pairs) > 0 else 0
    assert_same_bits(letor.y, np.array(grades))
    assert_same_bits(letor.X.data, np.array([value for _, value in pairs], dtype=float))
    assert letor.X.indices.tolist() == [index - base for index, _ in pairs]
    assert letor.X.indptr.tolist() == np.cumsum([0] + [len(row) for row in features]).tolist()
    assert letor.comments == tuple(comments)
    assert letor.qid.tolist() == expected_qids(qids)


def expected_qids(qids: list[bytes | None]) -> list[Any]:
    words = [(qid or b"0").decode() for qid in qids]
    plain = all(word.lstrip("+-").isascii() and word[word[0] in "+-" :].isdecimal() for word in words)
    return [int(word) for word in words] if plain else words


@given(letor_files(qids=WHOLE_QIDS))
def test_a_file_gives_the_arrays_of_scikit_learn(content: bytes) -> None:
    X, y, qid = load_svmlight_file(io.BytesIO(content), query_id=True)
    letor = parse_letor(content, "made")
    assert letor.X.shape == X.shape
    assert_same_bits(letor.X.data, X.data)
    assert np.array_equal(letor.X.indices, X.indices)
    assert np.array_equal(letor.X.indptr, X.indptr)
    assert_same_bits(letor.y, y)
    assert_same_bits(letor.qid, qid)


@st.composite
def letors(draw: st.DrawFn) -> Letor:
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    cells = [sorted(draw(st.sets(st.integers(0, columns - 1)))) for _ in range(rows)]
    data = np.array([draw(finite) for row in cells for _ in row], dtype=float)
    indices = np.array([column for row in cells for column in row], dtype=np.int32)
    indptr = np.cumsum([0] + [len(row) for row in cells]).astype(np.int32)
    words = WORD_QIDS.filter(lambda word: not word.lstrip("+-").isdecimal())
    qids = draw(st.sampled_from([st.integers(-(2**63), 2**63 - 1), words]))
    comments = st.tuples(*[LINE_TEXT.filter(lambda text: not text.endswith("\r"))] * rows)
    return Letor(
        csr_array((data, indices, indptr), shape=(rows, columns)),
        np.array([draw(finite) for _ in range(rows)]),
        np.array([draw(qids) for _ in range(rows)]),
        draw(st.just(()) | comments),
    )


@given(letors())
def test_what_is_written_reads_back_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, letor: Letor) -> None:
    path = tmp_path_factory.mktemp("letor") / "there.txt"
    write_letor(path, letor)
    assert_same_rows(read_letor(path, n_features=letor.X.shape[1]), letor)


def test_writing_takes_the_shortest_text(tmp_path: Path) -> None:
    path = tmp_path / "short.txt"
    X = csr_array(np.array([[0.1, 0.0, 2.0], [0.0, -1e300, 0.0]]))
    write_letor(path, Letor(X, np.array([1.0, 0.5]), np.array([3, 4]), ("", " b")))
    assert path.read_text() == "1 qid:3 1:0.1 3:2\n0.5 qid:4 2:-1e+300 # b\n"


def test_columns_out_of_order_or_twice_are_put_in_order_and_the_rows_given_are_untouched(tmp_path: Path) -> None:
    X = csr_array((np.array([1.0, 2.0, 3.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    write_letor(tmp_path / "x.txt", Letor(X, np.array([1.0]), np.array([1])))
    assert (tmp_path / "x.txt").read_text() == "1 qid:1 1:2 3:4\n"
    assert X.indices.tolist() == [2, 0, 2]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"y": np.array([1.0])}, "got 2 rows, 1 grades"),
        ({"X": csr_array((0, 2)), "y": np.array([]), "qid": np.array([])}, "needs at least one row"),
        ({"y": np.array([1.0, math.inf])}, "finite numbers only"),
        ({"X": csr_array([[math.nan], [0.0]])}, "finite numbers only"),
        ({"qid": np.array(["a", "b c"])}, "row 1: a qid"),
        ({"qid": np.array(["a\0b", "b"])}, "row 0: a qid"),
        ({"qid": np.array(["", "b"])}, "row 0: a qid"),
        ({"qid": np.array([1.5, 2.5])}, "row 0: a qid"),
        ({"comments": ("a",)}, "1 comments"),
        ({"comments": ("a", "b\nc")}, "row 1: a comment"),
        ({"comments": ("a\r", "b")}, "row 0: a comment"),
    ],
)
def test_rows_that_could_not_be_read_back_are_not_written(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    rows = {"X": csr_array([[1.0], [2.0]]), "y": np.array([1.0, 0.0]), "qid": np.array([1, 1]), **change}
    path = tmp_path / "old.txt"
    path.write_text("old")
    with pytest.raises(DataError, match=sentence):
        write_letor(path, Letor(**rows))
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [("", bytes), (".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)],
)
def test_packed_files_read_as_plain_ones(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"a.txt{suffix}"
    path.write_bytes(pack(SMALL.encode()))
    assert_same_rows(read_letor(path), parse_letor(SMALL.encode(), "plain"))


def test_many_parts_and_threads_give_the_arrays_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    rows = [
        f"{row % 3} qid:{row // 7} "
        + " ".join(f"{j}:{rng.random():.3f}" for j in range(1, 1 + rng.integers(5)))
        + ("#c" if row % 5 else "")
        for row in range(200)
    ]
    content = "\n".join(rows).encode()
    whole = parse_letor(content, "made")
    monkeypatch.setattr(module, "_MIN_PART_BYTES", 64)
    for n_jobs in (1, 2, 5):
        assert_same_rows(parse_letor(content, "made", n_jobs=n_jobs), whole)


def test_the_first_error_is_named_whichever_part_it_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["1 qid:1 1:0.5"] * 200
    lines[150] = lines[77] = "1 qid:1 x"
    monkeypatch.setattr(module, "_MIN_PART_BYTES", 64)
    with pytest.raises(DataError, match=r"^made:78: "):
        parse_letor("\n".join(lines).encode(), "made", n_jobs=2)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("x qid:1 1:2", "must begin with its grade, a finite number; got 'x'"),
        ("nan qid:1 1:2", "must begin with its grade, a finite number; got 'nan'"),
        ("1e999 qid:1 1:2", "grade must be finite; 1e999 is too large"),
        ("1 qid: 1:2", "second field must be 'qid:<id>'; got 'qid:'"),
        ("1 quid:1 1:2", "second field must be 'qid:<id>'; got 'quid:1'"),
        ("1 1:2 qid:1", "'qid:<id>' must be the second field; got 'qid:1'"),
        ("1 qid:1 2", "must be '<index>:<value>'; got '2' .is the line truncated"),
        ("1 qid:1 2:", "must be '<index>:<value>'; got '2:' .is the line truncated"),
        ("1 qid:1 a:2", "must be '<index>:<value>'; got 'a:2'"),
        ("1 qid:1 -1:2", "must not be negative; got '-1:2'"),
        ("1 qid:1 1:x", "value must be a finite number; got '1:x'"),
        ("1 qid:1 1:nan", "value must be a finite number; got '1:nan'"),
        ("1 qid:1 1:-inf", "value must be a finite number; got '1:-inf'"),
        ("1 qid:1 1:1e400", "value must be finite; 1e400 is too large"),
        ("1 qid:1 3:1 2:1", "must increase within a line; got '2:1'"),
        ("1 qid:1 3:1 3:1", "must increase within a line; got '3:1'"),
        ("1 qid:1 1000000000000000000:1", "too large; got '1000000000000000000:1'"),
        ("1 qid:a\0 1:2", r"a qid contains no NUL byte; got 'a\\x00'"),
        ("1 1:2", "no qid, but the rows above have one"),
        ("1 qid:1 1:2 # \udcff", "not UTF-8 text .byte 0xff"),
    ],
)
def test_a_bad_line_is_named_with_what_is_wrong(tmp_path: Path, line: str, sentence: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(f"# head\n0 qid:1 1:0.5\n\n{line}\n1 qid:1 1:3\n".encode(errors="surrogateescape"))
    with pytest.raises(DataError, match=sentence) as caught:
        read_letor(path)
    assert str(caught.value).startswith(f"{path}:4: ")


def test_a_qid_after_rows_without_one_raises() -> None:
    with pytest.raises(DataError, match=r"^made:3: a qid, but the rows above have none"):
        parse_letor(b"1 1:2\n1 1:2\n1 qid:1 1:2\n", "made")


@pytest.mark.parametrize("content", [b"", b"\n \n", b"# only\n# comments"])
def test_a_file_without_rows_raises(content: bytes) -> None:
    with pytest.raises(DataError, match=r"^made: contains no rows"):
        parse_letor(content, "made")


def test_n_features_widens_the_matrix_and_names_the_line_that_goes_beyond() -> None:
    content = b"1 qid:1 1:2\n1 qid:1 2:1 5:2\n1 qid:1 6:1\n"
    assert parse_letor(content, "made", n_features=9).X.shape == (3, 9)
    with pytest.raises(DataError, match=r"^made:2: feature index beyond n_features=4"):
        parse_letor(content, "made", n_features=4)
    with pytest.raises(ConfigError, match="'n_features'"):
        parse_letor(content, "made", n_features=0)


def test_indices_count_from_what_the_file_or_the_caller_says() -> None:
    one, zero = b"1 1:5 2:6\n", b"1 0:5 2:6\n"
    assert parse_letor(one, "made").X.toarray().tolist() == [[5, 6]]
    assert parse_letor(one, "made", zero_based=True).X.toarray().tolist() == [[0, 5, 6]]
    assert parse_letor(zero, "made").X.toarray().tolist() == [[5, 0, 6]]
    assert [parse_letor(text, "made").zero_based for text in (one, zero, b"1 qid:3\n")] == [False, True, False]
    assert parse_letor(one, "made", zero_based=True).zero_based
    with pytest.raises(DataError, match=r"^made:2: feature index 0 in a file that counts from 1"):
        parse_letor(one + zero, "made", zero_based=False)
    with pytest.raises(ConfigError, match="'zero_based'"):
        parse_letor(one, "made", zero_based="maybe")  # type: ignore[arg-type]


def test_rows_without_any_feature_have_one_empty_column() -> None:
    assert parse_letor(b"1 qid:3\n", "made").X.shape == (1, 1)
    assert parse_letor(b"1 qid:3\n", "made", zero_based=False).X.shape == (1, 1)


def test_indices_take_64_bits_only_where_32_are_too_few() -> None:
    assert parse_letor(b"1 2147483646:1\n", "made", n_features=2147483646).X.indices.dtype == np.int32
    wide = parse_letor(b"1 1:2 2147483647:1\n", "made", n_features=2147483647)
    assert wide.X.indices.dtype == np.int64
    assert wide.X.indices.tolist() == [0, 2147483646]


def test_an_index_whose_weights_exceed_the_memory_is_named_with_its_line() -> None:
    huge = b"1 qid:1 1:1\n# no row\n0 qid:1 1:2 90000000000000:1\n"
    with pytest.raises(DataError) as error:
        parse_letor(huge, "made")
    assert str(error.value) == (
        "made:3: feature index 90000000000000 needs 5760000.0 GB to train; correct it, or give n_features"
    )
    assert parse_letor(huge, "made", n_features=90_000_000_000_000).X.nnz == 3
    assert parse_letor(b"1 qid:1 16777216:1\n", "made").X.shape == (1, 16_777_216)


def test_written_zeros_stay_stored() -> None:
    assert parse_letor(b"1 1:0 2:0.0 3:1\n", "made").X.nnz == 3


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse_letor("\ufeff1 qid:2 1:3".encode(), "made").qid.tolist() == [2]


def test_document_ids_come_out_of_the_comments() -> None:
    letor = parse_letor(SMALL.encode().replace(b"qid:11", b"qid:11 #x docid=9 docid = 8"), "made")
    assert docids(letor) == ("GX1", "GX7", "9")
    with pytest.raises(DataError, match="row 2: no 'docid = <id>'"):
        docids(parse_letor(SMALL.encode(), "made"))
    with pytest.raises(DataError, match="no comments"):
        docids(parse_letor(b"1 1:2", "made"))


def test_a_sparse_file_of_scikit_learn_reads_back_equal(tmp_path: Path) -> None:
    X = random_array((300, 5000), density=0.01, format="csr", rng=np.random.default_rng(7))
    qid = np.repeat(np.arange(30), 10)
    path = tmp_path / "sparse.txt"
    dump_svmlight_file(X, np.arange(300) % 3, str(path), zero_based=False, query_id=qid, comment="made")
    theirs, y, their_qid = load_svmlight_file(str(path), n_features=5000, query_id=True)
    letor = read_letor(path, n_features=5000)
    assert_same_bits(letor.X.data, theirs.data)
    assert np.array_equal(letor.X.indices, theirs.indices)
    assert np.array_equal(letor.X.indptr, theirs.indptr)
    assert_same_bits(letor.y, y)
    assert_same_bits(letor.qid, their_qid)


@pytest.mark.data
def test_mq2008_gives_the_arrays_of_scikit_learn(real: Callable[[str], Path], tmp_path: Path) -> None:
    with tarfile.open(real("letor/mq2008") / "MQ2008_S1-S5.tar.xz") as archive:
        archive.extract("S1.txt", tmp_path, filter="data")
    X, y, qid = load_svmlight_file(str(tmp_path / "S1.txt"), query_id=True)
    letor = read_letor(tmp_path / "S1.txt")
    assert letor.X.shape == X.shape
    assert_same_bits(letor.X.data, X.data)
    assert np.array_equal(letor.X.indices, X.indices)
    assert_same_bits(letor.y, y)
    assert_same_bits(letor.qid, qid)
    assert len(set(docids(letor))) > 1


@pytest.mark.data
def test_mq2007_has_the_rows_its_readme_counts(real: Callable[[str], Path]) -> None:
    letor = read_letor(real("letor/mq2007") / "MQ2007_Querylevelnorm_partial_59135.txt.xz")
    assert letor.X.shape == (59_135, 46)
    assert len(set(letor.qid.tolist())) == 1_692
    assert len(letor.comments) == 59_135
