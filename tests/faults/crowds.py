"""Many processes on one workspace: they write and read at once, die at random moments, or have lost their lock."""

import contextlib
import fcntl
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from agentx import Workspace
from agentx.storage.errors import AgentXError
from agentx.storage.files.lock import FileLock
from agentx.storage.log.history import Damage, History, HistoryDamaged
from agentx.synthesis.memory.record_codec import record_codec

from . import oracle
from .children import Child, Tell, listen, start
from .runs import Job, Outcome

LONG_S = 900.0
"""Many writers take their time."""


def many(job: Job, outcome: Outcome, place: Path) -> None:
    """``8x500``: so many processes, so many appends and writes each, with readers beside them."""
    root = place / "task"
    writers, each = map(int, job.detail.split("x"))
    stop = place / "stop"
    readers = [start(partial(read, root, stop)), start(partial(ask, root, stop))]
    crowd = [start(partial(write, root, name, range(each))) for name in _names(writers)]
    said: list[tuple[int, str]] = []
    listen(crowd, time.monotonic() + LONG_S)
    for child in crowd:
        child.finish()
        said += outcome.hear(child).items()
    stop.touch()
    for reader in readers:
        outcome.findings += [m["finding"] for m in reader.finish() if "finding" in m]
        outcome.hear(reader)
    outcome.survived = writers
    if len(set(said)) != writers * each:
        outcome.findings.append(f"{writers * each} writes gave {len(set(said))} distinct events")
    outcome.judge(root, dict(said))


def queue(job: Job, outcome: Outcome, place: Path) -> None:
    """``16x60``: 16 writers for 60 seconds. None is refused, and the longest wait is noted."""
    root = place / "task"
    writers, seconds = map(int, job.detail.split("x"))
    crowd = [start(partial(_write_for, root, name, seconds)) for name in _names(writers)]
    said: list[tuple[int, str]] = []
    longest, fewest = 0.0, sys.maxsize
    listen(crowd, time.monotonic() + LONG_S + seconds)
    for child in crowd:
        child.finish()
        written = outcome.hear(child)
        said += written.items()
        longest = max([longest, *(message["waited"] for message in child.told if "waited" in message)])
        fewest = min(fewest, len(written))
    outcome.survived = writers
    outcome.findings += [f"a writer was refused: {one}" for one in outcome.refusals]
    outcome.notes.append(
        f"{writers} writers for {seconds} s: {len(said):,} writes, {len(outcome.refusals)} refused; "
        f"the longest took {longest:.1f} s; the slowest writer did {fewest} of {len(said) // writers} on average"
    )
    outcome.judge(root, dict(said))


def _write_for(root: Path, name: str, seconds: int, tell: Tell) -> None:
    longest = 0.0

    def numbers() -> Iterator[int]:
        nonlocal longest
        end = time.monotonic() + seconds
        for number in count():
            began = time.monotonic()
            if began > end:
                return
            yield number
            longest = max(longest, time.monotonic() - began)

    write(root, name, numbers(), tell)
    tell({"waited": longest})


def _names(writers: int) -> list[str]:
    return [f"writer{number}" for number in range(writers)]


def write(root: Path, name: str, numbers: range | Iterator[int], tell: Tell) -> None:
    """Append and write in turn: a message, a file of its own, a file that all share."""
    with _telling(tell), Workspace.open(root, settings=oracle.settings(root)) as ws:
        tell({"open": name})
        for number in numbers:
            text = f"{name} at work, number {number}"
            works = (
                lambda text=text: ws.say(text).seq,
                lambda text=text, place=f"{name}/{number % 9}.txt": ws.tools.write_file(place, text).seq,
                lambda text=text: ws.tools.write_file("shared.txt", text).seq,
            )
            with _telling(tell):
                seq = works[number % 3]()
                event = next(ws.events(after=seq - 1), None)
                tell({"ack": (seq, event.hash if event and event.seq == seq else "gone already")})


@contextlib.contextmanager
def _telling(tell: Tell) -> Iterator[None]:
    try:
        yield
    except AgentXError as error:
        tell({"refused": f"{type(error).__name__}: {error}"})


