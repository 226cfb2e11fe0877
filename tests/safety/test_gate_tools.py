"""What the gate sees of the files that tools of others write, whatever their arguments are called."""

import json
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.hosts.hook import respond
from agentx.hosts.host import load
from agentx.settings import read_settings
from agentx.trust.trust import Trust

SHARES_WORKSPACES = True
BANNED = "requirements.txt"
RULES = (
    "Never create a requirements.txt file.",
    "Never edit migrations/.",
    "Never write a .md file in docs/.",
)
PAYLOADS = Path(__file__).parents[1] / "payloads"


def made(folder, more=""):
    """Return an open workspace with the rules, and with more in its settings."""
    with Workspace.create(folder, title="A task") as ws:
        for rule in RULES:
            ws.say(rule)
    with (folder / "agentx.toml").open("a", encoding="utf-8") as file:
        file.write(more)
    Trust.read(folder, read_settings()).grant("trusted", commands=True)
    return Workspace.open(folder)


@pytest.fixture(scope="module")
def ruled(tmp_path_factory):
    with made(tmp_path_factory.mktemp("gate") / "task") as ws:
        yield ws


def verdict(ws, tool, arguments, **more):
    return ws.gates.before("", tool=tool, arguments=arguments, **more).verdict


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("save", {"path": BANNED, "content": "flask"}),
        ("export", {"output_path": BANNED}),
        ("export", {"dest": BANNED}),
        ("export", {"files": [{"path": BANNED}]}),
        ("process", {"args": ["-o", BANNED]}),
        ("process", {"args": [f"--out={BANNED}"]}),
        ("process", {"a": {"b": [{"c": [BANNED]}]}}),
        ("render", {"outputFile": f"./{BANNED}"}),
        ("render", {"into": BANNED.upper()}),
        ("apply", {"changes": {BANNED: "flask"}}),
        ("move", {"src": "a.txt", "dst": BANNED}),
        ("get_and_save", {"where": BANNED}),
        ("mcp__fs__write_file", {"filename": BANNED}),
        ("export", {"dest": "migrations/0002.py"}),
        ("convert", {"from": "a.html", "into": "docs/a.md"}),
    ],
)
def test_an_argument_that_is_a_path_under_a_rule_counts_as_written(ruled, tool, arguments):
    assert verdict(ruled, tool, arguments) == "deny"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read_text_file", {"path": BANNED}),
        ("mcp__fs__get_file_contents", {"path": BANNED}),
        ("viewFile", {"p": BANNED}),
        ("search", {"pattern": BANNED}),
        ("list_directory", {"dir": "migrations/"}),
        ("Read", {"file_path": BANNED}),
        ("Grep", {"pattern": "x", "path": "migrations/"}),
        ("send", {"message": BANNED}),
        ("send", {"subject": "about docs/a.md"}),
        ("create_issue", {"title": "Fix migrations", "body": "see migrations/0001.py"}),
        ("download", {"url": f"https://example.org/{BANNED}"}),
        ("export", {"dest": "out.txt"}),
        ("write_file", {"path": "app.py", "content": BANNED}),
    ],
)
def test_what_is_read_or_only_said_is_allowed(ruled, tool, arguments):
    assert verdict(ruled, tool, arguments).startswith("allow")


def test_the_settings_declare_what_a_tool_writes(tmp_path):
    more = '\n[tools.export]\nwrites = ["dest"]\n\n[tools.announce]\nwrites = []\n'
    with made(tmp_path / "task", more) as ws:
        assert verdict(ws, "export", {"dest": BANNED}) == "deny"
        assert verdict(ws, "mcp__office__export", {"dest": {"files": [BANNED]}}) == "deny"
        assert verdict(ws, "export", {"about": BANNED, "dest": "a.txt"}).startswith("allow")
        assert verdict(ws, "announce", {"subject": BANNED}).startswith("allow")
        assert verdict(ws, "another", {"subject": BANNED}) == "deny"


def test_a_caller_declares_it_for_one_call(ruled):
    assert verdict(ruled, "look", {"at": BANNED}, writes=["at"]) == "deny"
    assert verdict(ruled, "export", {"about": BANNED}, writes=["dest"]).startswith("allow")
    assert verdict(ruled, "export", {"about": BANNED}, writes=[]).startswith("allow")


def test_the_gate_of_a_graph_takes_declarations(ruled):
    pytest.importorskip("langgraph")
    from langchain_core.messages import AIMessage
    from langchain_core.tools import tool
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.prebuilt import ToolNode

    from agentx.orchestrators.langgraph import gate

    @tool
    def read_into(dest: str, about: str = "") -> str:
        """Read something into a file."""
        return f"wrote {dest} {about}"

    def results(**declared):
        node = ToolNode([read_into], wrap_tool_call=gate(ruled, **declared))
        graph = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
        calls = [
            {"name": "read_into", "args": {"dest": "a.txt", "about": BANNED}, "id": "1"},
            {"name": "read_into", "args": {"dest": BANNED}, "id": "2"},
        ]
        found = graph.invoke({"messages": [AIMessage("", tool_calls=calls)]})["messages"][1:]
        return [message.text.startswith("Denied") for message in found]

    assert results(writes={"read_into": "dest"}) == [False, True]
    assert results() == [False, False]  # its name says that it reads


def test_a_hook_denies_a_tool_of_a_server(ruled, tmp_path):
    payload = json.loads((PAYLOADS / "claude-code" / "PreToolUse-Bash.json").read_text("utf-8"))
    environ = {"AGENTX_NO_SERVER": "1", "AGENTX_STATE_DIR": str(tmp_path), "HOME": str(tmp_path)}
    sent = payload | {
        "cwd": str(ruled.root),
        "tool_name": "mcp__office__export",
        "tool_input": {"files": [{"name": BANNED}]},
    }
    printed, _ = respond(load("claude-code"), json.dumps(sent).encode(), environ)
    assert json.loads(printed)["hookSpecificOutput"]["permissionDecision"] == "deny"
