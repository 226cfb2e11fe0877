"""Faults at random, one after another and over one another, each written down with its time and whom it hit."""

import dataclasses
import random
import signal
import threading
import time

from agentx.scheduling.shared_queue import QueueFailed

KINDS = {
    "kill": "worker killed (SIGKILL, all its processes), started again",
    "freeze": "worker frozen (SIGSTOP, all its processes), resumed",
    "cut git": "link between worker and Git host cut",
    "cut database": "link between worker and database cut",
    "cut both": "worker cut off from both",
    "disk full": "disk of the worker full",
    "terminate": "worker ended by SIGTERM, started again",
    "database": "database killed and started again",
    "git host": "Git host killed, started again",
}
_LINKS = {"cut git": ("git",), "cut database": ("database",), "cut both": ("git", "database")}
_WHOLE = ("database", "git host")
_END_S = 90.0


@dataclasses.dataclass
class Fault:
    """A fault that was brought about.

    Attributes:
        kind: One of :data:`KINDS`.
        host: The host that it hit.
        at_s: Seconds since the start.
        for_s: How long it lasted.
        how: In which of several ways.
        runs: The submissions that the host had then; of all workers for the database and the Git host.
    """

    kind: str
    host: str
    at_s: float
    for_s: float = 0.0
    how: str = ""
    runs: tuple[str, ...] = ()


class Chaos:
    """Brings faults about until it is told to end; then everything is whole again."""

    def __init__(self, workers, git, database, queue, *, lease_s, gap_s, seed, tell):
        self._workers, self._git, self._database, self._queue = workers, git, database, queue
        self._lease_s, self._gap_s, self._random, self._tell = lease_s, gap_s, random.Random(seed), tell
        self._began = time.monotonic()
        self._end = threading.Event()
        self._held = set()
        self._threads = []
        self._changing = threading.Lock()
        self.faults, self.findings = [], []
        self.kinds = [
            kind
            for kind in KINDS
            if (kind not in _LINKS or workers[0].network)
            and (kind != "disk full" or any(one.has_disk for one in workers))
        ]

    def run(self):
        """Bring faults about, each kind as often as the others."""
        deck = []
        while not self._end.wait(self._random.expovariate(1 / self._gap_s)):
            if not deck:
                deck = list(self.kinds)
                self._random.shuffle(deck)
            kind = deck.pop()
            hosts = self._hosts(kind)
            if not hosts:
                deck.insert(0, kind)
                continue
            host, seed = self._random.choice(hosts), self._random.random()
            self._held.add(host.name)
            thread = threading.Thread(target=self._one, args=(kind, host, random.Random(seed)), name=kind)
            self._threads.append(thread)
            thread.start()

    def stop(self):
        """End, and wait until what was cut is whole and all workers run."""
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _hosts(self, kind):
        if kind == "database":
            free = [self._database]
        elif kind == "git host":
            free = [self._git]
        else:
            free = [one for one in self._workers if one.has_disk or kind != "disk full"]
        return [one for one in free if one.name not in self._held]

    def _one(self, kind, host, chance):
        fault = Fault(
            kind, host.name, round(time.monotonic() - self._began, 2), runs=self._at_work(kind, host)
        )
        self.faults.append(fault)
        try:
            self._bring_about(fault, host, chance)
        except Exception as error:
            self.findings.append(f"the harness failed at {fault}: {error!r}")
            if host in self._workers and host.process:
                host.wait_until_ready(_END_S)
        finally:
            fault.for_s = round(time.monotonic() - self._began - fault.at_s, 2)
            self._held.discard(host.name)
            self._tell(fault)

    def _at_work(self, kind, host):
        try:
            rows = self._queue._rows(
                f"SELECT workflow_uuid, executor_id FROM {self._queue._prefix}workflow_status WHERE status = 'PENDING'"
            )
        except QueueFailed:  # that is one of the faults
            return ()
        return tuple(row[0] for row in rows if kind in _WHOLE or row[1] == host.id)

    def _bring_about(self, fault, host, chance):
        lasts = self._lease_s * chance.choice([chance.uniform(0.1, 0.9), chance.uniform(1.2, 2.5)])
        match fault.kind:
            case "kill":
                host.kill()
                self._end.wait(lasts)
                host.start()
            case "freeze":
                fault.how = "past its lease" if lasts > self._lease_s else "shorter than its lease"
                host.signal(signal.SIGSTOP)
                self._end.wait(lasts)
                host.signal(signal.SIGCONT)
            case "cut git" | "cut database" | "cut both":
                silent = chance.random() < 0.5
                fault.how = "packets lost" if silent else "link down"
                for one in _LINKS[fault.kind]:
                    host.network.cut(host.name, one, silent=silent)
                self._end.wait(lasts)
                for one in _LINKS[fault.kind]:
                    host.network.mend(host.name, one)
            case "disk full":
                host.fill()
                self._end.wait(lasts)
                host.empty()
            case "terminate":
                fault.how = f"its runs had {host.grace_s:g} s"
                early = not host.is_ready  # then SIGTERM ends it as it ends any program
                host.ask_to_end()
                code = host.has_ended(_END_S)
                if code is None:
                    self.findings.append(
                        f"{host.name} did not end within {_END_S:g} s of SIGTERM at {fault.at_s} s"
                    )
                    host.kill()
                elif code and not (early and code == -signal.SIGTERM):
                    self.findings.append(
                        f"{host.name} ended with status {code} after SIGTERM at {fault.at_s} s"
                    )
                elif left := host.left_behind():
                    self.findings.append(f"{host.name} left processes behind at its end: {left}")
                    host.kill()
                host.start(chance.choice((0.0, 60.0)))
            case "database":
                host.server.stop()
                self._end.wait(min(lasts, self._lease_s))
                host.server.start()
            case "git host":
                host.stop()
                self._end.wait(lasts)
                host.start()
