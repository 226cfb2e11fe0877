"""Dispatch: from what is asked to the flow, the agent and whether it can."""

import pytest

from agentx.directing.agent_router import dispatch
from agentx.memory.missions import set_mission
from agentx.synthesis.memory.conclusions import Patch


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


@pytest.fixture
def newsroom(ws):
    """An editor, a designer and sales, who share the words of the newsletter and the mail account."""
    set_mission(ws.engine, "The newsletter reaches every reader on Thursday.", "editor")
    set_mission(ws.engine, "The newsletter and the shop look good on a telephone.", "designer")
    set_mission(ws.engine, "Every order of the shop is answered within a day.", "sales")
    for agent in ("sales", "editor"):
        ws.capabilities.add("Mail account", "true", agent=agent)
    return ws


def test_the_newsletter_goes_to_the_editor_with_the_mail_account(newsroom):
    found = dispatch(newsroom.engine, "send the newsletter")
    assert (found.agent, told(found), found.ready) == ("editor", {"Mail account": (True, None)}, True)
    (mission,) = [one for one in newsroom.memory("north_star") if one.agent == "editor"]
    assert found.why == f"it has Mail account and its mission is about newsletter ({mission.id})"
    newsroom.flows.add("send the newsletter", ["Send a test from the mail account."])
    assert dispatch(newsroom.engine, "send the newsletter").agent == "editor"


def test_one_word_is_enough_for_a_mission_if_it_is_the_object_and_no_other_agent_is_alike(newsroom):
    assert dispatch(newsroom.engine, "check the telephone layout").agent == "designer"
    assert dispatch(newsroom.engine, "please look up the train times").agent == ""
    assert dispatch(newsroom.engine, "order more paper").agent == ""
    assert dispatch(newsroom.engine, "paint the shop").agent == ""


def test_a_capability_of_a_domain_belongs_to_the_agents_of_the_domain(ws):
    mission = set_mission(ws.engine, "The books are closed by the fifth.", "accountant")
    ws.engine.synthesizer.record([Patch(id=mission.id, domain="payments")], "test")
    ws.capabilities.add("Bank access", "true", domain="payments")
    found = dispatch(ws.engine, "transfer the rent")
    assert (found.agent, found.why) == ("accountant", "it has Bank access")
