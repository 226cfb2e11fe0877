"""A command that the server runs: the same bytes and the same exit status as in the command's own process."""

import json
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import termios
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from agentx import Workspace
from agentx.cli import forward
from agentx.cli.commands import COMMANDS
from agentx.cli.opened import opened
from agentx.client.client import Client
from agentx.settings import Settings

LINES = {
    "say": [
        ["say", "From now on, use British English."],
        ["say", "-"],
        ["say", "  "],
        ["say", "Never use left-pad.", "--json"],
    ],
    "recap": [["recap"], ["recap", "--json"], ["recap", "superfluous"]],
    "export show": [["export"], ["export", "show"], ["export", "show", "CLAUDE.md"]],
    "status": [
        ["status"],
        ["status", "--json"],
        ["status", "superfluous"],
        ["-C", "nowhere", "status"],
        ["-C", "/", "status"],
    ],
    "log": [
        ["log", "-n", "3"],
        ["log", "--json", "--all"],
        ["log", "--type", "Nonsense"],
        ["log", "--after", "2"],
    ],
    "diff": [["diff", "2", "--patch"], ["diff", "nonsense"]],
    "context": [
        ["context", "the outlook", "--explain", "--no-deadline"],
        ["context", "the outlook", "--json", "--no-deadline"],
    ],
    "search": [["search", "revenue", "-k", "2"], ["search", " "]],
    "memory list": [["memory"], ["memory", "list", "--all", "--json"], ["memory", "list", "--kind", "x"]],
    "memory show": [["memory", "show", "c-3"], ["memory", "show", "c-99"]],
    "memory pin": [["memory", "pin", "c-3"]],
    "memory retire": [["memory", "retire", "c-3"], ["memory", "retire", "c-99"]],
    "gate lessons": [["gate"]],
    "gate pre": [
        [
            "gate",
            "pre",
            "write",
            "--tool",
            "Write",
            "--arguments",
            '{"path": "requirements.txt", "content": "x"}',
        ],
        ["gate", "pre", "write", "--tool", "Write", "--arguments", "-"],
        ["gate", "pre", "x", "--arguments", "[1]"],
    ],
    "gate post": [
        ["gate", "post", "Wrote it", "--pass", "--lesson", "Read the figures first."],
        ["gate", "post", "x"],
    ],
    "flow list": [["flow"]],
    "flow show": [["flow", "show", "f-99"]],
    "flow check": [["flow", "check", "ship it"]],
    "schedule list": [["schedule"]],
    "agent mission list": [["agent", "mission"]],
    "agent boot": [["agent", "boot", "--agent", "writer"]],
    "agent capability list": [["agent", "capability"]],
}
"""Command lines of every command that is served; some are wrong, and one that has `-` reads stdin."""

INPUT = {
    "say": "Please don't use emojis\u00e9.".encode() + b"\xff",
    "gate": b'{"path": "a.md", "content": "x"}',
}

CHANGING = re.compile(
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z?)?|\b[0-9a-f]{7,64}\b|\"took_ms\": [\d.e-]+|in [\d.]+ ms"
)
"""What differs between two calls: times, and what is computed from them."""


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    root = tmp_path_factory.mktemp("template") / "task"
    with Workspace.create(root, title="Quarterly report", settings=Settings(environ=dict(os.environ))) as ws:
        ws.tools.write_file("outlook.md", "# Outlook\n\nRevenue grows.\n")
        ws.say("From now on, never create a requirements.txt file.")
        ws.say("please don't use emojis")
        ws.tools.write_file("outlook.md", "# Outlook\n\nRevenue shrinks.\n")
    return root


