"""Programs of any language report what they have done: recorded before they are answered, once, in the run's process or after it."""

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.directing.act_reports import ActReports
from agentx.directing.act_socket import ActSocket, listening
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Command, Function, outside_environ
from agentx.directing.report_act import SOCKET, ask, request
from agentx.policy.done_once import say_done
from agentx.policy.unknown_outcomes import unknown
from agentx.storage.events.act_events import ActDone
from agentx.storage.events.types import AgentMessageSent, Draft, ToolCallExecuted, ToolCallRequested
from agentx.synthesis.directing.acts import Occasion
from agentx.trust.trust import Trust

ROOT = Path(__file__).resolve().parents[3]
OFFER = '[director.acts.offer]\nkey = ["id"]\n'


@pytest.fixture
def ws(tmp_path):
    with Workspace.create(tmp_path / "task") as made:
        (made.root / "agentx.toml").write_text(OFFER)
        Trust.read(made.root, made.engine.settings).grant("trusted")
    with Workspace.open(tmp_path / "task") as again:
        yield again


def shell(code, **options):
    return Command(
        ("sh", "-c", textwrap.dedent(code)), "text", outside_environ(os.environ, Path("/nowhere")), **options
    )


def acts(ws):
    ws.engine.write_path.refresh()
    done = [(event, event.data) for event in ws.events() if isinstance(event.data, ActDone)]
    return [(data.name, json.loads(ws.engine.read_body(data.key)), event.run) for event, data in done]


def test_a_text_program_reports_acts_which_are_recorded_once(ws):
    code = """
    cat > /dev/null
    agentx done offer 4711; echo $?
    agentx done offer id=4711; echo $?
    agentx done --check offer 4711; echo $?
    agentx done --check offer 4712; echo $?
    """
    first = run_directed(ws.engine, shell(code)).outcome
    assert [line for line in first.summary.splitlines() if line.isdigit()] == ["0", "3", "3", "0"]
    assert first.summary.startswith("Done: offer id=4711")
    second = run_directed(ws.engine, shell(code)).outcome
    assert [line for line in second.summary.splitlines() if line.isdigit()] == ["3", "3", "3", "0"]
    assert "(run r-1)" in second.summary
    assert acts(ws) == [("offer", {"id": 4711}, "r-1")]


def test_a_text_program_is_told_how_it_reports_and_under_which_names(ws):
    assert "agentx done" not in run_directed(ws.engine, Function("f", lambda _: "nothing")).prompt
    run = run_directed(ws.engine, shell("cat"))
    assert "`agentx done NAME KEY=VALUE…`" in run.outcome.summary
    assert "`agentx done NAME KEY=VALUE… -- COMMAND…`" in run.outcome.summary
    assert run.outcome.summary.endswith("Names and keys:\n- offer id=…")
    assert run.prompt == run.outcome.summary


