"""What the tests stand on holds: no person's configuration, and no way out of the machine."""

import os
import pwd
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests import suites

ROOT = Path(__file__).resolve().parents[1]


def test_git_knows_nobody():
    shown = subprocess.run(["git", "config", "--list"], cwd="/", capture_output=True, text=True, check=False)
    assert shown.stdout == ""


def test_home_is_nobodys_and_the_cache_is_kept_outside_it():
    assert Path.home() != Path(pwd.getpwuid(os.getuid()).pw_dir)
    assert not os.environ["AGENTX_CACHE_DIR"].startswith(str(Path.home()))


@pytest.mark.parametrize("address", ["203.0.113.1", "registry.example"])
def test_the_network_is_out_of_reach(reached_outside, address):
    with pytest.raises(AssertionError, match="tried to reach"):
        socket.create_connection((address, 80), timeout=5)
    assert reached_outside == [address]
    reached_outside.clear()  # or this test would fail, as any other would


def test_a_child_process_finds_no_network_either():
    code = "import urllib.request as r; r.urlopen('http://registry.example', timeout=5)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "refused" in done.stderr


def test_a_server_on_this_machine_is_within_reach():
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
        assert urllib.request.proxy_bypass("127.0.0.1")


def test_a_wait_for_a_child_ends(monkeypatch):
    monkeypatch.setattr("tests.conftest._WAIT_S", 0.1)
    for name in ("wait", "communicate"):
        with subprocess.Popen(["sleep", "1000"]) as child, pytest.raises(subprocess.TimeoutExpired):
            getattr(child, name)()
    assert subprocess.run(["cat"], input=b"x", capture_output=True, check=True).stdout == b"x"


def test_ctrl_c_reaches_children_also_where_the_tests_run_in_the_background():
    code = (
        "import signal, subprocess, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "import pytest\n"
        "class Here:\n"
        "    def pytest_configure(self, config):\n"
        "        done = subprocess.run([sys.executable, '-c', 'import signal; signal.raise_signal(signal.SIGINT)'], capture_output=True)\n"
        "        print('ended by', done.returncode)\n"
        "pytest.main(['-q', '-p', 'no:cacheprovider', '--collect-only', 'tests/test_conftest.py', '-k', 'none'], plugins=[Here()])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"ended by {-signal.SIGINT}" in done.stdout


@pytest.mark.parametrize("name", suites.SUITES)
def test_a_suite_is_where_the_table_says_and_has_a_smoke_test(name):
    suite = suites.SUITES[name]
    files = [
        file
        for place in suite.places
        for file in [ROOT / place, *(ROOT / place).rglob("test_*.py")]
        if file.is_file()
    ]
    assert files
    text = "".join(file.read_text("utf-8") for file in files)
    for test in suite.smoke:
        assert f"def {test.partition('[')[0]}(" in text
    assert f"{name}:" in (ROOT / "Makefile").read_text("utf-8")
    assert f"make {name}" in (ROOT / ".ci" / "nightly").read_text("utf-8")
