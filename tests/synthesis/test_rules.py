"""The life of a rule: what tasks that pass it over take from it, what gives it back, and which rules every agent is given."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from agentx.synthesis.memory.items import Link, MemoryItem, NoteDetail, RuleDetail
from agentx.synthesis.state.rule_lifecycle import (
    RuleOutcome,
    after_night,
    after_task,
    boot_rules,
    has_faded,
    reinforced,
    strengthened,
    triggered,
    violated,
)
from agentx.synthesis.state.state import State

START = datetime(2026, 1, 1, 12, tzinfo=UTC)


def at(days):
    return (START + timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def rule(score, **fields):
    return MemoryItem(
        id=fields.pop("id", "r-1"),
        kind="rule",
        text="x",
        score=score,
        created_at=at(0),
        trust="user",
        **fields,
    )


def after(item, patch):
    return msgspec.structs.replace(item, **patch.fields())


def tasks(item, number, *, start=1, **outcome):
    """The rule after so many tasks in which its situation came up."""
    for day in range(start, start + number):
        item = after_task(item, RuleOutcome(rule=item.id, at=at(day), **outcome), tasks=day)
    return item


def test_a_rule_passed_over_twenty_times_in_a_row_sleeps_and_after_forty_it_is_retired():
    lives = [tasks(rule(7.0), number) for number in (19, 20, 39, 40)]
    assert [item.status for item in lives] == ["active", "dormant", "dormant", "retired"]
    assert {item.score for item in lives} == {7.0}
    assert lives[-1].reason == "40 tasks in a row passed it over."
    assert has_faded(lives[-1])


@pytest.mark.parametrize("kept", [{"score": 9.0}, {"score": 10.0}, {"score": 5.0, "pinned": True}])
def test_what_is_critical_or_pinned_never_fades(kept):
    item = after_night(tasks(rule(**kept), 100), 900)
    assert (item.status, item.score, item.detail.passed_over) == ("active", kept["score"], 0)


def test_days_alone_take_nothing_from_a_rule():
    assert after_night(rule(5.0), 0) == rule(5.0)


def test_a_task_that_kept_a_rule_ends_the_streak_and_counts_for_more():
    item = tasks(tasks(rule(5.0), 19), 1, start=20, kept=True)
    assert (item.score, item.used_at, item.detail.passed_over) == (5.25, at(20), 0)
    assert tasks(item, 19, start=21).status == "active"


def test_a_rule_that_is_only_ever_broken_counts_it_and_fades_all_the_same():
    item = tasks(rule(5.0), 20, broke=True)
    assert (item.status, item.detail.violations, item.score) == ("dormant", 20, 8.9)
    assert tasks(item, 20, start=21, broke=True).status == "retired"


def test_what_a_grade_named_has_changed_the_score_already():
    kept = tasks(tasks(rule(5.0), 3), 1, start=4, kept=True, graded=True)
    assert (kept.score, kept.detail.passed_over) == (5.0, 0)
    broken = tasks(rule(5.0), 1, broke=True, graded=True)
    assert (broken.score, broken.detail.violations, broken.detail.passed_over) == (5.0, 0, 1)


def test_a_rule_made_from_a_lesson_sleeps_when_its_situation_never_came_up_in_200_tasks():
    item = after_night(rule(5.0), 10)
    assert (item.detail.reached, after_night(item, 209)) == (10, item)
    asleep = after_night(item, 210)
    assert (asleep.status, asleep.reason) == ("dormant", "Its situation did not come up in 200 tasks.")
    assert after_night(asleep, 9_000) == asleep
    by_hand = after_night(rule(5.0, by_hand=True), 10)
    assert after_night(by_hand, 900).status == "active"


def test_a_rule_whose_situation_came_up_once_waits_for_the_next_time():
    item = tasks(after_night(rule(5.0), 10), 1, start=11)
    assert (item.detail.arose, after_night(item, 9_000)) == (1, item)
    state = State(counts={"RunStarted": 9_000})
    state.items["r-1"] = msgspec.structs.replace(item, id="r-1", score=7.0)
    state.items["r-2"] = rule(5.0, id="r-2", detail=RuleDetail(reached=8_990))
    assert [item.id for item in boot_rules(state)] == ["r-1", "r-2"]


def test_a_rule_that_woke_is_not_laid_aside_in_the_next_night():
    item = after_night(after_night(rule(5.0), 10), 300)
    item = after(item, triggered(item, at(1)))
    assert after_night(item, 301).status == "active"


def test_its_situation_alone_does_not_wake_what_was_passed_over():
    item = tasks(rule(5.0), 20)
    for trigger in (triggered, violated):
        assert after(item, trigger(item, at(30))).status == "dormant"
    assert after(item, reinforced(item, at(30))).status == "active"
    gone = tasks(item, 20, start=21)
    back = after(gone, strengthened(gone, at(50), 0.5, "said again"))
    assert (back.status, back.detail.passed_over) == ("active", 0)


def test_a_rule_that_is_broken_gains_weight_and_counts_the_violation():
    item = rule(5.0, detail=NoteDetail())
    for day in (1, 2):
        item = after(item, violated(item, at(day)))
    assert (item.score, item.detail) == (6.0, RuleDetail(violations=2))


def test_only_a_person_makes_a_rule_critical():
    item = rule(8.5)
    for day in range(20):
        item = after(item, violated(item, at(day)))
    assert item.score == 8.9
    assert after(rule(9.5), reinforced(rule(9.5), at(1))).score == 9.5


@pytest.mark.parametrize("trigger", [reinforced, violated, triggered])
@pytest.mark.parametrize("asleep", [{"score": 3.5, "status": "dormant"}, {"score": 2.0, "status": "retired"}])
def test_what_slept_or_faded_away_is_back_when_it_is_triggered(trigger, asleep):
    item = after(rule(**asleep), trigger(rule(**asleep), at(50)))
    assert (item.status, item.score, item.used_at) == ("active", 5.0, at(50))
    assert "back at 5" in item.reason


@pytest.mark.parametrize(
    "ended",
    [
        {"score": 6.0, "status": "retired"},
        {"score": 2.0, "status": "retired", "links": (Link("superseded_by", "r-9"),)},
    ],
)
def test_what_a_person_ended_or_another_took_in_stays_ended(ended):
    item = rule(**ended)
    assert not has_faded(item)
    for trigger in (reinforced, violated, triggered):
        woken = after(item, trigger(item, at(50)))
        assert (woken.status, woken.score, woken.detail) == (item.status, item.score, item.detail)


def test_what_tasks_pass_over_or_never_reach_ranks_behind():
    state = State(counts={"RunStarted": 300})
    state.items["r-1"] = rule(7.0, id="r-1", detail=RuleDetail(reached=50), by_hand=True)
    state.items["r-2"] = rule(6.0, id="r-2", detail=RuleDetail(passed_over=10, reached=290))
    state.items["r-3"] = rule(5.0, id="r-3", detail=RuleDetail(reached=290))
    assert [item.id for item in boot_rules(state)] == ["r-3", "r-2", "r-1"]


def test_every_agent_is_given_all_critical_rules_then_the_strongest_up_to_twenty():
    state = State()
    scores = {f"r-{n}": 5 + n / 10 for n in range(30)}
    for name, score in {**scores, "r-90": 9.0, "r-91": 10.0}.items():
        state.items[name] = rule(score, id=name)
    state.items["r-92"] = rule(5.0, id="r-92", pinned=True)
    state.items["r-93"] = rule(4.0, id="r-93", status="dormant")
    given = [item.id for item in boot_rules(state)]
    assert given[:4] == ["r-92", "r-91", "r-90", "r-29"]
    assert len(given) == 20
    for n in range(100, 125):
        state.items[f"r-{n}"] = rule(9.0, id=f"r-{n}")
    assert len(boot_rules(state)) == 28
