"""Writers that wait share one sync and one commit; each is answered only once its own lines are durable."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from agentx import Workspace
from agentx.storage.events.codec import EventTooLarge
from agentx.storage.events.types import AgentThoughtProcess, Body, Draft
from agentx.storage.log import history
from agentx.storage.log.history import LIVE, History, HistoryWriteFailed
from agentx.synthesis.memory.record_codec import record_codec

_WRITERS = 8


def _thought(text, key=""):
    return Draft(data=AgentThoughtProcess(body=Body(text)), actor="agent:main", run="r-1", key=key)


def _texts(root):
    """The thoughts in the log, whose chain is verified while it is read."""
    events = History(root, record_codec()).read()
    return [event.data.body.text for event in events if isinstance(event.data, AgentThoughtProcess)]


class _Disk:
    """Counts the syncs of the log. The first one waits until it is let through, and may fail."""

    def __init__(self, monkeypatch, fails=False):
        self.syncs = 0
        self.began, self.go_on = threading.Event(), threading.Event()
        self._sync, self._fails = os.fdatasync, fails
        monkeypatch.setattr(history.os, "fdatasync", self._fdatasync)

    def _fdatasync(self, fd):
        self.syncs += 1
        if self.syncs == 1:
            self.began.set()
            assert self.go_on.wait(30)
            if self._fails:
                raise OSError(5, "Input/output error")
        self._sync(fd)


class _Crowd:
    """Threads that each record one thought; the first one syncs while the others append behind it."""

    def __init__(self, ws, disk):
        self.acknowledged, self.errors = [], []
        self._ws, self._disk = ws, disk
        self._threads = [threading.Thread(target=self._record, args=(n,)) for n in range(_WRITERS)]

    def _record(self, number):
        try:
            (event,) = self._ws.record(_thought(f"thought {number}"))
            self.acknowledged.append((event.seq, event.data.body.text))
        except HistoryWriteFailed as error:
            self.errors.append(str(error))

    def wait(self):
        """Return once all lines are in the log, and none is synced."""
        first, *others = self._threads
        first.start()
        assert self._disk.began.wait(30)
        for thread in others:
            thread.start()
        while len(_texts(self._ws.root)) < _WRITERS:
            time.sleep(0.001)

    def end(self):
        self._disk.go_on.set()
        for thread in self._threads:
            thread.join(30)


@pytest.fixture
def ws(tmp_path):
    with Workspace.create(tmp_path / "task") as made:
        made._keeper.stop()
        yield made


def test_waiting_threads_share_a_sync_and_none_is_answered_before_it(ws, monkeypatch):
    told = []
    ws.on("AgentThoughtProcess", lambda event: told.append(event.seq))
    disk = _Disk(monkeypatch)
    crowd = _Crowd(ws, disk)
    crowd.wait()
    assert crowd.acknowledged == []
    assert told == []
    crowd.end()
    assert disk.syncs == 2  # the first thread's, and one for the seven that came meanwhile
    assert not crowd.errors
    assert sorted(text for _, text in crowd.acknowledged) == sorted(_texts(ws.root))
    assert len(set(crowd.acknowledged)) == _WRITERS
    assert told == sorted(seq for seq, _ in crowd.acknowledged)
    assert ws.rebuild().state_digest == ws.state.digest


def test_a_sync_that_fails_takes_back_the_whole_group_and_says_so(ws, monkeypatch):
    told = []
    ws.on("AgentThoughtProcess", lambda event: told.append(event.data.body.text))
    before = (ws.root / LIVE).read_bytes()
    disk = _Disk(monkeypatch, fails=True)
    crowd = _Crowd(ws, disk)
    crowd.wait()
    crowd.end()
    assert crowd.acknowledged == []
    assert len(crowd.errors) == _WRITERS
    assert all(error.endswith("Input/output error. Nothing was recorded.") for error in crowd.errors)
    assert (ws.root / LIVE).read_bytes() == before
    assert told == []
    ws.record(_thought("and on"))
    assert _texts(ws.root) == told == ["and on"]
    assert ws.rebuild().state_digest == ws.state.digest


def test_what_another_process_appended_behind_a_failed_sync_is_kept(ws, monkeypatch):
    told = []
    ws.on("AgentThoughtProcess", lambda event: told.append(event.data.body.text))
    disk = _Disk(monkeypatch, fails=True)
    crowd = _Crowd(ws, disk)
    crowd.wait()
    with Workspace.open(ws.root) as other:
        other.record(_thought("from beside"))
    crowd.end()
    assert len(crowd.errors) == _WRITERS
    assert all("It is unknown whether anything was recorded" in error for error in crowd.errors)
    texts = _texts(ws.root)
    assert len(texts) == _WRITERS + 1
    assert texts[-1] == "from beside"
    ws.record(_thought("and on"))
    assert told == _texts(ws.root)
    assert ws.rebuild().state_digest == ws.state.digest


def test_a_draft_that_is_refused_fails_alone(ws, monkeypatch):
    disk = _Disk(monkeypatch)
    crowd = _Crowd(ws, disk)
    crowd.wait()
    refused = []

    def record():
        try:
            ws.record(_thought("x" * 20_000))
        except EventTooLarge as error:
            refused.append(str(error))

    thread = threading.Thread(target=record)
    thread.start()
    crowd.end()
    thread.join()
    assert len(refused) == 1
    assert len(crowd.acknowledged) == _WRITERS


def test_a_key_is_recorded_once_by_a_group(ws):
    events = []
    threads = [
        threading.Thread(target=lambda: events.extend(ws.record(_thought("once", key="same"))))
        for _ in range(_WRITERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({event.hash for event in events}) == 1
    assert _texts(ws.root) == ["once"]


_WRITER = """
import sys, threading
from pathlib import Path
from agentx import Workspace
from agentx.storage.events.types import AgentThoughtProcess, Body, Draft
ws, said = Workspace.open(Path(sys.argv[1])), threading.Lock()
def work(name):
    for number in range(int(sys.argv[3])):
        text = f"{name} {number}"
        if number % 4 == 3:
            seq = ws.tools.write_file(f"{name}.txt", text).seq
        else:
            seq = ws.record(Draft(data=AgentThoughtProcess(body=Body(text)), actor="agent:main"))[0].seq
        with said:
            print(f"{seq} {text}\\n", end="", flush=True)  # in one call: a kill may come between two
