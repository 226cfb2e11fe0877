"""A cognitive agent with a model: what it is asked, and that there is an answer whatever it says."""

import json
import re

import msgspec
import pytest

from agentx.cognition.agent import NOT_ANSWERED, CognitiveAgent
from agentx.storage.events.cognition_events import Interacted, Recognized
from agentx.storage.events.types import AgentMessageSent
from agentx.synthesis.cognition import recognizer
from agentx.synthesis.cognition.config import ExecutorConfig
from agentx.synthesis.cognition.metrics import Snapshot
from agentx.synthesis.memory.items import Link, sort_of
from agentx.synthesis.model.litellm_client import LiteLLMClient
from agentx.synthesis.model.port import CallPart, ModelError
from tests.agentx.cognition.scripted import ASKED, GOOD, INES, LACKING, MEASURED, Scripted, last, of
from tests.agentx.cognition.talk import TALK, Player

# --- with a model ----------------------------------------------------------------------------------------------------


SMALL = ExecutorConfig(buffer_tokens=40)
"""A buffer in which not all fits that is remembered."""


def test_while_all_fits_one_call_recognises_and_answers_and_nothing_is_fetched(ws):
    CognitiveAgent(ws).answer(INES)
    model = Scripted(answer="Ines runs the harbour of Vila.", assessed=LACKING)
    agent = CognitiveAgent(ws, model=model, session="other")
    answer = agent.answer(ASKED)
    assert (answer.text, answer.calls) == ("Ines runs the harbour of Vila.", 1)
    assert [what for what, _ in model.asked] == ["answer"]
    assert "Ines runs the harbour of Vila." in model.prompts("answer")[0], (
        "what another session was told is shown"
    )
    assert "`missing`" not in model.prompts("answer")[0]
    metrics = agent.last_metrics
    assert (metrics.decayer_triggered, metrics.decayer_status, metrics.activator_trigger_count) == (
        False,
        "skipped",
        0,
    )
    used = {ws.state.items[name].kind for name in answer.used}
    assert used == {"knowledge"}
    assert set(answer.used) <= set(agent.mind.buffer), "what was used enters the buffer"
    done = last(ws, Interacted)
    assert (done.calls, done.prompt_tokens, done.completion_tokens, done.cost_usd) == (1, 10, 5, 0.01)


def test_where_not_all_fits_code_fetches_first_and_again_for_what_the_model_says_is_missing(ws):
    CognitiveAgent(ws).answer(INES)
    for number in range(6):
        CognitiveAgent(ws).answer(f"Lamp number {number} stands in the cellar of house {number}.")
    model = Scripted(answer="Ines runs the harbour of Vila.", assessed=LACKING)
    agent = CognitiveAgent(ws, SMALL, model=model, session="other")
    assert agent.answer(ASKED).text == "Ines runs the harbour of Vila."
    assert [what for what, _ in model.asked] == ["answer", "answer"]
    first, second = model.prompts("answer")
    assert "`missing`" in first
    assert "`missing`" in second
    assert "`memories`" not in second, "what the message says is recognised once"
    metrics = agent.last_metrics
    tokens = {key: getattr(metrics, key) for key in MEASURED if key.endswith("_tokens")}
    times = {"recognizer": 0, "decayer": 0, "activator": 0, "response": 2}
    for module, count in times.items():
        assert (tokens[f"{module}_prompt_tokens"], tokens[f"{module}_completion_tokens"]) == (
            10 * count,
            5 * count,
        )
    assert metrics.cost_usd == pytest.approx(0.02)
    assert (metrics.thinking_iterations_used, metrics.activator_trigger_count) == (2, 2)
    snapshot = msgspec.json.decode(ws.read_body(last(ws, Interacted).snapshot), type=Snapshot)
    assert "who runs the harbour" in {node.text for node in snapshot.activator[1].nodes}


def test_a_statement_costs_one_call_whatever_the_length_of_the_history(ws):
    model = Scripted(recognized={"input_type": "statement"}, assessed=LACKING)
    for config in (ExecutorConfig(), SMALL):
        agent = CognitiveAgent(ws, config, model=model)
        for number in range(4):
            assert agent.answer(f"Lamp number {number} stands in the cellar of house {number}.").calls == 1


