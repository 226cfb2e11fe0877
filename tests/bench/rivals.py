"""The nearest products beside ours: each appends messages and recalls some by its own operations, on the same texts.

Those that the project does not need itself are installed into an environment of their own, ``.venv/peers``. Whether an
append is on the disk when it returns is counted with strace, not read in a manual.
"""

import importlib.util
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.figures import Figure, number

from .product import ROOT
from .scale import Scale
from .turns import hand_over

PINNED = {
    "sqlite-utils": ("sqlite-utils==4.2.1",),
    "eventsourcing": ("eventsourcing==9.5.6",),
    "langgraph-checkpoint-sqlite": ("langgraph-checkpoint-sqlite==3.1.2",),
    "agno": ("agno==3.1.10", "sqlalchemy==2.0.45"),
    "chromadb": ("chromadb==1.5.9",),
    "mem0ai": ("mem0ai==2.2.1",),
}
"""Peers that are installed for the benchmark: 900 MB in all."""

OURS = ("AgentX, say", "AgentX, record")
OWN = {"GitPython": "git", "dulwich": "dulwich", "lancedb": "lancedb"}
"""Peers that the development environment holds, by the module to look for."""

RECALLS = {
    **dict.fromkeys(OURS, "words and vectors, ranked"),
    "git": "git grep",
    "GitPython": "latest ten",
    "dulwich": "latest ten",
    "SQLite": "words, FTS5",
    "sqlite-utils": "words, FTS5",
    "eventsourcing": "ten events by number",
    "langgraph-checkpoint-sqlite": "ten of a namespace",
    "agno": "one word, LIKE",
    "lancedb": "vectors, all scanned",
    "chromadb": "vectors, HNSW",
    "mem0ai": "vectors, Qdrant in the process",
}
"""What each is asked for; they are not the same, so the times are not a race."""

_PROGRAM = Path(__file__).with_name("peer_memory.py")
_PEERS = Path(__file__).parents[2] / ".venv" / "peers"
_MARK, _SYNCS = "getpriority(", ("fsync(", "fdatasync(", "msync(", "sync_file_range(", "syncfs(", "sync(")
_TRACED = "trace=getpriority,fsync,fdatasync,msync,sync_file_range,syncfs,sync"
_HELD_TRACED, _APPENDS_TRACED = 20, 20
_INSTALL_S, _RUN_S = 600, 300


@dataclass(frozen=True)
class Peer:
    """A product that can be measured: its name, and the interpreter that has it."""

    name: str
    python: str

    def command(self, folder: Path, held: int, appends: int, recalls: int) -> list[str]:
        """Return the command that measures it in an empty folder."""
        return [self.python, str(_PROGRAM), self.name, str(folder), *map(str, (held, appends, recalls))]


def peers(scratch: Path, scale: Scale) -> Iterator[Figure]:
    """Every product that is there, one after another."""
    found, missing = _found()
    for name, reason in missing.items():
        print(f"\n{name} is left out: {reason}", file=sys.stderr)
    for number_of, peer in enumerate(found):
        hand_over()
        folder = scratch / f"peer-{number_of}"
        counts = (scale.peer_held, scale.peer_appends, scale.peer_recalls)
        measured, problem = _run(peer.command(_empty(folder), *counts))
        if problem:
            print(f"\n{peer.name} is left out: {problem}", file=sys.stderr)
            continue
        syncs = _syncs(peer, scratch / f"traced-{number_of}")
        shutil.rmtree(folder, ignore_errors=True)
        yield from _figures(peer.name, measured, syncs, scale)


def durable(syncs: float | None) -> str:
    """Say whether an append is on the disk when it returns, from the syncs that it made.

    >>> durable(2.0), durable(0.0), durable(None)
    ('durable, 2 syncs', 'not durable, no sync', 'durable or not: strace is missing')
    """
    if syncs is None:
        return "durable or not: strace is missing"
    if syncs < 1:
        return f"not durable, {f'{syncs:.2g} syncs' if syncs else 'no sync'}"
    return f"durable, {syncs:.2g} sync{'s' * (syncs != 1)}"


