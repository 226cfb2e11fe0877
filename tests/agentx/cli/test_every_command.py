"""What holds for every command: it works from a shell, takes -C and --json anywhere, and fails in one sentence."""

import json
import re
import subprocess
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.app import ENTRIES, command_names
from agentx.pipelines.runner import Runner
from agentx.scheduling import schedules
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.synthesis.model.scripted import ScriptedModel

ROOT = Path(__file__).resolve().parents[3]

GOOD = {
    "init": ["init", "{new}", "--title", "New"],
    "add": ["add", "{file}", "--to", "notes"],
    "run": ["run", "What is in it?", "--model", "{script}"],
    "say": ["say", "Revenue matters."],
    "heartbeat": ["heartbeat"],
    "approve": ["approve"],
    "pipeline status": ["pipeline"],
    "pipeline run": ["pipeline", "run", "{pipeline}", "--model", "{script}"],
    "pipeline redo": ["pipeline", "redo", "s"],
    "pipeline amend": ["pipeline", "amend", "a.md", "--reason", "It was wrong."],
    "pipeline plan": ["pipeline", "plan", "{pipeline}"],
    "pipeline schema": ["pipeline", "schema"],
    "pipeline new": ["pipeline", "new", "{new}"],
    "pipeline matrix": ["pipeline", "matrix", "{pipeline}"],
    "pipeline graph": ["pipeline", "graph", "{pipeline}"],
    "status": ["status"],
    "context": ["context", "the outlook", "--explain"],
    "boot": ["boot", "--agent", "writer"],
    "search": ["search", "revenue", "-k", "2"],
    "log": ["log", "-n", "3"],
    "audit": ["audit", "--since", "today"],
    "diff": ["diff", "2", "--patch"],
    "bisect": ["bisect", "--item", "c-3", "--all"],
    "scribe": ["scribe", "--pending"],
    "dispatch": ["dispatch", "post the release notes"],
    "mission list": ["mission"],
    "mission set": ["mission", "set", "--agent", "writer", "Readers come back."],
    "memory list": ["memory", "list", "--all"],
    "memory show": ["memory", "show", "c-3"],
    "memory add": ["memory", "add", "Use British English.", "--until", "June"],
    "memory edit": ["memory", "edit", "c-3", "Never create a setup.py file."],
    "memory retire": ["memory", "retire", "c-3"],
    "memory pin": ["memory", "pin", "c-3"],
    "memory review": ["memory", "review", "--accept", "c-5"],
    "memory explain": ["memory", "explain", "never use tabs"],
    "cognition report": ["cognition"],
    "flow list": ["flow", "list"],
    "flow add": ["flow", "add", "publish a post", "--step", "Draft it.", "--trigger", "blog", "--approval"],
    "flow show": ["flow", "show", "{flow}"],
    "flow edit": ["flow", "edit", "{flow}", "--step", "Do it.", "--name", "ship", "--no-approval"],
    "flow retire": ["flow", "retire", "{flow}"],
    "flow check": ["flow", "check", "ship it to prod"],
    "gate lessons": ["gate"],
    "gate pre": ["gate", "pre", "write the outlook", "--tool", "Write", "--arguments", '{{"path": "a.md"}}'],
    "gate post": ["gate", "post", "Wrote the outlook", "--pass", "--lesson", "Read the figures first."],
    "trust allow": ["trust", "--yes"],
    "trust list": ["trust", "list"],
    "trust issue": ["trust", "issue", "--for", "1"],
    "trust key": ["trust", "key"],
    "capability list": ["capability"],
    "capability add": ["capability", "add", "shell", "--command", "echo here"],
    "capability check": ["capability", "check"],
    "backtest": ["backtest", "--since", "2", "--dry-run"],
    "direct": ["direct", "--now"],
    "schedule list": ["schedule"],
    "schedule add": ["schedule", "add", "0 8 * * 1", "Read the mail.", "--zone", "Europe/Berlin"],
    "schedule remove": ["schedule", "remove", "news"],
    "schedule next": ["schedule", "next", "--most", "2"],
    "schedule run-due": ["schedule", "run-due"],
    "daemon": ["daemon", "--once"],
    "maintain": ["maintain", "--dry-run"],
    "undo": ["undo"],
    "restore": ["restore", "outlook.md", "--at", "2"],
    "fork": ["fork", "{new}", "--at", "3"],
    "push": ["push", "--url", "{bare}"],
    "pull": ["pull", "backup", "--url", "{bare}"],
    "rebuild": ["rebuild"],
    "verify": ["verify"],
    "repair": ["repair"],
    "purge": ["purge", "--event", "3", "--yes"],
    "models list": ["models", "list"],
    "models install": ["models", "install", "minilm"],
    "config show": ["config"],
    "config get": ["config", "get", "limits.max_steps"],
    "config set": ["config", "set", "limits.max_steps", "7"],
    "doctor": ["doctor"],
}

