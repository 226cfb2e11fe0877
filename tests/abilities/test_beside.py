"""Beside other agents: MCP over standard streams, transcripts, files of rules, what scripts record and call."""

import json
import shutil
from pathlib import Path

import pytest

from tests.abilities.conftest import PAYLOADS, CommandLine

RULE = "Never create a setup.cfg file."
EXAMPLES = Path(__file__).resolve().parents[1] / "agentx" / "importing" / "fixtures"
"""Small transcripts of each format, after its public description."""


# --- MCP ----------------------------------------------------------------------------------------------


def words(result) -> str:
    """The text of what a tool answered."""
    return "".join(part.text for part in result.content if part.type == "text")


@pytest.fixture
def ruled(agentx):
    """A workspace with a rule and a file."""
    agentx("say", RULE)
    agentx("tool", "write_file", "path=notes.md", "content=Parcels leave at noon.")
    return agentx


def test_an_agent_finds_tools_resources_and_prompts_over_mcp(ruled, mcp):
    """A host is offered eight tools, the state, the artifacts and memory as resources, and three prompts."""

    async def use(client):
        tools = {tool.name for tool in (await client.list_tools()).tools}
        resources = {str(one.uri) for one in (await client.list_resources()).resources}
        state = (await client.read_resource("agentx://state")).contents[0].text
        notes = (await client.read_resource("agentx://artifacts/notes.md")).contents[0].text
        prompts = {one.name for one in (await client.list_prompts()).prompts}
        boot = (await client.get_prompt("boot")).messages[0].content.text
        return tools, resources, state, notes, prompts, boot

    ((tools, resources, state, notes, prompts, boot),) = mcp(ruled, use=use)
    assert tools == {
        "context",
        "search",
        "remember",
        "settle",
        "check",
        "tasks",
        "history",
        "read_memory",
    }
    assert {"agentx://state", "agentx://artifacts/notes.md"} <= resources
    assert RULE in state
    assert "noon" in notes
    assert prompts == {"boot", "recovery", "hand_over"}
    assert RULE in boot


def test_an_agent_asks_memory_over_mcp(ruled, mcp):
    """Over MCP an agent gets context, passages, items with their evidence, events, and the gate's verdict."""
    item = ruled.json("memory", "list", "--kind", "constraint")[0]["id"]
    context, found, memory, history, denied, tasks = mcp(
        ruled,
        ("context", {"message": "write the settings"}),
        ("search", {"query": "when do parcels leave"}),
        ("read_memory", {"id": item}),
        ("history", {}),
        ("check", {"tool": "write_file", "arguments": {"path": "setup.cfg", "content": "x"}}),
        ("tasks", {}),
    )
    assert RULE in words(context)
    assert "noon" in words(found)
    assert RULE in words(memory)
    assert "notes.md" in words(history)
    assert "deny" in words(denied).lower()
    assert not tasks.is_error


def test_what_an_agent_remembers_over_mcp_counts_as_far_as_the_users_words_prove_it(ruled, mcp):
    """``remember`` with the user's own words has the user's trust; without them it is what the agent reports."""
    ruled("say", "By the way, invoices go out on the third of each month.")
    quote = "invoices go out on the third of each month"
    mcp(
        ruled,
        (
            "remember",
            {"text": "Invoices go out on the third of each month.", "kind": "knowledge", "quote": quote},
        ),
        (
            "remember",
            {"text": "Never use the blue paper.", "kind": "constraint", "quote": "never use the blue paper"},
        ),
    )
    items = {item["text"]: item for item in ruled.json("memory", "list", "--all")}
    proved = next(
        item for text, item in items.items() if "third of each month" in text and item["trust"] == "user"
    )
    assert proved
    told = items.get("Never use the blue paper.")
    assert told is None or (told["kind"], told["trust"]) == ("knowledge", "reported")


def test_a_wrong_call_over_mcp_is_an_error_in_words(ruled, mcp):
    """An unknown tool or a wrong argument is an error of the tool, and the server goes on."""
    wrong, after = mcp(ruled, ("read_memory", {"id": "c-999"}), ("context", {"message": "go on"}))
    assert wrong.is_error or "c-999" in words(wrong)
    assert RULE in words(after)


# --- transcripts --------------------------------------------------------------------------------------


def said(command):
    return [event["data"]["body"]["text"] for event in command.events("UserMessageSent")]


REAL = {
    "claude-code": "claude-code",
    "codex": "codex",
    "gemini": "gemini-cli",
}


