"""The flow of a cognitive agent, step by step, with a model and without; whatever goes wrong, there is an answer."""

import re

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentx.cognition.agent import CognitiveAgent
from agentx.settings import Settings
from agentx.storage.errors import UsageError
from agentx.storage.events.cognition_events import Interacted, Recognized
from agentx.storage.events.types import AgentMessageSent, Draft, UserMessageSent
from agentx.synthesis.cognition import recognizer
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.cognition.metrics import Metrics, Snapshot
from agentx.synthesis.cognition.recognizer import MOST_MEMORIES
from agentx.synthesis.state.mind import Mind
from agentx.workspace import Workspace
from tests.agentx.cognition.scripted import ASKED, INES, MEASURED, Scripted, last, of

CONFIGURATION = {
    "max_thinking_iterations": 2,
    "decay_temperature": 10.0,
    "purge_decay_threshold": 0.1,
    "purge_utility_threshold": 0.2,
    "include_l1": True,
    "include_l2": True,
    "include_l3": True,
    "enable_memory_linking": True,
    "reinforce_decay_on_use": True,
    "decay_reinforcement_boost": 0.1,
    "response_model": "gpt-4.1-mini",
    "response_temperature": 0.7,
    "max_interaction_history": 10,
    "k_recent_context": 10,
    "reflect_on": "feedback",
}
"""Every row of the source's table: name, type and default."""

# --- the order of things ---------------------------------------------------------------------------------------------


def test_every_row_of_the_configuration_and_every_key_of_the_metrics_has_its_name_and_default():
    config = {name: getattr(ExecutorConfig(), name) for name in CONFIGURATION}
    assert config == CONFIGURATION
    assert {name: type(value) for name, value in config.items()} == {
        name: type(value) for name, value in CONFIGURATION.items()
    }
    assert set(MEASURED) <= set(msgspec.structs.asdict(Metrics()))


def test_without_a_model_a_message_goes_through_all_of_it_and_is_measured(ws):
    agent = CognitiveAgent(ws)
    agent.answer(INES)
    metrics = agent.last_metrics
    assert metrics.input_type == "statement"
    assert (metrics.recognizer_semantic_memories_count, metrics.recognizer_has_episodic) == (1, True)
    assert metrics.memory_link_stats == {"created": 2, "total": 2}
    assert (metrics.topic_construction_action, metrics.topic_construction_id) == (
        "create",
        next(iter(agent.mind.buffer)),
    )
    assert metrics.topic_construction_summary
    assert (metrics.decayer_triggered, metrics.decayer_status) == (False, "skipped")
    assert metrics.thinking_iterations_used == metrics.activator_trigger_count == 0
    assert set(metrics.new_memories_stored) == set(agent.mind.buffer)

    answer = agent.answer(ASKED)
    metrics = agent.last_metrics
    assert "Ines runs the harbour of Vila" in answer.text
    assert (metrics.input_type, metrics.decayer_trigger_reason) == ("question", "question")
    assert metrics.thinking_iterations_used == len(metrics.per_iteration_metrics) >= 1
    assert metrics.memory_link_stats == {"created": 0, "total": 2}
    assert 0 < metrics.recognizer_latency_ms <= metrics.total_latency_ms
    assert metrics.thinking_loop_latency_ms >= metrics.decayer_latency_ms > 0
    assert metrics.faults == []

    order = [type(event.data) for event in ws.engine.log.history.read(0)]
    flow = [kind for kind in order if kind in (UserMessageSent, Recognized, AgentMessageSent, Interacted)]
    assert flow == [UserMessageSent, Recognized, AgentMessageSent, Interacted] * 2
    done = last(ws, Interacted)
    assert ws.read_body(done.metrics) == msgspec.json.encode(metrics).decode()
    assert msgspec.json.decode(ws.read_body(done.snapshot), type=Snapshot).after
    assert [event.seq for event in of(ws, AgentMessageSent)][-1] == done.answer


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ("The ferry leaves at seven.", ""),
        ("Thanks, that is right!", ""),
        ("Who is Ines?", "question"),
        ("Never mention the mill.", "rule_statement"),
    ],
)
def test_the_decayer_runs_for_questions_and_rules_alone(ws, message, reason):
    agent = CognitiveAgent(ws)
    agent.answer(INES)
    agent.answer(message)
    assert agent.last_metrics.decayer_trigger_reason == reason
    assert agent.last_metrics.decayer_triggered == bool(reason)


