"""Executors of every kind carry out a prompt, are held to their limits, and see nothing but the prompt and their tools."""

import json
import os
import sys
import textwrap
import time
from pathlib import Path

import pytest

from agentx.directing.directed_runs import run_directed
from agentx.directing.executor_tools import Hands
from agentx.directing.executors import Assignment, Command, Function, ModelLoop, Outcome, outside_environ
from agentx.storage.events.types import AgentMessageSent, Body, Draft, ToolCallExecuted, ToolCallRequested
from agentx.synthesis.model.port import ModelError, Reply, ToolCall, Usage
from agentx.synthesis.model.scripted import ScriptedModel

TRACE = "zanzibar"


def program(tmp_path, code, speaks="jsonl", **options):
    path = tmp_path / "executor.py"
    path.write_text("import json, os, sys, time\n" + textwrap.dedent(code), "utf-8")
    return Command(
        (sys.executable, str(path)), speaks, outside_environ(os.environ, tmp_path / "task"), **options
    )


class Tools:
    """Functions that note how they were called."""

    def __init__(self):
        self.calls = []

    def functions(self):
        def send_email(titles: list[str], *, idempotency_key: str) -> str:
            """Send a mail."""
            self.calls.append((titles, idempotency_key))
            return "sent"

        def broken() -> str:
            """Fails."""
            raise ValueError("no such address")

        return {"send_email": send_email, "broken": broken}


CONVERSE = """
def call(tool, **arguments):
    print(json.dumps({"call": {"tool": tool, "arguments": arguments}}), flush=True)
    return json.loads(sys.stdin.readline())["result"]
begin = json.loads(sys.stdin.readline())
"""


def test_a_program_calls_tools_and_says_what_came_of_it(ws, tmp_path):
    tools = Tools()
    code = """
    first = call("send_email", titles=["One"])
    second = call("broken")
    third = call("launch_rocket")
    told = [first["status"], second["status"], second["output"], third["output"], [t["name"] for t in begin["tools"]]]
    print(json.dumps({"done": {"summary": json.dumps(told)}}))
    """
    run = run_directed(ws.engine, program(tmp_path, CONVERSE + textwrap.dedent(code)), tools.functions())
    first, second, error, third, names = json.loads(run.outcome.summary)
    assert (first, second, names) == ("SUCCEEDED", "FAILED", ["send_email", "broken"])
    assert "no such address" in error
    assert "Unknown tool 'launch_rocket'" in third
    calls = [event.data for event in ws.events() if isinstance(event.data, ToolCallExecuted)]
    assert [(call.tool, call.status) for call in calls] == [("send_email", "SUCCEEDED"), ("broken", "FAILED")]
    [(titles, key)] = tools.calls
    assert titles == ["One"]
    assert len(key) == 32
    record = ws.state.last_run
    assert (record.status, record.model) == ("COMPLETED", f"command:{os.path.basename(sys.executable)}")
    assert record.summary.startswith('["SUCCEEDED"')
    said = [event for event in ws.events() if isinstance(event.data, AgentMessageSent)]
    assert (said[-1].actor, said[-1].run) == ("agent:executor", record.run)


def test_a_plain_program_reads_its_prompt_and_what_it_prints_is_its_summary(ws, tmp_path):
    ws.say("Count the words of this task.")
    run = run_directed(ws.engine, program(tmp_path, "print(len(sys.stdin.read().split()) > 5)", "text"))
    assert run.outcome == Outcome(summary="True")


@pytest.mark.parametrize(
    ("code", "speaks", "told"),
    [
        ("print('half'); sys.exit('the disk is full')", "text", "exit status 1: the disk is full"),
        ("sys.exit('~~^^\\n' + 'x' * 9 + ' far' * 200)", "text", "exit status 1: …far far"),
        ("sys.exit(3)", "jsonl", "exit status 3"),
        ("print('hello')", "jsonl", "which is neither a call, an act nor an end"),
        ('print(\'{"done": {"status": "SPLENDID"}}\')', "jsonl", "neither a call, an act nor an end"),
        ("print('{}')", "jsonl", "neither"),
        (
            'print(\'{"act": {"name": "offer", "key": {"id": 1}}, "check": true}\')',
            "jsonl",
            'there is no field "check" in the line. It belongs inside "act".',
        ),
        (
            'print(\'{"act": {"name": "offer", "keys": {"id": 1}}}\')',
            "jsonl",
            'there is no field "keys" in "act".',
        ),
        (
            'print(\'{"call": {"tool": "x", "args": {}}}\')',
            "jsonl",
            'there is no field "args" in "call".',
        ),
        ('print(\'{"done": {"state": "FAILED"}}\')', "jsonl", 'there is no field "state" in "done".'),
        ('print(\'{"done": {"status": "FAILED", "reason": "no net"}}\')', "jsonl", "no net"),
    ],
)
def test_a_program_that_fails_or_talks_nonsense_ends_its_run_failed_with_what_was_wrong(
    ws, tmp_path, code, speaks, told
):
    run = run_directed(ws.engine, program(tmp_path, code, speaks))
    assert run.outcome.status == ws.state.last_run.status == "FAILED"
    assert told in ws.state.last_run.reason