def read(root: Path, stop: Path, tell: Tell) -> None:
    """Read the history over and over: it only grows, and nothing in it is ever broken."""
    known = 0
    while not stop.exists():
        damage: list[Damage] = []
        seqs = [e.seq for e in History(root, record_codec()).read(on_damage=damage.append)]
        if damage or seqs != list(range(1, len(seqs) + 1)) or len(seqs) < known:
            tell({"finding": f"a reader saw {damage[:2]} and {known} events before, {len(seqs)} now"})
            return
        known = len(seqs)
        time.sleep(0.05)


def ask(root: Path, stop: Path, tell: Tell) -> None:
    """Ask the command line over and over, as people and hooks do."""
    commands = (["log"], ["status"], ["search", "work"], ["memory", "list"])
    environ = os.environ | {"AGENTX_CACHE_DIR": str(root.parent / "no-models")}
    for turn in count():
        if stop.exists():
            return
        command = [sys.executable, "-m", "agentx", "-C", str(root), *commands[turn % len(commands)], "--json"]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        if done.returncode:
            tell({"finding": f"agentx {commands[turn % len(commands)]} failed: {done.stderr[-300:]}"})


def load(job: Job, outcome: Outcome, place: Path) -> None:
    """Several writers, each killed at a moment of its own, again and again; then nothing may be missing."""
    root, draw = place / "task", random.Random(job.seed)
    acknowledged: dict[int, str] = {}
    for turn in range(int(job.detail)):
        crowd = [start(partial(write, root, f"{name}-{turn}", count())) for name in _names(3)]
        while not all(_has_written(child) or child.status is not None for child in crowd):
            listen(crowd, time.monotonic() + 0.05)
        for child in draw.sample(crowd, len(crowd)):
            listen(crowd, time.monotonic() + draw.uniform(0, 0.2))
            child.kill()
            outcome.survived += 1
            acknowledged |= outcome.hear(child)
        outcome.findings += [f"turn {turn}: LOST {seq}" for seq in oracle.lost(root, acknowledged)[:5]]
    outcome.judge(root, acknowledged)


def _has_written(child: Child) -> bool:
    return any("ack" in message for message in child.told)


def sabotage(job: Job, outcome: Outcome, place: Path) -> None:
    """Locks of files do nothing, as on some network file systems: writers are refused and told why, nothing is lost."""
    root = place / "task"
    writers, each = map(int, job.detail.split("x"))
    written = start(partial(write, root, "before", range(each)))
    written.finish(LONG_S)
    acknowledged = outcome.hear(written)
    before = oracle.picture(root)
    crowd = [start(partial(_unlocked, root, name, range(each))) for name in _names(writers)]
    listen(crowd, time.monotonic() + LONG_S)
    for child in crowd:
        child.finish()
        if outcome.hear(child):
            outcome.findings.append("a writer without a lock wrote")
    outcome.survived = writers
    told = [one for one in outcome.refusals if "locks do nothing" in one]
    if len(told) < writers:
        outcome.findings.append(
            f"{writers} writers without a lock, and {len(told)} were told: {outcome.refusals[:3]}"
        )
    if oracle.picture(root) != before:
        outcome.findings.append("a writer without a lock changed the workspace")
    outcome.judge(root, acknowledged)


def _unlocked(root: Path, name: str, numbers: range, tell: Tell) -> None:
    fcntl.flock = lambda *_: None
    write(root, name, numbers, tell)


def locked_out(job: Job, outcome: Outcome, place: Path) -> None:
    """Readers of the history take no lock: while a writer holds it, they answer."""
    root = place / "task"
    held = root / ".git/agentx.lock"

    def reading(tell: Tell) -> None:
        try:
            seqs = [event.seq for event in History(root, record_codec()).read()]
        except HistoryDamaged as error:
            tell({"finding": str(error)})
            return
        tell({"read": len(seqs)})

    with FileLock(held).hold():
        told = start(reading).finish(30)
    if not any(message.get("read") for message in told):
        outcome.findings.append(f"a reader waits for the lock, or fails: {told}")
    outcome.survived = 1
