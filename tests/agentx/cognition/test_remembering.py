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


def test_of_two_memories_that_match_as_well_the_later_one_is_told_first(ws):
    answer = told(
        CognitiveAgent(ws),
        "The vet is Doctor Kaya.",
        "The vet is Doctor Salgado.",
        "Who is the vet?",
    )
    assert answer.index("Salgado") < answer.index("Kaya")


def test_a_memory_that_had_faded_stands_in_the_prompt_again_when_a_question_needs_it(ws):
    agent = CognitiveAgent(ws, ExecutorConfig(decay_temperature=1.0, buffer_tokens=150))
    fill = [f"The lamp number {number} stands in room {number}." for number in range(12)]
    answer = told(agent, "My grandmother Celeste was born in Viana.", *fill, "Where was Celeste born?")
    assert "Viana" in answer