def test_a_program_that_speaks_json_lines_reports_acts_with_any_values(ws, tmp_path):
    program = tmp_path / "speaker.py"
    program.write_text(
        textwrap.dedent("""
        import json, sys
        sys.stdin.readline()
        def act(**one):
            print(json.dumps({"act": one}), flush=True)
            return json.loads(sys.stdin.readline())["result"]["status"]
        told = [act(name="offer", key={"id": 1, "title": "Cook"}, check=True), act(name="offer", key={"id": 1, "title": "Cook"}),
                act(name="offer", key={"id": 1.0}), act(name="offer", key={"id": "1"}), act(name="offer", key={}),
                act(name="order", key={"at": {"b": [1, None], "a": "\u00e9"}}), act(name="order", key={"at": {"a": "e\u0301", "b": [1, None]}}),
                act(name="", key={}), act(name="offer", key={"id": "x" * 200_000})]
        print(json.dumps({"done": {"summary": json.dumps(told)}}))
        """)
    )
    command = Command((sys.executable, "-I", str(program)), "jsonl", outside_environ(os.environ, ws.root))
    run = run_directed(ws.engine, command)
    assert json.loads(run.outcome.summary) == [
        *("NOT_DONE", "RECORDED", "ALREADY_DONE", "RECORDED", "FAILED"),
        *("RECORDED", "ALREADY_DONE", "FAILED", "FAILED"),
    ]
    assert [key for _, key, _ in acts(ws)] == [{"id": 1}, {"id": "1"}, {"at": {"a": "é", "b": [1, None]}}]


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ("", 2, "agentx done [--check] NAME"),
        ("--all offer 1", 2, "agentx done [--check] NAME"),
        ("'two words' 1", 2, "cannot be the name of an act"),
        ("offer 1 2", 2, "has no value for '2'"),
        ("offer", 2, "id"),
        ("offer sku=5", 2, "offer has no value 'sku' that makes it the same act; its key is: id."),
        ("--check offer sku=5", 2, "offer has no value 'sku' that makes it the same act; its key is: id."),
        ("--check offer id=1 sku=5", 2, "offer has no value 'sku'"),
        ("offer \"$(printf '\\377')\"", 2, "UTF-8"),
    ],
)
def test_a_report_that_cannot_be_read_is_told_on_stderr_and_records_nothing(ws, words, status, told):
    run = run_directed(ws.engine, shell(f"agentx done {words} 2>err; echo $?; cat err; cat > /dev/null"))
    code, _, text = run.outcome.summary.partition("\n")
    assert int(code) == status
    assert told in text
    assert acts(ws) == []


def test_other_commands_act_as_the_user_and_are_refused_inside_the_run(ws):
    run = run_directed(
        ws.engine, shell(f"cat >/dev/null; agentx -C {ws.root} done offer 1 2>&1; agentx say hi 2>&1")
    )
    assert run.outcome.summary.count("refused inside an agent's run") == 2
    assert acts(ws) == []


def test_a_report_from_a_child_that_cannot_import_the_package_finds_its_run(ws):
    code = (
        "import subprocess, sys; sys.stdin.read(); sys.path.clear()\n"
        "print(subprocess.run(['agentx', 'done', 'offer', '7']).returncode)"
    )
    command = Command((sys.executable, "-I", "-S", "-c", code), "text", outside_environ(os.environ, ws.root))
    assert run_directed(ws.engine, command).outcome.status == "COMPLETED"
    assert acts(ws) == [("offer", {"id": 7}, "r-1")]


SLOW = """
cat > /dev/null
agentx done offer 1 && touch {place}/first
while [ ! -e {place}/go ]; do sleep 0.05; done
agentx done offer 2 > {place}/late 2>&1; echo $? >> {place}/late
agentx done offer 1 >> {place}/late 2>&1; echo $? >> {place}/late
mv {place}/late {place}/over
"""
KILLED = """
import sys
from agentx import Workspace
from agentx.directing.directed_runs import run_directed
from agentx.directing.executors import Command
with Workspace.open(sys.argv[1]) as ws:
    run_directed(ws.engine, Command(("sh", "-c", sys.argv[2]), "text", {"PATH": "/usr/bin:/bin"}))
"""


def wait_for(path):
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, path
        time.sleep(0.02)
    return path


def test_a_kill_of_the_run_loses_no_act_and_the_program_that_goes_on_can_still_report(ws, tmp_path):
    words = [sys.executable, "-c", KILLED, str(ws.root), SLOW.format(place=tmp_path)]
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)}) as run:
        wait_for(tmp_path / "first")
        run.kill()
    (tmp_path / "go").touch()
    late = wait_for(tmp_path / "over").read_text().splitlines()
    assert late[:2] == ["Done: offer id=2", "0"]
    assert late[2].startswith("Already done: offer id=1")
    assert late[3] == "3"
    assert acts(ws) == [("offer", {"id": 1}, "r-1"), ("offer", {"id": 2}, "r-1")]
    again = run_directed(ws.engine, shell("cat > /dev/null; agentx done offer 2; echo $?"))
    assert again.outcome.summary.endswith("3")


