"""Each format: its messages, calls, edits, tokens and what is nobody's word, from fixtures after the public schemas."""

from pathlib import Path

import pytest

from agentx import Workspace
from agentx.importing.hosts import FORMATS
from agentx.importing.transcripts import import_transcripts
from agentx.storage.events.transcript_events import TranscriptImported
from agentx.storage.events.types import ToolCallExecuted, UserMessageSent

FIXTURES = Path(__file__).parent / "fixtures"


@pytest.fixture
def imported(tmp_path):
    def run(host, *names):
        with Workspace.create(tmp_path / "ws") as ws:
            report = import_transcripts(ws.engine, host, [FIXTURES / name for name in names], home=tmp_path)
            again = import_transcripts(ws.engine, host, [FIXTURES / name for name in names], home=tmp_path)
            assert again.events == 0
            assert again.unchanged == report.files
            assert ws.rebuild().state_digest == ws.state.digest
            return Told(ws, report)

    return run


class Told:
    """What an import left in a workspace."""

    def __init__(self, ws, report):
        self.report = report
        self.events = list(ws.events())
        self.said = [event.data.body.text for event in self.events if isinstance(event.data, UserMessageSent)]
        calls = (event.data for event in self.events if isinstance(event.data, ToolCallExecuted))
        self.calls = [(call.tool, call.status, call.exit_code) for call in calls]
        files = ws.engine.git.manifest()
        self.files = {path: ws.engine.git.repo.read_blob(files[path].oid).decode() for path in files}
        self.told = [event.data for event in self.events if isinstance(event.data, TranscriptImported)]
        self.memory = {item.text for item in ws.memory()}
        self.issues = [item.text for item in ws.memory(kind="hot_issue")]
        self.times = {event.at[:10] for event in self.events if event.run}

    def usage(self):
        return [
            (one.prompt_tokens, one.completion_tokens, round(one.cost_usd, 4))
            for told in self.told
            for one in told.usage
        ]


def test_codex(imported):
    told = imported("codex", "codex.jsonl")
    assert told.said == ["Never create a requirements.txt file; use pyproject.toml instead."]
    assert told.calls == [
        ("shell", "FAILED", 1),
        ("apply_patch", "SUCCEEDED", None),
        ("apply_patch", "SUCCEEDED", None),
        ("exec_command", "DENIED", None),
    ]
    assert told.files == {"src/pay.py": "def pay():\n    return 2\n"}
    assert told.report.unknown == {"world_state": 1}
    assert [usage[:2] for usage in told.usage()] == [(1500, 70)]
    assert any("test_retry" in issue for issue in told.issues)
    assert told.times == {"2026-01-12"}


@pytest.mark.parametrize("name", ["session-gemini.json", "session-gemini.jsonl"])
def test_gemini_cli(imported, name):
    told = imported("gemini", name)
    assert told.said == ["From now on, use British English."]
    assert told.calls == [
        ("write_file", "SUCCEEDED", None),
        ("replace", "SUCCEEDED", None),
        ("run_shell_command", "DENIED", None),
    ]
    assert told.files == {"notes.md": "colour and flavour\n"}
    assert told.report.unknown == {"hologram": 1}
    assert [usage[:2] for usage in told.usage()] == [(900, 25)]


def test_checkpoints_of_gemini_cli(imported):
    told = imported("gemini", "checkpoint-gemini.json")
    assert told.said == ["Never use tabs."]
    assert told.calls == [("read_file", "SUCCEEDED", None)]


def test_openhands(imported):
    told = imported("openhands", "openhands.json")
    assert told.said == ["Never use tabs."]
    assert told.calls == [("run", "FAILED", 1), ("edit", "SUCCEEDED", None), ("run", "DENIED", None)]
    assert told.files == {"pay.go": "package pay // 2\n"}
    assert told.usage() == [(4000, 300, 0.25)]
    assert any("TestPay" in issue for issue in told.issues)
    assert told.report.unknown == {"event": 1}


def test_openhands_sdk_keeps_an_event_in_each_file(imported):
    told = imported("openhands", "openhands-sdk")
    assert told.said == ["Never use tabs."]
    assert told.calls == [
        ("file_editor", "SUCCEEDED", None),
        ("terminal", "SUCCEEDED", 0),
        ("terminal", "DENIED", None),
    ]
    assert told.files == {"a.py": "x = 1\n"}
    assert len(told.told) == 1


def test_swe_agent_has_no_words_of_the_user(imported):
    told = imported("swe-agent", "swe-agent.traj")
    assert told.said == []
    assert [status for _, status, _ in told.calls] == ["SUCCEEDED"] * 3
    assert told.files == {"a.py": "x = 2\n"}
    assert told.usage() == [(9000, 400, 0.12)]


def test_mini_swe_agent(imported):
    told = imported("swe-agent", "mini-swe-agent.traj.json")
    assert told.said == []
    assert told.calls == [("bash", "FAILED", 1)]


def test_openai_chats(imported):
    told = imported("openai", "openai.jsonl")
    assert told.said == ["Never use tabs.", "Hello\n[image_url]"]
    assert told.calls == [("lookup", "SUCCEEDED", None)]
    assert told.report.unknown == {"role narrator": 1}
    assert [usage[:2] for usage in told.usage()] == [(120, 9)]


def test_aider(imported):
    told = imported("aider", ".aider.chat.history.md")
    assert told.said == ["Never use tabs.\nWrite pay.py."]
    assert told.calls == [("edit", "SUCCEEDED", None)]
    assert told.files == {"pay.py": "def pay():\n    return 1\n"}
    assert told.usage() == [(2100, 150, 0.0041)]


def test_only_words_of_the_user_become_rules(imported, tmp_path):
    for host, name in (
        ("codex", "codex.jsonl"),
        ("gemini", "session-gemini.json"),
        ("gemini", "checkpoint-gemini.json"),
        ("openhands", "openhands-sdk"),
        ("swe-agent", "mini-swe-agent.traj.json"),
        ("openai", "openai.jsonl"),
        ("aider", ".aider.chat.history.md"),
    ):
        with Workspace.create(tmp_path / host / name) as ws:
            import_transcripts(ws.engine, host, [FIXTURES / name], home=tmp_path)
            assert not [item for item in ws.memory(status=None) if "always use" in item.text]


@pytest.mark.parametrize("host", FORMATS)
@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\xfe\x00", b"[[[[", b"null", b"[1, 2]", b'{"messages": 3}', b"{}\n{}\n", b"[" * 100_000],
)
def test_no_content_breaks_a_reader(tmp_path, host, content):
    ending = FORMATS[host].endings[0]
    file = tmp_path / (ending if ending.startswith(".aider") else f"x{ending}")
    file.write_bytes(content)
    with Workspace.create(tmp_path / "ws") as ws:
        report = import_transcripts(ws.engine, host, [file], home=tmp_path)
        assert report.problems == []
        assert not [item for item in ws.memory(status=None) if item.trust == "user"]
