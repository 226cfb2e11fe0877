"""What a person sees of a run; the consoles are real, writing to memory."""

import io
from types import SimpleNamespace

import msgspec
import pytest
from rich.console import Console

from agentx import Workspace
from agentx.agents.run_types import Approval, RunResult
from agentx.cli.work.live import LiveView
from agentx.core.event_bus import MemoryChanged
from agentx.storage.events.types import Event, FileChange, ToolCallExecuted
from agentx.synthesis.enforcement.evaluate import Violation
from agentx.synthesis.memory.items import HotIssueDetail, MemoryItem
from agentx.synthesis.model.port import Reply, ToolCall, Usage
from agentx.synthesis.state.state import PendingCall
from agentx.tools.toolset import ToolResult

RULE = MemoryItem(id="c-2", kind="constraint", text="Never create a requirements.txt file.")
ISSUE = MemoryItem(
    id="h-3",
    kind="hot_issue",
    text="test_a fails",
    detail=HotIssueDetail(runner="pytest", check="tests/test_a.py::test_a", message="assert 1 == 2"),
)
READ = ToolCall("call_1", "read_file", '{"path": "a.py", "start": 3}')
RECORDED = Event(seq=3, at="", type="UserMessageSent", v=1, actor="user", data=None)


@pytest.fixture
def shown():
    def shown(play, **console):
        out = io.StringIO()
        options = {"file": out, "width": 80, "force_terminal": False, "color_system": None, **console}
        view = LiveView(Console(**options))
        view.run_started("r-1", "m", "Go.", resumed=False)
        out.truncate(0)
        out.seek(0)
        play(view)
        return out.getvalue()

    return shown


def changed(item, before=None, **fields):
    return MemoryChanged(msgspec.structs.replace(item, **fields), before, RECORDED)


def ended(call, status, output):
    return call, ToolResult(call_id=call.id, tool=call.name, status=status, output=output)


def write_event():
    data = ToolCallExecuted(
        call_id="c",
        tool="write_file",
        status="SUCCEEDED",
        arguments={"path": "a.py"},
        changes=(FileChange("a.py"),),
    )
    return Event(seq=4, at="", type="ToolCallExecuted", v=1, actor="agent:main", data=data)


def lines(text):
    return [line.strip() for line in text.splitlines() if line.strip()]


def test_a_scripted_run_says_that_the_words_come_from_a_file(shown):
    text = shown(lambda view: view.run_started("r-1", "script:demo", "Hello", resumed=False))
    assert "The model is a script" in text
    assert "come from a file" not in shown(
        lambda view: view.run_started("r-1", "openai/x", "Hello", resumed=False)
    )


def test_rules_and_issues_come_and_go(shown):
    def play(view):
        view.memory_changed(changed(RULE))
        view.memory_changed(changed(ISSUE))
        gone = msgspec.structs.replace(ISSUE.detail, ended="passed")
        view.memory_changed(changed(ISSUE, ISSUE, status="closed", detail=gone))
        view.memory_changed(changed(RULE, RULE, status="retired"))

    assert lines(shown(play)) == [
        "+ rule c-2  Never create a requirements.txt file.",
        "+ issue h-3  tests/test_a.py::test_a  assert 1 == 2",
        "✓ issue h-3  tests/test_a.py::test_a  passed",
        "✓ rule c-2  Never create a requirements.txt file.  retired",
    ]


def test_what_a_message_brings_stands_below_it(shown):
    def play(view):
        fresh = LiveView(view.console)
        fresh.memory_changed(changed(RULE))
        fresh.run_started("r-2", "m", RULE.text, resumed=False)

    assert [line.partition(" ")[0] for line in lines(shown(play))] == ["r-2", "you", "+"]


def test_a_change_that_leaves_the_status_is_not_shown(shown):
    assert shown(lambda view: view.memory_changed(changed(ISSUE, ISSUE, score=9.0))) == ""


def test_what_may_be_a_rule_says_how_to_confirm_it(shown):
    text = shown(lambda view: view.memory_changed(changed(RULE, status="candidate")))
    assert "`agentx memory review`" in " ".join(text.split())


def test_what_a_tool_caused_stands_below_its_line(shown):
    def play(view):
        call = ToolCall("c", "write_file", '{"path": "a.py", "content": "one\\ntwo"}')
        view.tool_started(call)
        view.event_recorded(write_event())
        view.memory_changed(changed(ISSUE))
        view.tool_ended(*ended(call, "SUCCEEDED", "Wrote a.py."))

    first, second, third = lines(shown(play))
    assert first == "✓ tool write_file  a.py  content 2 lines  Wrote a.py."
    assert second.startswith("commit ")
    assert "a.py" in second
    assert third.startswith("+ issue h-3")


def test_a_denied_call_shows_the_whole_sentence(shown):
    reason = "Denied. requirements.txt is forbidden. Rule c-2 (the user said: “never create a requirements.txt file”)"
    text = shown(lambda view: view.tool_ended(*ended(READ, "DENIED", reason)))
    assert " ".join(text.split()) == f"⊘ tool read_file a.py start 3 {reason}"


def test_a_call_whose_arguments_are_no_json_is_shown_all_the_same(shown):
    call = ToolCall("c", "read_file", '{"path": ')
    assert "arguments that are not JSON" in shown(
        lambda view: view.tool_ended(*ended(call, "FAILED", "no JSON"))
    )


