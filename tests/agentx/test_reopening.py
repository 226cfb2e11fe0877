"""What a workspace costs after it was reopened: counts of what is read, which follow what happened since, not its size."""

import json
import os
import shutil
import subprocess

import pytest

from agentx import Workspace
from agentx.engine.synthesizer import _WATERMARK_LAG, Synthesizer
from agentx.storage.events.types import ArtifactChanged
from agentx.storage.git import index_file
from agentx.storage.git.objects import blob_id
from agentx.storage.git.recovery import git_repair

_PROGRAM = """
import os, signal, sys
from pathlib import Path
from agentx import Workspace
from agentx.settings import Settings
ws = Workspace.open(sys.argv[1], settings=Settings(environ=dict(os.environ), cache_dir=Path(sys.argv[1]) / "no-models"))
{code}
os.kill(os.getpid(), signal.SIGKILL)
"""

_COUNTED = """
import json, os, sys
from pathlib import Path
from agentx import Workspace
from agentx.settings import Settings
from agentx.storage.git import objects

root, opened = sys.argv[1], []
sys.addaudithook(lambda name, said: name in ("open", "os.scandir") and opened.append(str(said[0])))
settings = Settings(environ=dict(os.environ), cache_dir=Path(root) / "no-models")
Workspace.open(root, settings=settings).tools  # what is loaded once
opened.clear()
ws = Workspace.open(root, settings=settings)
mark = len(opened)
ws.tools.write_file("d00/f00.txt", "new")
within = lambda names: sum(name.startswith(root) for name in names)
print(json.dumps([within(opened[:mark]), within(opened[mark:])]), flush=True)
os._exit(0)
"""


@pytest.fixture
def killed(ws, lexical, in_a_process):
    """Work in another process, which is killed; then open the workspace again."""
    ws.close()
    opened = []

    def kill(code):
        done = in_a_process(_PROGRAM.format(code=code), ws.root)
        assert done.returncode == -9, done.stderr
        opened.append(Workspace.open(ws.root, settings=lexical))
        return opened[-1]

    yield kill
    for one in opened:
        one.close()


@pytest.fixture
def parsed(monkeypatch):
    """Every time that an index file is read whole."""
    read = []

    class Counted(index_file._Index):
        def __init__(self, path):
            if path.endswith("/index"):  # and not the copy that the engine writes
                read.append(path)
            super().__init__(path)

    monkeypatch.setattr(index_file, "_Index", Counted)
    return read


def _git(ws, *arguments):
    command = ["git", "-C", str(ws.root), "-c", "user.name=P", "-c", "user.email=p@x", *arguments]
    subprocess.run(command, check=True, capture_output=True)


def _noticed(ws):
    return [event.data.noticed for event in ws.events() if isinstance(event.data, ArtifactChanged)]


# --- a write ---------------------------------------------------------------------------------------------------------


def test_no_write_after_reopening_reads_git_s_index(ws, lexical, parsed):
    """Neither the first one nor a later one: a note says that the file is as the engine left it."""
    ws.tools.write_file("a.txt", "1")
    ws.close()
    with Workspace.open(ws.root, settings=lexical) as again:
        for number in range(3):
            again.tools.write_file("a.txt", f"again {number}")
        assert parsed == []


@pytest.mark.parametrize("command", [["status"], ["add", "artifacts"]])
def test_after_a_git_command_the_index_is_read_once(ws, lexical, parsed, command):
    """At the open, and not at each write; after a turn no more."""
    ws.tools.write_file("a.txt", "1")
    ws.tools.write_file("b.txt", "1")
    ws.close()
    os.utime(ws.artifacts / "b.txt", ns=(1, 1))
    _git(ws, *command)
    with Workspace.open(ws.root, settings=lexical) as again:
        for number in range(3):
            again.tools.write_file("a.txt", f"again {number}")
        assert len(parsed) == 1
    parsed.clear()
    with Workspace.open(ws.root, settings=lexical) as again:
        again.tools.write_file("a.txt", "once more")
        assert parsed == []


def test_what_is_staged_between_two_processes_is_recorded(ws, lexical):
    """The note of the process before does not cover it."""
    ws.tools.write_file("a.txt", "engine")
    ws.close()
    (ws.artifacts / "a.txt").write_text("staged")
    _git(ws, "add", "artifacts/a.txt")
    (ws.artifacts / "a.txt").write_text("edited")
    with Workspace.open(ws.root, settings=lexical) as again:
        again.tools.write_file("a.txt", "engine again")
        assert _noticed(again) == ["index", "write"]


