"""Taking numpydoc docstrings apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparserank.data.datasets.docstrings import parse

PLAIN = """Return a sorted copy.

Parameters
----------
a : array_like
    What to sort.

See Also
--------
{section}

Notes
-----
The end.
"""

name = st.from_regex(r"[a-z][a-z0-9_]{0,8}(\.[a-z_]{1,8}){0,2}", fullmatch=True)


@given(st.lists(name, min_size=1, max_size=6, unique=True), st.data())
def test_the_names_of_a_section_come_back_however_they_are_written(names: list[str], data: st.DataObject) -> None:
    forms = ["{}", "`{}`", ":func:`{}`", ":class:`~{}`", ":obj:`text <{}>`", "{}()"]
    written = [data.draw(st.sampled_from(forms)).format(one) for one in names]
    together = data.draw(st.booleans())
    lines = [", ".join(written) + " : described"] if together else [f"{one} : described, see that" for one in written]
    section = "\n".join(f"{line}\n    And more: other, words" for line in lines)
    doc = parse(PLAIN.format(section=section))
    assert doc.see_also == tuple(names)
    assert "See Also" not in doc.text
    assert "described" not in doc.text
    assert doc.text.endswith("The end.")


@pytest.mark.parametrize(
    "line", [":ref:`how-to-sort`", ":ref:`sorting` : a guide", "For more, read on.", ".. [1] A book"]
)
def test_what_names_no_object_is_passed_over(line: str) -> None:
    assert parse(PLAIN.format(section=f"{line}\nlexsort")).see_also == ("lexsort",)


@pytest.mark.parametrize(
    ("raw", "summary"),
    [
        ("Sort it.", "Sort it."),
        ("\n    Sort it\n    in place.\n\n    More.\n    ", "Sort it in place."),
        ("add(x1, x2, /, out=None, *, where=True)\n\nAdd arguments.", "Add arguments."),
        ("f(x)\nf(x, y=(1, 2)) -> int\nCount them. Slowly.", "Count them."),
        ("a, b = solve(c, [d])\n\nSolve for a.", "Solve for a."),
        ("wright(x, /)\n\nwright(a, b,\n       x)\n\nWright's function.", "Wright's function."),
        ("cos(x) - 1 for small `x`.", "cos(x) - 1 for small `x`."),
        (".. deprecated:: 1.0\n    Gone.\n\nStill here.", "Still here."),
        ("Split, e.g. by Hand. Then stop.", "Split, e.g. by Hand."),
        ("Version 1.5 of it. Next.", "Version 1.5 of it."),
        ("No full stop", "No full stop"),
        ("f(x)", ""),
        ("f(unclosed", ""),
        ("Notes\n-----\nOnly notes.", ""),
        ("", ""),
    ],
)
def test_the_summary_is_the_first_sentence_that_is_not_a_signature(raw: str, summary: str) -> None:
    assert parse(raw).summary == summary


def test_two_sections_of_the_name_are_both_cut_and_read() -> None:
    doc = parse("Sum.\n\nSee Also\n--------\na\n\nNotes\n-----\nn\n\nSee also\n--------\nb\n")
    assert doc.see_also == ("a", "b")
    assert doc.text == "Sum.\n\nNotes\n-----\nn"


def test_what_differs_from_run_to_run_is_left_out() -> None:
    one, other = (
        parse(
            f"F.\n\nDefault <f at {address}>, of {names}.\n\n>>> draw()\narray([{drawn},\n       2])  # may vary\n\nX"
        )
        for address, names, drawn in [("0x7f01", "{'a', 'b'}", "1"), ("0x7fee", "{'b', 'a'}", "9")]
    )
    assert one == other
    assert "Default <f>, of {'a', 'b'}." in one.text
    assert ">>> draw()\n\nX" in one.text


@given(st.text(alphabet="ab(): \n-=.`,<>'{}#"))
def test_no_text_is_too_odd_to_be_read(raw: str) -> None:
    assert isinstance(parse(raw).text, str)