def test_an_answer_that_was_sent_back_shows_the_rule(shown):
    violation = Violation(
        item_id="c-1", rule="r", sentence="Never mention Elon Musk.", reason="It says “Elon Musk”."
    )

    def sent_back(view):
        view.reply_ended(Reply("Elon Musk is the man.", (), Usage(), "m"))
        view.answer_sent_back([violation], "again")

    assert lines(shown(sent_back)) == [
        "agent Elon Musk is the man.",
        "⊘ answer sent back once: It says “Elon Musk”.",
        "c-1  “Never mention Elon Musk.”",
    ]


def test_the_end_shows_answer_and_cost(shown):
    result = RunResult(
        run="r-1", status="COMPLETED", answer="It is **done**.", steps=2, usage=Usage(1000, 234, 0.01)
    )
    text = shown(lambda view: view.run_ended(result))
    assert "It is done." in text
    assert "2 steps · 1,234 tokens · $0.0100" in text


@pytest.mark.parametrize("status", ["WAITING", "INTERRUPTED", "LIMIT_REACHED", "FAILED"])
def test_an_end_without_an_answer_shows_the_reason(shown, status):
    result = RunResult(run="r-1", status=status, reason="[red]because[/red]")
    assert "[red]because[/red]" in shown(lambda view: view.run_ended(result))


def test_what_models_and_tools_say_cannot_steer_the_terminal(shown):
    evil = "\x1b[2J\x1b]0;title\x07\u202e[bold]x\ud800"

    def play(view):
        view.run_started(evil, evil, evil, resumed=True)
        view.text_arrived(evil)
        view.reply_ended(Reply(evil, (READ,), Usage(), "m"))
        view.tool_ended(
            *ended(ToolCall("c", evil, msgspec.json.encode({"path": "\x1b[2J"}).decode()), "FAILED", evil)
        )
        view.memory_changed(changed(RULE, text=evil))
        view.run_ended(RunResult(run="r", status="COMPLETED", answer=evil, reason=evil))

    text = shown(play, force_terminal=True)
    assert "\x1b[2J" not in text
    assert "\x1b]0" not in text
    assert "\u202e" not in text
    assert "[bold]x" in text


def test_words_grow_on_a_terminal_and_stand_once_in_the_end(shown):
    def play(view):
        view.step_started(1, SimpleNamespace(tokens=5))
        view.text_arrived("I ")
        view.text_arrived("look.")
        view.reply_ended(Reply("I look.", (READ,), Usage(), "m"))

    assert lines(shown(play)) == ["agent I look."]
    assert "\x1b[?25h" in shown(play, force_terminal=True)  # the cursor is back


def test_a_console_without_unicode_gets_plain_signs(shown):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    view = LiveView(Console(file=out, width=80))
    view.run_started("r-1", "m", "Go.", resumed=False)
    view.memory_changed(changed(RULE))
    view.run_ended(RunResult(run="r", status="COMPLETED", reason="ok"))
    out.flush()
    assert "+ rule c-2" in out.buffer.getvalue().decode("ascii")


def test_a_recorded_run_can_be_exported_as_a_picture(shown, tmp_path):
    console = Console(record=True, file=io.StringIO(), width=80)
    view = LiveView(console)
    view.run_started("r-1", "m", "Go.", resumed=False)
    view.memory_changed(changed(RULE))
    console.save_svg(str(tmp_path / "run.svg"), title="agentx run")
    assert "requirements.txt" in (tmp_path / "run.svg").read_text()


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("y\n", Approval(approved=True)),
        ("Yes\n", Approval(approved=True)),
        ("no\n\n", Approval(approved=False)),
        ("n\nthe [tests] are red\n", Approval(approved=False, reason="the [tests] are red")),
        ("We don't push on Fridays.\n", Approval(approved=False, reason="We don't push on Fridays.")),
        ("\n", Approval(approved=False)),
        ("", Approval(approved=False)),
    ],
)
def test_a_person_is_asked_and_may_say_why_not_and_silence_is_a_no(shown, monkeypatch, typed, word):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    answers = []
    waiting = PendingCall(5, "call_1", "run_command", {"command": "ls"}, awaits_approval=True)
    text = shown(lambda view: answers.append(view.ask(waiting)))
    assert answers == [word]
    assert "asks run_command  command ls" in text


def test_an_issue_that_fails_no_more_says_why_it_is_open(shown):
    detail = HotIssueDetail(
        runner="pytest", check="tests of pytest", silenced="fewer", note="3 tests, 1 fewer than before"
    )
    (line,) = lines(shown(lambda view: view.memory_changed(changed(ISSUE, detail=detail))))
    assert "tests of pytest  not all run any more (3 tests, 1 fewer" in line


def test_commits_and_rules_of_a_real_run_are_shown_with_their_commit(tmp_path, shown):
    def play(view):
        with Workspace.create(tmp_path / "task", title="A task") as ws, view.watching(ws):
            ws.say("Never create a requirements.txt file; use pyproject.toml instead.")
            ws.tools.write_file("a.txt", "hello")
            heads.append(ws.engine.git.head[:7])

    heads = []
    rule, commit = lines(shown(play))
    assert rule.startswith("+ rule")
    assert commit.startswith(f"commit {heads[0]}  ")
    assert "a.txt" in commit
