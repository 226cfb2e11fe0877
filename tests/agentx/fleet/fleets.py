"""A fleet of real processes: workers with homes of their own, real remotes, and places where a worker can be held.

A worker is held by files in its own directory: a ``git`` before the real one on its path waits before or after a
clone, a fetch or a push, or loses the reply to it; its scripted model waits in the middle of a run; and its disk is full.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from agentx import Workspace
from agentx.fleet import place as places
from agentx.fleet.overview import overview
from agentx.fleet.submission import submit
from agentx.settings import read_settings
from agentx.storage.events.types import RunEnded, RunStarted
from agentx.trust import records
from agentx.trust.store import Store

ROOT = Path(__file__).resolve().parents[3]
LEASE_S = 2.0
PATIENCE_S = 120.0

_GIT = """\
#!/bin/sh
what=
for word in "$@"; do
    case "$word" in clone|fetch|push) what=$word; break ;; receive-pack|upload-pack) break ;; esac
done
if [ "$what" ]; then
    if [ -e "{hold}/before-$what" ]; then : > "{hold}/at-before-$what"; fi
    while [ -e "{hold}/before-$what" ]; do sleep 0.02; done
    if [ -e "{hold}/cut" ]; then echo "fatal: unable to access: the network is cut" >&2; exit 128; fi
fi
"{git}" "$@"
code=$?
if [ "$what" ] && [ -e "{hold}/lost-$what" ]; then
    rm "{hold}/lost-$what"; : > "{hold}/at-lost-$what"
    echo "fatal: the remote end hung up unexpectedly" >&2; exit 128
fi
if [ "$what" ]; then
    if [ -e "{hold}/after-$what" ]; then : > "{hold}/at-after-$what"; fi
    while [ -e "{hold}/after-$what" ]; do sleep 0.02; done
fi
exit $code
"""

_MODEL = """\
import errno, os, time
from agentx.synthesis.model import scripted
answer = scripted.ScriptedModel.stream
def stream(self, *arguments, **options):
    hold = os.environ["FLEET_HOLD"]
    if os.path.exists(hold + "/model"):
        with open(hold + "/at-model", "w") as at:
            at.write(str(os.getpid()))
        while os.path.exists(hold + "/model"):
            time.sleep(0.02)
    yield from answer(self, *arguments, **options)
scripted.ScriptedModel.stream = stream
from agentx.storage.log import history
write = history.HistoryWriter._write
def full(self, content, **options):
    if os.path.exists(os.environ["FLEET_HOLD"] + "/full"):
        open(os.environ["FLEET_HOLD"] + "/at-full", "w").close()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    write(self, content, **options)
history.HistoryWriter._write = full
"""


def wait_for(what, patience_s=PATIENCE_S):
    """Wait until something holds, and return it."""
    until = time.monotonic() + patience_s
    while not (found := what()):
        if time.monotonic() > until:
            raise TimeoutError
        time.sleep(0.05)
    return found


class Link:
    """A connection to a server that can be cut: what is sent then arrives once it is whole again, as with TCP."""

    def __init__(self, url):
        self.whole = threading.Event()
        self.whole.set()
        parts = urlsplit(url)
        self._there = (parts.hostname, parts.port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = parts._replace(
            netloc=f"{parts.username}@127.0.0.1:{self._server.getsockname()[1]}"
        ).geturl()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        self.whole.clear()

    def mend(self):
        self.whole.set()

    def close(self):
        self._server.close()
        self.mend()

    def _accept(self):
        with suppress(OSError):
            while True:
                here = self._server.accept()[0]
                there = socket.create_connection(self._there)
                for pair in ((here, there), (there, here)):
                    threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source, target):
        with suppress(OSError), source, target:
            while part := source.recv(1 << 16):
                self.whole.wait()
                target.sendall(part)


class WorkerProcess:
    """A worker in a process of its own, with everything that it starts."""

    def __init__(self, fleet, name, database=""):
        self.name, self.root = name, fleet.root / name
        self.hold, self.home, self.said = self.root / "hold", self.root / "home", self.root / "said"
        tools = self.root / "tools"
        for folder in (self.hold, tools):
            folder.mkdir(parents=True, exist_ok=True)
        shim = tools / "git"
        shim.write_text(_GIT.format(hold=self.hold, git=fleet.git))
        shim.chmod(0o755)
        (tools / "sitecustomize.py").write_text(_MODEL)
        self.environ = {
            **os.environ,
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{tools}{os.pathsep}{ROOT}",
            "FLEET_HOLD": str(self.hold),
            "AGENTX_STATE_DIR": str(self.root / "state"),
            "AGENTX_CACHE_DIR": str(fleet.root / "no-models"),
            "AGENTX_TRUSTED_KEYS": fleet.key,
            "AGENTX_MODEL": f"script:{fleet.script}",
        }
        fleet.join(read_settings(self.environ), database)
        self.tenant, self.process = fleet.tenant, None

    def start(self, *options):
        """Start it; it shows signs of life at once."""
        command = [
            sys.executable,
            "-m",
            "agentx",
            "fleet",
            "worker",
            "--json",
            "--home",
            str(self.home),
            "--tenant",
            self.tenant,
            *options,
        ]
        with open(self.said, "ab") as said:
            self.process = subprocess.Popen(command, env=self.environ, stdout=said, stderr=said)
        return self

    def holds(self, where):
        """Have it wait at a place from now on."""
        (self.hold / where).touch()

    def reached(self, where):
        """Wait until it waits there."""
        wait_for((self.hold / f"at-{where}").exists)

    def lets_go(self, where):
        (self.hold / where).unlink()

    def signal(self, number):
        """Send a signal to the worker and to everything that it started."""
        mark = f"FLEET_HOLD={self.hold}".encode()
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (place / "environ").read_bytes().split(b"\0"):
                    os.kill(int(place.name), number)

    def slay(self):
        """Kill it with everything that it started, at once."""
        self.signal(signal.SIGKILL)
        if self.process:
            self.process.wait()
            self.process = None

    def end(self):
        """End it in order."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE_S)
        self.process = None
        return code


