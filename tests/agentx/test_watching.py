"""Watching records a burst of edits, a branch switch and an editor's many saves as settled changes."""

import os
import subprocess
import threading
import time

import pytest

from agentx import Workspace
from agentx.recording import file_watcher
from agentx.recording.file_watcher import Watcher
from agentx.storage.events.types import ArtifactChanged, changes_of

BURST = 10_000


def until(holds, seconds=240.0):
    end = time.monotonic() + seconds
    while not (good := holds()) and time.monotonic() < end:
        time.sleep(0.05)
    return good


def edits(ws):
    return [event for event in ws.events() if isinstance(event.data, ArtifactChanged)]


def recorded(ws):
    return {change.path for event in edits(ws) for change in changes_of(event)}


def git(place, *words):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", *words],
        cwd=place,
        check=True,
        capture_output=True,
    )


def test_a_burst_of_ten_thousand_files_is_recorded_whole(ws, monkeypatch):
    monkeypatch.setattr(
        os, "fsync", lambda _fd: None
    )  # ten thousand files are to be counted here, not synced
    wanted = {f"d{number % 100}/f{number}" for number in range(BURST)}
    with ws.watching():
        for path in wanted:
            (ws.artifacts / path).parent.mkdir(exist_ok=True)
            (ws.artifacts / path).write_text(path)
        assert until(lambda: len(recorded(ws)) >= BURST)
    assert recorded(ws) == wanted
    assert not ws.status().outside


@pytest.fixture
def project(tmp_path, lexical):
    """A project with two branches that differ in 300 files, and a workspace beside it."""
    place = tmp_path / "project"
    place.mkdir()
    git(place, "init", "-q", "-b", "main")
    (place / ".gitignore").write_text("build/\n.memory/\n")
    for number in range(200):
        (place / f"f{number}").write_text("one\n")
    git(place, "add", "-A")
    git(place, "commit", "-qm", "one")
    git(place, "switch", "-qc", "other")
    for number in range(100, 300):
        (place / f"f{number}").write_text("two\n")
    for number in range(100):
        (place / f"f{number}").unlink()
    git(place, "add", "-A")
    git(place, "commit", "-qm", "two")
    git(place, "switch", "-q", "main")
    with Workspace.create(place / ".memory", artifacts="..", settings=lexical) as ws:
        yield ws, place


def test_a_branch_switch_of_the_project_is_one_change_and_its_repository_is_not_written(project):
    ws, place = project
    before = ws.state.seq
    with ws.watching():
        git(place, "switch", "-q", "other")
        assert until(
            lambda: len({path for e in ws.events(before) for path in [c.path for c in changes_of(e)]}) == 300
        )
    events = [event for event in ws.events(before) if changes_of(event)]
    made = [change for event in events for change in changes_of(event)]
    assert len(made) == len({change.path for change in made}) == 300
    assert sum(not change.after for change in made) == 100
    done = subprocess.run(["git", "status", "--porcelain"], cwd=place, check=True, capture_output=True)
    assert done.stdout == b""


def test_nothing_is_recorded_while_git_changes_the_files(project):
    ws, place = project
    lock = place / ".git" / "index.lock"
    before = ws.state.seq
    with ws.watching():
        lock.touch()
        for number in range(5):
            (place / f"f{number}").write_text("new\n")
        time.sleep(1.0)
        assert ws.engine.log.state.seq == before
        (place / "f0").write_text("final\n")
        lock.unlink()
        assert until(lambda: ws.state.seq > before)
    made = [change.path for event in ws.events(before) for change in changes_of(event)]
    assert sorted(made) == [f"f{number}" for number in range(5)]


def test_many_saves_by_rename_are_one_settled_change(ws):
    (ws.artifacts / "a.txt").write_text("start")
    ws.status()
    before = ws.state.seq
    with ws.watching():
        for number in range(30):
            (ws.artifacts / ".a.txt.tmp").write_text(str(number))
            os.replace(ws.artifacts / ".a.txt.tmp", ws.artifacts / "a.txt")
            time.sleep(0.01)
        assert until(lambda: ws.tools.engine.log.state.seq > before)
    made = [change.path for event in ws.events(before) for change in changes_of(event)]
    assert set(made) == {"a.txt"}
    assert len(made) <= 2  # a pause of this machine may end a change early
    assert ws.tools.read_file("a.txt").text == "29"


def test_ignored_files_stay_out(ws):
    (ws.artifacts / ".gitignore").write_text("build/\n*.log\n")
    with ws.watching():
        (ws.artifacts / "build").mkdir()
        (ws.artifacts / "build" / "x").write_text("x")
        (ws.artifacts / "a.log").write_text("x")
        (ws.artifacts / "kept").write_text("x")
        assert until(lambda: "kept" in recorded(ws))
    assert recorded(ws) == {".gitignore", "kept"}


def test_what_watchdog_drops_is_found_by_the_scan_after_it(ws, monkeypatch):
    dropped = threading.Event()

    def lossy(self, event):
        if not dropped.is_set():
            dropped.set()
            self._touched = time.monotonic()
            self._bell.set()  # only the first of all events is heard

    monkeypatch.setattr(Watcher, "on_any_event", lossy)
    monkeypatch.setattr(file_watcher, "AFTER_S", 0.2)
    with ws.watching():
        (ws.artifacts / "heard").write_text("x")
        assert until(lambda: "heard" in recorded(ws))
        (ws.artifacts / "deep" / "er").mkdir(parents=True)
        (ws.artifacts / "deep" / "er" / "unheard").write_text("x")
        assert until(lambda: "deep/er/unheard" in recorded(ws))


def test_without_watches_of_the_system_the_files_are_scanned(ws, monkeypatch):
    def refuse(*_words, **_named):
        raise OSError(28, "inotify watch limit reached")

    monkeypatch.setattr(file_watcher.Observer, "start", refuse)
    monkeypatch.setattr(file_watcher, "BLIND_S", 0.1)
    with ws.watching() as watcher:
        assert watcher.blind == "inotify watch limit reached"
        (ws.artifacts / "a").write_text("x")
        assert until(lambda: "a" in recorded(ws))


def test_a_scan_that_fails_is_told_and_tried_again(ws, monkeypatch):
    told, good = [], ws.engine.edits.scan
    calls = iter([OSError(28, "No space left on device")])

    def scan(**named):
        if error := next(calls, None):
            raise error
        return good(**named)

    monkeypatch.setattr(ws.engine.edits, "scan", scan)
    with ws.watching(told.append):
        (ws.artifacts / "a").write_text("x")
        assert until(lambda: told)
        (ws.artifacts / "b").write_text("x")
        assert until(lambda: {"a", "b"} <= recorded(ws))
