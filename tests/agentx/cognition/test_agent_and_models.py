"""A cognitive agent with a model: what it is asked, and that there is an answer whatever it says."""

import json

import pytest

from agentx.cognition.agent import CognitiveAgent
from agentx.storage.events.cognition_events import Interacted
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.memory.items import sort_of
from agentx.synthesis.model.litellm_client import LiteLLMClient
from agentx.synthesis.model.port import ModelError
from tests.agentx.cognition.scripted import ASKED, GOOD, INES, MEASURED, Scripted, last

# --- with a model ----------------------------------------------------------------------------------------------------


def test_a_model_is_asked_in_each_step_and_what_it_uses_is_counted_by_module(ws):
    CognitiveAgent(ws).answer(INES)
    model = Scripted(answer="Ines runs the harbour of Vila.")
    agent = CognitiveAgent(ws, model=model, session="other")
    assert agent.answer(ASKED).text == "Ines runs the harbour of Vila."
    names = [what for what, _ in model.asked]
    assert names == ["recognize", *["assess", "expand", "curate"], "assess", "curate", "respond", "reflect"]
    metrics = agent.last_metrics
    tokens = {key: getattr(metrics, key) for key in MEASURED if key.endswith("_tokens")}
    times = {"recognizer": 2, "decayer": 2, "activator": 3, "response": 1}
    for module, count in times.items():
        assert (tokens[f"{module}_prompt_tokens"], tokens[f"{module}_completion_tokens"]) == (
            10 * count,
            5 * count,
        )
    assert metrics.cost_usd == pytest.approx(0.08)
    assert (metrics.dag_node_count, metrics.dag_edge_count) == (2, 1)
    assert last(ws, Interacted).judge == 0.8
    [learned] = ws.memory("learning")
    assert (learned.text, learned.trust) == ("Name the harbour first.", "agent")
    assert learned.id in metrics.new_memories_stored


def test_what_a_model_recognised_quotes_the_message_and_is_no_more_than_reported_in_other_words(ws):
    memories = [
        {
            "level": "L2",
            "text": "Ines is the boss of the harbour.",
            "quote": "Ines runs the harbour of Vila.",
        },
        {"level": "L3", "text": "We met Ines on Tuesday.", "quote": "We met Ines on Tuesday."},
    ]
    agent = CognitiveAgent(ws, model=Scripted(recognize={**GOOD["recognize"], "memories": memories}))
    agent.answer(INES)
    [known], [episode] = (
        [item for item in ws.memory(kind) if sort_of(item) == kind] for kind in ("knowledge", "episode")
    )
    assert (known.trust, known.evidence[0].quote) == ("reported", "Ines runs the harbour of Vila")
    assert (episode.trust, episode.evidence[0].quote) == ("user", "We met Ines on Tuesday")


def test_a_model_is_driven_over_the_protocol(ws, chat_server):
    def rule(body):
        tools = body.get("tools")
        return json.dumps(GOOD[tools[0]["function"]["name"]]) if tools else "It is Ines."

    chat_server.rule = rule
    model = LiteLLMClient("openai/m", api_base=chat_server.base, api_key="k", retries=0)
    agent = CognitiveAgent(ws, model=model)
    assert agent.answer(ASKED).text == "It is Ines."
    assert agent.last_metrics.response_prompt_tokens == 11
    assert {one["temperature"] for one in chat_server.requests if not one.get("tools")} == {0.7}


# --- what goes wrong -------------------------------------------------------------------------------------------------

RING = [{"id": "a", "text": "harbour", "needs": ["b"]}, {"id": "b", "text": "Vila", "needs": ["a"]}]


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        ({"recognize": '{"input_type": "quest'}, "No model could recognize"),
        ({"recognize": {**GOOD["recognize"], "input_type": "shout"}}, "an unknown input type"),
        ({"assess": "I am not sure."}, "No model could assess"),
        ({"expand": "[]"}, "No model could expand"),
        ({"expand": {"queries": RING}}, "that would be a circle"),
        ({"curate": {"keep": ["k-404"]}}, "No model could curate"),
        ({"reflect": "{"}, "No model could reflect"),
        ({"answer": ""}, "answered with nothing"),
    ],
)
def test_whatever_a_model_answers_the_user_has_an_answer_and_the_fault_is_counted(ws, answers, fault):
    CognitiveAgent(ws).answer(INES)
    agent = CognitiveAgent(ws, model=Scripted(**answers), session="other")
    assert agent.answer(ASKED).text
    assert [one for one in agent.last_metrics.faults if fault in one]
    stored = json.loads(ws.read_body(last(ws, Interacted).metrics))
    assert stored["faults"] == agent.last_metrics.faults


def test_an_index_that_holds_nothing_is_a_fault_and_no_failure(ws):
    agent = CognitiveAgent(ws)
    assert agent.answer(ASKED).text == "I remember nothing of that."
    assert any("Nothing is found for" in one for one in agent.last_metrics.faults)


def test_a_buffer_larger_than_the_window_is_cut_to_it_and_said_once(ws):
    agent = CognitiveAgent(ws)
    for number in range(12):
        agent.answer(f"Lamp number {number} stands in the cellar of house {number}.")
    small = CognitiveAgent(ws, ExecutorConfig(buffer_tokens=60))
    assert small.answer("Where does lamp number 3 stand?").text
    assert sum("larger than the window" in one for one in small.last_metrics.faults) == 1


def test_what_makes_room_for_what_a_question_needs_is_no_fault(ws):
    agent = CognitiveAgent(ws, ExecutorConfig(buffer_tokens=150))
    for number in range(12):
        agent.answer(f"Lamp number {number} stands in the cellar of house {number}.")
        assert agent.last_metrics.faults == []
    held = set(agent.mind.buffer)
    assert "cellar of house 1." in agent.answer("Where does lamp number 1 stand?").text
    assert agent.last_metrics.activator_trigger_count
    assert agent.last_metrics.faults == []
    assert held - set(last(ws, Interacted).accessed), "some made ws"


def test_of_what_matches_less_only_what_tells_most_stands_in_a_small_buffer(ws):
    CognitiveAgent(ws).answer(INES)
    CognitiveAgent(ws).answer(
        "We went to Faro on Monday. We ate grilled sardines with Rui at the harbour afterwards."
    )
    prompts = []
    for tokens in (80, 2_000):
        model = Scripted(curate="none")
        small = ExecutorConfig(buffer_tokens=tokens)
        CognitiveAgent(ws, small, model=model, session=f"other {tokens}").answer(ASKED)
        prompts.append(model.prompts("respond")[-1])
        assert "Ines runs the harbour of Vila." in prompts[-1]
    assert ["Faro" in prompt for prompt in prompts] == [False, True]


def test_the_model_that_response_model_names_answers(ws, tmp_path):
    script = tmp_path / "answers.jsonl"
    script.write_text('{"answer": "In Lisbon."}\n', "utf-8")
    config = ExecutorConfig(response_model=f"script:{script}")
    agent = CognitiveAgent(ws, config, model=Silent())
    assert agent.answer("Where is Anna a nurse?").text == "In Lisbon."


class Silent:
    """A model that never answers."""

    name = "silent"

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        raise ModelError("it is silent")