def test_the_decayer_runs_for_an_empty_buffer_while_there_are_memories(ws):
    first, second = CognitiveAgent(ws), CognitiveAgent(ws, session="other")
    second.answer("Hello there!")
    assert second.last_metrics.decayer_trigger_reason == ""
    first.answer(INES)
    second.answer("Hello there!")
    assert second.last_metrics.decayer_trigger_reason == "empty_buffer_with_session_memories"


def test_what_one_session_said_is_fetched_by_another_and_links_are_followed(ws):
    CognitiveAgent(ws).answer(INES)
    other = CognitiveAgent(ws, session="other")
    assert "Ines runs the harbour" in other.answer(ASKED).text
    assert other.last_metrics.activator_trigger_count >= 1
    assert other.last_metrics.dag_node_count >= 1
    assert other.last_metrics.memory_link_stats == {"created": 0, "total": 2}
    assert {item.kind for item in map(ws.state.items.get, other.mind.buffer)} >= {"knowledge", "episode"}


@pytest.mark.parametrize("most", [0, 1, 3])
def test_the_thinking_loop_ends_at_its_limit(ws, most):
    for number in range(6):
        CognitiveAgent(ws).answer(f"Lamp number {number} stands in the cellar of house {number}.")
    model = Scripted(assessed={"uncertainty": 1.0, "missing": ["the harbour"]})
    config = ExecutorConfig(max_thinking_iterations=most, buffer_tokens=40)
    agent = CognitiveAgent(ws, config, model=model, session="other")
    agent.answer(ASKED)
    metrics = agent.last_metrics
    assert metrics.thinking_iterations_used == metrics.activator_trigger_count == most
    assert metrics.activator_multi_trigger == (most > 1)
    assert metrics.decayer_triggered == bool(most)
    assert len(model.prompts("answer")) == max(most, 1)


@pytest.mark.parametrize(("uncertain", "times"), [(0.4, 1), (0.5, 2)])
def test_activation_needs_both_tiers(ws, uncertain, times):
    for number in range(6):
        CognitiveAgent(ws).answer(f"Lamp number {number} stands in the cellar of house {number}.")
    model = Scripted(assessed={"uncertainty": uncertain, "missing": ["the harbour"]})
    agent = CognitiveAgent(ws, ExecutorConfig(buffer_tokens=40), model=model, session="other")
    agent.answer(ASKED)
    assert agent.last_metrics.activator_trigger_count == times
    assert agent.last_metrics.thinking_iterations_used == 2


# --- what it is told -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("off", "gone"),
    [("include_l1", "How things are done"), ("include_l2", "What is known"), ("include_l3", "What happened")],
)
def test_a_level_that_is_off_stands_in_no_prompt(ws, off, gone):
    CognitiveAgent(ws).answer(INES)
    ws.remember("learning", "Name the harbour first.")
    model = Scripted()
    for config, stands in ((ExecutorConfig(), True), (ExecutorConfig(**{off: False}), False)):
        CognitiveAgent(ws, config, model=model, session="other").answer(ASKED)
        assert (gone in model.prompts("answer")[-1]) == stands


def test_without_linking_nothing_is_linked_and_no_link_is_followed(ws):
    config = ExecutorConfig(enable_memory_linking=False)
    CognitiveAgent(ws, config).answer(INES)
    assert not last(ws, Recognized).linked
    other = CognitiveAgent(ws, config, session="other")
    other.answer(ASKED)
    assert other.last_metrics.memory_link_stats == {"created": 0, "total": 0}
    snapshot = msgspec.json.decode(ws.read_body(last(ws, Interacted).snapshot), type=Snapshot)
    assert [one.followed for one in snapshot.activator if one.followed] == []


@pytest.mark.parametrize("on", [True, False])
def test_what_an_answer_used_is_stronger_and_its_time_begins_anew_unless_that_is_off(ws, on):
    agent = CognitiveAgent(ws, ExecutorConfig(reinforce_decay_on_use=on, decay_reinforcement_boost=0.4))
    agent.answer(INES)
    agent.answer("The mill has two wheels.")
    agent.answer(ASKED)
    done = last(ws, Interacted)
    [used] = [ws.state.items[name] for name in done.reinforced if ws.state.items[name].kind == "knowledge"]
    slot = agent.mind.buffer[used.id]
    assert (slot.strength, slot.accessed) == ((1.4, 3) if on else (1.0, 1))
    assert set(done.reinforced) < set(done.accessed)
    unused = [name for name in done.accessed if name not in done.reinforced and name in agent.mind.buffer]
    assert all(agent.mind.buffer[name].accessed < 3 for name in unused), (
        "to stand in the prompt is not enough"
    )


