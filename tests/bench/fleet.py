"""Measure a fleet: runs per second with 1, 2 and 3 workers, and what a run costs beside the model.

The model answers at once, so everything that is measured is overhead. The workers are processes of this machine with homes
of their own; the queue is a private Postgres server where the system has one, else a SQLite file. The figures of
``docs/fleet.md`` come from here: ``make fleet-bench``.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
import uuid
from contextlib import suppress
from pathlib import Path

from agentx.fleet import place as places
from agentx.fleet.submission import submit
from agentx.workspace import Workspace
from tests.agentx.fleet.fleets import Fleet, wait_for
from tests.agentx.fleet.postgres import Postgres, programs


def processor(marks, postmaster=0):
    """Return the seconds of processor that the workers, their git processes and the database have used so far.

    Args:
        marks: What the environment of each worker's processes holds.
        postmaster: The process of the database server; 0 for none.
    """
    tick, used = os.sysconf("SC_CLK_TCK"), {"worker": 0.0, "git": 0.0, "database": 0.0}
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            fields = (place / "stat").read_text().rpartition(") ")[2].split()
            own, ended = (sum(map(int, fields[at : at + 2])) / tick for at in (11, 13))
            if marks & set((place / "environ").read_bytes().split(b"\0")):
                used["worker"] += own
                used["git"] += ended
            elif postmaster in (int(place.name), int(fields[1])):
                used["database"] += own + (ended if int(place.name) == postmaster else 0)
    return used


def measure(root, database, workers, workspaces, runs, postmaster=0):
    """Return the runs per second, the median of each part of a run, in milliseconds, and the processor time of a run."""
    fleet = Fleet(root, database, f"t{uuid.uuid4().hex[:12]}") if database else Fleet(root)
    try:
        for number in range(workspaces):
            ws = Workspace.create(root / "mine" / f"w{number}", settings=fleet.settings)
            with ws, places.opened(fleet.place) as queue:
                for run in range(runs):
                    submit(ws, fleet.place, queue, f"Do this for the {run}th time.")
        marks = {f"FLEET_HOLD={fleet.worker(f'worker-{number}').hold}".encode() for number in range(workers)}
        before = processor(marks, postmaster)
        began = time.monotonic()
        for one in fleet.workers:
            one.start()
        found = wait_for(fleet.all_ended, 3600)
        took = time.monotonic() - began
        after = processor(marks, postmaster)
        assert found.statuses == {"COMPLETED": min(500, workspaces * runs)}, found.statuses
        for number in range(workspaces):
            assert list(fleet.runs(f"w{number}").values()) == [(1, "COMPLETED")] * runs
        row = {"workers": workers, "runs": workspaces * runs, "seconds": round(took, 1)}
        row["runs_per_second"] = round(workspaces * runs / took, 2)
        row["processor_ms"] = {
            name: round(1000 * (spent - before[name]) / (workspaces * runs)) for name, spent in after.items()
        }
        for copy in ("cold", "warm"):
            for part in ("fetch", "open", "run", "push"):
                times = [one.seconds[part] for one in found.runs if one.copy == copy]
                row[f"{copy}_{part}_ms"] = round(1000 * statistics.median(times)) if times else None
        totals = [sum(one.seconds.values()) for one in found.runs if one.copy == "warm"]
        row |= {
            f"warm_{name}_ms": round(1000 * of(totals))
            for name, of in (("whole", statistics.median), ("least", min))
        }
        return row
    finally:
        for one in fleet.workers:
            one.slay()


def waited(root, database, times):
    """Return the median seconds from a submission to its start on a worker that has nothing to do."""
    fleet = Fleet(root, database, f"t{uuid.uuid4().hex[:12]}") if database else Fleet(root)
    try:
        fleet.worker("worker").start()
        wait_for(lambda: fleet.status().workers)
        for _ in range(times):
            fleet.submit("task", "Do this.")
            wait_for(fleet.all_ended)
        return round(1000 * statistics.median(one.queued_s for one in fleet.status().runs))
    finally:
        for one in fleet.workers:
            one.slay()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workspaces", type=int, default=30)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", default="1,2,3")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="agentx-fleet-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        root.chmod(0o755)
        server = Postgres(root / "server") if programs() else None
        try:
            url = server.url if server else ""
            print(json.dumps({"queue": "Postgres" if server else "SQLite", "queue_ms": waited(made(root, "wait"), url, 9)}))  # fmt: skip
            postmaster = int((server.data / "postmaster.pid").read_text().split()[0]) if server else 0
            row = measure(made(root, "alone"), url, 1, 1, 8 * given.runs, postmaster)
            print(json.dumps({"one run at a time": row}), flush=True)
            for workers in map(int, given.workers.split(",")):
                row = measure(
                    made(root, f"n{workers}"), url, workers, given.workspaces, given.runs, postmaster
                )
                print(json.dumps(row), flush=True)
        finally:
            if server:
                server.remove()


def made(root, name):
    folder = root / name
    folder.mkdir()
    return folder


if __name__ == "__main__":
    main()
