"""What dead processes and power cuts are known to leave behind, put there by hand."""

import os
import random
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

from agentx.integrity.repair import repair
from agentx.storage.files.lock import FileLock
from agentx.storage.index.pending_writes import locked

from . import scenario
from .children import Tell, start
from .power import LONG_AGO_S
from .runs import Job, Outcome

OBJECTS = {
    "commit": "HEAD",
    "tree": "HEAD^{tree}",
    "artifacts": "HEAD:artifacts",
    "folder": "HEAD:artifacts/deep",
    "log": "HEAD:history.jsonl",
    "file": "HEAD:artifacts/changed.txt",
    "earlier": "HEAD~1",
    "older": "HEAD~2^{tree}",
}
OF_THE_LAST_COMMIT = ("commit", "tree", "artifacts", "folder", "log")
"""What may not have reached the disk although the workspace was closed."""

HARMS = ("half", "empty", "zeros")
ENDS = ("crash", "clean")
REFS = {"missing": b"1" * 40 + b"\n", "half": b"1" * 17, "empty": b"", "zeros": b"\0" * 41}
LINES = ("half", "zeros", "foreign", "junk")
LOCKS = {
    "agentx.lock": b"", "index.lock": b"agentx 4194303999", "index.lock of zeros": b"\0" * 12, "index.lock empty": b"",
    "refs/heads/main.lock": b"", "HEAD.lock": b"", "packed-refs.lock": b"",
}  # fmt: skip


def damage(job: Job, outcome: Outcome, place: Path) -> None:
    """One object that is not synced, truncated, emptied or zeroed: an open makes it again after a crash, else `repair`."""
    root = place / "task"
    which, how, end = job.detail.split("-")
    acknowledged = _work(root, outcome, clean=end == "clean", deferring=False)
    oid = _git(root, "rev-parse", OBJECTS[which])
    path = root / ".git/objects" / oid[:2] / oid[2:]
    if not path.exists():
        return  # it lies in a pack, which is synced
    path.chmod(0o644)
    whole = path.read_bytes()
    path.write_bytes({"half": whole[: len(whole) // 2], "empty": b"", "zeros": b"\0" * len(whole)}[how])
    outcome.survived = outcome.torn = 1
    if end == "clean":
        repair(root)
    outcome.judge(root, acknowledged)


def ref(job: Job, outcome: Outcome, place: Path) -> None:
    """The branch names a commit that is not there, or nothing at all."""
    root = place / "task"
    acknowledged = _work(root, outcome)
    (root / ".git/refs/heads/main").write_bytes(REFS[job.detail])
    outcome.survived = outcome.torn = 1
    outcome.judge(root, acknowledged)


def lock(job: Job, outcome: Outcome, place: Path) -> None:
    """A lock file that a dead process left stops nobody."""
    root = place / "task"
    acknowledged = _work(root, outcome)
    left = root / ".git" / job.detail.partition(" ")[0]
    left.write_bytes(LOCKS[job.detail])
    os.utime(left, (time.time() - LONG_AGO_S,) * 2)
    outcome.survived = 1
    child = start(partial(_write_again, root))
    child.finish()
    acknowledged |= outcome.hear(child)
    outcome.judge(root, acknowledged)


def holder(job: Job, outcome: Outcome, place: Path) -> None:
    """A process that is killed while it holds a lock stops nobody: the workspace's, or that of the waiting rows."""
    root = place / "task"
    acknowledged = _work(root, outcome)
    for path in (root / ".git/agentx.lock", root / ".agentx/index/waiting.lock"):
        path.parent.mkdir(parents=True, exist_ok=True)

        def hold(tell: Tell, path: Path = path) -> None:
            with FileLock(path).hold() if path.name == "agentx.lock" else locked(path):
                tell({"held": True})
                signal.pause()

        child = start(hold)
        while not child.told and child.status is None:
            child.listen(time.monotonic() + 1)
        child.kill()
    outcome.survived = 2
    child = start(partial(_write_again, root))
    child.finish()
    outcome.judge(root, acknowledged | outcome.hear(child))


def line(job: Job, outcome: Outcome, place: Path) -> None:
    """The log ends in part of a line, in zeros, or in a line that is no event: the first open tells, and sets it aside."""
    root, draw = place / "task", random.Random(job.seed)
    acknowledged = _work(root, outcome)
    live = root / "history.jsonl"
    last = live.read_bytes().splitlines(keepends=True)[-1]
    rest = {
        "half": last[: draw.randint(1, len(last) - 1)],
        "zeros": b"\0" * 300,
        "foreign": last,
        "junk": b"{}\n",
    }
    with live.open("ab") as file:
        file.write(rest[job.detail])
    outcome.survived = outcome.torn = 1
    again = start(partial(_write_again, root))
    again.finish()
    outcome.judge(root, acknowledged | outcome.hear(again))


def _work(root: Path, outcome: Outcome, *, clean: bool = True, deferring: bool = True) -> dict[int, str]:
    child = start(partial(scenario.work, root, clean=clean, deferring=deferring))
    child.finish()
    return outcome.hear(child)


def _write_again(root: Path, tell: Tell) -> None:
    with scenario.quiet(root) as ws:
        before = ws.state.seq
        ws.tools.write_file("again.txt", "it goes on\n")
        ws.flush()
        scenario.acknowledge(ws, before, tell)


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()
