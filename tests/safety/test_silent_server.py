"""A server that answers nobody: it is told apart from none, `--stop` ends it, and it ends itself."""

import json
import os
import signal
import subprocess
import sys

import pytest

from agentx.client.place import runtime_dir
from tests.agentx.server.conftest import WAIT_S, place, server  # noqa: F401 - fixtures


@pytest.fixture
def serve(place):  # noqa: F811 - the fixture
    """Call `agentx serve` with an option; returns what it prints as JSON."""

    def call(option, **environ):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "agentx", "--json", "serve", option],
            env={**place, **environ},
            capture_output=True,
            text=True,
            check=False,
            timeout=WAIT_S,
        )
        return json.loads(done.stdout or done.stderr)

    return call


@pytest.fixture
def stopped(server):  # noqa: F811 - the fixture
    """A server that the system holds."""
    os.kill(server.pid, signal.SIGSTOP)
    yield server
    if server.poll() is None:
        os.kill(server.pid, signal.SIGCONT)


BUSY = """
import re, sys, threading, time
from agentx.server import server, watchdog
from agentx.settings import read_settings
watchdog.LIMIT_S = float(sys.argv[1])
def freeze():  # keeps Python's lock for ever
    while not server.answers(place):
        time.sleep(0.01)
    print("frozen", flush=True)
    re.match("(a|aa)+$", "a" * 90 + "b")
settings = read_settings()
place = str(settings.runtime_dir)
threading.Thread(target=freeze, daemon=True).start()
server.serve(settings)
"""


@pytest.fixture
def busy(place):  # noqa: F811 - the fixture
    """Start a server that a thread of its own keeps from ever answering."""
    started = []

    def start(limit_s):
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", BUSY, str(limit_s)], env=place, stdout=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stdout.readline() == "frozen\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_stopped_server_runs_and_does_not_answer(serve, stopped):
    found = serve("--status")
    assert (found["running"], found["answers"], found["pid"]) == (True, False, stopped.pid)


def test_a_stopped_server_is_ended(serve, stopped):
    assert serve("--stop")["pid"] == stopped.pid
    stopped.wait(WAIT_S)
    assert serve("--status") == {"running": False}
    assert serve("--stop") == {"running": False}


def test_a_server_that_only_kill_ends_is_killed(serve, busy):
    process = busy(600)
    found = serve("--status")
    assert (found["running"], found["answers"], found["pid"]) == (True, False, process.pid)
    assert serve("--stop")["stopped"]
    assert process.wait(WAIT_S) == -signal.SIGKILL
    assert serve("--status") == {"running": False}


def test_a_server_that_answers_nobody_ends_itself(busy):
    assert busy(2).wait(WAIT_S) == -signal.SIGALRM


def test_a_server_that_answers_does_not(server, serve):  # noqa: F811 - the fixture
    assert serve("--status")["pid"] == server.pid
    assert serve("--stop") == {"stopped": True}
    assert server.wait(WAIT_S) == 0


def test_an_agents_run_ends_no_server(serve, stopped):
    with pytest.raises(json.JSONDecodeError):  # it says that it refuses
        serve("--stop", AGENTX_RUN="r-1")
    assert stopped.poll() is None


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "1", str(os.getppid()), "9" * 30])
def test_a_lock_that_names_another_process_ends_none(serve, place, text):  # noqa: F811 - the fixture
    where = runtime_dir(place)
    os.mkdir(where, 0o700)
    hold = "import fcntl, sys, time; one = open(sys.argv[1]); fcntl.flock(one, 2); print(1, flush=True); time.sleep(600)"
    with open(f"{where}/lock", "w") as lock:
        lock.write(text)
    with subprocess.Popen([sys.executable, "-c", hold, f"{where}/lock"], stdout=subprocess.PIPE) as holding:
        assert holding.stdout.readline()
        assert serve("--stop") == {"running": False}
        assert holding.poll() is None
        holding.kill()