class Fleet:
    """A fleet in a directory, whose user has their own state directory."""

    def __init__(self, root, database="", tenant=places.DEFAULT_TENANT):
        self.tenant, self.index = tenant, places.LOCAL
        self.root, self.git = root, shutil.which("git")
        self.database = database or f"sqlite:///{root}/queue.sqlite"
        self.script = root / "turns.jsonl"
        self.script.write_text('{"answer": "It is done."}\n')
        self.settings = read_settings(
            {**os.environ, "AGENTX_STATE_DIR": str(root / "me"), "AGENTX_CACHE_DIR": str(root / "no-models")}
        )
        self.place = self.join(self.settings)
        self.key = records.own_public_key(Store(self.settings.state_dir))
        self.workers, self.expected = [], Counter()

    def join(self, settings, database=""):
        pattern = str(self.root / "remotes" / "{workspace}.git")
        return places.initialise(
            settings,
            database or self.database,
            pattern,
            tenant=self.tenant,
            lease_s=LEASE_S,
            index=self.index,
        )

    def worker(self, name, database=""):
        self.workers.append(WorkerProcess(self, name, database))
        return self.workers[-1]

    def submit(self, workspace, *messages):
        """Submit runs in a workspace, which is made if it does not exist; return their ids."""
        root = self.root / "mine" / workspace
        opening = Workspace.open if root.exists() else Workspace.create
        with opening(root, settings=self.settings) as ws, places.opened(self.place) as queue:
            ids = [submit(ws, self.place, queue, message).id for message in messages]
        self.expected[workspace] += len(ids)
        return ids

    def status(self):
        with places.opened(self.place) as queue:
            return overview(self.place, queue, 1000)

    def all_ended(self):
        found = self.status()
        return found if not found.queued and not found.running else None

    def runs(self, workspace):
        """The runs in a fresh clone of a workspace, whose integrity and whose linear history were checked.

        Returns a row for each: its key, how often it was started anew, and how it ended.
        """
        clone = self.root / "fresh" / f"{workspace}-{time.monotonic_ns()}"
        remote = self.root / "remotes" / f"{workspace}.git"
        subprocess.run([self.git, "clone", "-q", str(remote), str(clone)], check=True)
        merges = subprocess.run(
            [self.git, "-C", str(clone), "rev-list", "--min-parents=2", "HEAD"],
            capture_output=True,
            check=True,
        )
        assert merges.stdout == b""
        with Workspace.open(clone, settings=self.settings) as ws:
            assert ws.verify().sound
            events = list(ws.events())
            digests = {digest(ws)}
        for one in self.workers:
            copy = one.home / "workspaces" / workspace
            if copy.exists() and head(self.git, copy) == head(self.git, remote):
                with Workspace.open(copy, settings=self.settings) as ws:
                    digests.add(digest(ws))
        assert len(digests) == 1
        started = Counter(
            one.key for one in events if isinstance(one.data, RunStarted) and not one.data.resumes
        )
        ids = {one.key: one.run for one in events if isinstance(one.data, RunStarted) and one.key}
        ended = {one.run: one.data.status for one in events if isinstance(one.data, RunEnded)}
        return {key.removeprefix("fleet:"): (started[key], ended.get(run)) for key, run in ids.items()}

    def side_refs(self, workspace):
        remote = self.root / "remotes" / f"{workspace}.git"
        done = subprocess.run(
            [self.git, "-C", str(remote), "for-each-ref", "--format=%(refname)", "refs/agentx/stranded"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.split()

    def said(self):
        return {one.name: [json.loads(line) for line in one.said.read_text().splitlines() if line[:1] == "{" and line[-1:] == "}"] for one in self.workers}  # fmt: skip


def head(git, root):
    done = subprocess.run([git, "-C", str(root), "rev-parse", "main"], capture_output=True, check=True)
    return done.stdout


def digest(ws):
    return (ws.state.hash, ws.state.digest, str(ws.engine.git.manifest()))