def test_a_responder_answers_in_a_call_of_its_own_and_the_model_recognises(ws):
    CognitiveAgent(ws).answer(INES)
    model, responder = Scripted(), Scripted(answer="Ines does.")
    agent = CognitiveAgent(ws, model=model, responder=responder)
    assert agent.answer(ASKED).text == "Ines does."
    assert [what for what, _ in model.asked] == ["recognize"]
    assert [what for what, _ in responder.asked] == ["respond"]
    assert (agent.last_metrics.recognizer_prompt_tokens, agent.last_metrics.response_prompt_tokens) == (
        10,
        10,
    )


@pytest.mark.parametrize(
    ("setting", "said", "times"),
    [
        ("feedback", "No, that's wrong.", 1),
        ("feedback", "Thanks, that is right.", 0),
        ("feedback", "The mill has two wheels.", 0),
        ("always", "The mill has two wheels.", 1),
        ("never", "No, that's wrong.", 0),
    ],
)
def test_a_second_pass_is_made_where_it_can_change_something_or_as_configured(ws, setting, said, times):
    sort = {-1: "blame", 1: "praise"}.get(recognizer.reward(said), "statement")
    model = Scripted(recognized={"input_type": sort})
    CognitiveAgent(ws).answer(INES)
    CognitiveAgent(ws).answer(ASKED)
    agent = CognitiveAgent(ws, ExecutorConfig(reflect_on=setting), model=model)
    agent.answer(said)
    assert len(model.prompts("reflect")) == times
    if times:
        [learned] = ws.memory("learning")
        assert (learned.text, learned.trust) == ("Name the harbour first.", "agent")
        assert learned.id in agent.last_metrics.new_memories_stored
        assert last(ws, Interacted).judge == 0.8
        assert ("## What the user said of it\n> No" in model.prompts("reflect")[0]) == (sort == "blame")


def test_a_talk_of_47_messages_costs_at_most_50_000_tokens_of_prompts(ws):
    player = Player()
    agent = CognitiveAgent(ws, model=player)
    answers = [agent.answer(message) for message in TALK]
    asked = [one for one in answers if one.metrics.input_type == "question"]
    assert (len(TALK), len(asked)) == (47, 20)
    assert sum(player.prompt.values()) <= 50_000
    assert sum(player.calls.values()) == sum(one.calls for one in answers) <= 50
    assert {one.calls for one in asked} == {1}
    assert sum(one.usage.prompt_tokens for one in answers) == sum(player.prompt.values())
    assert [one.metrics.faults for one in answers if one.metrics.faults] == []
    shown = re.sub(r" \(\d{4}-[\d to-]+\)", "", player.shown[-1][1])  # dates beside "yesterday"
    assert all(message in shown for message in TALK if "?" not in message and "Remind" not in message)


def test_what_a_model_recognised_quotes_the_message_and_is_no_more_than_reported_in_other_words(ws):
    memories = [
        {
            "level": "L2",
            "text": "Ines is the boss of the harbour.",
            "quote": "Ines runs the harbour of Vila.",
        },
        {"level": "L3", "text": "We met Ines on Tuesday.", "quote": "We met Ines on Tuesday."},
    ]
    agent = CognitiveAgent(ws, model=Scripted(recognized={"memories": memories}))
    agent.answer(INES)
    [known], [episode] = (
        [item for item in ws.memory(kind) if sort_of(item) == kind] for kind in ("knowledge", "episode")
    )
    assert (known.trust, known.evidence[0].quote) == ("reported", "Ines runs the harbour of Vila")
    assert (episode.trust, episode.evidence[0].quote) == ("user", "We met Ines on Tuesday")


def test_what_a_model_says_is_no_longer_true_is_superseded_and_shown_with_its_end(ws):
    agent = CognitiveAgent(ws, model=(model := Scripted(recognized={"input_type": "statement"})))
    rents = ["The rent is 720 euros.", "The rent is 790 euros."]
    model.recognized["memories"] = [{"level": "L2", "text": rents[0], "quote": rents[0]}]
    agent.answer(rents[0])
    old = {item.id for item in ws.memory("knowledge")}
    shown = next(iter(old))
    model.recognized["memories"] = [
        {"level": "L2", "text": rents[1], "quote": rents[1], "replaces": [f"[{shown}]", "k-99"]},
    ]
    agent.answer(rents[1])
    assert [one for one in agent.last_metrics.faults if "not shown" in one]
    [now] = {item.text for item in ws.memory("knowledge")}
    assert now == rents[1]
    assert {ws.state.items[name].status for name in old} == {"retired"}, (
        "and what says the same of the same message"
    )
    assert old.isdisjoint(agent.mind.buffer)
    other = Scripted()
    CognitiveAgent(ws, model=other, session="other").answer("What was the rent before?")
    assert re.search(rf" until \d{{4}}-.*: {re.escape(rents[0])}", other.prompts("answer")[0])