@pytest.mark.parametrize("host", REAL)
def test_a_real_session_is_imported_once(shell, host):
    """A recorded session of a host becomes messages of the user and the agent, and a second import adds nothing."""
    files = sorted((PAYLOADS / REAL[host] / "sessions").glob("*.jsonl"))
    first = shell.json("import", host, *files, "--into", "memory")
    ws = shell.at(shell.cwd / "memory")
    expected = {
        "claude-code": "This is the second prompt.",
        "codex": "Split the work.",
        "gemini": "This is the alpha prompt.",
    }
    assert any(expected[host] in text for text in said(ws))
    assert all(event["at"].startswith("2026-11-28") for event in ws.events("UserMessageSent"))
    assert all(event["actor"].startswith("agent:") for event in ws.events("AgentMessageSent"))
    assert first["counted"]["user messages"] == len(said(ws))
    again = shell.json("import", host, *files, "--into", "memory")
    assert (again["events"], again["unchanged"]) == (0, len(files))
    assert ws("verify").code == 0


@pytest.mark.parametrize(
    ("host", "others"),
    [
        ("claude-code", ["task-notification", "local-command-stdout", "SUBTASK-R", "Request interrupted"]),
        ("codex", ["Never touch pyproject.toml", "environment_context", "turn_aborted"]),
        ("gemini", ["You have stopped calling tools", "loaded_context", "hook_context"]),
    ],
)
def test_in_a_real_session_only_what_the_user_typed_is_the_users(shell, host, others):
    """What hosts, tools and other agents put into a conversation is nobody's demand."""
    files = sorted((PAYLOADS / REAL[host] / "sessions").glob("*.jsonl"))
    shell("import", host, *files, "--into", "memory")
    text = "\n".join(said(shell.at(shell.cwd / "memory")))
    assert [one for one in others if one in text] == []


FORMATS = {
    "codex": ("codex.jsonl", "Never create a requirements.txt file; use pyproject.toml instead."),
    "gemini": ("session-gemini.json", None),
    "openhands": ("openhands.json", None),
    "swe-agent": ("swe-agent.traj", ""),
    "openai": ("openai.jsonl", "Never use tabs."),
    "aider": (".aider.chat.history.md", None),
}


@pytest.mark.parametrize("host", FORMATS)
def test_each_format_of_transcripts_is_read(shell, host):
    """Each documented format is imported with messages, calls and their sources; agents' words make no rule."""
    name, first = FORMATS[host]
    done = shell.json("import", host, EXAMPLES / name, "--into", "memory")
    ws = shell.at(shell.cwd / "memory")
    assert done["events"] > 0
    if first is not None:
        assert said(ws)[:1] == ([first] if first else [])
    else:
        assert said(ws)
    for event in ws.events("UserMessageSent", "AgentMessageSent", "ToolCallExecuted"):
        assert event["key"].startswith(f"import:{host}:")
    assert shell.json("import", host, EXAMPLES / name, "--into", "memory")["events"] == 0


@pytest.mark.xfail(
    strict=True, reason="a history of aider with the line ends of Windows loses the user's words"
)
def test_a_history_of_windows_keeps_the_users_words(shell, tmp_path):
    """A history of aider with the line ends of Windows is read as one with those of Unix."""
    text = (EXAMPLES / ".aider.chat.history.md").read_bytes()
    (tmp_path / "unix").mkdir()
    (tmp_path / "windows").mkdir()
    (tmp_path / "unix/.aider.chat.history.md").write_bytes(text)
    (tmp_path / "windows/.aider.chat.history.md").write_bytes(text.replace(b"\n", b"\r\n"))
    found = []
    for name in ("unix", "windows"):
        shell("import", "aider", tmp_path / name / ".aider.chat.history.md", "--into", name)
        found.append([one.strip() for one in said(shell.at(shell.cwd / name))])
    assert found[0]
    assert found[0] == found[1]


def test_transcripts_in_the_usual_places_are_found(shell, tmp_path):
    """``import discover`` lists what hosts left in the user's home, and imports nothing."""
    folder = tmp_path / "home/.claude/projects/-home-u-parcel"
    folder.mkdir(parents=True)
    shutil.copy(next((PAYLOADS / "claude-code/sessions").glob("675b*.jsonl")), folder)
    home = CommandLine(shell.program, shell.cwd, {**shell.environ, "HOME": str(tmp_path / "home")})
    assert "claude-code" in home("import", "discover").out
    assert list(shell.cwd.iterdir()) == []


def test_a_recap_tells_what_was_learned(shell):
    """``recap`` shows the user's rules of imported sessions with their sentences."""
    shell("import", "openai", EXAMPLES / "openai.jsonl", "--into", "memory")
    assert "Never use tabs." in shell.at(shell.cwd / "memory")("recap").out


# --- files of rules -----------------------------------------------------------------------------------


