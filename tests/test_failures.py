"""The sentences of docs/failures.md that its own examples cannot bring about: each fault is made here, and the sentence compared.

Real processes, a real full disk and a real read-only mount, in a mount namespace of their own; skipped where the system does not
allow one.
"""

import errno
import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from agentx import Workspace, factory
from agentx.agents import turn
from agentx.cli import forward
from agentx.hosts import away
from agentx.recording.write_path import ReadOnly
from agentx.storage.files.lock import FileLock, LockNotTaken, WorkspaceBusy
from tests.test_docs import agrees, blocks

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "failures.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))
QUOTES = {
    title: [block.text.strip() for block in blocks(text) if block.language == "text"]
    for title, text in SECTIONS.items()
}
AGENTX = f"{sys.executable} -P -m agentx"


@pytest.fixture
def root(tmp_path):
    """A workspace with a rule and a file, which no process has open."""
    with Workspace.create(tmp_path / "shop") as ws:
        ws.say("Never create a requirements.txt file.")
        ws.tools.write_file("letter.md", "# Outlook\n")
    return tmp_path / "shop"


def in_a_namespace(script, *arguments):
    """Run a shell script that may mount; its output."""
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("a mount namespace is not allowed here")
    command = ["unshare", "-rm", "sh", "-c", script, "sh", *map(str, arguments)]
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    return done.stdout + done.stderr


def test_each_section_says_what_is_lost_and_names_a_test_that_exists():
    assert len(SECTIONS) > 20
    for title, text in SECTIONS.items():
        assert "**Lost:**" in text, title
        named = re.findall(r"`(tests/[\w/.]+)(?:::(\w+))?`", text)
        assert named, title
        for path, name in named:
            assert (ROOT / path).exists(), path
            assert not name or f"def {name}(" in (ROOT / path).read_text("utf-8"), name


def test_a_full_disk_refuses_and_loses_nothing(root, tmp_path):
    (disk := tmp_path / "disk").mkdir()
    said = in_a_namespace(
        'mount -t tmpfs -o size=1m none "$2" && cp -a "$1" "$2/shop" && cd "$2/shop"\n'
        "dd if=/dev/zero of=../fill bs=1k status=none 2> /dev/null\n"
        f"{AGENTX} say 'On a full disk.'; rm ../fill; {AGENTX} say 'Room.'; {AGENTX} log; {AGENTX} verify",
        root,
        disk,
    )  # fmt: skip
    (quote,) = QUOTES["Full disk"]
    assert any(agrees(quote, line) for line in said.splitlines()), said
    assert "said: Room." in said
    assert "On a full disk." not in said
    assert "No damage found" in said


def test_a_read_only_mount_can_be_read(root, tmp_path):
    (place := tmp_path / "mounted").mkdir()
    said = in_a_namespace(
        'mount --bind "$1" "$2" && mount -o remount,ro,bind "$2" && cd "$2"\n'
        f"{AGENTX} say 'No.'; {AGENTX} log",
        root,
        place,
    )
    (quote,) = QUOTES["Read-only mount"]
    assert any(agrees(quote, line) for line in said.splitlines()), said
    assert "Create letter.md" in said


def test_a_writer_that_does_not_let_go_is_named(root, in_a_process):
    lock = root / ".git" / "agentx.lock"
    with FileLock(lock).hold():
        said = in_a_process(
            "import sys; from pathlib import Path\n"
            "from agentx.storage.files.lock import FileLock, WorkspaceBusy\n"
            "try:\n  FileLock(Path(sys.argv[1]), timeout_s=0.2).hold().__enter__()\n"
            "except WorkspaceBusy as error: print(error)",
            lock,
        ).stdout
    assert agrees(QUOTES["Second writer"][0], said), said


def test_a_second_run_is_refused(root):
    with (
        Workspace.open(root) as ws,
        Workspace.open(root) as other,
        turn.alone(ws.engine),
        pytest.raises(WorkspaceBusy) as refused,
        turn.alone(other.engine),
    ):
        pass
    assert agrees(QUOTES["Second writer"][1], str(refused.value))


def test_where_files_cannot_be_locked_writing_is_refused(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(LockNotTaken) as refused, FileLock(tmp_path / "agentx.lock").hold():
        pass
    assert agrees(QUOTES["Network and case-insensitive file systems"][0], str(refused.value))


def test_a_command_cut_off_by_a_killed_server_says_what_is_unknown():
    assert agrees(QUOTES["Server killed"][0], forward._UNKNOWN.format("run"))


def test_a_workspace_of_a_newer_version_opens_for_reading(root, monkeypatch):
    monkeypatch.setattr(factory, "FORMAT", 0)
    with Workspace.open(root) as ws:
        with pytest.raises(ReadOnly) as refused:
            ws.say("No.")
        assert "Never create a requirements.txt file." in ws.get_relevant_context("anything").text
    assert agrees(QUOTES["Server of another version"][0], str(refused.value))


def test_a_hook_without_an_answer_says_what_still_holds():
    said = away._UNASKED.format(checked="1 compiled check")
    assert agrees(QUOTES["Hook times out"][0], said)
