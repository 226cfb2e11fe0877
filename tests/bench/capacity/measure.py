"""Measure what a run costs on each host of a fleet: processor, bytes on the wire and on disk, rows and transactions.

The hosts are those of ``make fleet-faults``, without faults: each in a network namespace of its own, so that the bytes
on each link can be counted. The figures go to ``measured.json``, which the simulation reads.
"""

import argparse
import datetime as dt
import functools
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import psycopg

from agentx.fleet import place as places
from agentx.fleet.overview import overview
from agentx.scheduling.shared_queue import Slots
from agentx.settings import read_settings
from agentx.trust import records
from agentx.trust.store import Store
from tests.faults.fleet import network
from tests.faults.fleet.hosts import TENANT, DatabaseHost, GitHost, WorkerHost
from tests.faults.fleet.network import NETWORKS, port
from tests.faults.fleet.submitters import create, script

PATH = Path(__file__).with_name("measured.json")
TICKS = os.sysconf("SC_CLK_TCK")
IDLE_S = 10.0


class Fleet:
    """A fleet whose hosts are measured."""

    def __init__(self, root, workers, runs, slots):
        self.root, self.network = root, network_of_this_process()
        self.environ = {
            **os.environ,
            "AGENTX_STATE_DIR": str(root / "me"),
            "AGENTX_CACHE_DIR": str(root / "no-models"),
        }
        settings = read_settings(self.environ)
        for host in ("git", "database", *(f"worker-{number}" for number in range(workers))):
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)
            for one in NETWORKS:
                subprocess.run(["ip", "link", "del", port(host, one)], check=False, capture_output=True)
        self.git, self.database = GitHost(self.network, root), DatabaseHost(self.network, root)
        self.git.start()
        script(root / "turns.jsonl", runs)
        self.place = places.initialise(
            settings, self.database.url, self.git.url, tenant=TENANT, lease_s=60, slots=slots
        )
        key = records.own_public_key(Store(settings.state_dir))
        self.workers = [
            WorkerHost(self.network, f"worker-{number}", root, self.place, key, root / "turns.jsonl")
            for number in range(workers)
        ]
        (root / "mine").mkdir()

    def submit(self, prefix, workspaces, runs):
        """Make workspaces and submit runs; the seconds of a submission."""
        names = [f"{prefix}{number:04}" for number in range(workspaces)]
        for name in names:
            self.git.create(name)
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            made = [
                pool.submit(create, name, runs, self.root / "mine", self.environ, TENANT) for name in names
            ]
            return [took for one in made for took in one.result()[2]]

    def wait(self, total):
        """Wait until so many runs ended; return what the queue knows about the latest."""
        with places.opened(self.place) as queue:
            while (queue.counts().get("SUCCESS", 0)) < total:
                time.sleep(0.2)
            return overview(self.place, queue, total)

    def reading(self):
        """Everything that can be counted now."""
        found = {"at": time.time(), "machine_s": machine_s()}
        for host in (self.git, self.database, *self.workers):
            found[f"{host.name} cpu_s"] = cpu_s(host.processes())
            for one in NETWORKS:
                if one in host.address:
                    sent, received = link_bytes(port(host.name, one))
                    found[f"{host.name} {one} bytes"] = sent + received
        found["remotes bytes"], found["remotes files"] = tree(self.git.remotes)
        with psycopg.connect(self.database.url) as connection:

            def ask(text):
                return connection.execute(text).fetchone()

            found["database bytes"] = ask("SELECT pg_database_size(current_database())")[0]
            found["wal bytes"] = int(ask("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")[0])
            found["rows written"] = int(
                ask("SELECT COALESCE(SUM(n_tup_ins + n_tup_upd + n_tup_del), 0) FROM pg_stat_user_tables")[0]
            )
            found["rows kept"] = int(
                ask("SELECT COALESCE(SUM(n_tup_ins - n_tup_del), 0) FROM pg_stat_user_tables")[0]
            )
            found["transactions"] = int(
                ask("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()")[0]
            )
        return found

    def end(self):
        for one in [*self.workers, self.git]:
            one.power_off()
        self.database.server.stop()


