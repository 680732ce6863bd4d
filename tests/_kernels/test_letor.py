"""The LETOR kernel against Python's own float() and int()."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sparserank._kernels import letor as kernel

DIGITS = st.text("0123456789", max_size=25)


def as_text(string: str) -> np.ndarray:
    return np.frombuffer(string.encode() + b"\n", dtype=np.uint8)


def read_number(string: str) -> tuple[int, float, int]:
    end, value, status = kernel.number(as_text(string), 0)
    return int(end), float(value), int(status)


def bits(value: float) -> bytes:
    return np.float64(value).tobytes()


@st.composite
def decimals(draw: st.DrawFn) -> str:
    whole, fraction = draw(DIGITS), draw(DIGITS)
    assume(whole or fraction)
    dot = "." if fraction else draw(st.sampled_from(["", "."]))
    exponent = draw(st.just("") | st.integers(-345, 320).map(lambda e: f"{draw(st.sampled_from('eE'))}{e:+d}"))
    return draw(st.sampled_from(["", "+", "-"])) + whole + dot + fraction + exponent


def check_number(string: str) -> int:
    """The kernel's answer is float()'s, or it says that it does not know."""
    end, value, status = read_number(string)
    assert status != kernel.MALFORMED
    assert end == len(string)
    if status == kernel.EXACT:
        assert bits(value) == bits(float(string))
    return status


@given(decimals())
def test_a_number_is_what_float_makes_of_it_or_is_left_to_float(string: str) -> None:
    check_number(string)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_shortest_text_of_a_double_is_read_as_that_double(value: float) -> None:
    check_number(repr(value))


@given(st.floats(min_value=1e-290, max_value=1e290), st.sampled_from([-1, 0, 1]), st.integers(1, 30))
def test_numbers_at_and_beside_a_midpoint_of_two_doubles_are_never_misread(low: float, side: int, digit: int) -> None:
    high = float(np.nextafter(low, np.inf))
    middle = (Fraction(low) + Fraction(high)) / 2
    beside = middle + side * (Fraction(high) - Fraction(low)) / 10**digit
    with localcontext() as context:
        context.prec = 40
        check_number(f"{Decimal(beside.numerator) / Decimal(beside.denominator):e}")


EVERYDAY = """
    0.1 -0 123456.5e+3 1e22 1e-22 7e23 7e-23 1e-300 1e300 0.30000000000000004 9007199254740992 9007199254740991e22
    18446744073709551615e-5 00000000000000000000000000000001.5 0.00000000000000000000000000000015 0e999999999999
    314159265358979323846264338327950288e-35
"""
TIES_AND_EXTREMES = """
    9007199254740993 9007199254740993.00000000000000000000000000000000000000000000001 1e309 -1e999999999999 5e-324
    1e-400 2.2250738585072011e-308 1.7976931348623157e308
