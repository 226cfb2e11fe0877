"""Runs, samples and a person's word, from the command line: only the model's words are canned."""

import os
import signal
import subprocess
import sys
import time

import pytest

from agentx import Workspace

ANSWER = {"answer": "It is **done**."}


def test_a_run_is_shown_and_its_answer_is_a_success(call, root, script):
    done = call("run", "What is in it?", "--model", script(ANSWER), "-C", root)
    assert done.code == 0, done
    assert "The model is a script" in done.out
    assert "It is done." in done.out


def test_a_run_in_json_is_each_event_and_then_its_result(call, root, script):
    lines = call("run", "What is in it?", "--model", script(ANSWER), "--json", "-C", root).lines
    assert [line["type"] for line in lines][:2] == ["UserMessageSent", "RunStarted"]
    assert lines[-1]["type"] == "RunResult"
    assert lines[-1]["data"]["answer"] == "It is **done**."


def test_the_message_can_come_from_stdin(root, script, environment, program):
    done = subprocess.run(
        [program, "-C", str(root), "run", "-", "--model", script(ANSWER), "--json"],
        env=environment,
        input=b"Said through a pipe.",
        capture_output=True,
        check=True,
    )
    assert b"Said through a pipe." in done.stdout


def test_without_a_model_a_run_says_how_to_set_one_and_records_nothing(call, root):
    before = call("status", "--json", "-C", root).json["events"]
    done = call("run", "Do it.", "-C", root)
    assert done.code == 1
    assert "--model PROVIDER/NAME" in done.err
    assert call("status", "--json", "-C", root).json["events"] == before


def test_a_run_without_a_message_needs_something_unfinished(call, root, script):
    done = call("run", "--model", script(ANSWER), "-C", root)
    assert done.code == 2
    assert "No unfinished run was found to resume" in done.err


def test_a_limit_ends_a_run_as_no_success(call, root, script):
    turns = [{"tool_calls": [{"name": "list_directory", "arguments": {}}]}, ANSWER]
    done = call("run", "Look.", "--max-steps", "1", "--model", script(*turns), "-C", root)
    assert done.code == 1
    assert "a limit was reached" in done.out


@pytest.mark.parametrize(("deny", "left"), [([], False), (["--deny", "--reason", "keep it"], True)])
def test_a_call_waits_for_a_word_and_the_next_run_goes_on(call, root, script, deny, left):
    call("config", "set", "tools.approve", '["delete_file"]', "-C", root)
    turns = [{"tool_calls": [{"name": "delete_file", "arguments": {"path": "outlook.md"}}]}, ANSWER]
    model = script(*turns)
    assert call("run", "Delete it.", "--model", model, "-C", root).code == 1
    assert "agentx approve" in call("status", "-C", root).out
    done = call("approve", "call_1_1", *deny, "-C", root)
    assert done.code == 0, done
    assert "call_1_1: delete_file" in done.out
    assert "outlook.md" in done.out
    done = call("run", "--model", model, "-C", root)
    assert done.code == 0, done
    assert (root / "artifacts" / "outlook.md").exists() is left


def test_words_that_rule_an_idea_out_are_shown_when_a_call_is_refused(call, root, script):
    call("config", "set", "tools.approve", '["delete_file"]', "-C", root)
    turns = [{"tool_calls": [{"name": "delete_file", "arguments": {"path": "outlook.md"}}]}, ANSWER]
    call("run", "Delete it.", "--model", script(*turns), "-C", root)
    done = call("approve", "call_1_1", "--deny", "--reason", "never delete a report", "-C", root)
    assert "rejection" in done.out
    assert "Never delete a report" in done.out


def test_yes_is_a_word_given_beforehand(call, root, script):
    call("config", "set", "tools.approve", '["delete_file"]', "-C", root)
    turns = [{"tool_calls": [{"name": "delete_file", "arguments": {"path": "outlook.md"}}]}, ANSWER]
    done = call("run", "Delete it.", "--yes", "--model", script(*turns), "-C", root)
    assert done.code == 0, done
    assert not (root / "artifacts" / "outlook.md").exists()
    assert len(call("log", "--type", "ApprovalDecided", "--json", "-C", root).lines) == 1


