"""The mind of a cognitive agent: how its memories fade, grow stronger, and leave."""

import math

import pytest

from agentx.storage.events.cognition_events import Interacted, Recognized
from agentx.synthesis.state.mind import (
    FIRST_UTILITY,
    MOST_HELD,
    MOST_RECENT,
    Mind,
    Slot,
    crowded_out,
    purged,
    retention,
)


def over(number, **facts):
    return Interacted(session="main", interaction=number, message=number, **facts)


def read(**facts):
    return Recognized(session="main", interaction=1, message=1, **{"input_type": "statement", **facts})


def test_retention_is_the_curve_of_ebbinghaus():
    for t, strength, temperature in ((0, 1.0, 10.0), (3, 1.0, 10.0), (7, 2.5, 4.0)):
        slot = Slot(entered=1, accessed=2, strength=strength)
        expected = math.exp(-t / (strength * temperature))
        assert retention(slot, 2 + t, temperature) == pytest.approx(expected)
    assert retention(Slot(1, 1), 50, 0.0) == 0.0, "a temperature of nothing keeps nothing"


def test_standing_in_the_prompt_keeps_no_memory_alive_and_being_used_does():
    mind = Mind().interacted(over(1, entered=("a", "b", "c")))
    mind = mind.interacted(over(4, accessed=("a", "b"), reinforced=("b",), boost=0.5))
    assert mind.buffer == {"a": Slot(1, 1), "b": Slot(1, 4, strength=1.5), "c": Slot(1, 1)}
    assert mind.recent[-1].used == ("b",)
    off = mind.interacted(over(6, reinforced=("b",), boost=0.0))
    assert off.buffer["b"] == mind.buffer["b"]
    assert off.recent[-1].used == ("b",), "feedback still knows what was used"


def test_utilities_and_rewards_are_taken_within_their_bounds_and_only_for_what_is_held():
    mind = Mind().interacted(over(1, entered=("a", "b"), reinforced=("a",), boost=0.1))
    mind = mind.recognized(read(utilities={"a": 7.0, "b": math.nan, "z": 0.1}, reward=-9.0))
    assert (mind.buffer["a"].utility, mind.buffer["b"].utility) == (1.0, FIRST_UTILITY)
    assert (mind.buffer["a"].reward, mind.buffer["b"].reward) == (-0.5, 0.0)
    assert "z" not in mind.buffer
    assert mind.recognized(read(input_type="question", second=True)).input_type == "statement"


def test_a_memory_is_purged_only_below_both_thresholds():
    buffer = {
        "faded, useless": Slot(1, 1, utility=0.1),
        "faded, useful": Slot(1, 1, utility=0.9),
        "fresh, useless": Slot(39, 39, utility=0.1),
    }
    assert purged(Mind(buffer=buffer), 40, 10.0, 0.1, 0.2) == ("faded, useless",)


def test_where_there_is_no_room_the_least_utility_times_decay_leaves_first():
    buffer = {"old": Slot(1, 1, utility=0.9), "dull": Slot(9, 9, utility=0.1), "new": Slot(9, 9, utility=0.6)}
    sizes = dict.fromkeys(buffer, 10)
    assert crowded_out(Mind(buffer=buffer), 10, 10.0, sizes, 30) == ()
    assert crowded_out(Mind(buffer=buffer), 10, 10.0, sizes, 29) == ("dull",)
    assert crowded_out(Mind(buffer=buffer), 10, 10.0, sizes, 10) == ("old", "dull")
    assert crowded_out(Mind(buffer=buffer), 10, 10.0, {"new": 1}, 30) == ("old", "dull"), (
        "no memories any more"
    )
    many = {f"k-{place}": Slot(1, 1) for place in range(MOST_HELD + 30)}
    assert len(crowded_out(Mind(buffer=many), 1, 10.0, dict.fromkeys(many, 0), 10)) == 30


def test_the_recent_interactions_are_bounded_and_what_left_is_counted():
    mind = Mind()
    for number in range(1, MOST_RECENT + 10):
        mind = mind.interacted(over(number, entered=(f"k-{number}",), evicted=(f"k-{number - 1}", "none")))
    assert len(mind.recent) == MOST_RECENT
    assert mind.recent[-1].interaction == mind.interactions == MOST_RECENT + 9
    assert list(mind.buffer) == [f"k-{MOST_RECENT + 9}"]
