"""The life of a rule: what nights take from it, what gives it back, and which rules every agent is given."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from agentx.synthesis.memory.items import Link, MemoryItem, NoteDetail, RuleDetail
from agentx.synthesis.state.rule_lifecycle import (
    boot_rules,
    faded,
    has_faded,
    reinforced,
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


def nights(item, first, last):
    for day in range(first, last):
        item = faded(item, START + timedelta(days=day, hours=12))
    return item


@pytest.mark.parametrize(
    ("score", "rest_days", "then"),
    [
        (8.9, 30, 8.4),
        (8.7, 30, 8.2),
        (7.0, 30, 6.5),
        (6.9, 7, 6.4),
        (6.5, 7, 6.0),
        (5.0, 7, 4.5),
        (4.9, 7, 3.9),
        (3.0, 7, 2.0),
    ],
)
def test_a_score_rests_then_falls_by_the_band_of_its_whole_part(score, rest_days, then):
    assert nights(rule(score), 0, rest_days) == rule(score)
    assert nights(rule(score), 0, rest_days + 1).score == then


def test_what_is_not_reinforced_sleeps_then_is_retired_with_the_reason():
    lives = [nights(rule(5.5), 0, last) for last in range(7, 13)]
    assert [item.score for item in lives] == [5.5, 5.0, 4.5, 3.5, 2.5, 2.5]
    assert [item.status for item in lives] == ["active", "active", "dormant", "dormant", "retired", "retired"]
    assert lives[-1].reason == "Not reinforced for 10 days: 3.5 → 2.5 in the night to 2026-01-12."


@pytest.mark.parametrize("kept", [{"score": 9.0}, {"score": 10.0}, {"score": 5.0, "pinned": True}])
def test_what_is_critical_or_pinned_never_fades(kept):
    assert nights(rule(**kept), 0, 400) == rule(**kept)


def test_a_rule_that_a_task_kept_rests_anew_and_counts_for_more():
    item = after(rule(5.0), reinforced(rule(5.0), at(6)))
    assert (item.score, item.used_at) == (5.25, at(6))
    assert nights(item, 0, 13) == item
    assert nights(item, 0, 14).score == 4.75


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
