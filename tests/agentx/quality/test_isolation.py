"""Attacks from inside a command, with each isolation and without: what docs/safety.md says must be what happens."""

import contextlib
import ctypes
import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.quality import confine
from agentx.quality.sandbox import SandboxPolicy, run_in_copy
from agentx.settings import Settings
from tests.agentx.quality import attacks
from tests.agentx.quality.conftest import why_not

ROOT = Path(__file__).parents[3]
KINDS = ("bubblewrap", "landlock", "none")
KEY = "sk-victims-own-key"
COLUMNS = list(dict.fromkeys(column for column, _ in attacks.ATTACKS.values()))

REAL = {
    *("read_home", "read_log", "list_home", "read_through_own_root", "read_by_link_in_tree", "watch_home"),
    *("read_environment", "read_parents_environment", "read_command_lines", "enter_root_of_process"),
    *(
        "append",
        "empty_by_name",
        "append_through_link_made_before",
        "replace",
        "append_through_hard_link",
        "write_by_anonymous_program",
    ),
    *("write_git", "write_settings", "rename_workspace", "write_home", "write_temporary", "delete_file"),
    *("change_mode", "change_times", "connect_loopback", "send_datagram", "connect_in_home"),
    *(
        "connect_in_workspace",
        "signal_process",
        "signal_parent",
        "signal_group",
        "limit_process",
        "slow_process",
        "schedule_process",
    ),
    *("say", "set_isolation", "retire_rule", "dump_core", "stat_home"),
}
"""Attacks that must work without isolation on any Linux: so the others fail for the isolation, not for a mistake."""


@contextlib.contextmanager
def _shared_memory():
    """A segment of System V shared memory that belongs to this user, by its key."""
    libc, key = ctypes.CDLL(None, use_errno=True), uuid.uuid4().int & 0x7FFF_FFFF
    made = libc.shmget(key, 4096, 0o1600)  # IPC_CREAT
    yield key
    if made >= 0:
        libc.shmctl(made, 0, None)  # IPC_RMID


@contextlib.contextmanager
def _victim(marker):
    """A process of the same user with a key in its environment."""
    command = [sys.executable, "-c", "input()", marker, "tests"]
    environ = {**os.environ, "OPENAI_API_KEY": KEY, "MARKER": marker}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, start_new_session=True) as process:
        yield process.pid
        process.communicate(b"\n")


@contextlib.contextmanager
def _listening(*names):
    """Sockets that answer, each at its address."""
    with contextlib.ExitStack() as stack:
        made = []
        for family, kind, name in names:
            one = stack.enter_context(socket.socket(family, kind))
            one.bind(name)
            if kind == socket.SOCK_STREAM:
                one.listen()
            made.append(one)
        yield made


def _echo(one):
    with contextlib.suppress(OSError):
        while True:
            content, sender = one.recvfrom(99)
            one.sendto(content, sender)


@functools.cache
def attacked(isolation):
    """What each attack came to under one isolation; which files of the workspace changed; what lies outside the copy."""
    with (
        tempfile.TemporaryDirectory(
            prefix="atk"
        ) as base,  # where copies lie: links can lead from one to the other
        tempfile.TemporaryDirectory() as scratch,
    ):
        return _attack(isolation, Path(base), Path(scratch))


