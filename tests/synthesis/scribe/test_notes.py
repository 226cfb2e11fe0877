"""Answers are kept with what they answer; tasks end with their rule, by the user's word or by a run."""

import msgspec
import pytest

from agentx.storage.events.types import AgentMessageSent, Body, Event, UserMessageSent
from agentx.synthesis.demands.demand_extractor import DemandExtractor
from agentx.synthesis.memory.conclusions import Concluded
from agentx.synthesis.scribe.notes import NoteTaker
from agentx.synthesis.state.state import State

NOTES = ("decision", "knowledge", "situation")


class Talk:
    """A conversation whose messages are read as they come."""

    def __init__(self, *said):
        self.state = State()
        self._extractors = (DemandExtractor(), NoteTaker())
        for text in said:
            self.say(text)

    def say(self, text):
        """Record ``A: …`` of the agent, anything else of the user; return the new and changed items."""
        by_agent, words = text.startswith("A: "), text.removeprefix("A: ")
        body, before = Body(words), dict(self.state.items)
        data = AgentMessageSent(body=body, final=True) if by_agent else UserMessageSent(body=body)
        event = self._add(data, "agent:main" if by_agent else "user")
        for one in self._extractors:
            changes = tuple(one.conclude(event, self.state, lambda given: given.text)) * isinstance(
                data, one.reads
            )
            if changes:
                made = Concluded(extractor=one.name, version=1, through=event.seq, changes=changes)
                self._add(made, "engine:test")
        return [item for item in self.state.items.values() if before.get(item.id) != item]

    def _add(self, data, actor):
        event = Event(
            seq=self.state.seq + 1,
            at="2026-01-01T00:00:00.000000Z",
            type=type(data).__name__,
            v=1,
            actor=actor,
            data=data,
        )
        self.state.apply(event)
        return event

    def kept(self, *kinds):
        return [
            (item.status, item.text) for item in self.state.items.values() if item.kind in (kinds or NOTES)
        ]


def notes(items):
    return [item for item in items if item.kind in NOTES and item.trust == "user"]


def test_a_yes_is_what_the_agent_proposed_in_the_agents_words():
    talk = Talk("A: Done. I'd log rejected rows to stdout as JSON. Shall I?")
    (item,) = notes(talk.say("yep do that"))
    assert (item.kind, item.status, item.text) == (
        "decision",
        "active",
        "Log rejected rows to stdout as JSON.",
    )
    assert item.evidence[0].quote == "yep do that"
    assert (item.answers.seq, item.answers.quote) == (1, "I'd log rejected rows to stdout as JSON. Shall I?")
    assert item.worded_by == "agent:main"


def test_an_option_is_named_by_its_number():
    talk = Talk("A: We have two ways:\n1. a nightly cron job\n2. a systemd timer\nWhich one?")
    (item,) = notes(talk.say("go with 2 until the move"))
    assert item.answers.quote == "a systemd timer"
    assert item.text == "Go with 2 until the move (asked: “a systemd timer”)"


def test_a_fact_that_answers_a_question_is_knowledge():
    (item,) = notes(Talk("A: Good. How many guests come?").say("about 40, plus kids"))
    assert (item.kind, item.status) == ("knowledge", "active")
    assert item.answers.quote.endswith("How many guests come?")


def test_a_later_answer_to_the_same_question_replaces_the_former():
    talk = Talk("A: Which port does staging use?", "8080", "A: Which port does staging use?", "9000, sorry")
    assert [status for status, _ in talk.kept("decision", "knowledge")] == ["retired", "active"]


def test_a_fact_in_reply_keeps_the_proposal_that_it_belongs_to():
    talk = Talk("A: I suggest asking three caterers for an offer.")
    (item,) = notes(talk.say("14 of us are vegetarian"))
    assert item.text == "14 of us are vegetarian"
    assert item.answers.quote == "I suggest asking three caterers for an offer."


def test_two_facts_of_one_reply_are_two_items():
    talk = Talk("A: Do you have the budget, and a place?")
    talk.say("yes. The budget is 4,000. Can you draft the letter? The hall costs 600.")
    assert [status for status, _ in talk.kept("decision", "knowledge")] == ["active", "active"]


def test_a_plain_statement_answers_nothing():
    (item,) = notes(Talk("A: All tests pass.").say("The budget is 4,000."))
    assert (item.text, item.answers) == ("The budget is 4,000.", None)


def test_a_candidate_that_is_said_again_is_active():
    talk = Talk("Ines runs the harbour office.", "btw, Ines runs the harbour office")
    assert talk.kept("knowledge") == [("active", "Ines runs the harbour office.")]


def test_a_rule_makes_no_task():
    talk = Talk("Always add a changelog entry when you change the API.", "The demo is on Friday.")
    assert talk.kept("constraint")
    assert talk.kept("task") == []


@pytest.mark.parametrize("end", ["thanks, that's sorted", "done", "forget the retry", "The retry is done."])
def test_the_user_closes_a_task(end):
    talk = Talk("Please add a retry to the uploader.", "hm", end)
    assert talk.kept("task") == [("closed", "Add a retry to the uploader.")]


@pytest.mark.parametrize(
    "said", ["the retry is not done", "forget the header", "is that done?", "well done on the page"]
)
def test_other_words_leave_a_task_open(said):
    talk = Talk("Please add a retry to the uploader.", "hm", said)
    assert talk.kept("task") == [("active", "Add a retry to the uploader.")]


def test_the_end_of_a_rule_ends_what_came_of_it():
    talk = Talk("From now on, let's use pnpm instead of npm.")
    (rule,) = [item for item in talk.state.items.values() if item.kind == "constraint"]
    task = msgspec.structs.replace(rule, id="t-9", kind="task", text="Use pnpm.")
    talk.state.items["t-9"] = task
    talk.say("From now on, use npm again instead of pnpm.")
    assert talk.state.items[rule.id].status == "retired"
    assert talk.state.items["t-9"].status == "closed"