crowd = [threading.Thread(target=work, args=(f"{sys.argv[2]}-{n}",)) for n in range(4)]
for thread in crowd:
    thread.start()
for thread in crowd:
    thread.join()
ws.close()
"""


def _start(root, name, each):
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)}
    command = [sys.executable, "-c", _WRITER, str(root), name, str(each)]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)


def _acknowledged(output):
    return {int(seq): text for seq, _, text in (line.partition(" ") for line in output.splitlines())}


def _require_kept(root, acknowledged):
    with Workspace.open(root) as ws:
        events = {event.seq: event for event in ws.events()}
        assert list(events) == list(range(1, len(events) + 1))
        for seq, text in acknowledged.items():
            found = events[seq].data
            kept = found.body.text if isinstance(found, AgentThoughtProcess) else found.arguments["content"]
            assert kept == text
        assert not ws.status().outside
        assert ws.verify().sound


def test_threads_of_several_processes_record_every_event_once(tmp_path):
    root = tmp_path / "task"
    Workspace.create(root).close()
    crowd = [_start(root, name, 8) for name in "ab"]
    acknowledged = [_acknowledged(writer.communicate()[0]) for writer in crowd]
    assert len(acknowledged[0] | acknowledged[1]) == 2 * 4 * 8
    _require_kept(root, acknowledged[0] | acknowledged[1])


def test_what_a_killed_group_acknowledged_is_kept(tmp_path):
    root = tmp_path / "task"
    Workspace.create(root).close()
    crowd = [_start(root, name, 10_000) for name in "ab"]
    acknowledged = {}
    for writer in crowd:
        for _ in range(20):
            acknowledged |= _acknowledged(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        acknowledged |= _acknowledged(writer.communicate()[0])
    assert len(acknowledged) >= 2 * 20  # otherwise nothing was acknowledged that could be lost
    _require_kept(root, acknowledged)


def test_writers_that_wait_share_a_commit(ws):
    def commits():
        return int(subprocess.check_output(["git", "-C", ws.root, "rev-list", "--count", "HEAD"]))

    before = commits()
    threads = [
        threading.Thread(target=ws.tools.write_file, args=(f"{number}.txt", "text\n"))
        for number in range(_WRITERS)
    ]
    with ws.engine.write_path.exclusive():
        for thread in threads:
            thread.start()
        while len(ws.engine.write_path.lock._gate._queue) < _WRITERS:
            time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert ws.engine.git.pending == []
    ws.flush()  # commits follow within 50 ms
    assert 1 <= commits() - before < _WRITERS
    assert not ws.status().outside
