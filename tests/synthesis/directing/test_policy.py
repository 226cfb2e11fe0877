"""When the director is asked again is decided by the record alone."""

import pytest

from agentx.storage.errors import UsageError
from agentx.storage.events.direction_events import DirectiveFailed, ReusePolicy
from agentx.storage.events.types import (
    AgentMessageSent,
    Body,
    Event,
    RunEnded,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.synthesis.directing.policy import CONDITIONS, condition, decide
from agentx.synthesis.memory.conclusions import Add, Concluded, Patch
from agentx.synthesis.memory.items import MemoryItem
from agentx.synthesis.state.state import DirectiveRecord

EVERY = (
    "executor_failed",
    "user_instructions_changed",
    "tool_error",
    "hot_issue_opened",
    "constraint_changed",
)


def serving(*invalidate_on, runs=1, valid_for_runs=5):
    return DirectiveRecord(9, "", ReusePolicy(valid_for_runs, invalidate_on), 8, runs)


def event(data, actor="agent:executor", seq=12):
    return Event(seq=seq, at="", type=type(data).__name__, v=1, actor=actor, data=data)


def call(status="FAILED", tool="send_email"):
    return event(ToolCallExecuted(call_id="1", tool=tool, status=status))


def item(kind, status="active"):
    return MemoryItem(id="i-1", kind=kind, text="x", status=status)


def concluded(*changes):
    return event(Concluded(extractor="x", version=1, through=11, changes=changes), "engine:synthesis")


def test_without_a_directive_one_is_wanted():
    assert decide(None, ()).direct


@pytest.mark.parametrize(
    ("name", "ends", "does_not"),
    [
        ("executor_failed", event(RunEnded(status="FAILED")), event(RunEnded(status="COMPLETED"))),
        ("executor_failed", event(RunEnded(status="LIMIT_REACHED")), event(RunEnded(status="INTERRUPTED"))),
        (
            "user_instructions_changed",
            event(UserMessageSent(body=Body("Reddit too.")), "user:ann"),
            event(AgentMessageSent(body=Body("Sent."))),
        ),
        ("tool_error:send_email", call(), call(tool="search")),
        ("tool_error:send_email", call("DENIED"), call("SUCCEEDED")),
        ("tool_error", call(tool="search"), call("SUCCEEDED")),
        (
            "hot_issue_opened",
            concluded(Add(item("hot_issue"))),
            concluded(Patch(id="h-3", status="closed")),
        ),
        ("hot_issue_opened", concluded(Patch(id="h-3", status="active")), concluded(Add(item("knowledge")))),
        (
            "constraint_changed",
            concluded(Add(item("constraint"))),
            concluded(Add(item("constraint", "candidate"))),
        ),
        (
            "constraint_changed",
            concluded(Patch(id="c-3", status="retired")),
            concluded(Patch(id="c-3", used_at="x")),
        ),
        ("constraint_changed", concluded(Add(item("rejection"))), concluded(Patch(id="k-3", text="x"))),
    ],
)
def test_a_condition_ends_a_directive_at_its_event_and_at_no_other(name, ends, does_not):
    decision = decide(serving(name), [does_not, ends])
    assert (decision.direct, decision.cause) == (True, ends.seq)
    assert name in decision.why
    assert not decide(serving(name), [does_not]).direct
    assert not decide(serving(*(set(EVERY) - {name.partition(":")[0]})), [does_not]).direct


def test_a_new_instruction_always_ends_a_directive_and_thanks_never():
    said = event(UserMessageSent(body=Body("Thanks, but skip Berlin.")), "user:ann")
    assert decide(serving("executor_failed"), [said]).cause == said.seq
    thanks = event(UserMessageSent(body=Body("Thanks, looks good!")), "user:ann")
    assert not decide(serving(*EVERY), [thanks]).direct


def test_after_a_failure_of_the_director_it_is_asked_again():
    failed = event(DirectiveFailed(why="it was asked for", error="down"), "agent:director")
    assert decide(serving(), [failed]).why == "the director failed at event 12"


def test_a_directive_serves_its_runs_and_no_more():
    assert decide(serving(runs=4), ()).why == "the directive of event 9 serves: this is run 5 of 5"
    assert decide(serving(runs=5), ()).direct


def test_a_condition_that_nobody_knows_here_ends_the_directive_rather_than_being_passed_over():
    decision = decide(serving("moon_is_full"), ())
    assert decision.direct
    assert "moon_is_full" in decision.why


def test_a_program_registers_a_condition_of_its_own_once(monkeypatch):
    monkeypatch.setattr("agentx.synthesis.directing.policy.CONDITIONS", CONDITIONS | {})

    @condition("mailbox_named")
    def named(event, argument):
        return isinstance(event.data, AgentMessageSent) and argument in event.data.body.text

    said = event(AgentMessageSent(body=Body("to press@x.org")))
    assert decide(serving("mailbox_named:press@x.org"), [said]).cause == said.seq
    assert not decide(serving("mailbox_named:other@x.org"), [said]).direct
    for name in ("mailbox_named", "", "a:b"):
        with pytest.raises(UsageError, match="cannot be called"):
            condition(name)(named)
