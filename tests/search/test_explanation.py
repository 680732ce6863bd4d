"""Explanations by document word, and the share of the learned part that five lines show."""

from __future__ import annotations

import pytest

from sparserank.search.explanation import Contribution, Explanation, Line, WordGroup, group_words, shown_share

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


def test_a_group_has_the_words_that_one_query_word_finds_and_groups_sum_to_the_score():
    groups = group_words([*PAIRS, ("car", "wheel", 0.4), ("red", "wheel", 0.3)])
    assert groups == (
        WordGroup("car", ("motor", "wheel"), pytest.approx(3.7)),
        WordGroup("red", ("red",), 1.5),
        WordGroup("car", ("boat",), -0.5),  # it lowers the score
    )
    assert sum(group.contribution for group in groups) == pytest.approx(4.7)


def test_words_beyond_a_line_are_in_another_one():
    groups = group_words([("car", f"word{i}", 8.0 - i) for i in range(8)], size=3)
    assert [len(group.documents) for group in groups] == [3, 3, 2]
    assert groups[0] == WordGroup("car", ("word0", "word1", "word2"), 21.0)


def test_the_share_is_that_of_the_five_largest_groups_of_the_learned_part():
    learned = (*(Contribution(f"query{i}", f"word{i}", 1.0) for i in range(7)), Contribution("bus", "word0", 2.0))
    assert Explanation(9.0, learned, learned).explained_share == pytest.approx((3 + 4) / 9)
    assert Explanation(4.0, PAIRS).explained_share is None
    assert Explanation(4.0, PAIRS, PAIRS).explained_share == 1.0


def test_negative_contributions_count_by_their_size():
    assert shown_share([5.0, -5.0, 1.0], k=2) == pytest.approx(10 / 11)
    assert shown_share([]) == 1.0
