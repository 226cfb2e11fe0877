"""How memories fade: by their kind's curve, from use to the state's own present."""

import pytest

from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.memory.vitality import days_between, vitality


def _at(day):
    return f"2026-01-{1 + day:02}T00:00:00.000000Z"


def _item(kind, **fields):
    return MemoryItem(id="k-1", kind=kind, text="x", created_at=_at(0), **fields)


@pytest.mark.parametrize("kind", ["constraint", "rejection", "decision", "flow", "north_star"])
def test_what_stands_does_not_fade(kind):
    assert vitality(_item(kind), _at(30)) == 1


@pytest.mark.parametrize(("kind", "steep"), [("knowledge", 0.25), ("episode", 0.45)])
def test_what_is_not_used_fades_and_use_keeps_it(kind, steep):
    fresh, old = vitality(_item(kind), _at(0)), vitality(_item(kind), _at(30))
    assert fresh > 0.99
    assert old < fresh - steep
    assert vitality(_item(kind, used_at=_at(29)), _at(30)) > old
    assert vitality(_item(kind, strength=3.0), _at(30)) > old
    assert vitality(_item(kind, pinned=True), _at(30)) == 1


def test_a_logistic_memory_holds_for_long_then_falls():
    lives = [vitality(_item("knowledge"), _at(day)) for day in (0, 10, 20, 30)]
    assert lives == sorted(lives, reverse=True)
    assert lives[1] > 0.97
    assert lives[3] == pytest.approx(0.5)


def test_a_rule_is_as_alive_as_its_score():
    assert vitality(_item("rule", score=7.5), _at(30)) == 0.75


@pytest.mark.parametrize("wrong", ["", "yesterday", "9999", "2026-01-01T00:00:00"])
def test_a_damaged_time_is_no_time(wrong):
    assert days_between(wrong, _at(3)) == 0
    assert days_between(_at(3), wrong) == 0


def test_a_memory_of_long_ago_is_nothing_and_no_error():
    item = MemoryItem(id="k-1", kind="knowledge", text="x", created_at="0001-01-01T00:00:00Z")
    assert vitality(item, "9999-01-01T00:00:00Z") == pytest.approx(0)