WRONG = {
    "trust allow": ["trust", "--show", "--yes"],
    "trust list": ["trust", "list", "superfluous"],
    "trust issue": ["trust", "issue", "--for", "0"],
    "trust key": ["trust", "key", "--add", "nonsense"],
    "init": ["init", "{file}"],
    "add": ["add", "not-there.txt"],
    "run": ["run", "x", "--max-steps", "0"],
    "say": ["say", "  "],
    "heartbeat": ["heartbeat", "now"],
    "approve": ["approve", "call_9"],
    "pipeline status": ["pipeline", "status", "--name", "letters"],
    "pipeline run": ["pipeline", "run", "{file}"],
    "pipeline redo": ["pipeline", "redo"],
    "pipeline amend": ["pipeline", "amend", "a.md"],
    "pipeline plan": ["pipeline", "plan", "{pipeline}", "--step", "t"],
    "pipeline schema": ["pipeline", "schema", "{pipeline}"],
    "pipeline new": ["pipeline", "new", "not a name"],
    "pipeline matrix": ["pipeline", "matrix", "not-there.yaml"],
    "pipeline graph": ["pipeline", "graph", "{file}"],
    "status": ["status", "superfluous"],
    "context": ["context", "--tier", "9"],
    "boot": ["boot", "--as-of", "nonsense"],
    "search": ["search", " "],
    "log": ["log", "--type", "Nonsense"],
    "audit": ["audit", "--since", "nonsense"],
    "diff": ["diff", "nonsense"],
    "bisect": ["bisect", "--item", "c-99"],
    "scribe": ["scribe", "--due", "--keep"],
    "dispatch": ["dispatch", " "],
    "mission list": ["mission", "all"],
    "mission set": ["mission", "set", " "],
    "memory list": ["memory", "list", "--kind", "nonsense"],
    "memory show": ["memory", "show", "c-99"],
    "memory add": ["memory", "add", "x", "--kind", "hot_issue"],
    "memory edit": ["memory", "edit", "c-3", " "],
    "memory retire": ["memory", "retire", "c-3", "c-99"],
    "memory pin": ["memory", "pin"],
    "memory review": ["memory", "review"],
    "memory explain": ["memory", "explain", "--event", "2"],
    "maintain": ["maintain", "--dry-run", "--undo"],
    "cognition report": ["cognition", "report", "--session", "nowhere"],
    "flow list": ["flow", "list", "all"],
    "flow add": ["flow", "add", "publish a post"],
    "flow show": ["flow", "show", "f-99"],
    "flow edit": ["flow", "edit", "{flow}"],
    "flow retire": ["flow", "retire", "{flow}", "c-3"],
    "flow check": ["flow", "check", " "],
    "gate lessons": ["gate", "lessons", "--all"],
    "gate pre": ["gate", "pre", "x", "--arguments", "[1]"],
    "gate post": ["gate", "post", "x"],
    "capability list": ["capability", "list", "b-1"],
    "capability add": ["capability", "add", "shell"],
    "capability check": ["capability", "check", "c-3"],
    "backtest": ["backtest", "--since", "nonsense"],
    "direct": ["direct", "--now", "--why"],
    "schedule list": ["schedule", "list", "all"],
    "schedule add": ["schedule", "add", "0 0 31 2 *", "Rest."],
    "schedule remove": ["schedule", "remove", "mail"],
    "schedule next": ["schedule", "next", "mail"],
    "schedule run-due": ["schedule", "run-due", "--most", "-1"],
    "daemon": ["daemon", "{file}"],
    "undo": ["undo", "--at", "3"],
    "restore": ["restore", "outlook.md", "--at", "999"],
    "fork": ["fork", "{file}"],
    "push": ["push", "nowhere"],
    "pull": ["pull", "nowhere"],
    "rebuild": ["rebuild", "--nonsense"],
    "verify": ["verify", "--from", "nonsense"],
    "repair": ["repair", "now"],
    "purge": ["purge", "--event", "99", "--yes"],
    "models list": ["models", "nonsense"],
    "models install": ["models", "install", "gpt-9"],
    "config show": ["config", "show", "model"],
    "config get": ["config", "get", "modle.name"],
    "config set": ["config", "set", "limits.max_steps", "many"],
    "doctor": ["doctor", "now"],
}