def test_control_c_ends_a_run_cleanly_and_the_next_goes_on(call, root, script, environment):
    call("config", "set", "checks.tests.command", "sleep 60", "-C", root)
    model = script({"tool_calls": [{"name": "run_tests", "arguments": {}}]}, ANSWER)
    with subprocess.Popen(
        [sys.executable, "-m", "agentx", "-C", str(root), "run", "Test it.", "--model", model, "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        for line in running.stdout:
            if b'"ToolCallRequested"' in line:
                break
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        rest, said = running.communicate()
        assert running.returncode == 130, (rest, said)
        assert b"Traceback" not in said
    assert "INTERRUPTED" in call("status", "-C", root).out
    call("config", "set", "checks.tests.command", "true", "-C", root)
    assert call("run", "--model", model, "-C", root).code == 0


def test_what_is_said_is_recorded_with_what_it_demands(call, root):
    done = call("say", "Always write British English.", "-C", root)
    assert "+ constraint" in done.out
    done = call("say", "Hello!", "--json", "-C", root).json
    assert done["event"]["actor"] == "user"
    assert done["memory"] == []


# --- samples ---------------------------------------------------------------------------------------------------------

SAMPLE = """\
title = "A report"
start = "start"
[config]
checks.tests.command = "test -f done.txt"
[[steps]]
say = "From now on, never create a requirements.txt file. Then write done.txt."
script = "turns.jsonl"
"""


DIRECTED = """
[directed]
executor = "turns.jsonl"
tools = "turns.jsonl"
[[steps]]
direct = 3
"""


@pytest.fixture
def sample(tmp_path, script):
    """A sample in a project, whose root is the current directory."""
    folder = tmp_path / "elsewhere" / "sample_workspaces" / "report"

    def sample(text=SAMPLE):
        (folder / "start").mkdir(parents=True)
        (folder / "start" / "a.txt").write_text("a\n")
        (folder / "sample.toml").write_text(text)
        script(
            {
                "tool_calls": [
                    {"name": "write_file", "arguments": {"path": "requirements.txt", "content": "x"}}
                ]
            },
            {"tool_calls": [{"name": "write_file", "arguments": {"path": "done.txt", "content": "x"}}]},
            {"tool_calls": [{"name": "run_tests", "arguments": {}}], "expect": ["run_tests"]},
            ANSWER,
        )
        os.replace(tmp_path / "turns.jsonl", folder / "turns.jsonl")
        return folder

    return sample


def test_a_sample_plays_in_a_fresh_copy_and_tells_its_story(call, sample, tmp_path):
    folder = sample()
    done = call("run", "--sample", "report", "--into", tmp_path / "copy")
    assert done.code == 0, done
    assert "The model is a script" in done.out
    assert "Denied." in done.out
    assert "git log --oneline" in done.out
    with Workspace.open(tmp_path / "copy") as ws:
        (rule,) = ws.memory("constraint")
    assert f"rule {rule.id}" in done.out
    assert (tmp_path / "copy" / "artifacts" / "done.txt").exists()
    assert sorted(path.name for path in folder.rglob("*")) == ["a.txt", "sample.toml", "start", "turns.jsonl"]
    log = subprocess.run(
        ["git", "-C", tmp_path / "copy", "log", "--oneline"], capture_output=True, text=True, check=True
    ).stdout
    for line in log.splitlines():
        assert line.split()[0][:7] in done.out


def test_a_sample_is_found_from_below_and_ends_in_json_with_its_story(call, sample, tmp_path, monkeypatch):
    monkeypatch.chdir(sample() / "start")
    lines = call("run", "--sample", "report", "--into", tmp_path / "copy", "--json").lines
    story = lines[-1]["data"]
    assert lines[-1]["type"] == "SampleEnded"
    assert call("status", "--json", "-C", tmp_path / "copy").json["digest"] == story["state_digest"]


def test_a_sample_that_is_none_is_named(call, sample, tmp_path):
    sample()
    done = call("run", "--sample", "nonsense")
    assert done.code == 2
    assert "Unknown sample 'nonsense'" in done.err
    assert "report" in done.err
    assert call("run", "--sample", "../report").code == 2
    assert call("run", "hello", "--sample", "report").code == 2
    assert call("run", "hello", "--into", tmp_path / "x").code == 2


@pytest.mark.parametrize(
    "text",
    [
        "title = ",
        'title = "x"',
        SAMPLE.replace("turns.jsonl", "lost.jsonl"),
        SAMPLE.replace("title", "tilte"),
        'title = "x"\nsteps = []',
        SAMPLE.replace("script =", "run = 'agentx log'\nscript ="),
        SAMPLE.replace('script = "turns.jsonl"', ""),
        SAMPLE.replace("[[steps]]", "[[steps]]\nrun = 'rm -r .'\n[[steps]]"),
        SAMPLE + "[[steps]]\ndirect = 3",
        SAMPLE + DIRECTED.replace("3", "-1"),
        SAMPLE + DIRECTED.replace("turns", "lost"),
        SAMPLE + DIRECTED.replace("[[", "schedule = 'x'\n[["),
        SAMPLE + DIRECTED.replace("[[", "since = 2026-03-02T00:00:00Z\n[["),
        SAMPLE + DIRECTED.replace("[[", "schedule = 'x'\nsince = 2026-03-02T00:00:00\n[["),
    ],
)
def test_a_sample_that_is_not_well_formed_is_one_sentence(call, sample, text):
    sample(text)
    done = call("run", "--sample", "report")
    assert done.code == 2, done
    assert "sample.toml" in done.err
    assert done.err.count("\n") == 1


def test_a_schedule_that_no_step_adds_is_named(call, sample):
    code = 'tools = "t.py"\nschedule = "x"\nsince = 2026-03-02T00:00:00Z'
    folder = sample('title = "x"' + DIRECTED.replace('tools = "turns.jsonl"', code))
    (folder / "t.py").write_text("def tools(world, run): return {}\n")
    done = call("run", "--sample", "report")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "No step has added the schedule 'x'" in done.err


LONGER = (
    SAMPLE
    + """
[[steps]]
title = "The days go by"
past = "past.jsonl"
[[steps]]
run = "agentx gate pre 'add a pop-up'"
ends = 4
[[steps]]
run = "agentx memory add 'Never import pickle.' --kind constraint"
"""
)
PAST = """\
{"by": "user", "text": "Stop suggesting pop-ups.", "paste": "start/a.txt"}
{"by": "agent", "text": "Understood."}
"""


def test_a_sample_has_commands_and_what_was_said_meanwhile_too(call, sample, tmp_path):
    (sample(LONGER) / "past.jsonl").write_text(PAST)
    done = call("run", "--sample", "report", "--into", tmp_path / "copy")
    assert done.code == 0, done
    assert "2 of 4 · The days go by" in done.out
    assert "2 messages were sent" in done.out
    assert "$ agentx gate pre 'add a pop-up'" in done.out
    with Workspace.open(tmp_path / "copy") as ws:
        said, answered = ws.state.messages[-2:]
        assert (said.actor, said.text) == ("user", "Stop suggesting pop-ups.\n\na\n")
        assert (answered.actor, answered.text) == ("agent:main", "Understood.")
        assert [item.text for item in ws.memory("constraint")][-1] == "Never import pickle."


def test_a_command_of_a_sample_names_its_files_wherever_it_lies(call, sample, tmp_path):
    sample(SAMPLE + '[[steps]]\nrun = "agentx add {sample}/start --to copied"\n')
    done = call("run", "--sample", "report", "--into", tmp_path / "copy")
    assert done.code == 0, done
    assert "$ agentx add sample_workspaces/report/start --to copied" in done.out
    assert (tmp_path / "copy" / "artifacts" / "copied" / "start" / "a.txt").exists()


def test_a_sample_in_json_is_a_line_for_each_thing_also_of_its_commands(call, sample, tmp_path):
    (sample(LONGER) / "past.jsonl").write_text(PAST)
    lines = call("run", "--sample", "report", "--into", tmp_path / "copy", "--json").lines
    steps = [line["data"]["number"] for line in lines if "type" in line and line["type"] == "SampleStep"]
    assert steps == [1, 2, 3, 4]
    assert [line["verdict"] for line in lines if "verdict" in line] == ["deny"]


def test_a_sample_stops_where_a_step_goes_another_way(call, sample, tmp_path):
    (sample(LONGER.replace("ends = 4", "")) / "past.jsonl").write_text(PAST)
    done = call("run", "--sample", "report", "--into", tmp_path / "copy")
    assert done.code == 4
    assert "Step 3 of report ended with 4, and not with 0" in done.err


def test_what_was_said_meanwhile_is_named_where_a_line_is_no_message(call, sample, tmp_path):
    (sample(LONGER) / "past.jsonl").write_text('{"by": "nobody", "text": "x"}\n')
    done = call("run", "--sample", "report", "--into", tmp_path / "copy")
    assert done.code == 2
    assert "past.jsonl, line 1, is not a valid message" in done.err


def test_a_setting_of_a_sample_that_is_none_is_one_sentence(call, sample, tmp_path):
    sample(SAMPLE.replace("checks.tests.command", "checks.tests.comand"))
    done = call("run", "--sample", "report", "--into", tmp_path / "copy")
    assert done.code == 2, done
    assert "comand" in done.err