def test_feedback_rewards_what_the_answer_before_it_used(ws):
    agent = CognitiveAgent(ws)
    agent.answer(INES)
    agent.answer(ASKED)
    agent.answer("No, that's wrong.")
    assert agent.last_metrics.input_type == "feedback"
    assert {slot.reward for slot in agent.mind.buffer.values()} == {0.0, -0.5}


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        ({"k_recent_context": 2}, ["two", "three"]),
        ({"k_recent_context": 0}, []),
        ({"max_interaction_history": 1}, ["three"]),
        ({"max_interaction_history": 0}, []),
    ],
)
def test_so_many_recent_interactions_stand_in_the_prompt(ws, config, shown):
    model = Scripted()
    agent = CognitiveAgent(ws, ExecutorConfig(**config), model=model)
    for word in ("one", "two", "three", "four"):
        agent.answer(f"Word {word}")
    assert re.findall(r"- User: Word (\w+)", model.prompts("answer")[-1]) == shown
    assert model.temperature == 0.7


def test_what_faded_and_is_of_little_use_leaves_the_buffer_never_the_history_and_comes_back_by_a_question(ws):
    agent = CognitiveAgent(ws, ExecutorConfig(decay_temperature=1.0, purge_utility_threshold=0.6))
    agent.answer(INES)
    [known] = [item.id for item in ws.memory("knowledge")]
    evicted = []
    for number in range(6):
        agent.answer(f"Lamp {number} stands in cellar {number}.")
        evicted += agent.last_metrics.evicted_memory_ids
    assert known in evicted
    assert known not in agent.mind.buffer
    assert ws.state.items[known].status == "dormant"
    assert "Ines runs the harbour" in agent.answer(ASKED).text
    assert known in agent.mind.buffer
    assert ws.state.items[known].status == "active"


def test_the_buffer_has_a_cap_of_tokens_and_what_leaves_for_it_is_counted(ws):
    agent = CognitiveAgent(ws, ExecutorConfig(buffer_tokens=120))
    for number in range(8):
        agent.answer(f"Lamp number {number} stands in the cellar of house {number}.")
    snapshot = msgspec.json.decode(ws.read_body(last(ws, Interacted).snapshot), type=Snapshot)
    assert 0 < sum(one.tokens for one in snapshot.after) <= 120
    assert agent.mind.evicted == sum(len(event.data.evicted) for event in of(ws, Interacted)) > 0
    assert agent.last_metrics.evicted_memory_ids == list(last(ws, Interacted).evicted)


# --- who said it -----------------------------------------------------------------------------------------------------


def test_a_question_about_one_person_finds_what_they_said_and_not_what_others_said_of_the_same(ws):
    told = {
        "ben": "I grew up in Rome, far from Ann.",
        "ann": "I grew up in Oslo, far from the sea.",
        "cem": "My boat is called Ann.",
    }
    for name, text in told.items():
        said = ws.say(text, actor=f"user:{name}")
        read = recognizer.extract(ws.state.messages[-1].text)
        facts = Recognized(
            session="s", interaction=1, message=said.seq, input_type="statement", memories=read
        )
        ws.record(Draft(data=facts, actor="agent:cognitive"))
    agent = CognitiveAgent(ws)
    assert agent.tally.people == ["ann", "ben", "cem"]
    agent.answer("Where did Ann grow up?")
    snapshot = msgspec.json.decode(ws.read_body(last(ws, Interacted).snapshot), type=Snapshot)
    first = ws.state.items[snapshot.activator[0].retrieved[0]]
    assert "Oslo" in first.text
    assert [node.text for node in snapshot.activator[0].nodes][1] == "Where did grow up?"


def test_a_turn_from_elsewhere_names_who_said_it(ws):
    agent = CognitiveAgent(ws)
    agent.answer("Marta: I moved here from Poland. It was a hard winter.")
    agent.answer("Note: the shop is closed on Monday.")
    assert agent.tally.people == ["Marta"]
    assert CognitiveAgent(ws, session="other").tally.people == ["Marta"]
    model = Scripted()
    CognitiveAgent(ws, model=model, session="third").answer("How was the winter?")
    prompt = model.prompts("answer")[-1]
    assert ": Marta: It was a hard winter." in prompt
    assert "Marta: Marta" not in prompt