def test_what_stays_staged_over_a_turn_is_recorded_before_a_write_covers_it(ws, lexical):
    """The engine wrote the index file in between, with the staged entry in it."""
    ws.tools.write_file("a.txt", "engine")
    ws.tools.write_file("b.txt", "engine")
    ws.flush()
    (ws.artifacts / "b.txt").write_text("staged")
    _git(ws, "add", "artifacts/b.txt")
    ws.tools.write_file("a.txt", "engine again")
    ws.flush()
    (ws.artifacts / "b.txt").write_text("edited")
    ws.tools.write_file("b.txt", "engine again")
    assert _noticed(ws) == ["index", "write"]
    changes = [
        change for event in ws.events() if event.type == "ArtifactChanged" for change in event.data.changes
    ]
    assert [change.after for change in changes] == [blob_id(b"staged"), blob_id(b"edited")]


def test_an_open_and_a_write_open_as_many_files_at_many_files_as_at_few(tmp_path, lexical, in_a_process):
    """Counted by an audit hook in a process of its own."""
    counts = []
    for files in (100, 1_000):
        root = tmp_path / str(files)
        with Workspace.create(root, settings=lexical) as ws:
            for number in range(files):
                path = ws.artifacts / f"d{number // 100:02}" / f"f{number % 100:02}.txt"
                path.parent.mkdir(exist_ok=True)
                path.write_text(str(number))
            ws.status()
        done = in_a_process(_COUNTED, root)
        assert done.returncode == 0, done.stderr
        counts.append(json.loads(done.stdout))
    (few_opened, few_written), (many_opened, many_written) = counts
    assert many_opened <= few_opened + 15, counts  # the events that brought the files fill some segments
    assert abs(many_written - few_written) <= 2, counts


# --- an open after a kill ----------------------------------------------------------------------------------------------


def test_after_a_kill_only_the_last_turn_s_objects_are_looked_at(killed, monkeypatch):
    """Objects of settled turns are older than the note that a turn leaves."""
    monkeypatch.setattr(git_repair, "_CLOCK_NS", 0)
    seen, fault = [], git_repair.loose_fault
    monkeypatch.setattr(git_repair, "loose_fault", lambda *said: seen.append(said) or fault(*said))
    counts = []
    for turns in (2, 10):
        write = "ws.tools.write_file(f'f{number}.txt', f'{number} ' + str(%d))"
        code = f"for number in range({turns}):\n    {write % turns}\n    ws.flush()\nws.tools.write_file('g', '{turns}')"
        killed(code).close()
        counts.append(len(seen))
        seen.clear()
    assert 0 < counts[0] <= counts[1] + 1
    assert counts[1] <= 12


def test_after_a_kill_no_fact_is_read_again(killed, monkeypatch):
    """How far was read stands in a file that is overwritten after each fact."""
    read = []
    conclude = Synthesizer._conclude
    monkeypatch.setattr(
        Synthesizer, "_conclude", lambda self, event: read.append(event) or conclude(self, event)
    )
    ws = killed("for number in range(20): ws.say(f'The weather is fine, {number}.')")
    assert ws.state.seq > 20
    assert read == []


def test_without_caches_no_more_facts_are_read_again_than_the_watermark_lags(killed, monkeypatch, ws):
    """The log itself says how far was read, also in a session that was never closed."""
    killed(f"for number in range({_WATERMARK_LAG + 40}): ws.say('Fine.')").close()
    shutil.rmtree(ws.root / ".agentx")
    read = []
    conclude = Synthesizer._conclude
    monkeypatch.setattr(
        Synthesizer, "_conclude", lambda self, event: read.append(event) or conclude(self, event)
    )
    killed("pass")
    assert len(read) <= 50


@pytest.mark.parametrize("content", ["", "x", "0" * 32 + " 5 " + "0" * 64, "\0" * 120])
def test_a_mark_of_what_was_read_that_says_nothing_true_is_passed_over(ws, lexical, content, monkeypatch):
    """It is a cache: the facts are read again, and nothing is concluded twice."""
    ws.say("Never create a requirements.txt file; use pyproject.toml instead.")
    ws.close()
    events = (ws.root / "history.jsonl").read_bytes()
    (ws.root / ".agentx/read-through").write_text(content)
    with Workspace.open(ws.root, settings=lexical):
        pass
    assert (ws.root / "history.jsonl").read_bytes() == events


def test_a_mark_behind_a_log_that_was_set_back_is_passed_over(ws, lexical):
    """It names an event by its hash."""
    ws.say("Fine.")
    mark = (ws.root / ".agentx/read-through").read_text()
    ws.close()
    version, seq, own_hash = mark.split()
    (ws.root / ".agentx/read-through").write_text(f"{version} {int(seq):018} {own_hash[::-1]}\n")
    with Workspace.open(ws.root, settings=lexical) as again:
        assert again.engine.synthesizer.through == again.state.seq