def test_rules_are_exported_between_marks_and_the_rest_of_the_file_stays(agentx):
    """``export agents-md`` writes the active rules; ``--check`` says whether the file is what memory says."""
    agentx.write("artifacts/AGENTS.md", "# Ours\n\nKeep this line.\n")
    agentx("say", RULE)
    agentx("export", "agents-md")
    text = (agentx.cwd / "artifacts/AGENTS.md").read_text()
    assert text.startswith("# Ours\n\nKeep this line.\n")
    assert RULE in text
    assert agentx("export", "agents-md", "--check").code == 0
    agentx("say", "Never create a tox.ini file.")
    assert agentx("export", "agents-md", "--check", ok=False).code == 1


@pytest.mark.parametrize(
    ("kind", "path"), [("claude-md", "CLAUDE.md"), ("cursor-rules", ".cursor/rules/agentx.mdc")]
)
def test_rules_are_exported_for_other_agents(agentx, kind, path):
    """``export`` writes the files that Claude Code and Cursor read."""
    agentx("say", RULE)
    agentx("export", kind)
    (file,) = [one for one in (agentx.cwd / path, agentx.cwd / "artifacts" / path) if one.exists()]
    assert RULE in file.read_text()


def test_rules_of_a_file_are_proposals_until_the_user_accepts_them(agentx):
    """``import rules`` proposes what a file demands; accepted, it is enforced."""
    agentx.write("artifacts/CLAUDE.md", "- Never create a setup.cfg file.\n- The shop runs on port 80.\n")
    agentx("import", "rules", "artifacts/CLAUDE.md")
    assert agentx.json("memory", "list", "--kind", "constraint") == []
    assert agentx("tool", "write_file", "path=setup.cfg", "content=x").code == 0
    agentx("tool", "delete_file", "path=setup.cfg")
    agentx("memory", "review", "--accept", "CLAUDE.md")
    assert agentx("tool", "write_file", "path=setup.cfg", "content=x", ok=False).code == 4


# --- scripts and other agents -------------------------------------------------------------------------


def test_what_another_agent_did_is_recorded_once(agentx):
    """``record --lines`` takes messages and calls of an agent; what has an ``id`` is recorded once."""
    lines = "".join(
        json.dumps(line) + "\n"
        for line in (
            {"role": "assistant", "content": "I look first.", "id": "m-1"},
            {"role": "tool", "tool": "Bash", "arguments": {"command": "ls"}, "output": "a.md", "id": "c-1"},
        )
    )
    agentx("record", "--lines", "--as", "codex", stdin=lines)
    agentx("record", "--lines", "--as", "codex", stdin=lines)
    (message,) = agentx.events("AgentMessageSent")
    (call,) = agentx.events("ToolCallExecuted")
    assert {message["actor"], call["actor"]} == {"agent:codex"}
    assert call["data"]["arguments"]["command"] == "ls"


def test_a_script_cannot_record_words_of_the_user(agentx):
    """``record`` has no role for the user."""
    assert agentx("record", "--role", "user", "Never use tabs.", ok=False).code != 0
    assert agentx.events("UserMessageSent") == []


def test_a_script_calls_a_tool_through_the_gate(agentx):
    """``tool`` lists and describes tools, takes arguments as JSON, and acts as a named agent through the rules."""
    agentx("say", RULE)
    assert "write_file" in agentx("tool").out
    assert "content" in agentx("tool", "write_file", "--describe").out
    agentx("tool", "write_file", "--arguments", '{"path": "a.md", "content": "A."}', "--as", "ci")
    assert agentx.events("ToolCallExecuted")[-1]["actor"] == "agent:ci"
    assert agentx("tool", "write_file", "path=setup.cfg", "content=x", ok=False).code == 4
    assert agentx("tool", "no_such_tool", ok=False).code != 0


def test_a_watch_records_what_others_changed(agentx):
    """``watch --once`` records the edits of people and editors as events."""
    agentx.write("artifacts/notes.md", "Mine.\n")
    agentx("watch", "--once")
    assert agentx.events("ArtifactChanged")[-1]["data"]["changes"][0]["path"] == "notes.md"


def test_a_check_in_continuous_integration_has_a_status(agentx):
    """``check`` runs the configured checks, records the results, and exits with 0 only if all pass."""
    agentx("config", "set", "checks.tests.command", "python -c 'raise SystemExit(1)'")
    assert agentx("check", ok=False).code == 1
    assert agentx.events("ToolCallExecuted")[-1]["data"]["status"] == "FAILED"
    agentx("config", "set", "checks.tests.command", "python -c 'raise SystemExit(0)'")
    assert agentx("check").code == 0