def test_a_program_that_is_not_there_is_told_with_what_to_do(ws):
    run_directed(ws.engine, Command(("no-such-program",)))
    assert "director.executor" in ws.state.last_run.reason


@pytest.mark.parametrize("speaks", ["text", "jsonl"])
def test_a_program_is_ended_at_its_time_limit_with_all_that_it_started(ws, tmp_path, speaks):
    mark = tmp_path / "late"
    code = f"""
    import subprocess
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(4); open({str(mark)!r}, 'w')"])
    time.sleep(60)
    """
    run = run_directed(ws.engine, program(tmp_path, code, speaks), time_limit_s=1.0)
    assert run.outcome.status == "LIMIT_REACHED"
    assert "1 seconds" in ws.state.last_run.reason
    assert not mark.exists()


LONG = "Watch the feeds. " * 8_000
"""More than a pipe holds."""


@pytest.mark.parametrize(
    ("code", "speaks", "summary"),
    [
        ("os.write(1, b'\\xff\\0' * 20_000_000); print('the end')", "text", "the end"),
        ("os.close(0); print('the end')", "text", "the end"),
        ('print(\'{"done": {"summary": "the end"}}\')', "jsonl", "the end"),
        (
            'os.close(0); print(\'{"done": {"summary": "the end"}}\', flush=True); time.sleep(60)',
            "jsonl",
            "the end",
        ),
    ],
)
def test_a_program_that_prints_without_end_or_does_not_read_is_heard_all_the_same(
    ws, tmp_path, code, speaks, summary
):
    hands = Hands(ws.engine, {}, actor="agent:executor", run="r-1")
    outcome = program(tmp_path, code, speaks).execute(Assignment(prompt=LONG, tools=hands, time_limit_s=200))
    assert outcome.status == "COMPLETED"
    assert outcome.summary.endswith(summary)
    assert len(outcome.summary) < 11_000_000


def test_a_line_without_an_end_is_not_read_for_ever(ws, tmp_path):
    run = run_directed(ws.engine, program(tmp_path, "while True: os.write(1, b'[' * 65536)"))
    assert (
        run.outcome.reason
        == "It printed more than 10 MB in one line, or in all that it says, so it was ended."
    )


LEAVE_A_CHILD = """
import subprocess
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
"""