def test_what_a_message_may_make_untrue_is_shown_though_the_buffer_does_not_hold_it(ws):
    CognitiveAgent(ws).answer("The rent of the shop is 720 euros a month.")
    for number in range(6):
        CognitiveAgent(ws).answer(f"Lamp number {number} stands in the cellar of house {number}.")
    model = Scripted(recognized={"input_type": "statement"})
    agent = CognitiveAgent(ws, SMALL, model=model, session="other")
    agent.answer("The rent of the shop is 790 euros a month.")
    assert "The rent of the shop is 720 euros a month." in model.prompts("answer")[0]


def test_a_model_is_driven_over_the_protocol(ws, chat_server):
    recognized = {**GOOD["recognized"], "answer": "It is Ines."}
    chat_server.rule = lambda body: json.dumps(recognized) if body.get("tools") else "It is Ines."
    model = LiteLLMClient("openai/m", api_base=chat_server.base, api_key="k", retries=0)
    agent = CognitiveAgent(ws, model=model)
    assert agent.answer(ASKED).text == "It is Ines."
    assert agent.last_metrics.response_prompt_tokens == 11
    [request] = chat_server.requests
    assert request["temperature"] == 0.7
    assert [one["function"]["name"] for one in request["tools"]] == ["answer"]


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        ({"reply": '{"input_type": "quest'}, "No model could answer"),
        ({"reply": "It is Ines."}, "an answer without its record"),
        ({"reply": '{"answer": "It is Ines.", "input_ty'}, "an answer without its record"),
        ({"recognized": {"input_type": "shout"}}, "an unknown input type"),
        ({"recognized": {"memories": [{}]}}, "an invalid entry"),
        ({"answer": ""}, "lacks `answer`"),
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
        responder = Scripted()
        small = ExecutorConfig(buffer_tokens=tokens)
        CognitiveAgent(ws, small, responder=responder, session=f"other {tokens}").answer(ASKED)
        prompts.append(responder.prompts("respond")[-1])
        assert "Ines runs the harbour of Vila." in prompts[-1]
    assert ["Faro" in prompt for prompt in prompts] == [False, True]


# --- a model that fails ----------------------------------------------------------------------------------------------

NEWS = "The ferry leaves at seven."


class Broken(Scripted):
    """A model that fails as long as it is down."""

    down = True

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        if self.down:
            raise ModelError("it is silent")
        yield from super().stream(messages, tools, timeout_s=timeout_s)


def test_a_model_that_fails_is_told_at_once_and_the_message_is_kept_by_code(ws):
    agent = CognitiveAgent(ws, model=Broken())
    answer = agent.answer(NEWS)
    assert answer.text == "The model did not answer; the message was noted only."
    assert "it is silent" in answer.failed
    assert agent.last_metrics.faults == [answer.failed]
    assert [item.text for item in ws.memory("knowledge")] == [NEWS]
    assert last(ws, Recognized).failed
    asked = agent.answer("When does the ferry leave?")
    assert asked.text.startswith("The model did not answer; the message was noted only. ")
    assert NEWS in asked.text
    assert not last(ws, Recognized).failed, "a question holds nothing to be read again"


def test_when_a_model_returns_it_reads_the_message_again_once_and_what_it_says_replaces_what_code_said(ws):
    model = Broken(recognized={"input_type": "statement"})
    agent = CognitiveAgent(ws, model=model)
    agent.answer(NEWS)
    assert agent.mind.unread
    [former] = ws.memory("knowledge")
    model.down = False
    memory = {"level": "L2", "text": "The ferry to Barreiro leaves at 7.", "quote": NEWS}
    model.recognized["memories"] = [memory]
    answer = agent.answer("Thank you.")
    assert [what for what, _ in model.asked] == ["answer", "recognize"]
    assert answer.calls == 2
    [item] = ws.memory("knowledge")
    assert (item.text, item.trust) == (memory["text"], "reported")
    assert ws.state.items[former.id].status == "retired"
    assert Link("superseded_by", item.id) in ws.state.items[former.id].links
    assert item.id in agent.mind.buffer
    assert former.id not in agent.mind.buffer
    assert agent.mind.unread == ()
    agent.answer("Good night.")
    assert len(model.prompts("recognize")) == 1
    assert ws.state_at(ws.state.seq).minds == ws.state.minds


