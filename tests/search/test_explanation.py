"""Explanations by document word, and the share of the learned part that five lines show."""

from __future__ import annotations

import pytest

from sparserank.search.explanation import Contribution, Explanation, Line, shown_share

PAIRS = (
    Contribution("car", "motor", 2.0),
    Contribution("red", "red", 1.5),
    Contribution("drive", "motor", 1.0),
    Contribution("car", "boat", -0.5),
)


def test_a_line_adds_all_query_words_of_one_document_word():
    explanation = Explanation(4.0, PAIRS)
    expected = (Line("motor", ("car", "drive"), 3.0), Line("red", ("red",), 1.5), Line("boat", ("car",), -0.5))
    assert explanation.lines == expected
    assert sum(line.contribution for line in explanation.lines) == explanation.score


def test_the_share_is_that_of_the_five_largest_lines_of_the_learned_part():
    learned = (*(Contribution("car", f"word{i}", 1.0) for i in range(7)), Contribution("bus", "word0", 2.0))
    assert Explanation(9.0, learned, learned).explained_share == pytest.approx((3 + 4) / 9)
    assert Explanation(4.0, PAIRS).explained_share is None
    assert Explanation(4.0, PAIRS, PAIRS).explained_share == 1.0


def test_negative_contributions_count_by_their_size():
    assert shown_share([5.0, -5.0, 1.0], k=2) == pytest.approx(10 / 11)
    assert shown_share([]) == 1.0