def gone(pid):
    """Whether a process ends within a while; one that nobody has waited for has."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)
    return False


@pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="without /proc what detached itself is not found"
)
def test_a_child_that_holds_the_pipe_and_detached_itself_is_not_waited_for_and_ended(ws, tmp_path):
    run = run_directed(ws.engine, program(tmp_path, LEAVE_A_CHILD + "print(child.pid)", "text"))
    assert run.outcome.status == "COMPLETED"
    assert gone(int(run.outcome.summary))


def test_ctrl_c_ends_the_program_and_the_run_is_interrupted(ws, tmp_path):
    seen = []

    def tell(pid: int) -> str:
        """Hear a number."""
        seen.append(pid)
        raise KeyboardInterrupt

    code = CONVERSE + "call('tell', pid=os.getpid())"
    with pytest.raises(KeyboardInterrupt):
        run_directed(ws.engine, program(tmp_path, code), {"tell": tell})
    assert ws.state.last_run.status == "INTERRUPTED"
    assert gone(seen[0])


def test_a_model_in_a_loop_acts_until_it_answers_and_its_tokens_are_on_record(ws, tmp_path):
    script = tmp_path / "turns.jsonl"
    turns = [
        {"thought": "I send.", "tool_calls": [{"name": "send_email", "arguments": {"titles": ["One"]}}]},
        {"expect": ["sent"], "answer": "Sent 1."},
    ]
    script.write_text("\n".join(map(json.dumps, turns)), "utf-8")
    tools = Tools()
    run = run_directed(ws.engine, ModelLoop(ScriptedModel(script)), tools.functions())
    assert (run.outcome.status, run.outcome.summary, run.outcome.steps) == ("COMPLETED", "Sent 1.", 2)
    assert len(tools.calls) == 1
    [ended] = [event.data for event in ws.events() if event.type == "RunEnded"]
    assert ended.prompt_tokens > 0
    words = ["AgentThoughtProcess", "ToolCallRequested", "ToolCallExecuted", "AgentMessageSent", "RunEnded"]
    assert [event.type for event in ws.events() if event.run == "r-1" and event.type in words] == words


def test_what_a_program_says_on_its_way_is_on_record(ws, tmp_path):
    code = """print(json.dumps({"say": "I look."})); print(json.dumps({"done": {"summary": "Done."}}))"""
    run_directed(ws.engine, program(tmp_path, code))
    [said] = [event for event in ws.events() if event.type == "AgentThoughtProcess"]
    assert (said.data.body.text, said.actor, said.run) == ("I look.", "agent:executor", "r-1")


class Circles:
    name = "own/circles"

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        yield Reply("", (ToolCall("1", "send_email", '{"titles": []}'),), Usage(), self.name)


class Down:
    name = "own/down"

    def stream(self, messages, tools=(), *, timeout_s=120.0):
        raise ModelError("own/down cannot be reached")
        yield


def test_a_model_that_goes_round_in_circles_or_is_down_ends_its_run(ws):
    run_directed(ws.engine, ModelLoop(Circles()), Tools().functions())
    assert (ws.state.last_run.status, "circles" in ws.state.last_run.reason) == ("LIMIT_REACHED", True)
    run_directed(ws.engine, ModelLoop(Down()))
    assert (ws.state.last_run.status, "cannot be reached" in ws.state.last_run.reason) == ("FAILED", True)


def test_a_call_is_announced_in_full_before_it_runs_and_a_crash_leaves_its_outcome_unknown(ws):
    titles = [f"A title of some length, number {n}" for n in range(50)]
    seen = []

    def send_email(titles: list[str]) -> str:
        """Send a mail."""
        seen.append(list(ws.state.pending.values()))
        raise KeyboardInterrupt

    work = Function("f", lambda assignment: assignment.tools.call("send_email", {"titles": titles}).output)
    with pytest.raises(KeyboardInterrupt):
        run_directed(ws.engine, work, {"send_email": send_email})
    [announced] = [event for event in ws.events() if isinstance(event.data, ToolCallRequested)]
    assert json.loads(ws.read_body(announced.data.whole)) == {"titles": titles}
    assert seen[0][0].call_id == announced.data.call_id
    assert ws.state.last_run.status == "INTERRUPTED"
    assert "its outcome is unknown" in ws.get_relevant_context("What was sent?").text


@pytest.fixture
def forbidding(configured):
    """A workspace with a rule that says why, and with tools and checks that run into it."""
    ws = configured(
        '[tools]\napprove = ["delete_file"]\n[checks.build]\ncommand = "touch requirements.txt"\n',
        "forbidding",
    )
    ws.say(f"Mail me the news. Never create a requirements.txt file because {TRACE} broke.")
    return ws


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        (
            "write_file",
            {"path": "requirements.txt", "content": "x"},
            "Denied. Never create a requirements.txt file.",
        ),
        ("run_build", {}, "its changes were not applied"),
        ("delete_file", {"path": "a"}, "waiting for approval"),
    ],
)
def test_a_denied_call_says_what_is_ruled_out_and_not_who_said_so_when_and_why(
    forbidding, tool, arguments, told
):
    heard = []

    def work(assignment):
        heard.append(assignment.tools.call(tool, arguments))

    run = run_directed(forbidding.engine, Function("f", work), files=True)
    [result] = heard
    assert told in result.output
    assert run.prompt.endswith("Hold to this:\n- Never create a requirements.txt file.")
    for trace in ("c-", "event", "the user said", "x-", "agentx approve", TRACE):
        assert trace not in result.output
    assert TRACE not in run.prompt


@pytest.mark.parametrize(
    ("given", "status", "told"),
    [
        (Outcome(status="GREAT"), "FAILED", "GREAT"),
        (5, "FAILED", "Expected `str`"),
        (None, "COMPLETED", ""),
        (Outcome(status="FAILED", reason="no net " * 9_000), "FAILED", "no net no net"),
        (Outcome(usage=Usage(cost_usd=float("nan"))), "FAILED", "nan USD"),
        (Outcome(summary="Sent\ud800."), "COMPLETED", ""),
    ],
)
def test_whatever_an_executor_gives_its_run_has_an_end(ws, given, status, told):
    run_directed(ws.engine, Function("f", lambda assignment: given))
    assert ws.state.last_run.status == status
    assert told in ws.state.last_run.reason


def test_an_executor_that_ends_the_process_ends_its_run(ws):
    run_directed(ws.engine, Function("f", lambda assignment: sys.exit("enough")))
    assert ws.state.last_run.reason == "SystemExit: enough"


# --- nothing else reaches it ------------------------------------------------------------------------------------------

LOOK_AROUND = """
def files(folder):
    found = []
    for root, _, names in os.walk(folder):
        found += [os.path.join(root, name) for name in names]
    return found