def test_the_same_words_read_again_change_nothing_and_a_second_failure_is_the_last(ws):
    model = Broken(recognized={"input_type": "statement"})
    agent = CognitiveAgent(ws, model=model)
    agent.answer(NEWS)
    [former] = ws.memory("knowledge")
    model.down = False
    model.recognized["memories"] = [{"level": "L2", "text": NEWS, "quote": NEWS}]
    agent.answer("Thank you.")
    assert ws.memory("knowledge") == [former]
    model.down = True
    agent.answer("The mill has two wheels.")
    model.down, model.recognized["input_type"] = False, None
    asking = model.stream

    def fails_to_recognise(messages, tools=(), **more):
        if tools and tools[0].name == "recognize":
            raise ModelError("no")
        return asking(messages, tools, **more)

    model.stream = fails_to_recognise
    agent.answer("Thank you.")
    assert agent.mind.unread == ()
    assert (last(ws, Recognized).again, last(ws, Recognized).model) == (True, "")
    assert "The mill has two wheels." in {item.text for item in ws.memory("knowledge")}


def test_over_http_a_transient_error_is_retried_with_backoff_and_a_lasting_one_is_told(ws, chat_server):
    model = LiteLLMClient("openai/m", api_base=chat_server.base, api_key="k", retries=2, backoff_s=0.01)
    agent = CognitiveAgent(ws, model=model)
    chat_server.will_fail(503, "busy")
    chat_server.will_say(json.dumps({**GOOD["recognized"], "answer": "It is Ines."}))
    assert agent.answer(ASKED).text.startswith("It is Ines.")
    assert len(chat_server.requests) == 2
    for _ in range(3):
        chat_server.will_fail(503, "busy")
    answer = agent.answer(NEWS)
    assert answer.text == NOT_ANSWERED
    assert "busy" in answer.failed
    assert len(chat_server.requests) == 5


def test_ctrl_c_stops_the_model_and_keeps_what_had_arrived(ws):
    class Stopped(Scripted):
        def stream(self, messages, tools=(), *, timeout_s=120.0):
            yield CallPart('{"answer": "It is In')
            raise KeyboardInterrupt

    agent = CognitiveAgent(ws, model=Stopped())
    told = []
    answer = agent.answer(INES, told.append)
    assert (answer.text, answer.stopped, told) == ("It is In", True, ["It is In"])
    assert of(ws, AgentMessageSent)[-1].data.body.text == "It is In"
    assert last(ws, Interacted).answer
    assert ws.memory("knowledge"), "the message is kept"

    class Silenced(Scripted):
        def stream(self, messages, tools=(), *, timeout_s=120.0):
            raise KeyboardInterrupt

    quiet = CognitiveAgent(ws, model=Silenced())
    assert quiet.answer(ASKED).text == ""
    assert last(ws, Interacted).answer == 0
    assert quiet.mind.interactions == 2
    assert CognitiveAgent(ws, model=Scripted()).answer(ASKED).text == "It is Ines."


def test_after_ctrl_c_no_other_model_is_called(ws):
    class Silenced(Scripted):
        def stream(self, messages, tools=(), *, timeout_s=120.0):
            raise KeyboardInterrupt

    responder = Scripted()
    answer = CognitiveAgent(ws, model=Silenced(), responder=responder).answer(ASKED)
    assert (answer.text, answer.stopped, answer.calls, responder.asked) == ("", True, 1, [])


def test_if_the_second_call_fails_the_first_answer_counts(ws):
    class Once(Scripted):
        def stream(self, messages, tools=(), *, timeout_s=120.0):
            if self.asked:
                raise ModelError("it is silent")
            return super().stream(messages, tools, timeout_s=timeout_s)

    CognitiveAgent(ws).answer(INES)
    for number in range(6):
        CognitiveAgent(ws).answer(f"Lamp number {number} stands in the cellar of house {number}.")
    agent = CognitiveAgent(ws, SMALL, model=Once(assessed=LACKING), session="other")
    assert agent.answer(ASKED).text == "It is Ines."
    assert "it is silent" in agent.last_metrics.faults[-1]


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
