"""What holds for every command: it works from a shell, takes -C and --json anywhere, and fails in one sentence."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from agentx import Workspace
from agentx.cli.app import build
from agentx.cli.commands import COMMANDS, MOVED, TOP, find
from agentx.fleet import place as places_of_fleet
from agentx.pipelines.runner import Runner
from agentx.scheduling import schedules
from agentx.settings import read_settings
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.synthesis.model.scripted import ScriptedModel
from tests.write_cli_reference import PAGE, written

ROOT = Path(__file__).resolve().parents[3]

GOOD = {
    "init": ["init", "{new}", "--title", "New"],
    "add": ["add", "{file}", "--to", "notes"],
    "run": ["run", "What is in it?", "--model", "{script}"],
    "chat": ["chat"],
    "say": ["say", "Revenue matters."],
    "done": ["done", "send_reminder", "patient=Ann"],
    "schedule heartbeat": ["schedule", "heartbeat"],
    "approve": ["approve", "call_1_1"],
    "pipeline status": ["pipeline"],
    "pipeline run": ["pipeline", "run", "{pipeline}", "--model", "{script}"],
    "pipeline redo": ["pipeline", "redo", "s"],
    "pipeline verify": ["pipeline", "verify"],
    "pipeline amend": ["pipeline", "amend", "a.md", "--reason", "It was wrong."],
    "pipeline plan": ["pipeline", "plan", "{pipeline}"],
    "pipeline schema": ["pipeline", "schema"],
    "pipeline new": ["pipeline", "new", "{new}"],
    "pipeline matrix": ["pipeline", "matrix", "{pipeline}"],
    "pipeline graph": ["pipeline", "graph", "{pipeline}"],
    "status": ["status"],
    "context": ["context", "the outlook", "--explain"],
    "agent boot": ["agent", "boot", "--agent", "writer"],
    "search": ["search", "revenue", "-k", "2"],
    "log": ["log", "-n", "3"],
    "schedule audit": ["schedule", "audit", "--since", "today"],
    "diff": ["diff", "2", "--patch"],
    "bisect": ["bisect", "--item", "c-3", "--all"],
    "inspect": ["inspect", "--no-open"],
    "memory scribe": ["memory", "scribe", "--pending"],
    "agent dispatch": ["agent", "dispatch", "post the release notes"],
    "agent mission list": ["agent", "mission"],
    "agent mission set": ["agent", "mission", "set", "--agent", "writer", "Readers come back."],
    "memory list": ["memory", "list", "--all"],
    "memory show": ["memory", "show", "c-3"],
    "memory add": ["memory", "add", "Use British English.", "--until", "June"],
    "memory edit": ["memory", "edit", "c-3", "Never create a setup.py file."],
    "memory check": ["memory", "check", "c-3", "--try"],
    "memory write-checks": ["memory", "write-checks", "--all"],
    "memory retire": ["memory", "retire", "c-3"],
    "memory pin": ["memory", "pin", "c-3"],
    "memory merge": ["memory", "merge", "{rule}", "{other}"],
    "memory review": ["memory", "review", "--accept", "c-5"],
    "memory explain": ["memory", "explain", "never use tabs"],
    "agent cognition report": ["agent", "cognition"],
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
    "agent capability list": ["agent", "capability"],
    "agent capability add": ["agent", "capability", "add", "shell", "--command", "echo here"],
    "agent capability check": ["agent", "capability", "check"],
    "flow backtest": ["flow", "backtest", "--since", "2", "--dry-run"],
    "agent direct": ["agent", "direct", "--now"],
    "schedule list": ["schedule"],
    "schedule add": ["schedule", "add", "0 8 * * 1", "Read the mail.", "--zone", "Europe/Berlin"],
    "schedule remove": ["schedule", "remove", "news"],
    "schedule next": ["schedule", "next", "--most", "2"],
    "schedule run-due": ["schedule", "run-due"],
    "schedule daemon": ["schedule", "daemon", "--once"],
    "fleet status": ["fleet", "status"],
    "fleet init": ["fleet", "init", "--remote", "{new}/{{workspace}}.git"],
    "fleet submit": ["fleet", "submit", "Summarise it."],
    "fleet worker": ["fleet", "worker", "--once"],
    "fleet drain": ["fleet", "drain"],
    "fleet prune": ["fleet", "prune"],
    "fleet search": ["fleet", "search", "revenue"],
    "fleet index": ["fleet", "index"],
    "memory maintain": ["memory", "maintain", "--dry-run"],
    "import discover": ["import", "--discover"],
    "import claude-code": ["import", "claude-code", "{file}"],
    "import codex": ["import", "codex", "{file}"],
    "import gemini": ["import", "gemini", "{file}"],
    "import openhands": ["import", "openhands", "{file}"],
    "import swe-agent": ["import", "swe-agent", "{file}"],
    "import openai": ["import", "openai", "{file}"],
    "import aider": ["import", "aider", "{file}"],
    "recap": ["recap"],
    "undo": ["undo"],
    "restore": ["restore", "outlook.md", "--at", "2"],
    "follow": ["follow"],
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
    "serve": ["serve", "--status"],
    "mcp": ["mcp", "--tokens"],
    "import rules": ["import", "rules", "{file}"],
    "export show": ["export"],
    "export agents-md": ["export", "agents-md"],
    "export claude-md": ["export", "claude-md", "--max-tokens", "500"],
    "export cursor-rules": ["export", "cursor-rules"],
    "watch": ["watch", "--once"],
    "tool": ["tool", "read_file", "path=outlook.md", "--as", "ci"],
    "check": ["check", "outlook.md"],
    "record": ["record", "--role", "assistant", "The outlook is written."],
    "install": ["install", "claude-code", "--yes"],
    "uninstall": ["uninstall", "claude-code", "--yes"],
}

WRONG = {
    "trust allow": ["trust", "--show", "--yes"],
    "trust list": ["trust", "list", "superfluous"],
    "trust issue": ["trust", "issue", "--for", "0"],
    "trust key": ["trust", "key", "--add", "nonsense"],
    "init": ["init", "{file}"],
    "add": ["add", "not-there.txt"],
    "run": ["run", "x", "--max-steps", "0"],
    "chat": ["chat", "--session", ""],
    "say": ["say", "  "],
    "done": ["done", "--not", "send_reminder", "patient=Nobody"],
    "schedule heartbeat": ["schedule", "heartbeat", "now"],
    "approve": ["approve", "call_9"],
    "pipeline status": ["pipeline", "status", "--name", "letters"],
    "pipeline run": ["pipeline", "run", "{file}"],
    "pipeline redo": ["pipeline", "redo"],
    "pipeline verify": ["pipeline", "verify", "--name", "letters"],
    "pipeline amend": ["pipeline", "amend", "a.md"],
    "pipeline plan": ["pipeline", "plan", "{pipeline}", "--step", "t"],
    "pipeline schema": ["pipeline", "schema", "{pipeline}"],
    "pipeline new": ["pipeline", "new", "not a name"],
    "pipeline matrix": ["pipeline", "matrix", "not-there.yaml"],
    "pipeline graph": ["pipeline", "graph", "{file}"],
    "import discover": ["import", "discover", "superfluous"],
    "import claude-code": ["import", "claude-code", "not-there.jsonl"],
    "import codex": ["import", "codex", "not-there.jsonl"],
    "import gemini": ["import", "gemini", "not-there.jsonl"],
    "import openhands": ["import", "openhands", "not-there.jsonl"],
    "import swe-agent": ["import", "swe-agent", "not-there.jsonl"],
    "import openai": ["import", "openai", "not-there.jsonl"],
    "import aider": ["import", "aider", "not-there.jsonl"],
    "recap": ["recap", "superfluous"],
    "status": ["status", "superfluous"],
    "context": ["context", "--tier", "9"],
    "agent boot": ["agent", "boot", "--as-of", "nonsense"],
    "search": ["search", " "],
    "log": ["log", "--type", "Nonsense"],
    "schedule audit": ["schedule", "audit", "--since", "nonsense"],
    "diff": ["diff", "nonsense"],
    "bisect": ["bisect", "--item", "c-99"],
    "inspect": ["inspect", "nowhere", "--no-open"],
    "memory scribe": ["memory", "scribe", "--due", "--keep"],
    "agent dispatch": ["agent", "dispatch", " "],
    "agent mission list": ["agent", "mission", "all"],
    "agent mission set": ["agent", "mission", "set", " "],
    "memory list": ["memory", "list", "--kind", "nonsense"],
    "memory show": ["memory", "show", "c-99"],
    "memory add": ["memory", "add", "x", "--kind", "hot_issue"],
    "memory edit": ["memory", "edit", "c-3", " "],
    "memory check": ["memory", "check", "c-3", "--mode", "never"],
    "memory write-checks": ["memory", "write-checks", "c-3"],
    "memory retire": ["memory", "retire", "c-3", "c-99"],
    "memory pin": ["memory", "pin"],
    "memory merge": ["memory", "merge", "c-3", "c-5"],
    "memory review": ["memory", "review"],
    "memory explain": ["memory", "explain", "--event", "2"],
    "memory maintain": ["memory", "maintain", "--dry-run", "--undo"],
    "agent cognition report": ["agent", "cognition", "report", "--session", "nowhere"],
    "flow list": ["flow", "list", "all"],
    "flow add": ["flow", "add", "publish a post"],
    "flow show": ["flow", "show", "f-99"],
    "flow edit": ["flow", "edit", "{flow}"],
    "flow retire": ["flow", "retire", "{flow}", "c-3"],
    "flow check": ["flow", "check", " "],
    "gate lessons": ["gate", "lessons", "--all"],
    "gate pre": ["gate", "pre", "x", "--arguments", "[1]"],
    "gate post": ["gate", "post", "x"],
    "agent capability list": ["agent", "capability", "list", "b-1"],
    "agent capability add": ["agent", "capability", "add", "shell"],
    "agent capability check": ["agent", "capability", "check", "c-3"],
    "flow backtest": ["flow", "backtest", "--since", "nonsense"],
    "agent direct": ["agent", "direct", "--now", "--why"],
    "schedule list": ["schedule", "list", "all"],
    "schedule add": ["schedule", "add", "0 0 31 2 *", "Rest."],
    "schedule remove": ["schedule", "remove", "mail"],
    "schedule next": ["schedule", "next", "mail"],
    "schedule run-due": ["schedule", "run-due", "--most", "-1"],
    "schedule daemon": ["schedule", "daemon", "{file}"],
    "fleet status": ["fleet", "status", "--tenant", "nobody"],
    "fleet init": ["fleet", "init", "--remote", "no-pattern"],
    "fleet submit": ["fleet", "submit", "x", "--tenant", "nobody"],
    "fleet worker": ["fleet", "worker", "--tenant", "nobody"],
    "fleet drain": ["fleet", "drain", "--tenant", "nobody"],
    "fleet prune": ["fleet", "prune", "--tenant", "nobody"],
    "fleet search": ["fleet", "search", " "],
    "fleet index": ["fleet", "index", "--publish", "--vectors"],
    "undo": ["undo", "--at", "3"],
    "restore": ["restore", "outlook.md", "--at", "999"],
    "follow": ["follow", "not-there"],
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
    "serve": ["serve", "now"],
    "mcp": ["mcp", "--profile", "everything"],
    "import rules": ["import", "rules", "not-there.md"],
    "export show": ["export", "show", "CLAUDE.md"],
    "export agents-md": ["export", "agents-md", "--check", "--keep"],
    "export claude-md": ["export", "claude-md", "--max-tokens", "1"],
    "export cursor-rules": ["export", "cursor-rules", "{file}"],
    "watch": ["watch", "artifacts"],
    "tool": ["tool", "write_file", "path"],
    "check": ["check", "nonsense"],
    "record": ["record", "--role", "user", "Always obey."],
    "install": ["install", "emacs", "--yes"],
    "uninstall": ["uninstall", "emacs", "--yes"],
}

WITHOUT_A_WORKSPACE = {
    "init",
    "memory explain",
    "import discover",
    "models list",
    "models install",
    "serve",
    "doctor",
    "trust list",
    "trust key",
    "install",
    "uninstall",
    "fleet init",
    "fleet status",
    "fleet worker",
    "fleet drain",
    "fleet prune",
    "fleet search",
    "fleet index",
} | {f"pipeline {name}" for name in ("plan", "schema", "new", "matrix", "graph")}
SILENT = {"chat", "watch"}
"""Says nothing of an empty pipe, and nothing where nothing changed."""

STREAMS = {"run", "log"}

RESTS_ON_ONE = (["pipeline", "redo"], ["pipeline", "amend"], ["pipeline", "verify"])
"""These need a pipeline that has been run."""


@pytest.fixture
def filled(root, trusted, tmp_path, script, monkeypatch, environment):
    """Words of a command line with their places filled; a model is not to be had."""
    folders = {"AGENTX_CACHE_DIR": str(tmp_path / "cache"), "AGENTX_STATE_DIR": str(tmp_path / "state")}
    for name, value in {**folders, "PIP_NO_INDEX": "1", "AGENTX_SERVER_IDLE_S": "0.1"}.items():
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
        if words[:2] == ["memory", "merge"]:
            with Workspace.open(root) as ws:
                texts = "Round prices up.", "Round all prices up, please."
                places["rule"], places["other"] = (ws.remember("rule", text).id for text in texts)
        if words[:2] in RESTS_ON_ONE and words in GOOD.values():
            with Workspace.open(root) as ws:
                played = ScriptedModel(places["script"].removeprefix("script:"))
                Runner(ws.engine, Path(places["pipeline"]), lambda _name: played).run()
            (root / "artifacts" / "a.md").write_text("It is otherwise.\n")
        if words[0] == "fleet" and words[1] != "init":
            place = str(tmp_path / "{workspace}.git")
            places_of_fleet.initialise(read_settings(), "", place, index=str(tmp_path / "published"))
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
    assert set(GOOD) == set(WRONG) == set(COMMANDS)


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
    assert done.out or name in SILENT


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
    texts = done.out.splitlines() if name in {*STREAMS, *SILENT} else [done.out]
    documents = [json.loads(text) for text in texts]
    assert documents or name in SILENT
    assert all(documents)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use_is_one_sentence_and_exit_code_2(name, call, filled, root):
    base = [] if name == "init" else ["-C", root]
    done = call(*filled(WRONG[name]), *base)
    fails_in_one_sentence(done, code=2)
    assert "Traceback" not in done.err


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
def test_its_help_fits_a_screen_and_shows_an_example_that_calls_it(name, call, monkeypatch):
    """80 columns; the longest commands have as many options as a screen has lines."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = call(*name.split(), "--help").out
    assert len(shown.splitlines()) <= 45
    example = COMMANDS[name].example
    assert f"Example: agentx {example}" in " ".join(shown.split())
    words = shlex.split(example)
    assert find(words) == name
    command, context = get_command(build(words)), None
    while getattr(command, "commands", None):
        context = command.make_context("agentx", words, context, resilient_parsing=False)
        _, command, words = command.resolve_command(context, [*context._protected_args, *context.args])
    command.make_context(name, words, context)


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_spelling_works_and_names_the_new_one(old, new, call, root):
    done = call(old, "--help", "-C", root)
    assert done.code == 0
    assert f"`agentx {old}` is now `agentx {new}`" in done.err
    assert f"Usage: agentx {new}" in done.out


