"""The hosts of a fleet: workers, the Git host and the database, each of real processes that can be hurt.

Where there are network namespaces, each is on a host of its own. Else all are on the loopback of this machine,
and a link cannot be cut.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from agentx.fleet import place as places
from agentx.settings import read_settings
from tests.agentx.fleet.postgres import Postgres

from .network import NETWORKS

ROOT = Path(__file__).resolve().parents[3]
TENANT = "faults"
KEY = "sk-ant-api03-" + "Fau1tyF1eet" * 4
"""A model's key in the environment of every worker; it must not turn up anywhere else."""

_WITNESS = '''\
"""Write down the hash of each event that was recorded, outside of all that the fleet keeps itself."""
import os

from agentx.storage.log import history

append = history.HistoryWriter.append
out = os.open(os.environ["FLEET_WITNESS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def witnessed(self, drafts, **options):
    events = append(self, drafts, **options)
    os.write(out, "".join(f"{one.hash} {one.seq} {self._root}\\n" for one in events).encode())
    return events


history.HistoryWriter.append = witnessed
'''


def remaining(pids):
    """Those of some processes that run."""
    return [pid for pid in pids if state_of(pid) not in ("", "Z", "X")]


def state_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
    return ""


class Host:
    """A host, and the processes on it."""

    def __init__(self, network, folder, name, *networks):
        self.name, self.network = name, network
        self.mark = f"{folder}/{name}"
        """In the environment of its processes; no other harness on this machine has the same."""
        self.address = network.host(name, *networks) if network else dict.fromkeys(NETWORKS, "127.0.0.1")

    def command(self, *words):
        return [*(self.network.inside(self.name) if self.network else ()), *map(str, words)]

    def processes(self):
        """The ids of its processes, dead ones that nobody buried among them."""
        if self.network:
            return self.network.processes(self.name)
        mark, found = f"FLEET_HOST={self.mark}".encode(), []
        for one in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if mark in (one / "environ").read_bytes().split(b"\0"):
                    found.append(int(one.name))
        return found

    def signal(self, number):
        """Send a signal to all of its processes, and to those that they start meanwhile."""
        known = set()
        while new := set(self.processes()) - known:
            for pid in new:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            known |= new

    def power_off(self):
        """Kill all of its processes at once, and wait until they are gone."""
        while remaining(self.processes()):
            self.signal(signal.SIGKILL)
            time.sleep(0.02)


class GitHost(Host):
    """A host that serves bare repositories with ``git daemon``."""

    def __init__(self, network, folder):
        super().__init__(network, folder, "git", "git")
        self.remotes = folder / "remotes"
        self.remotes.mkdir()
        self._template = folder / "template.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", self._template], check=True)
        # Each move of the branch is written down, so that the history of the ref itself can be checked.
        for name, value in (
            ("core.logAllRefUpdates", "true"),
            ("gc.reflogExpire", "never"),
            ("gc.auto", "0"),
        ):
            subprocess.run(["git", "-C", self._template, "config", name, value], check=True)
        self.port = 9418
        if not network:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        self.url = f"git://{self.address['git']}:{self.port}/{{workspace}}.git"
        self._process = None

    def create(self, workspace):
        shutil.copytree(self._template, self.remotes / f"{workspace}.git", dirs_exist_ok=True)

    def start(self):
        command = self.command(
            "git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack", "--max-connections=0",
            f"--listen={self.address['git']}", f"--port={self.port}", f"--base-path={self.remotes}", self.remotes,
        )  # fmt: skip
        environ = {**os.environ, "FLEET_HOST": self.mark}
        self._process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip

    def stop(self):
        """Kill it, in the middle of whatever it receives."""
        self.power_off()
        if self._process:
            self._process.wait()
            self._process = None


class DatabaseHost(Host):
    """A host with a Postgres server."""

    def __init__(self, network, folder):
        super().__init__(network, folder, "database", "database")
        self.server = Postgres(folder / "server", self.address["database"], self.command() if network else ())
        self.url = self.server.url


