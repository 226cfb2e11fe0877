"""The daemon as a process: it runs what is due, ends cleanly, and may be killed and robbed of its database at any moment."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from agentx import Workspace
from agentx.scheduling.daemon import Daemon, DaemonFailed, SqliteWithMilliseconds, workspaces
from agentx.storage import clock
from agentx.storage.errors import UsageError
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.storage.events.types import Draft, RunStarted
from agentx.trust.trust import Trust
from agentx.trust.trusted_items import of_schedule
from tests.simulate_year import settings

ROOT = Path(__file__).resolve().parents[2]
LOOKING_OFTEN = """
import sys
from agentx.cli.main import main
from agentx.scheduling import daemon
daemon.LOOK_S = 0.05
sys.exit(main())
"""
"""The program, which would look four times a second."""

DUE = 2


class Earlier(datetime):
    """A clock that is some minutes slow."""

    minutes = DUE

    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) - timedelta(minutes=cls.minutes)


@pytest.fixture
def agents(tmp_path, monkeypatch):
    """Make workspaces in which runs are due, one for each of the last minutes."""

    def make(count, does="echo done", due=DUE, **rule):
        monkeypatch.setattr(Earlier, "minutes", due)
        for number in range(count):
            root = tmp_path / "agents" / f"agent-{number}"
            own = msgspec.structs.replace(settings(root), state_dir=tmp_path / "state")
            with Workspace.create(root, settings=own) as ws:
                ws.configure("director.executor", json.dumps(["sh", "-c", f"cat > /dev/null; {does}"]))
                ws.configure("director.model", "none")
                made = ScheduleSet(
                    id="often", cron="* * * * *", task="Look.", directed=True, **{"catch_up": "all", **rule}
                )
                with monkeypatch.context() as patch:
                    patch.setattr(clock, "datetime", Earlier)
                    ws.record(Draft(data=made, actor="user"))
            Trust.read(root, own).keep(of_schedule(made))
        return tmp_path / "agents"

    return make


@pytest.fixture
def start(tmp_path):
    """Start a daemon."""
    started = []
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "AGENTX_STATE_DIR": str(tmp_path / "state"),
        "AGENTX_CACHE_DIR": str(tmp_path / "no-models"),
    }

    def start(folder, *options, before=""):
        command = [sys.executable, "-c", before + LOOKING_OFTEN, "daemon", str(folder), "--json", *options]
        started.append(subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
    slay(tmp_path / "state")


def slay(state):
    """Kill every process of a daemon, what it started too, at once."""
    mark = f"AGENTX_STATE_DIR={state}".encode()
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (place / "environ").read_bytes().split(b"\0"):
                os.kill(int(place.name), signal.SIGKILL)


def starts(folder):
    """How often each due time was started, over all workspaces; not counted is what goes on with a run that was cut off."""
    found = Counter()
    for root in workspaces([folder]):
        with Workspace.open(root, settings=settings(root)) as ws:
            found.update(
                (root.name, event.data.due)
                for event in ws.events()
                if isinstance(event.data, RunStarted) and not event.data.resumes
            )
    return found


def test_what_is_due_in_many_workspaces_is_run_once_and_a_second_look_finds_nothing(agents, start):
    folder = agents(2)
    told, _ = start(folder, "--once").communicate()
    *lines, end = [json.loads(line) for line in told.splitlines()]
    assert end == {"workspaces": 2, "runs": len(lines)}
    assert {line["status"] for line in lines} == {"COMPLETED"}
    assert {Path(line["workspace"]).name for line in lines} == {"agent-0", "agent-1"}
    assert set(starts(folder).values()) == {1}
    assert len(lines) == starts(folder).total() >= 2 * DUE


def test_told_to_stop_it_starts_nothing_more_and_ends_what_runs_on_record(agents, start):
    folder = agents(1, does="sleep 60")
    process = start(folder, "--grace", "0.1")
    [root] = workspaces([folder])
    while "RunStarted" not in (root / "history.jsonl").read_text():
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 0
    with Workspace.open(root, settings=settings(root)) as ws:
        assert [(run.status, run.reason) for run in ws.state.runs] == [("INTERRUPTED", "It was interrupted.")]


def test_no_more_runs_begin_in_a_minute_than_the_rate_of_their_model_allows(agents, start):
    folder = agents(3)
    process = start(folder, "--rate", "sh=2")
    for _ in range(2):
        assert process.stdout.readline()
    time.sleep(0.5)  # long enough for many looks
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert starts(folder).total() == 2


def test_killed_at_any_moment_and_without_its_database_it_starts_no_due_time_twice(agents, start, tmp_path):
    folder, chance = agents(2, does="sleep 0.1; echo done", due=4, resume=True), random.Random(4)
    for killed in (True, False):
        process = start(folder)
        assert process.stdout.readline()
        if killed:
            time.sleep(chance.random() / 2)
            slay(tmp_path / "state")
        for file in (tmp_path / "state").glob("daemon.sqlite*"):
            file.unlink(missing_ok=True)  # a journal goes with the process that wrote it
        process.communicate()
        assert process.returncode == (-signal.SIGKILL if killed else 1)
    start(folder, "--once").communicate()
    found = starts(folder)
    assert set(found.values()) == {1}
    for root in workspaces([folder]):
        with Workspace.open(root, settings=settings(root)) as ws:
            due = sorted(at for name, at in found if name == root.name)
            minutes = [datetime.fromisoformat(at) for at in due]
            assert minutes == [minutes[0] + timedelta(minutes=n) for n in range(len(due))]  # none is missed
            assert ws.state.last_run.status == "COMPLETED"


def test_where_dbos_is_not_installed_it_says_what_to_install_and_what_does_without(agents, monkeypatch):
    monkeypatch.setitem(sys.modules, "dbos", None)
    made = Daemon(workspaces([agents(1)]), settings("x"), lambda *_: None)
    with pytest.raises(DaemonFailed, match=r"agentx-workspace\[daemon\].*run-due"):
        made.run(once=True)


def test_a_directory_without_a_workspace_is_refused(tmp_path):
    with pytest.raises(UsageError, match="is not a workspace and contains none"):
        workspaces([tmp_path])


@pytest.fixture
def stamped(tmp_path):
    """A table whose rows are stamped as those of DBOS are under Python 3.12 and later."""
    path = tmp_path / "stamped.sqlite"
    with closing(sqlite3.connect(path)) as plain:
        plain.execute("CREATE TABLE stamped (id, at INTEGER NOT NULL DEFAULT (unixepoch('subsec') * 1000))")
    return path


def test_the_database_stamps_rows_by_default_whatever_version_of_sqlite_and_python_made_it(stamped):
    with closing(sqlite3.connect(stamped, factory=SqliteWithMilliseconds)) as table:
        assert table.execute("PRAGMA trusted_schema").fetchone() == (1,)  # some builds begin with 0
        before = time.time_ns() // 1_000_000
        table.execute("INSERT INTO stamped (id) VALUES (1)")
        ((at, kind),) = table.execute("SELECT at, typeof(at) FROM stamped")
    assert kind in {"integer", "real"}
    assert before <= round(at) <= time.time_ns() // 1_000_000


AS_UNDER_3_12 = """
import dbos._migration, dbos._sys_db
from types import SimpleNamespace
made = dbos._migration.sqlite_migrations
made[:] = [one.replace("strftime('%s','now')", "unixepoch('subsec')") for one in made]
assert "unixepoch('subsec')" in made[0]
dbos._sys_db.sys = SimpleNamespace(version_info=(3, 12))
"""
"""What DBOS chooses by Python's version, chosen under every version."""


def test_the_daemon_works_with_the_clock_that_dbos_takes_from_python_3_12_on(agents, start):
    """An SQLite before 3.42 gives NULL for it, which the tables refuse."""
    folder = agents(1)
    told, _ = start(folder, "--once", before=AS_UNDER_3_12).communicate()
    *lines, end = [json.loads(line) for line in told.splitlines()]
    assert end == {"workspaces": 1, "runs": len(lines)}
    assert {line["status"] for line in lines} == {"COMPLETED"}
    assert len(lines) >= DUE


def test_with_an_sqlite_on_which_dbos_would_stand_still_the_daemon_says_so(agents, monkeypatch):
    """DBOS needs 3.35; with less its queue fails in a thread, and nothing is ever run."""
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    made = Daemon(workspaces([agents(1)]), settings("x"), lambda *_: None)
    with pytest.raises(DaemonFailed, match=r"needs SQLite 3\.35 .*--database postgresql.*run-due"):
        made.run(once=True)
