"""An odd name of a blob and a lost file of settings are said, and stop nothing: black boxes over the command line."""

import io
import json

import pytest

from agentx import Workspace
from agentx.cli.main import main
from agentx.storage.events.types import AgentMessageSent, Body, Draft, ToolCallExecuted, UserMessageSent

ODD = [
    "../../../../etc/passwd",
    "/etc/passwd",
    "0" * 40,
    "x",
    "\x00",
    "a" * 5_000,
    "E" * 40,
    "ab/" + "c" * 38,
    ".",
]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTX_NO_SERVER", "1")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with Workspace.create(tmp_path / "w") as ws:
        ws.say("Always label the tapes in the kitchen.")
    return tmp_path / "w"


def call(root, capsys, *words):
    code = main(["-C", str(root), *words])
    out, err = capsys.readouterr()
    return code, out + err


@pytest.mark.parametrize("name", ODD)
def test_an_event_that_names_an_odd_blob_ends_no_search(root, capsys, name):
    body = Body("Extract about the kitchen.", name, 10)
    with Workspace.open(root) as ws:
        for actor, data in (
            ("agent:other", AgentMessageSent(body=body, final=True, model="")),
            ("user", UserMessageSent(body=body)),
            ("agent:other", ToolCallExecuted(call_id="t-1", tool="Read", status="SUCCEEDED", output=body)),
        ):
            ws.record(Draft(data=data, actor=actor))
    for words in (("search", "kitchen"), ("log",), ("context", "kitchen"), ("say", "Hello."), ("status",)):
        code, told = call(root, capsys, *words)
        assert code == 0, (words, told)
        assert "root:" not in told
    found = json.loads(call(root, capsys, "--json", "search", "kitchen")[1])
    assert "Extract about the kitchen" in json.dumps(found)


def test_a_lost_file_of_settings_is_a_finding_with_a_remedy(root, capsys):
    (root / "agentx.toml").unlink()
    code, told = call(root, capsys, "verify")
    assert code != 0
    assert "agentx.toml" in told
    assert "git checkout -- agentx.toml" in told
    assert "No damage" not in told


def test_settings_that_never_were_are_no_damage(root, capsys):
    code, told = call(root, capsys, "verify")
    assert code == 0, told
