"""The command line inside an agent's run: it reads, and does not act as the user."""

import os
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.commands import COMMANDS
from agentx.settings import RUN, Settings
from agentx.trust.trust import Trust

ROOT = Path(__file__).parents[3]
ACTING = [
    ("say", "Never use tabs."),
    ("approve", "call-1"),
    ("run", "hello"),
    ("memory", "retire", "c-3"),
    ("memory", "--", "retire", "c-3"),
    ("agent", "mission", "set", "Readers come back."),
    ("mission", "set", "Readers come back."),
    ("--json", "memory", "pin", "c-3"),
    ("config", "set", "tools.isolation", "none"),
    ("restore", "outlook.md"),
    ("repair",),
    ("init", "another"),
]


@pytest.mark.parametrize("words", ACTING, ids=" ".join)
def test_what_acts_as_the_user_is_refused_inside_a_run(call, root, monkeypatch, words):
    """Whatever speaks for the user or changes something fails with one sentence, and changes nothing."""
    before = (root / "history.jsonl").read_bytes()
    monkeypatch.setenv(RUN, "a-run")
    done = call("-C", root, *words)
    assert done.code == 1
    assert "refused inside an agent's run" in done.err
    assert (root / "history.jsonl").read_bytes() == before


def test_a_request_for_help_lets_nothing_else_through(root, call, script, monkeypatch):
    """An option takes the word behind it, also one that looks like an option."""
    call("config", "set", "tools.approve", '["delete_file"]', "-C", root)
    deletes = {"tool_calls": [{"name": "delete_file", "arguments": {"path": "outlook.md"}}]}
    assert call("run", "delete it", "--model", script(deletes), "-C", root).code == 1
    before = (root / "history.jsonl").read_bytes()
    monkeypatch.setenv(RUN, "a-run")
    for words in (
        ("approve", "--reason", "--help"),
        ("say", "--", "--help"),
        ("memory", "add", "--until", "-h", "x"),
    ):
        done = call(*words, "-C", root)
        assert (done.code, "Usage: agentx" in done.out) == (0, True), done
        assert (root / "history.jsonl").read_bytes() == before, words


def test_what_reads_works_inside_a_run(call, root, monkeypatch):
    """Looking at the workspace, and help, work as they do in a terminal."""
    monkeypatch.setenv(RUN, "a-run")
    for words in [
        ("status",),
        ("memory",),
        ("memory", "list"),
        ("log",),
        ("config", "get", "model.name"),
        ("say", "--help"),
    ]:
        assert call("-C", root, *words).code == 0, words


def test_no_command_that_acts_is_marked_as_reading():
    """A command that is added later is refused inside a run until it is marked as reading."""
    reading = {name for name, command in COMMANDS.items() if command.reads}
    assert {"status", "memory list", "agent boot"} <= reading
    assert not {"say", "approve", "run", "config set", "memory retire", "agent mission set"} & reading


def test_a_command_of_an_agent_finds_the_refusal(tmp_path):
    """Without isolation, where nothing else stops it, a command that calls the program is refused."""
    settings = Settings(environ={"PATH": os.environ["PATH"]}, cache_dir=tmp_path)
    Workspace.create(tmp_path / "task", settings=settings).close()
    with (tmp_path / "task" / "agentx.toml").open("a") as file:
        file.write('\n[tools]\nisolation = "none"\nrun_command = true\n')
    Trust.read(tmp_path / "task", settings).grant("trusted", commands=True)
    with Workspace.open(tmp_path / "task", settings=settings) as ws:
        done = ws.tools.run_command(
            f"PYTHONPATH={ROOT} python -m agentx -C {tmp_path / 'task'} say 'Never use tabs.'"
        )
        assert "refused inside an agent's run" in done.output
        assert not ws.memory()