def test_what_outlives_the_run_cannot_report_to_it(ws, tmp_path):
    """It has shed the variable by which the engine finds and ends what a run has started."""
    code = f"""
    cat > /dev/null
    setsid env -u AGENTX_RUN sh -c 'sleep 0.2; while [ -e "$AGENTX_ACTS" ]; do sleep 0.05; done
        {sys.executable} -P -m agentx done offer 9 > {tmp_path}/out 2>&1; echo $? >> {tmp_path}/out; mv {tmp_path}/out {tmp_path}/over
    ' > /dev/null 2>&1 < /dev/null &
    """
    environ = outside_environ(os.environ, Path("/nowhere")) | {"PYTHONPATH": str(ROOT)}
    run_directed(ws.engine, Command(("sh", "-c", textwrap.dedent(code)), "text", environ))
    told = wait_for(tmp_path / "over").read_text()
    assert "The run has ended; nothing was recorded." in told
    assert told.endswith("2\n")
    assert acts(ws) == []


def test_of_many_processes_that_report_the_same_act_at_once_one_is_the_first(ws):
    code = (
        "cat >/dev/null; for n in 1 2 3 4 5 6 7 8; do (agentx done offer 5 >/dev/null; echo $?) & done; wait"
    )
    run = run_directed(ws.engine, shell(code))
    assert sorted(run.outcome.summary.split()) == ["0", *["3"] * 7]
    assert acts(ws) == [("offer", {"id": 5}, "r-1")]


def test_all_that_a_program_prints_is_kept(ws):
    run_directed(ws.engine, shell("cat >/dev/null; seq 200000"))
    (said,) = [event.data for event in ws.events() if isinstance(event.data, AgentMessageSent)]
    assert ws.engine.read_body(said.body) == "\n".join(map(str, range(1, 200_001)))


def test_a_due_time_and_a_day_are_windows_of_a_report(ws):
    (ws.root / "agentx.toml").write_text('[director.acts.water]\nkey = ["bed"]\nwindow = "due"\n')
    with Workspace.open(ws.root) as again:
        told = []
        for due in ("2026-03-01T06:00:00+00:00", "2026-03-02T06:00:00+00:00"):
            reports = ActReports(again.engine, Occasion(run="r-1", schedule="g", due=due), "agent:executor")
            told += [reports.report("water", {"bed": 1}).status for _ in range(2)]
    assert told == ["RECORDED", "ALREADY_DONE"] * 2


# --- a command that does an act -----------------------------------------------------------------------------


def test_a_command_behind_an_act_is_run_once_and_its_act_recorded_as_it_ends(ws, tmp_path):
    sent = tmp_path / "sent"
    code = f"""
    cat > /dev/null
    agentx done offer 1 -- sh -c 'echo one >> {sent}; echo out; echo err >&2'; echo $?
    agentx done offer 1 -- sh -c 'echo again >> {sent}' 2>&1; echo $?
    agentx done offer 2 -- sh -c 'echo two >> {sent}; exit 75'; echo $?
    agentx done offer id=2 -- sh -c 'echo three >> {sent}'; echo $?
    agentx done --check offer 2; echo $?
    agentx done offer 3 -- no-such-command 2>&1; echo $?
    """
    summary = run_directed(ws.engine, shell(code)).outcome.summary.splitlines()
    assert [line for line in summary if line.isdigit()] == ["0", "3", "75", "0", "3", "127"]
    assert summary[0] == "out"
    assert summary[2].startswith("Already done: offer id=1 on 20")
    assert summary[-2] == "no-such-command cannot be run: No such file or directory."
    assert sent.read_text().split() == ["one", "two", "three"]
    assert acts(ws) == [("offer", {"id": 1}, "r-1"), ("offer", {"id": 2}, "r-1")]
    assert not ws.state.pending
    results = [event.data for event in ws.events() if isinstance(event.data, ToolCallExecuted)]
    assert [one.status for one in results] == ["SUCCEEDED", "FAILED", "SUCCEEDED", "FAILED"]
    assert ws.engine.read_body(results[1].output) == "It ended with exit status 75."