seen = {
    "stdin": sys.stdin.readline(),
    "argv": sys.argv[1:],
    "environ": dict(os.environ),
    "place": os.getcwd(),
    "files": files("."),
    "above": [name for name in os.listdir("..") if not name.startswith("agentx-executor-")] and "",
    "open": [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{n}")],
}
print(json.dumps({"done": {"summary": json.dumps(seen)}}))
"""


@pytest.fixture
def lived_in(ws, monkeypatch):
    """A workspace whose every kind of record holds a word that no prompt needs."""
    monkeypatch.chdir(ws.root)
    monkeypatch.setenv("AGENTX_MODEL", TRACE)
    monkeypatch.setenv("GIT_DIR", TRACE)
    ws.say("Mail me the news.")
    ws.tools.write_file(f"{TRACE}.md", f"All about {TRACE}.")
    ws.remember("knowledge", "The server sleeps at night.")
    ws.remember("decision", f"We go with {TRACE}.")
    ws.record(Draft(data=AgentMessageSent(body=Body(f"I said {TRACE}.")), actor="agent:main", run="r-0"))
    run_directed(ws.engine, Function("f", lambda assignment: Outcome(summary="Sent 1.")))
    return ws


def test_a_program_finds_nothing_of_the_history_around_it(lived_in, tmp_path):
    run = run_directed(lived_in.engine, program(tmp_path, LOOK_AROUND))
    seen = json.loads(
        lived_in.read_body(
            next(
                event.data.body
                for event in reversed(list(lived_in.events()))
                if isinstance(event.data, AgentMessageSent)
            )
        )
    )
    told = {"done": {}, "due": "", "schedule": "", "values": {"done": [], "reported": ["Sent 1."]}}
    assert json.loads(seen["stdin"]) == {"prompt": run.prompt, "tools": [], **told}
    assert seen["files"] == []
    everything = json.dumps(seen)
    for trace in (TRACE, str(lived_in.root), "history.jsonl"):
        assert trace not in everything


def test_a_model_is_shown_the_prompt_its_tools_and_nothing_else(lived_in):
    shown = []

    class Model:
        name = "own/model"

        def stream(self, messages, tools=(), *, timeout_s=120.0):
            shown.append((list(messages), list(tools)))
            yield Reply("Done.", (), Usage(), self.name)

    run = run_directed(lived_in.engine, ModelLoop(Model()), Tools().functions())
    [(messages, tools)] = shown
    assert [(one.role, one.content) for one in messages] == [("system", run.prompt), ("user", "Begin.")]
    assert [tool.name for tool in tools] == ["send_email", "broken"]
    assert TRACE not in run.prompt
    assert "r-" not in run.prompt


def test_with_files_it_reaches_artifacts_and_nothing_of_the_record_memory_or_configuration(lived_in):
    (lived_in.root / "artifacts" / "link").symlink_to("../agentx.toml")
    heard = {}

    def work(assignment):
        heard[""] = {tool.name for tool in assignment.tools.schemas()}
        for path in (
            "../agentx.toml",
            "../history/000/001.jsonl",
            str(lived_in.root / "agentx.toml"),
            "../.git/HEAD",
            "link",
        ):
            heard[path] = assignment.tools.call("read_file", {"path": path})
        for tool in ("search_memory", "summarize_decisions", "run_command"):
            heard[tool] = assignment.tools.call(tool, {"query": "mail", "command": "cat ../agentx.toml"})

    run_directed(lived_in.engine, Function("f", work), files=True)
    assert heard.pop("") == {
        *("read_file", "write_file", "edit_file", "move_file", "delete_file", "list_directory"),
        *("run_tests", "run_lint", "run_build", "check_document"),
    }
    assert {result.status for result in heard.values()} == {"FAILED"}


def test_the_environment_keeps_what_a_program_needs_and_drops_what_names_a_workspace():
    kept = {"ANTHROPIC_API_KEY": "k", "HOME": "/srv", "LOG": "/srv/news-old/log"}
    dropped = {
        "PWD": "/x",
        "_": "/x",
        "AGENTX_MODEL": "m",
        "GIT_DIR": "g",
        "TASK": "/srv/news",
        "URL": "file:///srv/news/a",
    }
    path = {"PATH": "/srv/news/bin:/bin"}
    assert outside_environ(kept | dropped | path, Path("/srv/news")) == {**kept, "PATH": "/bin"}