class WorkerHost(Host):
    """A host with a worker: its home, its state directory and its environment."""

    def __init__(self, network, name, folder, place, key, script):
        super().__init__(network, folder, name, *NETWORKS)
        self.root = folder / name
        self.home, self.said, self.witness = self.root / "home", self.root / "said", self.root / "witness"
        tools = self.root / "tools"
        for one in (self.home, tools):
            one.mkdir(parents=True)
        (tools / "sitecustomize.py").write_text(_WITNESS)
        self.environ = {
            **os.environ,
            "PYTHONPATH": f"{tools}{os.pathsep}{ROOT}",
            "FLEET_HOST": self.mark,
            "FLEET_WITNESS": str(self.witness),
            "ANTHROPIC_API_KEY": KEY,
            "AGENTX_STATE_DIR": str(self.root / "state"),
            "AGENTX_CACHE_DIR": str(folder / "no-models"),
            "AGENTX_TRUSTED_KEYS": key,
            "AGENTX_MODEL": f"script:{script}",
        }
        settings = read_settings(self.environ)
        places.initialise(
            settings, place.database, place.remote, tenant=TENANT, lease_s=place.lease_s, slots=place.slots
        )
        self.process, self._disk = None, False

    @property
    def id(self):
        """The name that the worker gave itself; empty before its first start."""
        with contextlib.suppress(OSError):
            return (self.home / "name").read_text().strip()
        return ""

    def start(self, grace_s=0.0):
        self.grace_s = grace_s
        command = self.command(
            sys.executable, "-m", "agentx", "fleet", "worker", "--json", "--home", self.home, "--tenant", TENANT,
            "--grace", grace_s,
        )  # fmt: skip
        with open(self.said, "ab") as said:
            self._said_before = said.tell()
            self.process = subprocess.Popen(command, env=self.environ, stdout=said, stderr=said, start_new_session=True)  # fmt: skip

    @property
    def is_ready(self):
        """Whether it takes runs and hears SIGTERM."""
        return b"at once" in self.said.read_bytes()[self._said_before :]

    def wait_until_ready(self, patience_s):
        """Wait until it is ready, or has ended."""
        until = time.monotonic() + patience_s
        while self.process.poll() is None and time.monotonic() < until and not self.is_ready:
            time.sleep(0.05)

    def kill(self):
        self.power_off()
        if self.process:
            self.process.wait()
            self.process = None

    def ask_to_end(self):
        self.process.send_signal(signal.SIGTERM)

    def has_ended(self, patience_s):
        """Wait until it ended in order, and return its exit status; ``None`` if it does not end."""
        try:
            code = self.process.wait(patience_s)
        except subprocess.TimeoutExpired:
            return None
        self.process = None
        return code

    def left_behind(self):
        """Processes that are still here some seconds after it ended; its helpers see its end a little later."""
        until = time.monotonic() + 5.0
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.1)
        return [
            Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode() or state_of(pid)
            for pid in left
        ]

    def mount(self, size="4g"):
        """Give its home a disk of its own, which :meth:`fill` can fill."""
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(self.home)], check=True)
        self._disk = True

    @property
    def has_disk(self):
        return self._disk

    def fill(self):
        """Leave no room on its disk."""
        room = os.statvfs(self.home)
        used = (room.f_blocks - room.f_bfree) * room.f_frsize
        self._resize(f"{used // 1024 + 64}k")

    def empty(self):
        self._resize("4g")

    def _resize(self, size):
        for _ in range(20):  # it may have grown in between
            done = subprocess.run(["mount", "-o", f"remount,size={size}", str(self.home)], capture_output=True, check=False)  # fmt: skip
            if not done.returncode:
                return
            time.sleep(0.05)
            if size.endswith("k"):
                size = f"{int(size[:-1]) + 256}k"

    def results(self):
        """What it said about submissions."""
        found = []
        with contextlib.suppress(OSError):
            for line in self.said.read_bytes().splitlines():
                with contextlib.suppress(ValueError):
                    found.append(json.loads(line))
        return found
