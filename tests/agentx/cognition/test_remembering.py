"""A cognitive agent without a model, message by message: what it tells of what it remembers."""

import pytest

from agentx.cognition.agent import CognitiveAgent
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.workspace import Workspace


@pytest.fixture
def ws(tmp_path):
    with Workspace.create(tmp_path / "year") as ws:
        yield ws


def told(agent, *messages):
    return [agent.answer(message).text for message in messages][-1]


def test_of_two_memories_that_match_as_well_the_later_one_is_told(ws):
    answer = told(
        CognitiveAgent(ws),
        "The vet is Doctor Kaya.",
        "The vet is Doctor Salgado.",
        "Who is the vet?",
    )
    assert "Salgado" in answer
    assert "Kaya" not in answer


def test_a_memory_that_had_faded_stands_in_the_prompt_again_when_a_question_needs_it(ws):
    agent = CognitiveAgent(ws, ExecutorConfig(decay_temperature=1.0, buffer_tokens=150))
    fill = [f"The lamp number {number} stands in room {number}." for number in range(12)]
    answer = told(agent, "My grandmother Celeste was born in Viana.", *fill, "Where was Celeste born?")
    assert "Viana" in answer


def test_a_question_after_two_things_is_answered_with_both(ws):
    told(
        CognitiveAgent(ws),
        "I live in Graz.",
        "I live above a bakery.",
        "I live with a dog.",
        "Dorota has a boat.",
    )
    answer = told(CognitiveAgent(ws), "Does Dorota live here?")
    assert "boat" in answer


def test_what_is_found_first_leads_on_to_what_the_question_does_not_name(ws):
    agent = CognitiveAgent(ws)
    told(agent, "Milan lends us his van.", "Milan drives for a bakery in Maribor.", "Rita has a piano.")
    assert "Maribor" in told(agent, "In which town does the owner of the van work?")


def test_a_rule_is_told_that_is_asked_for(ws):
    agent = CognitiveAgent(ws)
    told(agent, "Never suggest dog food with chicken.", "I live in Graz.")
    assert "chicken" in told(agent, "Which food is bad for the dog?")