@pytest.fixture
def ways(template, tmp_path, place, server):
    """Call a command line in a copy of the workspace, in its own process and by the server."""

    def call(folder, words, environ, **options):
        environ = {**environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        given = INPUT.get(words[0], b"") if "-" in words else b""
        command = [sys.executable, "-m", "agentx", *words]
        return subprocess.run(
            command, cwd=folder, env=environ, input=given, capture_output=True, check=False, **options
        )

    def ways(words, **environ):
        done = []
        for name, off in (("copy-1", "1"), ("copy-2", "")):
            folder = tmp_path / name
            if not folder.exists():
                shutil.copytree(template, folder, symlinks=True)
            before = requests(place)
            done.append(call(folder, words, {**place, "AGENTX_NO_SERVER": off, **environ}))
            assert requests(place) - before == (off == ""), done
        return done

    return ways


def requests(environ):
    """The number of requests that the server answered, without those that ask for it."""
    with Client.connect(environ, start=False) as client:
        return client.call("server.status")["requests"]


def shown(done, name):
    out, err = (CHANGING.sub(b"#", text.replace(name, b"copy")) for text in (done.stdout, done.stderr))
    return done.returncode, out, err


def test_the_table_here_names_every_command_that_is_served():
    assert set(LINES) == {name for name, one in COMMANDS.items() if one.served}


@pytest.mark.parametrize("name", LINES)
def test_the_server_gives_the_same_bytes_and_the_same_status(name, ways):
    for words in LINES[name]:
        own, by_server = ways(words)
        assert shown(by_server, b"copy-2") == shown(own, b"copy-1"), words
        assert own.stdout or own.stderr


def test_a_terminal_gets_the_same_colours_and_the_same_width(ways, place, tmp_path):
    ways(["status"])
    shown = []
    for name, off in (("copy-1", "1"), ("copy-2", "")):
        environ = {**place, "AGENTX_NO_SERVER": off, "TERM": "xterm-256color"}
        shown.append(on_a_terminal(["memory", "list"], tmp_path / name, environ, columns=57))
    assert shown[0] == shown[1]
    assert b"\x1b[" in shown[0]
    assert max(len(line) for line in re.sub(rb"\x1b\[[0-9;]*m", b"", shown[0]).decode().splitlines()) <= 57


def on_a_terminal(words, folder, environ, columns):
    """What a terminal of so many columns shows."""
    above, below = pty.openpty()
    termios.tcsetwinsize(below, (20, columns))
    command = [sys.executable, "-m", "agentx", *words]
    with subprocess.Popen(
        command, cwd=folder, env=environ, stdin=below, stdout=below, stderr=below
    ) as process:
        os.close(below)
        shown = b""
        with suppress(OSError):  # it is how Linux tells that the other end is closed
            while piece := os.read(above, 1 << 16):
                shown += piece
        assert process.wait() == 0
    os.close(above)
    return shown


def test_a_reader_who_leaves_ends_it_quietly(ways, place, tmp_path):
    ways(["status"])
    with Workspace.open(tmp_path / "copy-2", settings=Settings(environ=place)) as ws:
        for number in range(40):
            ws.say(f"{number} " + "words " * 600)
    command = [sys.executable, "-m", "agentx", "log", "-n", "100", "--json"]
    with subprocess.Popen(
        command, cwd=tmp_path / "copy-2", env=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        assert running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == 141


@pytest.fixture
def stuck(place):
    """A server that accepts and never answers: its end is a test's to call."""
    where = Path(place["AGENTX_RUNTIME_DIR"])
    where.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(where / "socket"))
        listening.listen()
        yield listening


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (["status"], 0, ""),
        (["say", "Use British English from now on."], 0, ""),
        (["memory", "pin", "c-3"], 1, "it is unknown whether `agentx memory pin` was carried out"),
    ],
)
def test_a_server_that_dies_in_the_middle(words, status, told, stuck, place, template, tmp_path):
    folder = shutil.copytree(template, tmp_path / "copy", symlinks=True)
    command = [sys.executable, "-m", "agentx", *words]
    with subprocess.Popen(
        command, cwd=folder, env=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        connection, _ = stuck.accept()
        with connection:
            request = json.loads(connection.makefile().readline())
        out, err = running.communicate()
    assert (running.returncode, bool(out)) == (status, not told), (out, err)
    assert told in err.decode()
    with Workspace.open(folder, settings=Settings(environ=place)) as ws:
        assert [event.key for event in ws.events() if event.key] == [request["params"]["key"]] * (
            words[0] == "say"
        )


def test_what_a_dying_server_has_recorded_is_not_recorded_again(stuck, place, template, tmp_path):
    folder = shutil.copytree(template, tmp_path / "copy", symlinks=True)
    command = [sys.executable, "-m", "agentx", "say", "Use tabs."]
    with subprocess.Popen(command, cwd=folder, env=place, stdout=subprocess.PIPE) as running:
        connection, _ = stuck.accept()
        with connection:
            request = json.loads(connection.makefile().readline())
            with Workspace.open(folder, settings=Settings(environ=place)) as ws:
                ws.say("Use tabs.", key=request["params"]["key"])
        assert running.wait() == 0
    with Workspace.open(folder, settings=Settings(environ=place)) as ws:
        assert [event.describe() for event in ws.events()].count("user said: Use tabs.") == 1


def test_control_c_ends_the_wait(stuck, place, tmp_path):
    command = [sys.executable, "-m", "agentx", "status"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as running:
        connection, _ = stuck.accept()
        with connection:
            connection.makefile().readline()
            running.send_signal(signal.SIGINT)
            assert running.communicate() == (b"", b"")
        assert running.returncode == 130


def test_the_first_command_starts_the_server_and_does_not_wait_for_it(place, template, tmp_path):
    folder = shutil.copytree(template, tmp_path / "copy", symlinks=True)
    done = subprocess.run(
        [sys.executable, "-m", "agentx", "status"], cwd=folder, env=place, check=False, capture_output=True
    )
    assert (done.returncode, done.stderr) == (0, b"")
    with Client.connect(place) as client:
        assert client.call("server.status")["requests"] == 0


@pytest.mark.parametrize(
    "marker", [{"AGENTX_RUN": "r-1.token"}, {"AGENTX_DEBUG": "1"}, {"AGENTX_NO_SERVER": "1"}]
)
def test_some_environments_use_no_server(marker, place, template, tmp_path):
    folder = shutil.copytree(template, tmp_path / "copy", symlinks=True)
    command = [sys.executable, "-m", "agentx", "status"]
    assert (
        subprocess.run(
            command, cwd=folder, env={**place, **marker}, check=False, capture_output=True
        ).returncode
        == 0
    )
    assert not Path(place["AGENTX_RUNTIME_DIR"]).exists()


def test_a_command_inside_a_run_cannot_act_as_the_user(client, place, template, tmp_path):
    """It asks the server directly, without the variable that marks it."""
    folder = shutil.copytree(template, tmp_path / "copy", symlinks=True)
    code = (
        "import json, os, sys\n"
        "from agentx.client.client import Client\n"
        "environ = {name: value for name, value in os.environ.items() if name != 'AGENTX_RUN'}\n"
        "with Client.connect(environ, start=False) as client:\n"
        "    print(json.dumps(client.call('command.run', argv=sys.argv[1:], cwd=os.getcwd())))\n"
    )
    for words, status in ((["say", "Obey."], 1), (["status"], 0)):
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            cwd=folder,
            env={**place, "AGENTX_RUN": "r-1.token", "PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True,
            check=True,
        )
        answer = json.loads(done.stdout)
        assert answer["status"] == status
        assert ("refused inside an agent's run" in answer["output"][0][1]) == bool(status)


@pytest.mark.parametrize("words", [["status"], ["say", "Use tabs."], ["memory", "pin", "c-3"]])
def test_a_server_that_was_stopped_is_left_alone(words, server, place, template, tmp_path):
    """What it was not sent, it cannot do later: so also what must not be done twice is done here."""
    folder = shutil.copytree(template, tmp_path / "copy", symlinks=True)
    server.send_signal(signal.SIGSTOP)
    try:
        command = [sys.executable, "-m", "agentx", *words]
        done = subprocess.run(command, cwd=folder, env=place, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
    finally:
        server.send_signal(signal.SIGCONT)
    with Client.connect(place, start=False) as client:
        assert client.call("server.status")["workspaces"] == []


@pytest.mark.parametrize("words", [["status"], ["say", "Use tabs."]])
def test_a_server_that_does_not_live_is_not_waited_for(words, stuck, place, template, tmp_path):
    """It took the request and says nothing, not even to another client; the command can be run again."""
    folder = shutil.copytree(template, tmp_path / "copy", symlinks=True)
    command = [sys.executable, "-m", "agentx", *words]
    done = subprocess.run(command, cwd=folder, env=place, capture_output=True, check=False, timeout=50)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_note_is_shown_once_by_whichever_command(client, place, template, tmp_path):
    """One command ends while another has shown nothing yet: what came meanwhile is not lost."""
    settings = Settings(environ=place)
    folder = shutil.copytree(template, tmp_path / "copy", symlinks=True)
    with Workspace.open(folder, settings=settings) as ws:
        notes = ws.engine.write_path.notes

        def terminal():
            caller = SimpleNamespace(take=lambda _folder: nullcontext(ws))
            told = []
            return SimpleNamespace(
                folder=folder, caller=caller, settings=settings, note=told.append, told=told
            )

        notes[:] = ["old"]
        first, second, third = terminal(), terminal(), terminal()
        with opened(first):
            with opened(second):
                notes.append("new")
            assert second.told == ["old", "new"]
            notes.append("later")
        with opened(third):
            pass
        assert first.told == ["old", "later"]
        assert third.told == []
        assert notes == []


def test_a_server_that_is_busy_lives(server, place, monkeypatch):
    monkeypatch.setattr("agentx.client.place.environment", lambda environ=None: place)
    assert forward._lives()
    server.send_signal(signal.SIGSTOP)
    try:
        assert not forward._lives()
    finally:
        server.send_signal(signal.SIGCONT)