def test_nothing_is_no_message_and_a_session_has_a_name(ws):
    with pytest.raises(UsageError):
        CognitiveAgent(ws).answer("  ")
    for name in ("", "x" * 101):
        with pytest.raises(UsageError, match="name of a session"):
            CognitiveAgent(ws, session=name)
    assert CognitiveAgent(ws).mind == Mind()


def test_an_event_has_room_for_all_that_a_message_says(ws):
    agent = CognitiveAgent(ws, ExecutorConfig(buffer_tokens=100_000))
    sentences = [f"The  shelf  of Ana number {place} holds {'🙂' * 340} maps." for place in range(12)]
    agent.answer(" ".join(sentences))
    assert 0 < agent.last_metrics.recognizer_semantic_memories_count < MOST_MEMORIES
    assert any("memories were left out" in one for one in agent.last_metrics.faults)


def test_an_event_has_room_for_all_that_a_buffer_holds(ws):
    for number in range(150):
        ws.remember("knowledge", f"Map {number}.")
    for session in ("wide", "w" * 100):
        config = ExecutorConfig(buffer_tokens=100_000, activation_k=100, max_thinking_iterations=3)
        model = Scripted(answer="Map. " * 400, assessed={"uncertainty": 1.0, "missing": ["map"]})
        agent = CognitiveAgent(ws, config, model=model, session=session)
        for question in ("Which map is it?", "And which map then?"):
            agent.answer(question)
    assert len(agent.mind.buffer) > 90
    assert len(last(ws, Interacted).accessed) > 90
    snapshot = msgspec.json.decode(ws.read_body(last(ws, Interacted).snapshot), type=Snapshot)
    assert len(snapshot.before) > 90
    assert (last(ws, Interacted).snapshot.text, bool(last(ws, Interacted).snapshot.blob)) == ("", True)


# --- the same again --------------------------------------------------------------------------------------------------

MESSAGES = (
    INES,
    ASKED,
    "The mill has two wheels.",
    "Never mention the mill.",
    "No, that's wrong.",
    "Thanks, exactly.",
    "What did we do on Tuesday?",
    "I lost a key yesterday. Omar keeps bees.",
    "What does Omar keep?",
    "Hello!",
)


@settings(max_examples=4, derandomize=True, suppress_health_check=list(HealthCheck))
@given(turns=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(MESSAGES)), min_size=8, max_size=14))
def test_scores_links_and_purges_of_any_interleaving_equal_those_of_a_replay(tmp_path_factory, turns):
    base = tmp_path_factory.mktemp("replay")
    config = ExecutorConfig(decay_temperature=1.5, purge_utility_threshold=0.6, buffer_tokens=150)
    here = Settings(environ={}, cache_dir=base / "no-models")
    with Workspace.create(base / "w", settings=here) as ws:
        agents = {name: CognitiveAgent(ws, config, session=name) for name in "abc"}
        for name, message in turns:
            agents[name].answer(message)
        live = ws.state
        folded = ws.state_at(live.seq)
        assert folded.minds == live.minds
        assert {name: (item.links, item.status, item.strength) for name, item in folded.items.items()} == {
            name: (item.links, item.status, item.strength) for name, item in live.items.items()
        }
        assert ws.rebuild().state_digest == live.digest
        for name, agent in agents.items():
            mind = Mind()
            for event in ws.engine.log.history.read(0):
                if isinstance(event.data, Recognized) and event.data.session == name:
                    mind = mind.recognized(event.data)
                elif isinstance(event.data, Interacted) and event.data.session == name:
                    mind = mind.interacted(event.data)
            assert mind == agent.mind
    with Workspace.open(base / "w", settings=here) as ws:
        assert ws.state.minds == live.minds


def test_blame_teaches_what_is_not_to_be_answered_again(ws):
    agent = CognitiveAgent(ws)
    agent.answer("My sister Anna is a nurse in Lisbon.")
    agent.answer("Where is Anna a nurse?")
    agent.answer("No, that's wrong.")
    (taught,) = ws.memory("learning", status=None)
    assert taught.text.startswith("Asked “Where is Anna a nurse?”, do not answer “I remember: My sister Anna")
    assert taught.trust == "agent"
    assert taught.id in agent.last_metrics.new_memories_stored
    agent.answer("Thank you, that was right.")
    assert ws.memory("learning", status=None) == [ws.state.items[taught.id]]
