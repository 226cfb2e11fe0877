"""Syntax trees that the checks of one change share."""

import pytest

from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.syntax_trees import LANGUAGES, tree_of


@pytest.mark.parametrize("suffix", LANGUAGES)
def test_ast_grep_knows_each_language_of_the_table(suffix):
    assert tree_of(CheckedChange(path=f"a{suffix}", after="x"), "after") is not None


def test_each_side_of_a_change_is_parsed_once():
    change = CheckedChange(path="a.py", before="x = 1\n", after="y = 2\n")
    after = tree_of(change, "after")
    assert after.text() == "y = 2\n"
    assert tree_of(change, "before").text() == "x = 1\n"
    assert tree_of(change, "after") is after


def test_what_has_no_known_language_or_no_text_has_no_tree():
    assert tree_of(CheckedChange(path="a.txt", after="x"), "after") is None
    assert tree_of(CheckedChange(path="a.py", before="x", removes=True), "after") is None
    assert tree_of(CheckedChange(path="a.py", after="x"), "after", "klingon") is None