WITHOUT_A_WORKSPACE = {
    "init",
    "memory explain",
    "models list",
    "models install",
    "doctor",
    "trust list",
    "trust key",
} | {f"pipeline {name}" for name in ("plan", "schema", "new", "matrix", "graph")}
STREAMS = {"run", "log"}


@pytest.fixture
def filled(root, trusted, tmp_path, script, monkeypatch, environment):
    """Words of a command line with their places filled; a model is not to be had."""
    folders = {"AGENTX_CACHE_DIR": str(tmp_path / "cache"), "AGENTX_STATE_DIR": str(tmp_path / "state")}
    for name, value in {**folders, "PIP_NO_INDEX": "1"}.items():
        monkeypatch.setenv(name, value)
        environment[name] = value
    trusted(root)
    (tmp_path / "note.txt").write_text("a note")
    (tmp_path / "one.yaml").write_text(
        "{pipeline: one, files: {a: {path: a.md, class: static}}, roles: {r: {writes: [{file: a}]}}, stages: [{id: s, role: r}]}"
    )
    subprocess.run(["git", "clone", "-q", "--bare", root, tmp_path / "bare.git"], check=True)
    places = {
        "new": str(tmp_path / "new"),
        "bare": str(tmp_path / "bare.git"),
        "file": str(tmp_path / "note.txt"),
        "pipeline": str(tmp_path / "one.yaml"),
        "script": script({"answer": "An outlook."}),
    }

    def filled(words):
        if words[0] == "flow":
            with Workspace.open(root) as ws:
                places["flow"] = ws.flows.add("ship it", ["Build it.", "Ship it."]).id
        if words[:2] in (["pipeline", "redo"], ["pipeline", "amend"]) and words in GOOD.values():
            with Workspace.open(root) as ws:
                played = ScriptedModel(places["script"].removeprefix("script:"))
                Runner(ws.engine, Path(places["pipeline"]), lambda _name: played).run()
            (root / "artifacts" / "a.md").write_text("It is otherwise.\n")
        if words[0] == "schedule":
            with Workspace.open(root) as ws:
                schedules.add(ws, ScheduleSet(id="news", cron="0 0 1 1 *", task="Look for news."))
        return [word.format(**places) for word in words]

    return filled


@pytest.fixture
def approval(root, call, script):
    """A workspace in which a call waits for a person's word."""

    def approval():
        call("config", "set", "tools.approve", '["delete_file"]', "-C", root)
        turns = script(
            {"tool_calls": [{"name": "delete_file", "arguments": {"path": "outlook.md"}}]},
            {"answer": "Done."},
            name="approval.jsonl",
        )
        assert call("run", "delete it", "--model", turns, "-C", root).code == 1
        return turns

    return approval


def fails_in_one_sentence(done, code=2):
    assert done.code == code, done
    assert re.fullmatch(r"agentx: [^\n]+[.?)`]\n", done.err), done.err
    assert done.out == ""


