"""When schedules are due: clocks that change, long nights, policies for catching up, jitter."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from agentx.storage.events.schedule_events import DuePassed, ScheduleSet
from agentx.synthesis.scheduling.schedule_times import (
    MOST_COUNTED,
    DuePlan,
    ScheduleInvalid,
    check,
    plan,
    times,
    upcoming,
)
from agentx.synthesis.state.state import ScheduleRecord

BERLIN = "Europe/Berlin"


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def written(text):
    return at(text).isoformat(timespec="microseconds").replace("+00:00", "Z")


def due(cron, after, zone="UTC", most=3):
    rule = ScheduleSet(id="a", cron=cron, zone=zone)
    return [f"{moment:%m-%d %H:%M}" for moment in islice(times(rule, at(after)), most)]


def record(cron="0 * * * *", since="2026-01-01T00:00", settled="", **rule):
    made = ScheduleSet(id="a", cron=cron, task="Look.", **rule)
    return ScheduleRecord(made, written(since), written(settled) if settled else "")


def test_what_is_due_in_the_hour_that_is_left_out_is_due_right_after_it_and_once():
    assert due("30 2 * * *", "2026-03-28T23:30", BERLIN) == ["03-29 01:00", "03-30 00:30", "03-31 00:30"]


def test_what_is_due_in_the_hour_that_comes_twice_is_due_once():
    once = ["10-25 00:30", "10-26 01:30", "10-27 01:30"]
    assert due("30 2 * * *", "2026-10-24T22:30", BERLIN) == once
    assert due("30 2 * * *", "2026-10-25T00:30", BERLIN) == [*once[1:], "10-28 01:30"]  # settled, asked anew


@pytest.mark.parametrize("start", ["2026-03-29T00:00", "2026-10-25T00:00", "2026-10-25T00:30"])
def test_what_is_due_every_half_hour_goes_on_every_half_hour_whatever_the_clock_on_the_wall_does(start):
    found = list(islice(times(ScheduleSet(id="a", cron="*/30 * * * *", zone=BERLIN), at(start)), 8))
    assert found == [at(start) + timedelta(minutes=30 * n) for n in range(1, 9)]


def test_months_have_their_own_ends_and_years_their_own_februaries():
    assert due("0 0 31 * *", "2026-01-31T00:00") == ["03-31 00:00", "05-31 00:00", "07-31 00:00"]
    assert due("0 0 L * *", "2028-01-31T00:00", most=2) == ["02-29 00:00", "03-31 00:00"]
    assert next(times(ScheduleSet(id="a", cron="0 0 29 2 *"), at("2026-01-01"))) == at("2028-02-29")


@pytest.mark.parametrize(
    ("cron", "zone", "wrong"),
    [
        ("0 0 31 2 *", "UTC", "'0 0 31 2 *'"),
        ("* * * * * *", "UTC", "number of fields"),
        ("every day", "UTC", "five fields"),
        ("0 0 * * *", "Mars/Base", "has an unknown time zone: 'Mars/Base'"),
        ("0 0 * * *", "", "has an unknown time zone"),
        ("0 0 * * *", "../etc", "has an unknown time zone"),
    ],
)
def test_what_cannot_be_read_or_is_never_due_is_refused_with_what_is_wrong(cron, zone, wrong):
    with pytest.raises(ScheduleInvalid) as caught:
        check(ScheduleSet(id="a", cron=cron, zone=zone))
    assert wrong in str(caught.value)


def test_nothing_is_due_before_its_time_nor_when_it_is_settled_nor_where_the_clock_was_set_back():
    assert plan(record(), at("2026-01-01T00:59")) == DuePlan()
    assert plan(record(), at("2026-01-01T01:00")).due == written("2026-01-01T01:00")
    settled = record(settled="2026-01-01T05:00")
    for now in ("2026-01-01T05:00", "2026-01-01T05:59", "2026-01-01T02:00", "2025-12-24T00:00"):
        assert plan(settled, at(now)) == DuePlan()
    assert upcoming(settled, at("2025-12-24T00:00"), 1) == [written("2026-01-01T06:00")]


def test_once_runs_the_latest_for_all_that_were_missed_and_says_how_many_they_were():
    assert plan(record(), at("2026-01-01T07:30")) == DuePlan(
        passed=DuePassed(
            schedule="a",
            due=written("2026-01-01T06:00"),
            times=6,
            reason="nobody was there, and the latest one counts for all of them",
        ),
        due=written("2026-01-01T07:00"),
        begins=written("2026-01-01T07:00"),
    )


def test_all_runs_each_that_was_missed_in_order_and_passes_none():
    found, settled = [], ""
    while made := plan(record(catch_up="all", settled=settled), at("2026-01-01T04:30")).due:
        found.append(made)
        settled = made.removesuffix("Z")
    assert found == [written(f"2026-01-01T0{hour}:00") for hour in (1, 2, 3, 4)]


def test_none_runs_only_what_somebody_was_there_for():
    assert plan(record(catch_up="none"), at("2026-01-01T03:00:59")).due == written("2026-01-01T03:00")
    late = plan(record(catch_up="none"), at("2026-01-01T03:30"))
    assert (late.due, late.passed.due, late.passed.times) == ("", written("2026-01-01T03:00"), 3)


@pytest.mark.parametrize("catch_up", ["once", "none"])
def test_after_years_of_downtime_the_latest_is_found_without_counting_every_minute(catch_up):
    made = plan(record("* * * * *", catch_up=catch_up), at("2036-01-01T00:00:30"))
    assert made.due == written("2036-01-01T00:00")  # half a minute late is punctual
    assert made.passed == DuePassed(
        schedule="a",
        due=written("2035-12-31T23:59"),
        times=MOST_COUNTED - 1,
        reason=made.passed.reason,
    )


def test_jitter_is_the_same_for_the_same_due_time_within_its_bound_and_spread_over_schedules():
    now = at("2026-01-01T01:00")
    begins = []
    for name in map(str, range(40)):
        rule = ScheduleSet(id=name, cron="0 * * * *", jitter_s=600)
        made = [
            plan(ScheduleRecord(rule, written("2026-01-01T00:00")), later)
            for later in (now, now + timedelta(minutes=5))
        ]
        assert made[0] == made[1]
        begins.append(datetime.fromisoformat(made[0].begins) - now)
    assert (
        timedelta()
        <= min(begins)
        < timedelta(seconds=120)
        < timedelta(seconds=480)
        < max(begins)
        < timedelta(seconds=600)
    )
