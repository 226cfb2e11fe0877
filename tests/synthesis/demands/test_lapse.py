"""Time settles what nobody else did: a candidate is laid aside, and comes back when it is said again."""

import pytest

from agentx.storage.events.types import Body, Event, ToolCallExecuted, UserMessageSent
from agentx.synthesis.demands.demand_extractor import DemandExtractor, Lapse
from agentx.synthesis.memory.conclusions import Concluded
from agentx.synthesis.state.state import State

WISH = "don't add comments to the code"


class Days:
    """A conversation in which each message is said on a day."""

    def __init__(self, lapse_days=14):
        self.state = State()
        self.extractors = (Lapse(lapse_days), DemandExtractor())

    def say(self, day, text):
        self.happen(f"2026-03-{day:02}T12:00:00.000000Z", UserMessageSent(body=Body(text)))

    def happen(self, at, data):
        event = self._append(at, data)
        for extractor in self.extractors:
            changes = tuple(extractor.conclude(event, self.state, lambda body: body.text))
            if changes:
                self._append(
                    at, Concluded(extractor=extractor.name, version=1, through=event.seq, changes=changes)
                )

    def _append(self, at, data):
        event = Event(seq=self.state.seq + 1, at=at, type=type(data).__name__, v=1, actor="user", data=data)
        self.state.apply(event)
        return event

    @property
    def item(self):
        (item,) = self.state.items.values()
        return item


def test_a_proposal_lapses_after_so_many_days_and_not_before():
    days = Days()
    days.say(1, WISH)
    days.say(14, "Thanks.")
    assert days.item.status == "candidate"
    days.say(15, "Thanks.")
    assert (days.item.status, days.item.reason) == (
        "closed",
        "It lapsed: nobody settled it within 14 days.",
    )


def test_saying_it_again_after_it_lapsed_makes_it_a_proposal_and_once_more_a_rule():
    days = Days()
    days.say(1, WISH)
    days.say(20, WISH)
    assert (days.item.status, days.item.reason) == ("candidate", "")
    assert len(days.item.evidence) == 2
    days.say(21, WISH)
    assert days.item.status == "active"


def test_a_certain_demand_makes_what_lapsed_a_rule_at_once():
    days = Days()
    days.say(1, WISH)
    days.say(20, "From now on, don't add comments to the code.")
    assert [item.status for item in days.state.items.values()] == ["active"]


def test_saying_it_again_in_time_makes_it_a_rule_which_never_lapses():
    days = Days()
    days.say(1, WISH)
    days.say(10, WISH)
    days.say(31, "Thanks.")
    assert days.item.status == "active"


def test_zero_days_is_for_ever():
    days = Days(lapse_days=0)
    days.say(1, WISH)
    days.say(31, "Thanks.")
    assert days.item.status == "candidate"


def test_only_the_user_coming_back_lays_anything_aside():
    days = Days()
    days.say(1, WISH)
    days.happen(
        "2026-03-30T12:00:00.000000Z",
        ToolCallExecuted(call_id="1", tool="read_file", arguments={}, status="OK", output=Body("")),
    )
    assert days.item.status == "candidate"


@pytest.mark.parametrize("at", ["", "yesterday", "0001-01-01T00:00:00.000000Z", "9999-99-99"])
def test_a_damaged_time_lays_nothing_aside(at):
    days = Days()
    days.say(1, WISH)
    days.happen(at, UserMessageSent(body=Body("Thanks.")))
    assert days.item.status == "candidate"