"""


@pytest.mark.parametrize("string", EVERYDAY.split())
def test_everyday_numbers_are_settled_in_the_kernel(string: str) -> None:
    assert check_number(string) == kernel.EXACT


@pytest.mark.parametrize("string", TIES_AND_EXTREMES.split())
def test_ties_and_numbers_beyond_normal_doubles_are_left_to_float(string: str) -> None:
    assert check_number(string) == kernel.DOUBTFUL


def test_of_seventeen_digit_numbers_fewer_than_one_in_a_hundred_is_in_doubt() -> None:
    values = np.random.default_rng(0).random(1000) * 1e-3
    doubtful = sum(check_number(f"{value:.16e}") == kernel.DOUBTFUL for value in values)
    assert doubtful < 10


@pytest.mark.parametrize(
    "string", ["", ".", "+", "-", "+.", "e5", ".e5", "1e", "1e+", "1.5E-", "nan", "inf", "--1", "x"]
)
def test_what_is_no_decimal_is_malformed(string: str) -> None:
    assert read_number(string)[2] == kernel.MALFORMED


@pytest.mark.parametrize(("string", "end"), [("1_0", 1), ("1.5.5", 3), ("0x10", 1), ("2 3", 1), ("1e5e5", 3)])
def test_a_number_ends_where_its_decimal_does(string: str, end: int) -> None:
    assert read_number(string)[0] == end


def test_the_table_of_powers_of_ten_rounds_down_to_64_bits() -> None:
    for power in range(kernel._LOWEST, kernel._HIGHEST + 1):
        t, exponent = kernel._ten_to(power)
        assert 2**63 <= t < 2**64
        assert t * Fraction(2) ** exponent <= Fraction(10) ** power < (t + 1) * Fraction(2) ** exponent


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_the_product_of_two_words_has_128_bits(a: int, b: int) -> None:
    high, low = kernel._high_and_low(np.uint64(a), np.uint64(b))
    assert int(high) << 64 | int(low) == a * b


@given(st.integers(-(10**20), 10**20) | st.sampled_from([2**63 - 1, 2**63, -(2**63), -(2**63) - 1]))
def test_a_query_id_is_a_whole_number_where_int64_holds_it(number: int) -> None:
    string = str(number)
    end, value, whole = kernel._query_id(as_text(string), 0)
    assert end == len(string)
    assert whole == (-(2**63) <= number < 2**63)
    assert not whole or value == number


@pytest.mark.parametrize("word", ["q7", "-", "+", "1_0", "1.5", "12a"])
def test_a_query_id_of_other_marks_is_a_word(word: str) -> None:
    assert not kernel._query_id(as_text(word), 0)[2]


def fill(content: str, widest: int = 2**31 - 2) -> tuple[tuple[int, ...], dict[str, np.ndarray]]:
    text = as_text(content)
    lines, colons = kernel.count_marks(text, 0, len(text))
    assert (lines, colons) == (content.count("\n") + 1, content.count(":"))
    made = {
        "grades": np.empty(lines),
        "qids": np.empty(lines, dtype=np.int64),
        "at": np.empty((lines, 3), dtype=np.int64),
        "ends": np.empty(lines, dtype=np.int64),
        "indices": np.empty(colons, dtype=np.int32),
        "values": np.empty(colons),
    }
    counted = kernel.fill(
        text, 0, len(text), made["grades"], made["grades"].view(np.uint64), made["qids"], made["at"], made["ends"],
        made["indices"], made["values"], made["values"].view(np.uint64), widest,
    )  # fmt: skip
    return tuple(int(number) for number in counted), made


def test_rows_fill_the_arrays_in_order() -> None:
    content = "# head\n2 qid:7 1:0.5 4:-1e2#c\n\n \t0.5\tqid:8\n-1 qid:x 2:3 "
    (code, _, rows, n, smallest, largest, doubts, words), made = fill(content)
    assert (code, rows, n, smallest, largest, doubts, words) == (kernel.OK, 3, 3, 1, 4, 0, 1)
    assert made["grades"][:3].tolist() == [2.0, 0.5, -1.0]
    assert made["qids"][:2].tolist() == [7, 8]
    assert made["ends"][:3].tolist() == [2, 2, 3]
    assert made["indices"][:3].tolist() == [1, 4, 2]
    assert made["values"][:3].tolist() == [0.5, -100.0, 3.0]
    starts = [content.index("2 qid"), content.index("0.5\t"), content.index("-1 qid")]
    qids = [content.index("7 1:"), content.index("8\n"), content.index("x 2")]
    assert made["at"][:3].tolist() == [
        [starts[0], qids[0], content.index("#c")],
        [starts[1], qids[1], -1],
        [starts[2], qids[2], -1],
    ]


def test_a_number_in_doubt_leaves_its_place_in_a_nan() -> None:
    content = "9007199254740993 qid:1 1:0.5 2:1e400"
    counted, made = fill(content)
    assert counted[6] == 2
    assert np.isnan(made["grades"][0])
    assert made["grades"].view(np.uint64)[0] - kernel.DOUBT == 0
    assert made["values"].view(np.uint64)[1] - kernel.DOUBT == content.index("1e400")


@pytest.mark.parametrize(
    ("line", "code", "at"),
    [
        ("x qid:1 1:2", kernel.BAD_GRADE, "x"),
        ("nan qid:1 1:2", kernel.BAD_GRADE, "nan"),
        ("1.5x qid:1", kernel.BAD_GRADE, "1.5x"),
        ("1 qid: 1:2", kernel.BAD_QID, "qid:"),
        ("1 qid:", kernel.BAD_QID, "qid:"),
        ("1 qid", kernel.BAD_QID, "qid"),
        ("1 q", kernel.BAD_QID, "q"),
        ("1 qid:1 -2:3", kernel.BAD_INDEX, "-2:3"),
        ("1 qid:1 12", kernel.BAD_INDEX, "12"),
        ("1 qid:1 :3", kernel.BAD_INDEX, ":3"),
        ("1 qid:1 2:", kernel.BAD_VALUE, "2:"),
        ("1 qid:1 2:inf", kernel.BAD_VALUE, "2:inf"),
        ("1 qid:1 2:1_0", kernel.BAD_VALUE, "2:1_0"),
        ("1 qid:1 2:1 2:1.5", kernel.NOT_RISING, "2:1.5"),
        ("1 qid:1 3:1 2:1", kernel.NOT_RISING, "2:1"),
        ("1 qid:1 2147483647:1", kernel.WIDE_INDEX, "2147483647:1"),
    ],
)
def test_an_error_names_its_kind_and_its_place(line: str, code: int, at: str) -> None:
    content = f"0 qid:1 1:1\n{line}\n"
    counted, _ = fill(content)
    assert counted[:3] == (code, content.rindex(at) if at != "q" else content.index("1 q\n") + 2, 1)


def test_an_index_as_large_as_allowed_is_read() -> None:
    counted, made = fill("1 2147483646:1")
    assert counted[0] == kernel.OK
    assert made["indices"][0] == 2147483646
