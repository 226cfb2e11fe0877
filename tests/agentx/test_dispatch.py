"""Dispatch: from what is asked to the flow, the agent and whether it can."""

import pytest

from agentx.directing.agent_router import dispatch
from agentx.memory.missions import set_mission


@pytest.fixture
def staffed(ws):
    """Two agents with capabilities, of which one does not work, and a flow that takes two of them."""
    ws.flows.add(
        "post the release notes", ["Read the changelog.", "Publish on GitHub and in the newsletter."]
    )
    names = {
        ("GitHub", "writer"): "true",
        ("Newsletter", "writer"): "exit 3",
        ("Newsletter", "mailer"): "true",
        ("Spreadsheet", "analyst"): "true",
    }
    for (name, agent), command in names.items():
        ws.capabilities.add(name, command, agent=agent)
    return ws


def told(found):
    return {need.item.text: (need.has, need.works) for need in found.needs}


def test_the_agent_that_has_most_of_what_the_flow_takes_is_named_with_what_does_not_work(staffed):
    found = dispatch(staffed.engine, "please post the release notes")
    assert (found.flow.item.text, found.agent) == ("post the release notes", "writer")
    assert found.command == "agentx run --agent writer 'please post the release notes'"
    assert told(found) == {"GitHub": (True, None), "Newsletter": (True, None)}
    assert found.ready
    staffed.capabilities.check()
    found = dispatch(staffed.engine, "please post the release notes")
    assert told(found) == {"GitHub": (True, True), "Newsletter": (True, False)}
    assert not found.ready
    staffed.retire(next(n.item.id for n in found.needs if n.works is False))
    found = dispatch(staffed.engine, "please post the release notes")
    assert told(found)["Newsletter"] == (False, True)
    assert not found.ready


def test_without_a_flow_the_words_of_a_capability_or_of_a_mission_name_the_agent(staffed):
    found = dispatch(staffed.engine, "fill in the spreadsheet")
    assert (found.flow, found.agent, list(told(found))) == (None, "analyst", ["Spreadsheet"])
    set_mission(staffed.engine, "Our posts rank first on search engines.", "writer")
    assert dispatch(staffed.engine, "why do the posts not rank?").agent == "writer"


def test_a_flow_that_takes_nothing_is_anybodys_or_its_own_agents_and_nothing_that_fits_is_said(ws):
    assert dispatch(ws.engine, "water the plants").agent == ""
    assert "No flow, capability or mission shares words" in dispatch(ws.engine, "water the plants").why
    ws.flows.add("water the plants", ["Take the can."])
    found = dispatch(ws.engine, "water the plants")
    assert (found.agent, found.command, found.ready) == ("main", "agentx run 'water the plants'", True)
    ws.flows.add("repot the cactus", ["Wear gloves."], agent="gardener")
    assert dispatch(ws.engine, "repot the cactus").agent == "gardener"
