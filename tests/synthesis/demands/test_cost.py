"""What it costs to read a message grows with its length, whatever is in it.

Calls are counted, and a pattern that goes back over what it has read shows in the time limit of the test run.
"""

import sys
from types import FrameType

import pytest

from agentx.synthesis.attribution.material import MAX_CHARACTERS, own_words
from agentx.synthesis.demands.classify import readings
from tests.demand_findings import findings

UNITS = (
    "actually, use tabs instead of spaces. ",
    "scratch that. ",
    "except in tests, ",
    "you can use it now, ",
    "no more of it please ",
    "the release is out ",
    "the release is done. ",
    "User: a\nAI: b\n",
    "From: a\nTo: b\n",
    "lines of 80 chars are fine, ",
    "in the docs of the page ",
    "Anna wrote ",
    "the log says:\n",
    "Anna: so, ",
    "never a, says the linter. ",
    "That's what the wiki says. ",
    "https://a.example/b\n\n",
    'it says "a" and ',
    "the a of the b's c ",
    "=== ",
    "```\n",
    "~~~\n\n",
    "<b><i>",
    "</b>",
    "<!-- ",
    "\"'",
    "“",
    "((((",
    "[[",
    "{\n",
    "ˣ: ",
    "a" * 50,
    "a.",
    "/a",
    "1",
    "- ",
    "\t",
    "e.g. ",
    "for now ",
    "until a. ",
)


def _calls(text: str) -> int:
    """How many functions are called, in Python and in C, while a message is read."""
    count = 0

    def tally(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}

    own_words.cache_clear()
    readings.cache_clear()
    before = sys.getprofile()
    sys.setprofile(tally)
    try:
        findings(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("unit", UNITS)
def test_twice_the_text_takes_at_most_about_twice_the_calls(unit):
    whole = unit * (MAX_CHARACTERS // 4 // len(unit))
    findings(whole[: len(whole) // 4])  # what is worked out once is not counted
    half, full = _calls(whole[: len(whole) // 2]), _calls(whole)
    assert full <= 2.5 * half + 500


@pytest.mark.parametrize("unit", UNITS[::8])
def test_what_lies_behind_the_part_that_is_read_costs_nothing_more(unit):
    whole = unit * (MAX_CHARACTERS // len(unit))
    filled = whole + "." * (MAX_CHARACTERS - len(whole))
    findings(filled)
    assert _calls(filled + unit * 1_000) <= 1.001 * _calls(filled)