@functools.cache
def network_of_this_process():
    return network.Network()


def cpu_s(pids):
    """Processor seconds of processes and of their children that have ended."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICKS


def machine_s():
    """Processor seconds that the machine was busy."""
    fields = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]))
    return (sum(fields[:8]) - fields[3] - fields[4]) / TICKS


def link_bytes(name):
    done = subprocess.run(["ip", "-s", "-j", "link", "show", "dev", name], capture_output=True, check=True)
    [row] = json.loads(done.stdout)
    return row["stats64"]["rx"]["bytes"], row["stats64"]["tx"]["bytes"]


def tree(folder):
    """Bytes that the files of a directory take on disk, and their number."""
    size = count = 0
    for path in Path(folder).rglob("*"):
        info = path.lstat()
        size += info.st_blocks * 512
        count += path.is_file()
    return size, count


def memory_bytes(pids):
    """Proportional memory of processes: what they share is divided among them."""
    total = 0
    for pid in pids:
        try:
            for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += 1024 * int(line.split()[1])
        except OSError:
            continue
    return total


def change(before, after, runs):
    return {key: (after[key] - before[key]) / runs for key in after}


def costs(root, prefix, workspaces, runs):
    """Costs of a run on one worker with one slot: the submission, an idle worker, and the run."""
    fleet = Fleet(root, 1, runs, 1)
    try:
        [worker] = fleet.workers
        worker.start()
        worker.wait_until_ready(60)
        time.sleep(3)
        first = fleet.reading()
        time.sleep(IDLE_S)
        second = fleet.reading()
        memory = memory_bytes(worker.processes())
        idle = change(first, second, second["at"] - first["at"])
        worker.ask_to_end()
        worker.has_ended(60)
        before = fleet.reading()
        took = fleet.submit(prefix, workspaces, runs)
        between = fleet.reading()
        worker.start()
        ended = fleet.wait(workspaces * runs)
        after = fleet.reading()
        total = workspaces * runs
        found = {
            "submission": change(before, between, total), "run": change(between, after, total), "idle": idle,
            "submission_ms": 1000 * statistics.median(took), "start_cpu_s": first["worker-0 cpu_s"],
            "idle_memory_bytes": memory, "busy_memory_bytes": memory_bytes(worker.processes()),
            "first_ms": first_ms(ended.runs), "parts_ms": parts(ended.runs), "copy_bytes": tree(worker.home / "workspaces")[0] / workspaces,
            "cold": sum(one.copy == "cold" for one in ended.runs) / total,
        }  # fmt: skip
        found["run"]["worker-0 cpu_s"] -= found["start_cpu_s"] / total
        one = fleet.git.remotes / f"{prefix}0000.git"
        packed = root / "packed.git"
        shutil.copytree(one, packed)
        began = os.times()
        subprocess.run(["git", "-C", packed, "gc", "-q", "--prune=now"], check=True)
        ended = os.times()
        found["repack"] = {
            "cpu_s": ended.children_user + ended.children_system - began.children_user - began.children_system,
            "bytes_before": tree(one)[0], "files_before": tree(one)[1],
            "bytes_after": tree(packed)[0], "files_after": tree(packed)[1],
        }  # fmt: skip
        return found
    finally:
        fleet.end()


def parts(runs):
    """The median time of each stage of the simulation, in ms: a copy is opened after it was fetched."""
    stages = {"fetch": ("fetch", "open"), "run": ("run",), "push": ("push",)}
    return {
        f"{copy}_{stage}": round(1000 * statistics.median(times), 1)
        for copy in ("warm", "cold")
        for stage, of in stages.items()
        if (times := [sum(one.seconds[part] for part in of) for one in runs if one.copy == copy])
    }


def first_ms(runs):
    """How much longer the first run of a process takes than the others."""
    times = [one.seconds["run"] for one in reversed(runs)]
    return 1000 * (times[0] - statistics.median(times))


def throughput(root, workers, workspaces, runs, slots):
    """Runs per second with several workers on this machine, and the cores that other programs left."""
    fleet = Fleet(root, workers, runs, slots)
    try:
        fleet.submit("v", workspaces, runs)
        for one in fleet.workers:
            one.start()
        for one in fleet.workers:
            one.wait_until_ready(120)
        with places.opened(fleet.place) as queue:
            done = queue.counts().get("SUCCESS", 0)
        before = fleet.reading()
        total = workspaces * runs
        ended = fleet.wait(total)
        after = fleet.reading()
        took = after["at"] - before["at"]
        ours = sum(after[key] - before[key] for key in after if key.endswith(" cpu_s"))
        others = (after["machine_s"] - before["machine_s"] - ours) / took
        return {
            "workers": workers, "slots": slots, "runs": total - done, "seconds": round(took, 2),
            "runs_per_second": round((total - done) / took, 3), "cpu_s_per_run": round(ours / (total - done), 4),
            "cores_of_others": round(others, 2), "load_average": round(os.getloadavg()[0], 1), "parts_ms": parts(ended.runs),
            "cold": round(sum(one.copy == "cold" for one in ended.runs) / total, 3), "workspaces": workspaces,
        }  # fmt: skip
    finally:
        fleet.end()


def backlog(root, partitions):
    """The queue alone: how fast one worker takes submissions of so many workspaces that do nothing, and what that costs."""
    fleet = Fleet(root, 0, 1, 4)
    try:
        with places.opened(fleet.place) as queue:
            for number in range(partitions):
                queue.enqueue(f"backlog-{number:06}", f"w{number:06}", "{}", 100)
            before = fleet.reading()
            with queue.working("bench", lambda _: "{}", Slots(4)):
                while queue.counts().get("SUCCESS", 0) < partitions:
                    time.sleep(0.05)
                after = fleet.reading()
        took = after["at"] - before["at"]
        return {
            "workspaces": partitions, "taken_per_second": partitions / took,
            "database_cpu_s": (after["database cpu_s"] - before["database cpu_s"]) / partitions,
            "transactions": (after["transactions"] - before["transactions"]) / partitions,
        }  # fmt: skip
    finally:
        fleet.end()


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m tests.bench.capacity.measure", description=__doc__)
    parser.add_argument("--workspaces", type=int, default=12)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--backlogs", type=int, nargs="*", default=[50, 500], help="workspaces in the queue")
    parser.add_argument("--to", type=Path, default=PATH, help="the file with the figures")
    given = parser.parse_args(arguments)
    if not network.is_inside():
        code = network.enter(
            [
                sys.executable,
                "-m",
                "tests.bench.capacity.measure",
                *(sys.argv[1:] if arguments is None else arguments),
            ]
        )
        return "Network namespaces are needed: root, or user namespaces." if code is None else code
    with tempfile.TemporaryDirectory(prefix="agentx-capacity-", ignore_cleanup_errors=True) as folder:
        root = Path(folder)
        root.chmod(0o755)
        found = {
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "machine": f"{os.cpu_count()} cores; all hosts on it",
            "workspaces": given.workspaces, "runs": given.runs,
        }  # fmt: skip
        found["cold"] = costs(made(root, "cold"), "c", 2 * given.workspaces, 1)
        tell(found["cold"]["parts_ms"])
        found["warm"] = costs(made(root, "warm"), "w", given.workspaces // 3, 3 * given.runs)
        tell(found["warm"]["parts_ms"])
        found["backlog"] = [backlog(made(root, f"b{number}"), number) for number in given.backlogs]
        tell(found["backlog"])
        found["throughput"] = []
        for workers in (1, 2, 3):
            row = throughput(made(root, f"t{workers}"), workers, given.workspaces, given.runs, 4)
            found["throughput"].append(row)
            tell(row)
        given.to.write_text(json.dumps(rounded(found), indent=1) + "\n")
    return 0


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items() if key not in ("at", "machine_s")}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def made(root, name):
    folder = root / name
    folder.mkdir()
    folder.chmod(0o755)
    return folder


def tell(what):
    print(json.dumps(what), file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
