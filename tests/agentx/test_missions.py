"""Missions stand before the agent that they are given to, and before nobody else."""

from agentx.context.startup import boot
from agentx.directing.director import Director
from agentx.memory.missions import listed, set_mission
from agentx.storage.events.types import Draft, RunEnded, RunStarted, ToolCallRequested


def test_each_role_sees_its_own_mission_and_everybodys_at_its_start_and_in_its_directive(ws):
    set_mission(ws.engine, "Help readers.")
    set_mission(ws.engine, "Rank last.", "writer")
    set_mission(ws.engine, "Find numbers.", "analyst")
    set_mission(ws.engine, "Rank first.", "writer")
    assert [(item.agent, item.text) for item in listed(ws.engine)] == [
        ("", "Help readers."),
        ("analyst", "Find numbers."),
        ("writer", "Rank first."),
    ]
    director = Director(ws.engine, agent="writer")
    director.direct("it was asked for")
    asked = director.question(ws.state, "why")[1].content
    for told in (boot(ws.engine, "writer").text, director.fill().text, asked):
        assert ("Help readers." in told, "Rank first." in told, "Find numbers." in told) == (
            True,
            True,
            False,
        )
    assert not director.decide().direct
    set_mission(ws.engine, "Rank first for long.", "writer")
    assert director.decide().why.startswith("constraint_changed")


def test_an_executor_is_told_of_calls_whose_outcome_is_unknown_until_they_are_settled(ws):
    asked = ToolCallRequested(call_id="c1", tool="send_email", arguments={"to": "pat"})
    director = Director(ws.engine)
    director.direct("it was asked for")
    for data in (
        RunStarted(task=ws.body("x"), agent="executor", model="m"),
        asked,
        RunEnded(status="INTERRUPTED"),
    ):
        ws.record(Draft(data=data, actor="agent:executor", run="r-1"))
    assert director.fill().text.endswith("same arguments:\n- send_email(to=pat)")
