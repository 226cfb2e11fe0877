"""``agentx agent direct``: what a director is shown from the command line, and what a run prints."""

import json
import sys
from datetime import UTC, datetime, timedelta

import pytest

from agentx import Workspace
from agentx.scheduling.schedules import carry_out_due


def test_a_directive_that_is_asked_for_is_written_with_the_tools_of_the_executor_in_view(call, root, script):
    answer = {
        "analysis_summary": "Nothing ran.",
        "strategy": "Begin.",
        "executor_system_prompt": "Look.",
        "reuse_policy": {"valid_for_runs": 2},
    }
    model = script({"expect": ["write_file: ", "check_document: "], "answer": json.dumps(answer)})
    call("-C", root, "config", "set", "director.model", model)
    shown = json.loads(call("-C", root, "agent", "direct", "--now", "--json").out)
    prompt = shown["issued"]["prompt"]["text"]
    assert prompt.startswith("Look.\n\nThe user's own words")
    assert prompt.endswith("- please don't use emojis")
    assert shown["issued"]["model"] == model
    assert not shown["decision"]["direct"]


def test_a_run_says_all_that_the_executor_was_told_and_ends_as_the_program_did(call, root):
    program = json.dumps(["sh", "-c", "wc -l; echo gone >&2; exit 3"])
    call("-C", root, "config", "set", "director.executor", program)
    done = call("-C", root, "agent", "direct", "--run")
    assert "Hold to this:" in done.out
    assert "It ended with exit status 3: gone" in done.out
    assert done.code == 1


def test_where_nobody_can_carry_out_a_run_it_is_said_who_could_be_named(call, root):
    done = call("-C", root, "agent", "direct", "--run")
    assert done.code == 1
    assert "director.executor" in done.err
    assert "model.name" in done.err


def test_each_schedule_has_its_own_directive_and_its_fields_show_what_they_give_now(call, root):
    call("-C", root, "config", "set", "director.executor", json.dumps(["sh", "-c", "cat"]))
    for name, task in (("soil", "Measure the soil."), ("parts", "Order the parts.")):
        call("-C", root, "schedule", "add", "0 7 * * *", task, "--id", name, "--directed")
    assert "parts" not in call("-C", root, "agent", "direct", "--schedule", "soil", "--run").out.lower()
    shown = call("-C", root, "agent", "direct", "--schedule", "soil")
    assert "serves 1 of" in " ".join(shown.out.split())
    assert 'summaries(runs=10) gives now: - "Carry this out now' in " ".join(shown.out.split())
    assert "`--schedule` shows that of another schedule: parts." in shown.out
    told = json.loads(call("-C", root, "agent", "direct", "--schedule", "soil", "--json").out)
    assert told["schedule"] == "soil"
    assert any("Measure the soil." in value for value in told["values"].values())
    assert "there is no directive yet" in call("-C", root, "agent", "direct", "--schedule", "parts").out
    refused = call("-C", root, "agent", "direct", "--schedule", "beds")
    assert (refused.code, "there are: soil, parts" in refused.err) == (2, True)


def test_without_a_schedule_the_only_directed_one_is_meant(call, root):
    call("-C", root, "config", "set", "director.executor", json.dumps(["sh", "-c", "cat"]))
    call("-C", root, "schedule", "add", "0 7 * * *", "Measure the soil.", "--id", "soil", "--directed")
    assert "Measure the soil." in call("-C", root, "agent", "direct", "--run").out
    assert "schedule soil" in " ".join(call("-C", root, "agent", "direct").out.split())


SPEAKER = """
import json, sys
tools = [tool["name"] for tool in json.loads(sys.stdin.readline())["tools"]]
print(json.dumps({"call": {"tool": "greet", "arguments": {"name": "Ann"}}}), flush=True)
answer = json.loads(sys.stdin.readline())["result"]
print(json.dumps({"done": {"summary": json.dumps([tools, answer["output"]])}}))
"""


@pytest.fixture
def speaker(root, call):
    """A workspace whose executor is a program that calls a tool of a module; neither can import the other."""
    executor = root.parent / "executor.py"
    executor.write_text(SPEAKER)
    (root / "tools.py").write_text("def greet(name: str) -> str:\n    return f'hello {name}'\n")
    words = json.dumps([sys.executable, str(executor)])
    settings = {"executor": words, "speaks": "jsonl", "files": "false", "tools": "['tools.py']"}
    for name, value in settings.items():
        call("-C", root, "config", "set", f"director.{name}", value)
    return root


def test_a_program_that_speaks_json_lines_calls_the_tools_of_the_configuration(speaker, call):
    done = call("-C", speaker, "agent", "direct", "--run", "--json").json
    assert json.loads(done["outcome"]["summary"]) == [["greet"], "hello Ann"]


def test_a_due_run_uses_the_tools_of_the_configuration(speaker, call, monkeypatch):
    call("-C", speaker, "schedule", "add", "* * * * *", "Greet Ann.", "--directed")
    later = datetime.now(UTC) + timedelta(minutes=2)
    with Workspace.open(speaker) as ws:
        [carried] = carry_out_due(ws, later)
    assert json.loads(carried.summary) == [["greet"], "hello Ann"]


def test_tools_that_cannot_be_made_fail_the_due_run_with_the_reason(speaker, call):
    call("-C", speaker, "schedule", "add", "* * * * *", "Greet Ann.", "--directed")
    (speaker / "tools.py").unlink()
    with Workspace.open(speaker) as ws:
        [carried] = carry_out_due(ws, datetime.now(UTC) + timedelta(minutes=2))
    assert carried.status == "FAILED"
    assert "tools.py cannot be imported" in carried.reason
