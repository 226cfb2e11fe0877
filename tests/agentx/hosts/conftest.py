"""A project of Git with a workspace beside it, and sessions of hosts in it."""

import itertools
import json
import subprocess
from pathlib import Path

import msgspec
import pytest

from agentx import Workspace
from agentx.hosts.action import HostReply
from agentx.hosts.host import load
from agentx.hosts.served.responses import SentAction
from agentx.hosts.served.serving import respond
from agentx.hosts.setup.project import make_beside
from tests.agentx.server.conftest import client, place, server  # noqa: F401 - fixtures

FIXTURES = Path(__file__).parent / "fixtures"
NUMBERS = itertools.count()


def fixture(host):
    """The recorded payloads of a host, with their version and source."""
    return json.loads((FIXTURES / f"{host.replace('-', '_')}.json").read_text("utf-8"))


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "my project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "pay.py").write_text("def pay():\n    return 1\n")
    (folder / ".gitignore").write_text("build/\n")
    subprocess.run(["git", "init", "-q", "."], cwd=folder, check=True)
    return folder


@pytest.fixture
def ws(project, lexical):
    """The project's workspace, open."""
    with Workspace.open(make_beside(project, lexical), settings=lexical) as opened:
        yield opened


class HostSession:
    """A session of a host, whose hooks are answered by an open workspace."""

    def __init__(self, ws, project, host, session):
        self.ws, self.project, self.host = ws, project, load(host)
        self.base = {
            "session_id": session,
            "cwd": str(project),
            "transcript_path": str(project.parent / "log.jsonl"),
        }
        self.calls = itertools.count(1)
        self.sharing = ""

    def __call__(self, event, **fields):
        """Call one hook; return what the host is given: its decoded standard output."""
        payload = {**self.base, "hook_event_name": event, **fields}
        action = self.host.read(payload, {})
        action.sharing = self.sharing
        sent = msgspec.convert(action.as_dict(), SentAction)
        reply = respond(
            self.ws, sent, f"key-{next(NUMBERS)}", {"AGENTX_STATE_DIR": str(self.project.parent / "st")}
        )
        printed, status = self.host.write(action, HostReply.of(reply))
        assert status == 0
        return json.loads(printed) if printed else {}

    def call(self, tool, arguments, *, result=None, error=None, do=None):
        """Let a tool run: before it, and after it unless it is not allowed; return the answer of before."""
        named = {"tool_name": tool, "tool_input": arguments, "tool_use_id": f"toolu_{next(self.calls)}"}
        answer = self("PreToolUse", **named)
        if answer.get("hookSpecificOutput", {}).get("permissionDecision"):
            return answer
        if do is not None:
            do()
        if error is not None:
            self("PostToolUseFailure", **named, error=error)
        else:
            self("PostToolUse", **named, tool_response=result or {})
        return answer


@pytest.fixture
def session(ws, project):
    """Begin a session of a host."""

    def begin(host="claude-code", session="s-1"):
        return HostSession(ws, project, host, session)

    return begin


def context(answer):
    """The text for the model in an answer of Claude Code."""
    return answer.get("hookSpecificOutput", {}).get("additionalContext", "")


def decision(answer):
    """The decision about a tool in an answer of Claude Code, and the reason."""
    found = answer.get("hookSpecificOutput", {})
    return found.get("permissionDecision", ""), found.get("permissionDecisionReason", "")