def cannot_be_had(done):
    """What is fetched was announced; then it fails in one sentence that says how to try again."""
    assert (done.code, done.out) == (1, ""), done
    assert re.fullmatch(
        r"· Fetching [^\n]+\nagentx: [^\n]+ try again with `agentx models install minilm`\.\n", done.err
    ), done.err


def test_the_tables_here_name_every_command():
    assert set(GOOD) == set(WRONG) == set(command_names())


@pytest.mark.parametrize("name", GOOD)
def test_it_works_from_a_shell_with_the_directory_first(name, process, filled, root, approval):
    if name == "approve":
        approval()
    base = [] if name == "init" else ["-C", str(root)]
    done = process(*base, *filled(GOOD[name]))
    if name == "models install":
        cannot_be_had(done)
        return
    assert done.code == 0, done
    assert "Traceback" not in done.err
    assert "\x1b" not in done.out + done.err
    assert done.out


@pytest.mark.parametrize("name", GOOD)
def test_it_gives_json_and_takes_the_directory_last(name, call, filled, root, approval):
    if name == "approve":
        approval()
    base = [] if name == "init" else ["-C", root]
    done = call(*filled(GOOD[name]), "--json", *base)
    if name == "models install":
        cannot_be_had(done)
        return
    assert done.code == 0, done
    texts = done.out.splitlines() if name in STREAMS else [done.out]
    documents = [json.loads(text) for text in texts]
    assert documents
    assert all(documents)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_one_sentence_and_exit_code_2(name, call, filled, root):
    base = [] if name == "init" else ["-C", root]
    fails_in_one_sentence(call(*filled(WRONG[name]), *base))


@pytest.mark.parametrize("name", sorted(set(GOOD) - WITHOUT_A_WORKSPACE))
def test_a_directory_that_is_no_workspace_is_named(name, call, filled, tmp_path):
    done = call(*filled(GOOD[name]), "-C", tmp_path / "elsewhere")
    fails_in_one_sentence(done)
    assert "is not in a workspace" in done.err
    assert "agentx init" in done.err


@pytest.mark.parametrize("name", GOOD)
def test_its_help_says_what_it_does_and_what_works_everywhere(name, call):
    done = call(*name.split(), "--help")
    assert done.code == 0
    assert "--json work with every command" in " ".join(done.out.split())
    assert f"agentx {name}" in done.out


@pytest.mark.parametrize("name", GOOD)
def test_the_documentation_shows_it(name):
    text = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert f"### `agentx {name}" in text
    section = text.split(f"### `agentx {name}", 1)[1].split("\n##", 1)[0]
    assert f"$ agentx {name}" in section or f"$ agentx -C report {name}" in section


def test_a_directory_above_is_found(call, root):
    (root / "artifacts" / "deep").mkdir()
    done = call("status", "--json", "-C", root / "artifacts" / "deep")
    assert done.json["root"] == str(root)


def test_a_directory_that_is_not_there_is_named(call, tmp_path):
    done = call("status", "-C", tmp_path / "nowhere")
    fails_in_one_sentence(done)
    assert "nowhere" in done.err


def test_what_stands_behind_two_dashes_is_no_option(call, root):
    done = call("-C", root, "--json", "say", "--", "--json")
    assert done.json["event"]["data"]["body"]["text"] == "--json"


def test_every_command_stands_in_the_help_with_one_line(call):
    text = call("--help").out
    for entry in ENTRIES:
        assert re.search(rf"│ {entry.name} +{re.escape(entry.help[:40])}", text), entry


def test_no_command_is_the_help(call):
    assert call().out == call("--help").out


def test_an_unknown_command_and_an_unknown_option_are_told(call):
    done = call("stauts")
    fails_in_one_sentence(done)
    assert "'status'" in done.err
    fails_in_one_sentence(call("--nonsense"))
    fails_in_one_sentence(call("status", "-C"))
    fails_in_one_sentence(call("-C"))