def test_a_command_has_the_directory_environment_and_files_of_the_program(ws, tmp_path):
    code = f"""
    cat > /dev/null
    mkdir sub; cd sub; export OWN='a b'
    echo in | agentx done offer 1 -- sh -c 'read line; echo "$line $OWN $#:$1:$2" "$(basename "$PWD")" >&3' x '--help' 'two  words' 3> {tmp_path}/third
    """
    run_directed(ws.engine, shell(code))
    assert (tmp_path / "third").read_text() == "in a b 2:--help:two  words sub\n"


@pytest.mark.parametrize("number", ["$PPID", "$$"])
def test_a_kill_before_the_end_of_a_command_is_a_question_to_the_user(ws, tmp_path, number):
    """The report is killed, or the command."""
    code = f"""
    cat > /dev/null
    agentx done offer 1 -- sh -c 'echo x >> {tmp_path}/sent; kill -9 {number}; sleep 1'; echo $?
    agentx done offer 1 -- sh -c 'echo x >> {tmp_path}/sent' 2>&1; echo $?
    agentx done offer 2 -- true; echo $?
    """
    summary = run_directed(ws.engine, shell(code)).outcome.summary
    assert [line for line in summary.splitlines() if line.isdigit()] == ["137", "4", "0"]
    assert "This began and has no result" in summary
    assert (tmp_path / "sent").read_text() == "x\n"
    again = run_directed(ws.engine, shell("agentx done offer 1 -- touch again 2>&1; echo $?; ls")).outcome
    assert again.summary.splitlines()[-1] == "4"
    [call] = unknown(ws.engine)
    assert say_done(ws.engine, "offer", ["1"], Occasion(), done=True).settled == call.call_id
    assert acts(ws) == [("offer", {"id": 2}, "r-1"), ("offer", {"id": 1}, "r-1")]


def test_a_command_whose_run_was_killed_is_still_recorded(ws, tmp_path):
    code = """
    cat > /dev/null
    agentx done offer 1 -- sh -c 'touch {place}/first; while [ ! -e {place}/go ]; do sleep 0.05; done; exit 7'; echo $? > {place}/late
    agentx done offer 2 -- sh -c 'echo sent >> {place}/late; exit 75'; echo $? >> {place}/late
    agentx done offer 3 -- sh -c 'echo sent >> {place}/late'; echo $? >> {place}/late
    mv {place}/late {place}/over
    """
    words = [sys.executable, "-c", KILLED, str(ws.root), code.format(place=tmp_path)]
    with subprocess.Popen(words, env={**os.environ, "PYTHONPATH": str(ROOT)}) as run:
        wait_for(tmp_path / "first")
        run.kill()
    (tmp_path / "go").touch()
    assert wait_for(tmp_path / "over").read_text().split() == ["7", "sent", "75", "sent", "0"]
    assert acts(ws) == [("offer", {"id": 3}, "r-1")]
    assert not ws.state.pending


def test_a_command_is_not_run_where_its_act_cannot_be_announced(ws):
    code = """
    cat > /dev/null
    agentx done offer nope= -- touch ran 2>&1; echo $?
    agentx done offer -- touch ran 2>&1; echo $?
    agentx done --check offer 1 -- touch ran 2>&1; echo $?
    agentx done offer 1 -- 2>&1; echo $?
    ls
    """
    summary = run_directed(ws.engine, shell(code)).outcome.summary.splitlines()
    assert "ran" not in summary
    assert [line for line in summary if line.isdigit()] == ["2", "2", "2", "2"]


def test_a_program_cannot_end_a_call_that_it_did_not_begin(ws):
    for call in ("r-1-1", "act-other"):
        request = ToolCallRequested(call_id=call, tool="offer")
        ws.record(Draft(data=request, actor="agent:executor", run="r-9"))
        told = ActReports(ws.engine, Occasion(run="r-1"), "agent:executor").end(call, 0, "offer", ["1"])
        assert told.status == "FAILED"
        assert "was not begun here" in told.output
    assert len(ws.state.pending) == 2


