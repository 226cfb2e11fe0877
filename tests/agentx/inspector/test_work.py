"""Runs, pipelines, minds and calls in the inspector, each as the engine's own commands compute it."""

import json

import msgspec
import pytest

from agentx.inspector import acts
from agentx.inspector.access import InspectorError
from agentx.inspector.app import READINGS
from agentx.inspector.asking import Asked
from agentx.pipelines.runner import Runner
from agentx.storage.events.types import Body, Draft, RunEnded, RunStarted
from agentx.synthesis.model.scripted import ScriptedModel
from tests.agentx.cognition.histories import play
from tests.agentx.tools.test_base import ASKS, ask


def read(ws, path, **given):
    """What the API answers about an open workspace."""
    answer = dict(READINGS)[path](ws, Asked({name: str(value) for name, value in given.items()}))
    return json.loads(msgspec.json.encode(answer))


def test_a_run_shows_its_steps_tools_and_end(configured):
    ws = configured("")
    task = ws.say("Write the outlook.")
    begin = RunStarted(task=Body("Write the outlook."), agent="main", model="m")
    ws.record(Draft(data=begin, actor="agent:main", run="r-1", cause=task.seq))
    tools = ws.tools
    tools.write_file("a.md", "one\n")
    end = RunEnded(status="COMPLETED", steps=3, prompt_tokens=70, completion_tokens=30, cost_usd=0.5)
    ws.record(Draft(data=end, actor="engine:runs", run="r-1"))
    (run,) = read(ws, "runs")["runs"]
    assert (run["id"], run["steps"], run["tokens"]) == ("r-1", 3, {"in": 70, "out": 30})
    assert run["ended"]["outcome"] == "COMPLETED"
    assert run["started"]["cause"] == task.seq
    whole = read(ws, "runs/{id:path}", id="r-1")
    assert whole["prompt"]["text"] == "Write the outlook."
    assert whole["next"] is None
    with pytest.raises(InspectorError):
        read(ws, "runs/{id:path}", id="r-2")
    assert {mark["what"] for mark in read(ws, "moments")["marks"]} == {"message", "run"}
    assert read(ws, "overview")["runs"] == {"active": 0, "total": 1}


def test_runs_page_by_their_beginning(configured):
    ws = configured("")
    for number in range(5):
        begin = RunStarted(task=Body(f"Task {number}"), agent="main", model="m")
        ws.record(Draft(data=begin, actor="agent:main", run=f"r-{number}"))
    first = read(ws, "runs", limit=2)
    rest = read(ws, "runs", limit=10, before=first["next"])
    assert [run["id"] for run in first["runs"] + rest["runs"]] == ["r-4", "r-3", "r-2", "r-1", "r-0"]
    assert rest["next"] is None


def test_what_another_process_records_is_in_the_next_answer(configured):
    ws = configured("")
    before = read(ws, "overview")["actors"]
    with type(ws).open(ws.root, settings=ws.settings) as other:
        other.say("Use British spelling.")
    after = read(ws, "overview")["actors"]
    assert after["user"] == before["user"] + 1
    assert read(ws, "events")["events"][0]["seq"] == ws.state.seq


def test_the_index_says_the_same_read_at_once_or_event_by_event(configured):
    ws = configured("")
    read(ws, "overview")
    for number in range(30):
        ws.say(f"Never write file {number}.txt.")
        ws.tools.write_file("a.md", f"{number}\n")
        read(ws, "overview")
    grown = ws.engine.links.at(ws.state, msgspec.json.encode)
    ws.engine.links.clear()
    assert ws.engine.links.at(ws.state, msgspec.json.encode) == grown


def test_what_was_purged_is_in_no_answer_any_more(configured):
    ws = configured("")
    said = ws.say("The password is swordfish-4711.")
    ws.say("Never write to the log.")
    assert "swordfish" in json.dumps([read(ws, "moments"), read(ws, "events")])
    ws.purge(said.seq)
    answers = [read(ws, path) for path in ("overview", "moments", "events", "context", "memory")]
    assert "swordfish" not in json.dumps([*answers, read(ws, "events/{seq}", seq=said.seq)])


def test_a_waiting_call_is_decided_from_the_page(configured):
    ws = configured(ASKS)
    ask(ws)
    (call,) = read(ws, "overview")["waiting"]
    assert (call["call_id"], call["tool"], call["arguments"]["path"]) == ("call-1", "write_file", "a.txt")
    assert call["what"] == "write_file"
    shown = read(ws, "approvals/{id:path}", id="call-1")["digest"]
    late = {"what": "deny", "id": "call-1", "seq": call["seq"] - 1}
    with pytest.raises(InspectorError) as refused:
        acts.act(ws, json.dumps(late).encode())
    assert refused.value.status == 409
    approve = {**late, "what": "approve", "seq": call["seq"]}
    with pytest.raises(InspectorError, match="says what was shown"):
        acts.act(ws, json.dumps(approve).encode())
    with pytest.raises(InspectorError, match="not what was shown any more"):
        acts.act(ws, json.dumps({**approve, "shown": "0" * 32}).encode())
    assert ws.state.pending["call-1"].approved is None
    done = acts.act(ws, json.dumps({**approve, "shown": shown}).encode())
    assert done["event"]["type"] == "ApprovalDecided"
    (decided,) = (event for event in ws.events() if event.type == "ApprovalDecided")
    assert (decided.actor, decided.data.asked, decided.data.approved) == ("user", acts.ASKED, True)
    assert read(ws, "overview")["waiting"] == []
    with pytest.raises(InspectorError):
        acts.act(ws, json.dumps({**approve, "what": "deny", "shown": shown}).encode())
    assert ask(ws).status == "SUCCEEDED"


