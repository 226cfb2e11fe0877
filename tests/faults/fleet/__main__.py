"""``python -m tests.faults.fleet``: hurt a fleet at random, and check that every run was done once and nothing was lost.

Three workers, a Git host and a Postgres server, each a host in a network namespace of its own. Needs Linux, Postgres
and either root or user namespaces; without the last two, the links are not cut, and it says so. ``make fleet-faults``.
"""

import argparse
import contextlib
import json
import multiprocessing
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from agentx.fleet import place as places
from agentx.fleet.overview import overview
from agentx.scheduling.shared_queue import QueueFailed
from agentx.settings import read_settings
from agentx.trust import records
from agentx.trust.store import Store
from tests.agentx.fleet.postgres import programs

from . import network, report
from .chaos import Chaos
from .checks import check
from .hosts import KEY, ROOT, TENANT, DatabaseHost, GitHost, WorkerHost, state_of
from .submitters import TOKEN, create, script

SETTLE_S, END_S = 120.0, 90.0
"""Time for what was set aside to be pushed after the last fault, and for a worker to end."""


def main(arguments=None):
    """Hurt a fleet; 1 where something is not as it must be."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.fleet", description=(__doc__ or "").partition("\n")[0])  # fmt: skip
    parser.add_argument("--workspaces", type=int, default=60, help="number of workspaces")
    parser.add_argument("--runs", type=int, default=10, help="number of runs in each")
    parser.add_argument("--seed", type=int, default=1, help="of everything that is left to chance")
    parser.add_argument("--workers", type=int, default=3, help="number of workers")
    parser.add_argument("--slots", type=int, default=2, help="runs at once on each worker")
    parser.add_argument(
        "--lease", type=float, default=4.0, help="seconds without a sign of life until others work"
    )
    parser.add_argument(
        "--gap", type=float, default=6.0, help="seconds from one fault to the next, on average; 0 for none"
    )
    parser.add_argument("--limit", type=float, default=1500.0, help="seconds after which it gives up")
    parser.add_argument("--keep", action="store_true", help="keep the directory")
    parser.add_argument("--docs", action="store_true", help="write the table to docs/fleet.md")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(arguments)
    if programs() is None:
        sys.exit("Postgres is not installed here: apt-get install postgresql")
    if not network.is_inside():
        code = network.enter([sys.executable, "-m", "tests.faults.fleet", *(arguments or sys.argv[1:])])
        if code is not None:
            return code
        print("No network namespaces here (root or user namespaces are needed): links are not cut, no disk is filled.", file=sys.stderr)  # fmt: skip
    made = tempfile.mkdtemp(prefix="agentx-fleet-faults-")
    os.chmod(made, 0o755)
    harness = Harness(Path(made), given)
    try:
        document = harness.run()
    finally:
        harness.end()
        if not given.keep:
            remove(made)
    if given.json:
        print(json.dumps(document, indent=1))
    else:
        report.show(document)
    if given.docs:
        write_docs(document)
    if given.keep:
        print(f"kept in {made}", file=sys.stderr)
    return int(bool(document["findings"]))


def write_docs(document):
    page = ROOT / "docs" / "fleet.md"
    start, end = "<!-- make fleet-faults: start -->", "<!-- make fleet-faults: end -->"
    before, _, rest = page.read_text().partition(start)
    page.write_text(f"{before}{start}\n\n{report.markdown(document)}\n\n{end}{rest.partition(end)[2]}")


def remove(folder):
    for home in Path(folder).glob("*/home"):
        if os.path.ismount(home):
            subprocess.run(["umount", "-l", str(home)], check=False)
    shutil.rmtree(folder, ignore_errors=True)


class Harness:
    """One run of everything."""

    def __init__(self, root, given):
        self.root, self.given = root, given
        self.network = network.Network() if network.is_inside() else None
        self.workers, self.git, self.database = [], None, None
        self.findings, self.restarts = [], 0
        self.began = time.monotonic()
        self.ended = False

    def run(self):
        given, root = self.given, self.root
        self.environ = {**os.environ, "AGENTX_STATE_DIR": str(root / "me"), "AGENTX_CACHE_DIR": str(root / "no-models")}  # fmt: skip
        self.environ.pop("AGENTX_TRUSTED_KEYS", None)
        settings = read_settings(self.environ)
        self.git, self.database = GitHost(self.network, root), DatabaseHost(self.network, root)
        self.git.start()
        turns = root / "turns.jsonl"
        script(turns, given.runs)
        place = places.initialise(settings, self.database.url, self.git.url, tenant=TENANT, lease_s=given.lease, slots=given.slots)  # fmt: skip
        key = records.own_public_key(Store(settings.state_dir))
        for number in range(given.workers):
            one = WorkerHost(self.network, f"worker-{number}", root, place, key, turns)
            if self.network and number == 0:
                one.mount()
            self.workers.append(one)
        names = [f"w{number:04}" for number in range(given.workspaces)]
        for name in names:
            self.git.create(name)
        with places.opened(place) as queue:
            self.queue = queue
            self.chaos = Chaos(
                self.workers, self.git, self.database, queue,
                lease_s=given.lease, gap_s=given.gap, seed=given.seed, tell=self._tell,
            )  # fmt: skip
            ids, times, failed = self._work(names)
            self._settle()
            ended = overview(place, queue, len(names) * given.runs)
            rows = {one.submission: one for one in queue.recent(len(names) * given.runs)}
        self._end_workers()
        checked = self._check(names, ids, ended.stranded)
        self._check_secrets()
        return self._document(rows, checked, ended, times, failed)

    # --- the work -------------------------------------------------------------------------------------------

    def _work(self, names):
        """Submit, work and hurt, until all has ended or the time is over; the ids, and the seconds of submissions."""
        given = self.given
        ids, times, failed, counts = {}, [], 0, {}
        for one in self.workers:
            one.start()
        chaos = threading.Thread(target=self.chaos.run, name="chaos")
        if given.gap:
            chaos.start()
        mine = self.root / "mine"
        mine.mkdir()
        last = 0.0
        self.worked_from = time.monotonic()
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            submitting = {pool.submit(create, name, given.runs, mine, self.environ, TENANT) for name in names}
            while True:
                time.sleep(0.5)
                for done in [one for one in submitting if one.done()]:
                    submitting.remove(done)
                    name, made, took, again = done.result()
                    ids[name] = made
                    times += took
                    failed += again
                self._restart()
                counts = self._counts() or counts
                over = sum(counts.get(one, 0) for one in ("SUCCESS", "ERROR", "CANCELLED"))
                if time.monotonic() - last > (0.5 if sys.stderr.isatty() else 15):
                    last = time.monotonic()
                    self._live(over, counts)
                if counts and not submitting and over == len(names) * given.runs:
                    break
                if time.monotonic() - self.began > given.limit:
                    self.findings.append(f"only {over} of {len(names) * given.runs} runs ended within {given.limit:g} s")  # fmt: skip
                    for one in submitting:
                        one.cancel()
                    break
            self.worked_s = time.monotonic() - self.worked_from
            self.chaos.stop()
            if given.gap:
                chaos.join()
        self.findings += self.chaos.findings
        return ids, times, failed

    def _counts(self):
        with contextlib.suppress(QueueFailed):
            return self.queue.counts()
        return {}

    def _restart(self):
        """Start workers again that ended by themselves, as a service manager does."""
        for one in self.workers:
            if one.name in self.chaos._held or one.process is None:
                continue
            code = one.process.poll()
            if code is not None and one.name not in self.chaos._held:
                self._log(
                    {"at_s": round(time.monotonic() - self.began, 1), "restart": one.name, "status": code}
                )
                self.restarts += 1
                one.kill()
                one.start()

    def _live(self, over, counts):
        total, took = self.given.workspaces * self.given.runs, time.monotonic() - self.worked_from
        text = f"{took:5.0f} s  {over} of {total} runs, {over / took:.1f} a second, {counts.get('PENDING', 0)} at work, {len(self.chaos.faults)} faults"  # fmt: skip
        print(f"\r{text}   " if sys.stderr.isatty() else text, end="" if sys.stderr.isatty() else "\n", file=sys.stderr, flush=True)  # fmt: skip

    def _tell(self, fault):
        self._log({"at_s": fault.at_s, "fault": fault.kind, "host": fault.host, "for_s": fault.for_s, "how": fault.how, "runs": fault.runs})  # fmt: skip

    def _log(self, row):
        with open(self.root / "log.jsonl", "a") as log:
            log.write(json.dumps(row) + "\n")
        if not self.given.json and sys.stderr.isatty():
            shown = " ".join(str(value) for key, value in row.items() if key != "runs" and value != "")
            print(f"\r{shown}" + " " * 60, file=sys.stderr)

    def _settle(self):
        """Wait until the workers have pushed all that they set aside."""
        until = time.monotonic() + SETTLE_S
        while time.monotonic() < until:
            self._restart()
            if not any(self._left(one) for one in self.workers):
                return
            time.sleep(0.5)
        for one in self.workers:
            if left := self._left(one):
                self.findings.append(f"{one.name} still has events that were not pushed: {left}")

    def _left(self, one):
        found = []
        for folder, pattern in (("stranded", "*/.git"), ("records", "*.json")):
            found += [str(path.relative_to(one.home)) for path in (one.home / folder).glob(pattern)]
        return found

    def _end_workers(self):
        """End the workers in order; nothing may remain on their hosts."""
        for one in self.workers:
            dead = [pid for pid in one.processes() if state_of(pid) == "Z"]
            time.sleep(1)
            if unburied := [pid for pid in dead if state_of(pid) == "Z"]:
                self.findings.append(f"{one.name} has {len(unburied)} zombie processes")
            if one.process:
                one.wait_until_ready(END_S)
                one.ask_to_end()
        for one in self.workers:
            if one.process is None:
                continue
            if (code := one.has_ended(END_S)) is None:
                self.findings.append(f"{one.name} did not end within {END_S:g} s of SIGTERM")
            elif code:
                self.findings.append(f"{one.name} ended with status {code}")
            elif left := one.left_behind():
                self.findings.append(f"{one.name} left processes behind: {left}")
            one.kill()

    # --- afterwards -----------------------------------------------------------------------------------------

    def _check(self, names, ids, stranded):
        began = time.monotonic()
        fresh = self.root / "fresh"
        fresh.mkdir()
        homes = [one.home for one in self.workers]
        found = []
        with ProcessPoolExecutor(os.cpu_count(), multiprocessing.get_context("spawn")) as pool:
            jobs = [
                pool.submit(
                    check, name, ids.get(name, []), self.git.url.replace("{workspace}", name),
                    str(self.git.remotes / f"{name}.git"), homes, fresh, self.environ, (TOKEN, KEY),
                )
                for name in names
            ]  # fmt: skip
            for done in as_completed(jobs):
                one = done.result()
                found.append(one)
                self.findings += [f"{one.workspace}: {what}" for what in one.findings]
        reported = {one.ref: one.commit for one in stranded if one.pushed}
        refs = {ref: commit for one in found for ref, commit in one.refs.items()}
        for ref in set(reported) ^ set(refs):
            where = (
                "the remote, and `fleet status` does not name it" if ref in refs else "`fleet status` alone"
            )
            self.findings.append(f"{ref} is on {where}")
        self.findings += [f"{one.ref} is not pushed" for one in stranded if not one.pushed]
        hashes = set().union(*(one.hashes for one in found))
        lost = Counter()
        for one in self.workers:
            if one.witness.exists():
                for line in one.witness.read_text().splitlines():
                    which, _, where = line.split(" ", 2)
                    self.witnessed = getattr(self, "witnessed", 0) + 1
                    if which not in hashes:
                        lost[(one.name, where)] += 1
        self.findings += [f"{count} events that {name} recorded in {where} are nowhere" for (name, where), count in lost.items()]  # fmt: skip
        self.checked_s = time.monotonic() - began
        return found

    def _check_secrets(self):
        dump = self.database.server.dump().decode()
        (self.root / "dump.sql").write_text(dump)
        for where, text in {
            "the database": dump,
            **{one.name: one.said.read_text() for one in self.workers},
        }.items():
            for secret in (TOKEN, KEY, "PRIVATE KEY"):
                if secret in text:
                    self.findings.append(f"{where} holds a secret: {secret[:8]}…")

    def _document(self, rows, checked, ended, times, failed):
        faults = self.chaos.faults
        zero_ms = time.time() * 1000 - (time.monotonic() - self.chaos._began) * 1000
        names = {one.name: one.id for one in self.workers}
        for fault in faults:
            fault.ended_ms = zero_ms + 1000 * (fault.at_s + fault.for_s)
            fault.workers = {names[fault.host]} if fault.host in names else set(names.values())
        resumed = {name: times for one in checked for name, times in one.resumed.items()}
        results = {name: (row, report.result_of(row)) for name, row in rows.items()}
        statuses = Counter(result.get("status", row.status) for row, result in results.values())
        self.findings += [f"{name} ended as {result.get('status')}: {result.get('reason', '')}" for name, (_, result) in results.items() if result.get("status") != "COMPLETED"]  # fmt: skip
        figures = {
            "runs": len(rows),
            "statuses": dict(statuses),
            "faults": len(faults),
            "seconds of work": round(self.worked_s, 1),
            "runs a second": round(len(rows) / self.worked_s, 2),
            "seconds of checks": round(self.checked_s, 1),
            "seconds in all": round(time.monotonic() - self.began, 1),
            "median ms of a submission": round(1000 * statistics.median(times)) if times else None,
            "submissions tried again": failed,
            "runs resumed": len(resumed),
            "found done": sum(bool(result.get("already")) for _, result in results.values()),
            "side refs": sum(len(one.refs) for one in checked),
            "events witnessed": getattr(self, "witnessed", 0),
            "events in histories and side refs": sum(len(one.hashes) for one in checked),
            "workers' copies up to date": sum(one.current for one in checked),
            "workers started again by themselves": self.restarts,
            "load average": os.getloadavg(),
        }
        given = {key: value for key, value in vars(self.given).items() if key not in ("json", "keep", "docs")}
        return {
            "given": given,
            "findings": self.findings,
            "outcomes": report.outcomes(faults, results, resumed, {one.submission for one in ended.stranded}),
            "figures": figures,
            "left_out": []
            if self.network
            else ["links cut, disk full: there are no network namespaces here"],
        }

    def end(self):
        """Kill whatever still runs."""
        if self.ended:
            return
        self.ended = True
        for one in [*self.workers, self.git]:
            if one:
                one.power_off()
        if self.database:
            with contextlib.suppress(Exception):
                self.database.server.stop()


if __name__ == "__main__":
    sys.exit(main())
