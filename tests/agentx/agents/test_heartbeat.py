"""A pulse goes on with what was cut off, in the same run, and costs nothing where nothing was."""

import pytest

from agentx.agents.loop import run_task
from agentx.agents.run_types import Limits
from agentx.agents.turn import alone
from agentx.scheduling.resume_check import MOST_TRIES, beat
from agentx.storage.events.types import Draft, RunStarted, ToolCallExecuted
from agentx.synthesis.model.port import ModelError
from agentx.synthesis.state.state import State

WRITE = ("write_file", {"path": "a.txt", "content": "hello\n"})


class Cut:
    """A model whose process ends at a turn."""

    def __init__(self, model, turns):
        self.model, self.left, self.name = model, turns, model.name

    def stream(self, *arguments, **options):
        if not self.left:
            raise SystemExit
        self.left -= 1
        return self.model.stream(*arguments, **options)


def no_model():
    pytest.fail("a model was opened")


def test_an_idle_day_of_pulses_opens_no_model_and_leaves_no_trace(ws, script):
    assert beat(ws, no_model).status == "HEARTBEAT_OK"
    assert run_task(ws, "Say hello.", script("Hello.")).status == "COMPLETED"
    ws.say("Never create a requirements.txt file.")
    before = ws.state.encode()
    assert {beat(ws, no_model).status for _ in range(288)} == {"HEARTBEAT_OK"}
    assert ws.state.encode() == before


def test_a_run_whose_process_is_gone_goes_on_as_the_same_run_with_its_conversation(ws, script):
    turns = (WRITE, {"expect": ["Write hello", "hello"], "answer": "It is written."})
    with pytest.raises(SystemExit):
        run_task(ws, "Write hello.", Cut(script(*turns), 1), agent="writer")
    assert ws.state.last_run.status == "RUNNING"
    found = beat(ws, lambda: script(*turns))
    assert (found.status, found.run, found.result.answer) == ("CONTINUED", "r-1", "It is written.")
    (run,) = ws.state.runs
    assert (run.run, run.agent, run.status, run.resumed) == ("r-1", "writer", "COMPLETED", 1)
    events = list(ws.events())
    assert [event.run for event in events if isinstance(event.data, RunStarted)] == ["r-1", "r-1"]
    assert sum(isinstance(event.data, ToolCallExecuted) for event in events) == 1
    assert State().apply_all(events).encode() == ws.state.encode()
    run_task(ws, "And now?", script("Nothing."))
    assert [run.run for run in ws.state.runs] == ["r-1", "r-3"]


def test_calls_without_ids_of_their_own_keep_apart_when_a_run_goes_on(ws, script):
    turns = (WRITE, ("read_file", {"path": "a.txt"}), "Done.")
    with pytest.raises(SystemExit):
        run_task(ws, "Write and read.", Cut(script(*turns), 1))
    assert beat(ws, lambda: script(*turns)).result.status == "COMPLETED"
    calls = [event.data.call_id for event in ws.events() if isinstance(event.data, ToolCallExecuted)]
    assert len(set(calls)) == len(calls) == 2


def test_what_waits_for_a_person_waits_until_their_word_is_there(ws, script):
    config = ws.config.tools.model_copy(update={"approve": ("write_file",)})
    ws.engine.config = ws.config.model_copy(update={"tools": config})
    turns = (WRITE, "It is written.")
    result = run_task(ws, "Write hello.", script(*turns))
    found = beat(ws, no_model)
    assert (found.status, result.waiting.call_id in found.said) == ("WAITING", True)
    ws.approve(result.waiting.call_id)
    assert beat(ws, lambda: script(*turns)).result.answer == "It is written."


def test_a_run_that_used_up_its_limits_or_fails_again_and_again_waits_for_a_person(ws, script):
    run_task(ws, "Write hello.", script(WRITE, "x"), limits=Limits(max_steps=1))
    assert beat(ws, no_model).status == "STOPPED"

    class Down:
        name, asked = "down", 0

        def stream(self, *_arguments, **_options):
            Down.asked += 1
            raise ModelError("It cannot be reached.")

    run_task(ws, "Go on.", Down())
    statuses = [beat(ws, Down).status for _ in range(MOST_TRIES + 3)]
    assert statuses == ["CONTINUED"] * MOST_TRIES + ["STOPPED"] * 3
    assert Down.asked == 1 + MOST_TRIES


def test_a_run_at_work_is_left_alone_and_a_directed_one_is_closed_for_the_next(ws):
    started = RunStarted(task=ws.body("Mail."), agent="executor", model="m", directive=1)
    ws.record(Draft(data=started, actor="agent:executor", run="r-1"))
    with alone(ws.engine):
        ws.record(Draft(data=started, actor="agent:executor", run="r-2"))
        assert beat(ws, no_model).status == "BUSY"
    assert beat(ws, no_model).status == "HEARTBEAT_OK"
    assert [run.status for run in ws.state.runs] == ["INTERRUPTED", "INTERRUPTED"]
