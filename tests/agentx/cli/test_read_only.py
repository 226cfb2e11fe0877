"""On a disk that takes nothing, what only reads works, and what writes says in one sentence why it cannot."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from agentx import Workspace
from agentx.cli.commands import COMMANDS
from agentx.scheduling import schedules
from agentx.storage.events.schedule_events import ScheduleSet
from tests.agentx.cli.conftest import ROOT, Done
from tests.agentx.cli.test_every_command import GOOD

NOBODY = 65534

ALSO_READING = {
    "check", "flow backtest", "flow check", "follow", "gate pre", "inspect", "mcp", "memory check", "memory maintain", "memory scribe", "rebuild", "repair", "schedule heartbeat", "serve", "tool", "uninstall",
}  # fmt: skip
"""What reads as it is called here, or has nothing to write: `backtest --dry-run`, `scribe --pending`, a sound `repair`, `serve --status`,
an `uninstall` of nothing, `follow` without a source, `tool read_file`, `check outlook.md`."""

NOTHING_TO_DO = {"approve", "pipeline amend", "pipeline redo"}
"""What is refused as wrong use before it comes to the disk: nothing waits, nothing was started."""

NOT_THE_DISK = {
    "schedule daemon", "pipeline run", "pull", "trust issue",
    "fleet init", "fleet status", "fleet submit", "fleet worker", "fleet drain", "fleet prune", "fleet search", "fleet index",
}  # fmt: skip
"""What ends for another reason, which it says."""

_CALLS = """
import contextlib, io, json, os, sys
from agentx.cli.main import main
user, warm, calls = json.load(sys.stdin)
sys.stdin = io.StringIO()

