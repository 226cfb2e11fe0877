"""The simulated year, in its short form: rules settle, however many lessons come in."""

from xml.etree import ElementTree as ET

import pytest

from tests.simulate_rules import plot, year

DAYS = 75


@pytest.fixture(scope="module")
def years():
    """Two agents for some weeks, at two rates of lessons."""
    return {rate: list(year(rate, agents=2, days=DAYS)) for rate in (25, 100)}


def test_the_number_of_active_rules_settles_while_lessons_go_on_coming_in(years):
    for rate, lived in years.items():
        early, late = lived[30:45], lived[60:75]
        assert late[-1].lessons == pytest.approx(rate * DAYS / 7, rel=0.1)
        first, second = (sum(day.active for day in part) / len(part) for part in (early, late))
        assert second == pytest.approx(first, rel=0.2)
        assert second < late[-1].lessons / 8


def test_four_times_as_many_lessons_make_less_than_four_times_as_many_rules(years):
    slow, fast = (lived[-1].active for lived in years.values())
    assert slow * 1.5 < fast < slow * 3.8


def test_the_same_year_is_lived_twice(years):
    assert list(year(25, agents=2, days=20)) == years[25][:20]


def test_the_picture_has_a_line_for_each_rate(years):
    drawn = ET.fromstring(plot(years))
    lines = drawn.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert [len(line.get("points", "").split()) for line in lines] == [DAYS + 1] * 2