@pytest.mark.parametrize(
    ("approved", "step", "run"),
    [(None, "WAITING", "WAITING"), (True, "DECIDED", "DECIDED"), (False, "DENIED", "DECIDED")],
)
def test_a_call_without_a_result_is_a_step_that_says_what_was_decided(configured, approved, step, run):
    ws = configured(ASKS)
    begin = RunStarted(task=Body("Write it."), agent="main", model="m")
    ws.record(Draft(data=begin, actor="agent:main", run="r-1", cause=ws.say("Write it.").seq))
    arguments = {"path": "a.txt", "content": "x"}
    ws.tools.call("write_file", arguments, call_id="call-1", run="r-1", actor="agent:main")
    ws.record(Draft(data=RunEnded(status="WAITING"), actor="agent:main", run="r-1"))
    if approved is not None:
        ws.approve("call-1", approved=approved, reason="No need.")
    (shown,) = read(ws, "runs/{id:path}", id="r-1")["steps"]
    assert (shown["tool"], shown["status"], shown["ok"]) == ("write_file", step, False)
    assert ("No need." in shown["text"]) is (approved is False)
    assert read(ws, "runs")["runs"][0]["ended"]["outcome"] == run
    ws.tools.call("write_file", arguments, call_id="call-1", run="r-1", actor="agent:main")
    (shown,) = read(ws, "runs/{id:path}", id="r-1")["steps"] if approved is not None else [{"status": ""}]
    assert shown["status"] == {True: "SUCCEEDED", False: "DENIED", None: ""}[approved]


def test_two_rules_are_merged_and_separated_from_the_page(configured):
    ws = configured("")
    kept, other = (ws.remember("rule", text).id for text in ("Round prices up.", "Round all prices up."))
    act = {"id": kept, "other": other, "seq": ws.state.seq}
    assert acts.act(ws, json.dumps({**act, "what": "merge"}).encode())["item"]["id"] == kept
    assert read(ws, "memory/{id}", id=other)["item"]["status"] == "retired"
    links = read(ws, "memory/{id}", id=kept)["links"]
    assert {(one["id"], one["way"]) for one in links} >= {(other, "in")}
    acts.act(ws, json.dumps({**act, "what": "unmerge", "seq": ws.state.seq}).encode())
    assert read(ws, "memory/{id}", id=other)["item"]["status"] != "retired"


PIPELINE = """
pipeline: letters
files: {a: {path: a.md, class: overwritable}, b: {path: b.md, class: overwritable}}
roles:
  first: {writes: [{file: a}]}
  second: {reads: [{file: a}], writes: [{file: b}]}
stages:
  - {id: draft, role: first}
  - {id: polish, role: second, after: draft}
"""


def test_a_pipeline_shows_its_steps_in_order_and_what_is_out_of_date(configured, tmp_path):
    ws = configured("")
    file = ws.root / "letters.yaml"
    file.write_text(PIPELINE)
    turns = tmp_path / "turns.jsonl"
    turns.write_text('{"answer": "A letter."}\n{"answer": "A better letter."}\n')
    Runner(ws.engine, file, lambda _name: ScriptedModel(turns)).run()
    assert read(ws, "pipelines")["pipelines"][0]["name"] == "letters"
    found = read(ws, "pipelines/{name}", name="letters")
    steps = {step["id"]: step for step in found["steps"]}
    assert [steps[name]["level"] for name in ("draft", "polish")] == [0, 1]
    assert steps["polish"]["needs"] == ["draft"]
    assert steps["polish"]["artifacts"] == ["b.md"]
    assert {step["status"] for step in steps.values()} == {"proved"}
    assert not steps["polish"]["stale"]
    (ws.artifacts / "a.md").write_text("Another letter.\n")
    ws.engine.edits.scan()
    stale = {step["id"]: step for step in read(ws, "pipelines/{name}", name="letters")["steps"]}
    assert any(step["stale"] and step["why"] for step in stale.values())
    with pytest.raises(InspectorError):
        read(ws, "pipelines/{name}", name="other")


def test_a_mind_shows_how_its_memories_fade(configured):
    ws = configured("")
    play(ws, interactions=20)
    (mind,) = read(ws, "cognition")["agents"]
    assert (mind["agent"], mind["interactions"]) == ("bakery", 20)
    held = [item for item in mind["items"] if item["held"]]
    assert {item["id"] for item in held} == set(ws.state.minds["bakery"].buffer)
    for item in held:
        assert item["fades_at"] >= 20
        assert item["curve"][-1][1] == item["activation"]
    assert read(ws, "cognition", agent="nobody")["agents"] == []