def test_an_old_spelling_keeps_its_arguments(call, root):
    old = call("agent", "boot", "--as-of", "1", "--json", "-C", root)
    new = call("agent", "boot", "--as-of", "1", "--json", "-C", root)
    assert (old.code, old.json) == (0, new.json)
    assert new.err == ""


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


def test_the_help_lists_the_daily_commands_first_and_at_most_46(call):
    text = call("--help").out
    lines = [(word, line) for rows in TOP.values() for word, line in rows.items()]
    assert len(next(iter(TOP.values()))) == 13
    assert len(lines) <= 46
    assert re.findall(r"^│ (\w+) ", text, re.MULTILINE) == [word for word, _ in lines]
    for word, line in lines:
        assert re.search(rf"│ {word} +{re.escape(line)}", text), word
    assert {name.split()[0] for name in COMMANDS} == {word for word, _ in lines}


def test_the_reference_is_what_the_commands_say():
    assert PAGE.read_text("utf-8") == written(), "run `python -m tests.write_cli_reference`"


def test_no_command_is_the_help(call):
    assert call().out == call("--help").out


def test_an_unknown_command_and_an_unknown_option_are_told(call):
    done = call("stauts")
    fails_in_one_sentence(done)
    assert "'status'" in done.err
    fails_in_one_sentence(call("--nonsense"))
    fails_in_one_sentence(call("status", "-C"))
    fails_in_one_sentence(call("-C"))
