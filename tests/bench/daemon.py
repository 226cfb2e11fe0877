"""Measure the daemon: runs per second, processor per run, and the memory of its processes over time.

In each workspace a schedule has been due once a minute for some minutes, and every due time is caught up. The model
answers at once, so everything that is measured is overhead. The figures of ``docs/schedules.md`` come from here:
``python -m tests.bench.daemon --workspaces 10 --runs 20``.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta
from pathlib import Path
from unittest import mock

from agentx.settings import read_settings
from agentx.storage import clock
from agentx.storage.events.schedule_events import ScheduleSet
from agentx.storage.events.types import Draft
from agentx.trust.trust import Trust
from agentx.trust.trusted_items import of_schedule
from agentx.workspace import Workspace

TICKS = os.sysconf("SC_CLK_TCK")


def prepare(root, environ, workspaces, runs):
    settings = read_settings(environ)

    class Earlier(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(minutes=runs)

    made = ScheduleSet(id="often", cron="* * * * *", task="Look.", catch_up="all")
    for number in range(workspaces):
        place = root / "agents" / f"agent-{number}"
        with Workspace.create(place, settings=settings) as ws, mock.patch.object(clock, "datetime", Earlier):
            ws.record(Draft(data=made, actor="user"))
        Trust.read(place, settings).keep(of_schedule(made))


def family(pid):
    """The processes that a process started, directly or indirectly, and itself."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(place.name)] = (int(fields[1]), int(fields[11]) + int(fields[12]), int(fields[21]))
    found, size = {pid}, 0
    while size != len(found):
        size = len(found)
        found |= {one for one, (parent, _, _) in parents.items() if parent in found}
    return {one: parents[one][1:] for one in found if one in parents}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workspaces", type=int, default=10)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--slots", type=int, default=4)
    options = parser.parse_args()
    total = options.workspaces * options.runs
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "turns.jsonl").write_text('{"answer": "It is done."}\n')
        environ = {
            **os.environ,
            "AGENTX_STATE_DIR": str(root / "state"),
            "AGENTX_CACHE_DIR": str(root / "none"),
            "AGENTX_MODEL": f"script:{root / 'turns.jsonl'}",
        }
        prepare(root, environ, options.workspaces, options.runs)
        command = [sys.executable, "-m", "agentx", "schedule", "daemon", str(root / "agents"), "--json", "--workers", str(options.slots)]  # fmt: skip
        said = root / "said"
        with said.open("wb") as file:
            process = subprocess.Popen(command, env=environ, stdout=file, stderr=file)
        began, first, ticks, memory, done = time.monotonic(), 0.0, {}, [], 0
        while done < total:
            time.sleep(0.5)
            done = said.read_bytes().count(b'"COMPLETED"')
            first = first or (time.monotonic() if done else 0.0)
            now = family(process.pid)
            ticks |= {pid: used for pid, (used, _) in now.items()}
            memory.append((done, sum(pages for _, pages in now.values()) * os.sysconf("SC_PAGE_SIZE") // 1_000_000, len(now)))  # fmt: skip
            if time.monotonic() - began > 1800:
                break
        took = time.monotonic() - began
        process.terminate()
        process.wait(60)
    shown = memory[:: max(1, len(memory) // 10)] + memory[-1:]
    row = {
        "workspaces": options.workspaces, "runs": done, "seconds": round(took, 1), "runs_per_second": round(done / took, 2),
        "processor_ms_per_run": round(1000 * sum(ticks.values()) / TICKS / max(1, done)), "load": os.getloadavg()[0],
        "memory_mb_by_runs": [(done, size, count) for done, size, count in shown],
    }  # fmt: skip
    print(json.dumps(row))


if __name__ == "__main__":
    main()