def _attack(isolation, base, scratch):
    home, workspace, marker = base / "home", base / "w", uuid.uuid4().hex
    home.mkdir()
    (home / "token").write_text("secret")
    (home / "spare").write_text("secret")
    (home / "token").chmod(0o600)
    with Workspace.create(workspace, settings=Settings(cache_dir=base / "no-models")) as ws:
        ws.say("Never create a requirements.txt file; use pyproject.toml instead.")
        rule = ws.memory()[0].id
    before = {path: path.read_bytes() for path in _held(workspace)}
    tree = scratch / "artifacts"
    tree.mkdir()
    (tree / "attacks.py").write_text(Path(attacks.__file__).read_text())
    with (
        _victim(marker) as victim,
        _shared_memory() as shared,
        _listening(
            (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0)),
            (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0)),
            (socket.AF_UNIX, socket.SOCK_STREAM, str(home / "agent")),
            (socket.AF_UNIX, socket.SOCK_STREAM, str(workspace / "agent")),
            (socket.AF_UNIX, socket.SOCK_DGRAM, str(home / "datagram")),
            (socket.AF_UNIX, socket.SOCK_STREAM, f"\0{marker}"),
        ) as sockets,
    ):
        threading.Thread(target=_echo, args=[sockets[1]], daemon=True).start()
        targets = {
            "home": str(home),
            "workspace": str(workspace),
            "temporary": str(base),
            "made_before": str(workspace / "history.jsonl"),
            "key": KEY,
            "parent": os.getpid(),
            "victim": victim,
            "marker": marker,
            "shared": shared,
            "port": sockets[0].getsockname()[1],
            "datagram_port": sockets[1].getsockname()[1],
            "abstract": marker,
            "python_path": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
            "state": str(base / "state"),
            "rule": rule,
        }
        policy = SandboxPolicy(
            environ={"PATH": os.environ["PATH"], "HOME": str(home), "OPENAI_API_KEY": KEY},
            isolation=isolation,
            readable=[ROOT],
            hidden=[workspace],
        )
        done = run_in_copy(
            tree,
            ["python", "attacks.py", json.dumps(targets)],
            timeout_s=120,
            max_output_bytes=1_000_000,
            policy=policy,
        )
    assert done.exit_code == 0, done.output
    found = json.loads(done.output.splitlines()[-1])
    changed = sorted(path.name for path, content in before.items() if path.read_bytes() != content)
    return found, changed, sorted(path.name for path in base.iterdir())


def _held(workspace):
    return [path for path in workspace.rglob("*") if path.is_file() and ".agentx" not in path.parts]


@pytest.fixture(params=KINDS)
def isolation(request):
    """Each kind of isolation that works here, and none."""
    if reason := why_not(request.param):
        pytest.skip(reason)
    if not confine.filters_here():
        pytest.skip("the attacks know the system calls of 64-bit Linux on x86 and ARM alone")
    return request.param


def _documented():
    """The table of docs/safety.md: for each row, what it says of each kind."""
    text = (ROOT / "docs" / "safety.md").read_text("utf-8")
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"
    ]
    start = next(place for place, row in enumerate(rows) if row[1:] == ["bubblewrap", "Landlock", "none"])
    found = {}
    for row in rows[start + 2 :]:
        if len(row) != len(KINDS) + 1:
            break
        found[row[0]] = dict(zip(KINDS, row[1:], strict=True))
    return found


@pytest.mark.parametrize("column", COLUMNS)
def test_a_command_can_do_what_the_table_says_and_no_more(isolation, column):
    """Each cell of the table in docs/safety.md is what the attacks of that row came to."""
    old = isolation == "landlock" and confine.landlock_abi() < confine.SIGNAL_ABI
    if old and column == "signals or limits your processes":
        pytest.skip("this kernel's Landlock does not hold signals, as the result of each command says")
    found = attacked(isolation)[0]
    worked = {name: one["said"] for name, one in found.items() if one["column"] == column and one["worked"]}
    assert (_documented()[column][isolation] == "yes") == bool(worked), worked


def test_every_row_of_the_table_is_attacked():
    """The table in docs/safety.md has no row without a test."""
    assert set(_documented()) == set(COLUMNS)


def test_the_attacks_work_where_nothing_isolates():
    """An attack that fails under isolation fails because of it: without isolation the same program succeeds."""
    if not confine.filters_here():
        pytest.skip("the attacks know the system calls of 64-bit Linux on x86 and ARM alone")
    found, changed, beside = attacked("none")
    assert {name: found[name]["said"] for name in REAL if not found[name]["worked"]} == {}
    assert {"agentx.toml", "config", "history.jsonl"} <= set(changed)
    assert "agentx-was-here" in beside


def test_nothing_of_the_user_changes_under_attack(isolation):
    """What an isolated command said of its attacks is checked from outside: no byte of the workspace changed."""
    if isolation == "none":
        pytest.skip("there everything changes")
    _, changed, beside = attacked(isolation)
    assert (changed, beside) == ([], ["home", "w"])