def test_what_the_user_says_during_a_command_counts_and_a_success_is_recorded(ws):
    reports = ActReports(ws.engine, Occasion(run="r-1"), "agent:executor")
    for status, done in ((1, True), (0, False)):
        begun = reports.begin("offer", [str(status)])
        say_done(ws.engine, "offer", [str(status)], Occasion(), done=done)
        assert reports.end(begun.output, status, "offer", [str(status)]).status == "RECORDED"
    assert [key for _, key, _ in acts(ws)] == [{"id": 1}, {"id": 0}]


def test_the_user_has_a_command_run_outside_a_run(ws):
    def done(*words):
        command = [sys.executable, "-m", "agentx", "-C", ws.root, "done", *words]
        made = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        return made.returncode, made.stdout, made.stderr

    assert done("offer", "1", "--", "sh", "-c", 'echo "$1"; exit $2', "x", "--json", "5") == (
        5,
        "--json\n",
        "",
    )
    assert done("offer", "1", "--", "echo", "sent") == (0, "sent\n", "")
    status, out, err = done("offer", "1", "--", "echo", "sent")
    assert (status, out) == (3, "")
    assert "Already done: offer id=1 on 20" in err
    status, out, err = done("offer", "2", "--", "sh", "-c", "kill -9 $$")
    assert (status, out) == (137, "")
    assert "nobody knows whether it was done" in err
    assert done("offer", "2", "--", "echo", "sent")[0] == 4
    assert done("--not", "offer", "2", "--", "echo", "sent")[0] == 2
    assert acts(ws) == [("offer", {"id": 1}, "")]


# --- the socket ---------------------------------------------------------------------------------------------


@pytest.fixture
def served(tmp_path):
    """A socket, and a function that serves it until a client has its answer."""
    heard = []

    def answer(words):
        heard.append(list(words))
        return b"0 ok"

    with ActSocket(tmp_path, answer) as acts:

        def exchange(content, *, end=True):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(5)
                client.connect(str(tmp_path / SOCKET))
                acts.serve()
                client.sendall(content)
                if end:
                    client.shutdown(socket.SHUT_WR)
                for _ in range(20):
                    acts.serve()
                return client.recv(1000) if end else b""

        yield acts, exchange, heard


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"x\n",
        b"-1\n",
        b"5\nabc",
        b"3\nabc\0def",
        request(["offer", "1"])[:-1],
        b"\xff" * 100,
        b"9" * 5_000 + b"\n",
    ],
)
def test_noise_on_the_socket_is_not_taken_for_a_report(served, content):
    _, exchange, heard = served
    assert exchange(content) == b""
    assert exchange(request(["offer", "1"])) == b"0 ok"
    assert heard == [[b"offer", b"1"]]


def test_a_report_without_end_is_refused(served, tmp_path):
    acts, _, heard = served
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(tmp_path / SOCKET))
        client.sendall(b"1000000\n")
        with suppress(BrokenPipeError):
            for _ in range(100):
                client.sendall(b"x" * 10_000)
                acts.serve()
        assert client.recv(100).startswith(b"1 ")
    assert heard == []


def test_more_clients_than_are_heard_at_a_time_wait_their_turn(served, tmp_path):
    acts, _, heard = served
    clients = []
    for number in range(100):
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(tmp_path / SOCKET))
        clients.append(client)
        for _ in range(3):
            acts.serve()
        client.sendall(request(["offer", str(number)]))
    for _ in range(300):
        acts.serve()
    assert len(heard) == 100
    for client in clients:
        assert client.recv(10) == b"0 ok"
        client.close()


def test_where_nobody_listens_the_caller_is_told(tmp_path):
    assert ask(str(tmp_path), ["offer", "1"]) == (75, "")


def test_a_long_name_of_the_temporary_directory_leaves_room_for_the_socket(tmp_path, monkeypatch):
    long = tmp_path / ("d" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with listening(lambda _words: b"0 ok", b"{}") as (_, place):
        assert (place / SOCKET).is_socket()


def test_an_executor_that_is_a_function_reports_acts_too(ws):
    def work(assignment):
        return " ".join(assignment.acts.report("offer", {"id": 3}).status for _ in range(2))

    assert run_directed(ws.engine, Function("f", work)).outcome.summary == "RECORDED ALREADY_DONE"
