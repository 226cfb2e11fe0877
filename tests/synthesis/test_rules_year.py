"""The simulated year, in a short form: right rules are there when they are needed, and wrong ones fade."""

from xml.etree import ElementTree as ET

import pytest

from tests.simulate_rules import plot, year

DAYS = 180


@pytest.fixture(scope="module")
def lived():
    """One agent for half a year."""
    return year(agents=1, days=DAYS)


def test_right_rules_stay_and_those_that_are_wrong_or_never_reached_do_not(lived):
    assert {sort: lived.active[sort][-1] for sort in ("daily", "weekly", "prohibition", "never")} == {
        "daily": 100,
        "weekly": 100,
        "prohibition": 100,
        "never": 0,
    }
    assert lived.active["monthly"][-1] >= 90
    for sort in ("wrong, ignored", "wrong, denies"):
        assert lived.active[sort][-1] <= 25
    assert [lived.used[sort].retired for sort in ("daily", "weekly", "monthly", "never", "prohibition")] == [
        0
    ] * 5


def test_the_same_year_is_lived_twice(lived):
    again = year(agents=1, days=20)
    assert {sort: shares[:20] for sort, shares in lived.active.items()} == again.active


def test_the_picture_has_a_line_for_three_sorts_of_rules(lived):
    drawn = ET.fromstring(plot(lived))
    lines = drawn.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points", "").split()) for line in lines] == [DAYS + 1] * 3
