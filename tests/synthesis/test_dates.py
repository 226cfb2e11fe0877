"""Dates in a text: each form, against the time at which it was said."""

import pytest

from agentx.synthesis.language.dates import dates_in, with_dates

MONDAY = "2026-06-01T13:08:00Z"


@pytest.mark.parametrize(
    ("said", "first", "last"),
    [
        ("It is on 2026-07-04.", "2026-07-04", "2026-07-04"),
        ("It is on the 4th of July.", "2026-07-04", "2026-07-04"),
        ("It was on December 30, 2025.", "2025-12-30", "2025-12-30"),
        ("The paper is due sept 25.", "2026-09-25", "2026-09-25"),
        ("It was on 20 December.", "2025-12-20", "2025-12-20"),
        ("She came yesterday.", "2026-05-31", "2026-05-31"),
        ("We shipped last Thursday.", "2026-05-28", "2026-05-28"),
        ("He turned 80 on Sunday.", "2026-05-31", "2026-05-31"),
        ("He pays by Friday.", "2026-06-05", "2026-06-05"),
        ("It is Thursday week.", "2026-06-11", "2026-06-11"),
        ("See you next Friday.", "2026-06-05", "2026-06-05"),
        ("That was two weeks ago.", "2026-05-18", "2026-05-18"),
        ("It starts in 3 days.", "2026-06-04", "2026-06-04"),
        ("It was last month.", "2026-05-01", "2026-05-31"),
        ("We meet this weekend.", "2026-06-06", "2026-06-07"),
        ("It begins on the 20th.", "2026-06-20", "2026-06-20"),
        ("That was in March.", "2026-03-01", "2026-03-31"),
        ("It was back in spring.", "2026-03-01", "2026-05-31"),
        ("He has lived here since 2019.", "2019-01-01", "2019-12-31"),
    ],
)
def test_a_date_is_resolved(said, first, last):
    (one,) = dates_in(said, MONDAY)
    assert (str(one.first), str(one.last)) == (first, last)


@pytest.mark.parametrize(
    "said",
    [
        "We rehearse on Mondays.",
        "She visits on Friday afternoons.",
        "We ship on Tuesday and Thursday.",
        "We may meet.",
        "It is the 31st of February.",
        "Room 4 is free.",
    ],
)
def test_what_is_no_day_is_not_resolved(said):
    assert with_dates(said, MONDAY) == said


def test_the_date_stands_beside_the_words_that_need_it():
    assert with_dates("It was yesterday, not 4 May.", MONDAY) == "It was yesterday (2026-05-31), not 4 May."


def test_a_time_that_cannot_be_read_resolves_nothing():
    assert dates_in("It was yesterday.", "") == []