def call(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()

for words in warm:  # what is loaded late may be out of another user's reach
    assert call(words)[0] == 0, words
if user is not None:
    os.setgroups([]); os.setgid(user); os.setuid(user)
print(json.dumps([call(words) for words in calls]), file=sys.__stdout__)
"""
_READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'
_FULL = 'mount -t tmpfs -o size=1m none "$0" && cp -a "$1/." "$0" && cat /dev/zero > "$0/filler" 2> /dev/null; shift; exec "$@"'


def private_mounts():
    """A command that runs another one where its mounts are its own; ``None`` where that is not allowed."""
    options = ["--mount"] if os.getuid() == 0 else ["--mount", "--map-root-user"]
    command = ["unshare", *options]
    trial = [*command, "sh", "-c", "mount -t tmpfs none /tmp"]
    try:
        done = subprocess.run(trial, capture_output=True, check=False)
    except FileNotFoundError:
        return None
    return None if done.returncode else command


def calls_in(base, calls, prefix=(), user=None, warm=()):
    """Call the command line in a process that some other command starts; what each call gave, by its name."""
    environ = os.environ | {
        "PYTHONPATH": str(ROOT),
        "HOME": str(base / "home"),
        "AGENTX_STATE_DIR": str(base / "state"),
        "AGENTX_CACHE_DIR": str(base / "no-models"),
        "PIP_NO_INDEX": "1",
        "AGENTX_SERVER_IDLE_S": "0.1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    done = subprocess.run(
        [*prefix, sys.executable, "-c", _CALLS],
        input=json.dumps([user, list(warm), list(calls.values())]),
        env=environ, cwd="/", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(zip(calls, (Done(*said) for said in json.loads(done.stdout)), strict=True))


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """A directory with a workspace, a home and what the commands are given."""
    base = tmp_path_factory.mktemp("disk").resolve()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AGENTX_STATE_DIR", str(base / "state"))
        (base / "home").mkdir()
        with Workspace.create(base / "task", title="A task") as ws:
            ws.tools.write_file("outlook.md", "# Outlook\n\nRevenue grows.\n")
            ws.say("From now on, never create a requirements.txt file.")
            ws.say("please don't use emojis")
            ws.tools.write_file("outlook.md", "# Outlook\n\nRevenue shrinks.\n")
            ws.flows.add("ship it", ["Build it.", "Ship it."])
            for text in ("Round prices up.", "Round all prices up, please."):
                ws.remember("rule", text)
            schedules.add(ws, ScheduleSet(id="news", cron="0 0 1 1 *", task="Look for news."))
    (base / "note.txt").write_text("a note")
    (base / "turns.jsonl").write_text('{"answer": "An outlook."}\n')
    (base / "one.yaml").write_text(
        "{pipeline: one, files: {a: {path: a.md, class: static}}, roles: {r: {writes: [{file: a}]}}, stages: [{id: s, role: r}]}"
    )
    subprocess.run(["git", "clone", "-q", "--bare", base / "task", base / "bare.git"], check=True)
    return base


def called(names, base, root):
    """Words of command lines that work on a workspace, by their name and the workspace's."""
    with Workspace.open(base / "task") as ws:
        (flow,) = (item.id for item in ws.memory("flow"))
        rule, other = (item.id for item in ws.memory("rule"))
    places = {name: root.parent / file for name, file in _FILES.items()}
    places |= {"flow": flow, "rule": rule, "other": other, "script": f"script:{root.parent}/turns.jsonl"}
    return {
        (root.name, name): [word.format(**places) for word in GOOD[name]]
        + (["-C", str(root)] if name != "init" else [])
        for name in names
    }


_FILES = {"new": "new", "bare": "bare.git", "file": "note.txt", "pipeline": "one.yaml"}


def _cut_off(root):
    """A process that died amid its work: its lock, events in no commit, a file that is not in place, a torn line."""
    with subprocess.Popen(
        [sys.executable, "-c", _DIES, str(root)], env=os.environ | {"PYTHONPATH": str(ROOT)}
    ) as child:
        assert child.wait() == 9
    with (root / "history.jsonl").open("ab") as file:
        file.write(b'{"seq":99')


_DIES = """
import os, sys
from agentx import Workspace
ws = Workspace.open(sys.argv[1])
ws._keeper.stop()
ws.say("not committed")
ws.engine.write_path._commit_soon = lambda actor: os._exit(9)
ws.tools.write_file("half.md", "half done")
"""


def _without_caches(root):
    shutil.rmtree(root / ".agentx")
    (root / ".git/agentx.lock").unlink()


def _cloned(root):
    shutil.rmtree(root)
    subprocess.run(["git", "clone", "-q", root.with_name("task"), root], check=True)


STATES = {
    "copied": lambda root: None,
    "cut-off": _cut_off,
    "cloned": _cloned,
    "without-caches": _without_caches,
    "edited": lambda root: (root / "artifacts/outlook.md").write_text("edited\n"),
}


def copied(base, tmp_path):
    """A copy of the directory, whose workspace was opened there, so that its caches count."""
    place = Path(shutil.copytree(base, tmp_path / "disk", symlinks=True))
    place.chmod(0o755)
    calls_in(place, called(["status"], base, place / "task"))
    return place


def fails_in_one_sentence(name, done):
    """Notes may stand before it."""
    assert done.code in (1, 2), (name, done)
    assert re.fullmatch(r"([•·!] [^\n]+\n)*agentx: [^\n]+\n", done.err), (name, done)
    assert "A fault in AgentX" not in done.err, (name, done)


def fingerprint(place):
    return {str(path): path.lstat().st_mtime_ns for path in place.rglob("*")}


@pytest.fixture(scope="module")
def mounts():
    """A command that runs another one where its mounts are its own."""
    command = private_mounts()
    if command is None:
        pytest.skip("nothing can be mounted here")
    return command


LOOKS = ("status", "log", "search", "context", "memory list", "diff", "verify", "doctor")


def test_where_nothing_can_be_written_every_command_works_or_says_why(base, tmp_path, mounts):
    """The home and the state directory are on it as well; what a crash or a clone left is read, and nothing is changed."""
    place = copied(base, tmp_path)
    calls = called(COMMANDS, base, place / "task")
    for name, change in STATES.items():
        root = Path(shutil.copytree(place / "task", place / name, symlinks=True))
        change(root)
        calls |= called(LOOKS, base, root)
    before = fingerprint(place)
    found = calls_in(place, calls, [*mounts, "sh", "-c", _READ_ONLY, str(place)])
    assert fingerprint(place) == before
    for (where, name), done in found.items():
        assert "Traceback" not in done.err, (where, name, done)
        if name in {"verify", "doctor"} and where in {"cut-off", "edited"}:
            assert done.code <= 1, (where, name, done)
        elif name in ALSO_READING or COMMANDS[name].reads:
            assert (done.code, bool(done.out)) == (0, True), (where, name, done)
        elif name in NOTHING_TO_DO:
            assert done.code == 2, (where, name, done)
        else:
            fails_in_one_sentence(name, done)
            assert "read-only" in done.err.lower() or name in NOT_THE_DISK, (where, name, done)
    assert found["task", "say"].err.count("open read-only") == 1
    for where in ("task", *STATES):
        assert "open read-only" in found[where, "status"].err
        assert "Revenue shrinks" in found[where, "search"].out
    assert "not committed" in found["cut-off", "log"].out


SHUT = (".", ".git", ".git/objects", ".git/refs/heads", "history.jsonl", "everything")


def test_a_user_without_the_right_to_write_can_read(base):
    """As an ordinary user; what writes says which file or directory it is."""
    with tempfile.TemporaryDirectory(
        ignore_cleanup_errors=True
    ) as name:  # pytest shuts its own to other users
        Path(name).chmod(0o755)
        found = _as_an_ordinary_user(base, Path(name).resolve())
    assert {where for where, _ in found} == {f"task{number}" for number in range(len(SHUT))}
    assert {name for _, name in found} == {*LOOKS, "say", "add", "undo"}


def _as_an_ordinary_user(base, tmp_path):
    place = copied(base, tmp_path)
    calls = {}
    for number, shut in enumerate(SHUT):
        root = Path(shutil.copytree(place / "task", place / f"task{number}", symlinks=True))
        calls |= called([*LOOKS, "say", "add", "undo"], base, root)
    warm = called(
        [*LOOKS, "say", "add", "undo"],
        base,
        Path(shutil.copytree(place / "task", place / "warm", symlinks=True)),
    )
    user = None if os.getuid() else NOBODY
    if user:
        for path in (place, *place.rglob("*")):
            if not path.is_relative_to(place / "warm"):
                os.chown(path, user, user, follow_symlinks=False)
    for number, shut in enumerate(SHUT):
        root = place / f"task{number}"
        for path in [root, *root.rglob("*")] if shut == "everything" else [root / shut]:
            path.chmod(path.stat().st_mode & ~0o222)
    try:
        found = calls_in(place, calls, user=user, warm=warm.values())
    finally:
        for path in place.rglob("*"):
            path.chmod(path.stat().st_mode | 0o200)
    for (where, name), done in found.items():
        if name in LOOKS:
            assert done.code == 0, (where, name, done)
        else:
            fails_in_one_sentence(name, done)
            assert "You do not have permission to write" in done.err, (where, name, done)
    return found


def test_on_a_full_disk_a_workspace_opens_for_reading(base, tmp_path, mounts):
    """What a crash left uncommitted is shown, and stays as it is."""
    place = copied(base, tmp_path)
    _cut_off(Path(shutil.copytree(place / "task", place / "cut-off", symlinks=True)))
    disk = tmp_path / "full"
    disk.mkdir()
    calls = called([*LOOKS, "say", "add"], base, disk / "task")
    calls |= called([*LOOKS, "say", "add"], base, disk / "cut-off")
    found = calls_in(disk, calls, [*mounts, "sh", "-c", _FULL, str(disk), str(place)])
    for (where, name), done in found.items():
        assert "Traceback" not in done.err, (where, name, done)
        if name in {"say", "add"}:
            fails_in_one_sentence(name, done)
            assert "No space left" in done.err, (where, name, done)
        elif name not in {"verify", "doctor"}:
            assert done.code == 0, (where, name, done)
    for where in ("task", "cut-off"):
        assert "Revenue shrinks" in found[where, "search"].out
    assert "not committed" in found["cut-off", "log"].out
    assert "open read-only" in found["cut-off", "status"].err