def count_syncs(trace: str) -> int:
    """Return the syncs between the two marks in strace's output.

    >>> count_syncs("1 fsync(3) = 0\\n1 getpriority(0, 0) = 20\\n1 fdatasync(3) = 0\\n1 getpriority(0, 0) = 20\\n1 fsync(4) = 0")
    1
    """
    between = trace.split(_MARK)
    inside = between[1] if len(between) > 1 else ""
    calls = (line.partition(" ")[2].lstrip() for line in inside.splitlines())
    return sum(call.startswith(_SYNCS) for call in calls)


def _figures(name: str, measured: dict, syncs: float | None, scale: Scale) -> Iterator[Figure]:
    version = f" {measured['version']}" if measured["version"] else ""
    key = "".join(letter if letter.isalnum() else "_" for letter in name.lower()).replace("__", "_")
    for kind, what in (("append", durable(syncs)), ("recall", RECALLS[name])):
        clock, processor = (statistics.median(column) * 1e3 for column in zip(*measured[kind], strict=True))
        yield Figure(
            f"peer_{key}_{kind}_p50_ms",
            f"{name}{version}: {kind}, {scale.peer_held:,} held, p50, ms",
            clock,
            beside=f"{what}; processor {number(processor)} ms",
            processor=processor,
        )


def _found() -> tuple[list[Peer], dict[str, str]]:
    """Return the peers that can be measured, and why each of the others cannot."""
    found = [Peer(name, sys.executable) for name in (*OURS, "SQLite")]
    missing: dict[str, str] = {}
    if shutil.which("git"):
        found.append(Peer("git", sys.executable))
    else:
        missing["git"] = "it is not on PATH"
    for name, module in OWN.items():
        if importlib.util.find_spec(module):
            found.append(Peer(name, sys.executable))
        else:
            missing[name] = "it is not installed; `make bench` installs it"
    for name, packages in PINNED.items():
        reason = _install(packages)
        if reason:
            missing[name] = reason
        else:
            found.append(Peer(name, str(_PEERS / "bin" / "python")))
    return found, missing


def _install(packages: tuple[str, ...]) -> str:
    """Install a peer once; return why it cannot be used, or an empty line."""
    stamp = _PEERS / f"installed-{'-'.join(packages)}"
    if stamp.exists():
        return ""
    pip = [str(_PEERS / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-input"]
    try:
        if not (_PEERS / "bin" / "python").exists():
            subprocess.run([sys.executable, "-m", "venv", str(_PEERS)], check=True, capture_output=True)
        done = subprocess.run(
            [*pip, "--disable-pip-version-check", *packages],
            capture_output=True,
            text=True,
            timeout=_INSTALL_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"it could not be installed: {error}"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        return f"it could not be installed: {(lines or done.stderr.splitlines() or ['pip failed'])[-1]}"
    stamp.touch()
    return ""


def _run(command: list[str]) -> tuple[dict, str]:
    """Run a measuring program; return what it printed, or why it failed."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(_PROGRAM.parents[2])))}
    try:
        done = subprocess.run(
            command, env=environ, cwd=ROOT, capture_output=True, text=True, timeout=_RUN_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {}, f"it took more than {_RUN_S} s"
    if done.returncode:
        return {}, (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    measured: dict = json.loads(done.stdout.splitlines()[-1])
    return measured, ""


def _syncs(peer: Peer, folder: Path) -> float | None:
    """Count the syncs of an append; ``None`` without strace."""
    if not shutil.which("strace"):
        return None
    trace = folder.with_suffix(".trace")
    command = ["strace", "-f", "-qq", "-e", "signal=none", "-e", _TRACED, "-o", str(trace)]
    _, problem = _run([*command, *peer.command(_empty(folder), _HELD_TRACED, _APPENDS_TRACED, 1)])
    shutil.rmtree(folder, ignore_errors=True)
    return None if problem or not trace.exists() else count_syncs(trace.read_text()) / _APPENDS_TRACED


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder
