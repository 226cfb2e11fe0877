"""Kill pushes, pulls, clones and openings: a backup is always complete and holds what was pushed."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

from agentx import Workspace
from agentx.storage.errors import AgentXError

from . import oracle, scenario
from .children import Child, Tell, start
from .disk import Disk, Fault
from .runs import Job, Outcome, a_place

KILLS = 5
"""Kills in one run of pushes or pulls, at most."""

TAKES_S = 0.25
"""A little longer than a push or a pull takes."""

_ENDS_S = 20.0
_ANSWERS_S = 60.0


# --- what dies ----------------------------------------------------------------------------------------------


def work(root: Path, bare: Path, tell: Tell) -> None:
    """Write, delete and move files that come back elsewhere, and push after every few of them."""
    with scenario.quiet(root) as ws:
        last = scenario.acknowledge(ws, 0, tell)
        for number in count():
            place, text = f"d{number % 3}/{number % 4}.txt", f"{number % 5}\n"
            ws.tools.write_file(place, text)
            if number % 2:
                ws.tools.delete_file(place)
            else:
                ws.say(f"number {number}")
            if number % 4 == 3:
                ws.tools.write_file(f"large{number}.txt", os.urandom(200_000).hex())
            last = scenario.acknowledge(ws, last, tell)
            if number % 2:
                tell({"exchanging": number})
                done = ws.push(url=str(bare))
                tell({"exchanged": (done.to_seq, done.commit)})


def pull(root: Path, tell: Tell) -> None:
    """Pull, once something is there, over and over."""
    with scenario.quiet(root) as ws:
        while True:
            tell({"exchanging": 0})
            tell({"exchanged": (ws.pull().to_seq, "")})


def _descendants(pid: int) -> list[int]:
    """Every process that a process has started, and that those have."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(folder.name))
    found, ahead = list[int](), [pid]
    while ahead:
        below = parents.get(ahead.pop(), [])
        found += below
        ahead += below
    return found


def _dies(work: Callable[[Tell], None], draw: random.Random, *, alone: bool) -> Child:
    """Kill a process during one of its exchanges: alone, or together with the git programs that it started.

    Git programs that are left run to their own end.
    """
    child = start(work)
    wanted, deadline = draw.randint(1, 4), time.monotonic() + _ANSWERS_S
    while child.status is None and time.monotonic() < deadline:
        if sum("exchanging" in message for message in child.told) >= wanted:
            break
        child.listen(time.monotonic() + 0.002)
    child.listen(time.monotonic() + draw.uniform(0, TAKES_S))
    if child.status is None:
        os.kill(child.pid, signal.SIGSTOP)
        below = _descendants(child.pid)
        for pid in below if not alone else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        child.kill()
        deadline = time.monotonic() + _ENDS_S
        while any(map(_is_at_work, below)) and time.monotonic() < deadline:
            time.sleep(0.01)
    return child


def _is_at_work(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


# --- runs ---------------------------------------------------------------------------------------------------


def pushed(job: Job, outcome: Outcome, place: Path) -> None:
    """``alonex5`` or ``allx5``: kill that many pushes; each leaves a complete backup."""
    how, kills = job.detail.split("x")
    root, bare, draw = place / "task", _bare(place), random.Random(job.seed)
    acknowledged: dict[int, str] = {}
    last = ""
    for turn in range(int(kills)):
        child = _dies(partial(work, root, bare), draw, alone=how == "alone")
        acknowledged |= outcome.hear(child)
        outcome.survived += child.status == -signal.SIGKILL
        done = [message["exchanged"] for message in child.told if "exchanged" in message]
        last = done[-1][1] if done else last
        outcome.torn += bool(list((bare / "objects").glob("tmp_objdir*")))
        outcome.findings += [f"turn {turn}: {finding}" for finding in _incomplete(bare, last)]
    _finish(outcome, root, lambda ws: ws.push(url=str(bare)))
    outcome.findings += _incomplete(bare, _tip(root))
    clone = _clone(bare, place / "clone")
    outcome.findings += _same(root, clone)
    outcome.judge(clone, acknowledged)
    outcome.judge(root, acknowledged)


def pulled(job: Job, outcome: Outcome, place: Path) -> None:
    """``alonex5`` or ``allx5``: kill that many pulls; the last one, undisturbed, brings everything."""
    how, kills = job.detail.split("x")
    root, bare, draw = place / "task", _bare(place), random.Random(job.seed)
    _finish(outcome, root, lambda ws: ws.push(url=str(bare)))
    clone = _clone(bare, place / "clone")
    acknowledged: dict[int, str] = {}
    for turn in range(int(kills)):
        _finish(outcome, root, lambda ws, turn=turn: _some_more(ws, turn))
        child = _dies(partial(pull, clone), draw, alone=how == "alone")
        outcome.hear(child)
        outcome.survived += child.status == -signal.SIGKILL
    _finish(outcome, clone, lambda ws: ws.pull())
    outcome.findings += _same(root, clone)
    told = start(partial(_tell_all, root)).finish()
    acknowledged = {message["ack"][0]: message["ack"][1] for message in told if "ack" in message}
    outcome.judge(clone, acknowledged)


def cloned(job: Job, outcome: Outcome, place: Path) -> None:
    """``git clone`` of a backup, whose first opening dies at a step; and a second time, at another."""
    root, bare = place / "task", _bare(place)
    _finish(outcome, root, lambda ws: ws.push(url=str(bare)))
    clone = _clone(bare, place / "clone")
    told = start(partial(_tell_all, root)).finish()
    acknowledged = {message["ack"][0]: message["ack"][1] for message in told if "ack" in message}
    _open_and_die(outcome, clone, job)
    outcome.findings += _same(root, clone)
    outcome.judge(clone, acknowledged)


def reopened(job: Job, outcome: Outcome, place: Path) -> None:
    """Kill the opening of a workspace that crashed before its last flush, at one step and then at another."""
    root = place / "task"
    child = start(partial(scenario.work, root, clean=False))
    child.finish()
    acknowledged = outcome.hear(child)
    _open_and_die(outcome, root, job)
    outcome.judge(root, acknowledged)


def _open_and_die(outcome: Outcome, root: Path, job: Job) -> None:
    draw = random.Random(job.seed)
    for at in (job.at, draw.randint(1, max(2, job.at))):

        def dying(tell: Tell, at: int = at) -> None:
            fault = Fault("tear" if job.detail == "tear" else "kill", at)
            Disk(root, fault, dies=lambda step: tell({"step": step})).install()
            scenario.only_open(root, tell)

        child = start(dying)
        child.finish()
        outcome.hear(child)
        outcome.survived += child.status == -signal.SIGKILL
        outcome.torn += job.detail == "tear"


def count_steps(template: Path, kind: str) -> int:
    """How many steps the opening takes that ``cloned`` or ``reopened`` lets die."""
    with a_place(template) as place:
        root = place / "task"
        if kind == "cloned":
            bare = _bare(place)
            _finish(Outcome(Job(kind)), root, lambda ws: ws.push(url=str(bare)))
            root = _clone(bare, place / "clone")
        else:
            start(partial(scenario.work, root, clean=False)).finish()

        def opening(tell: Tell) -> None:
            disk = Disk(root, Fault())
            disk.install()
            scenario.only_open(root, lambda _: None)
            tell({"steps": disk.steps})

        return next(message["steps"] for message in start(opening).finish() if "steps" in message)


# --- what must hold -----------------------------------------------------------------------------------------


def _bare(place: Path) -> Path:
    bare = place / "backup.git"
    if not bare.exists():
        _git(place, "init", "-q", "--bare", "-b", "main", str(bare))
    return bare


def _clone(bare: Path, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    _git(bare.parent, "clone", "-q", str(bare), str(place))
    return place


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _tip(root: Path) -> str:
    return _git(root, "rev-parse", "main")


def _incomplete(bare: Path, pushed: str) -> Iterator[str]:
    """What is wrong with a backup to which a commit was pushed, and maybe more."""
    tip = _git(bare, "for-each-ref", "--format=%(objectname)", "refs/heads/main")
    if not tip:
        if pushed:
            yield "LOST: the branch of the backup is gone"
        return
    command = ["git", "-C", str(bare), "fsck", "--full", "--strict", "--no-dangling", "--no-progress"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode or done.stdout:
        yield f"LOST: the backup is not complete: {(done.stdout + done.stderr).strip()[:300]}"
    command = ["git", "-C", str(bare), "merge-base", "--is-ancestor", pushed or tip, tip]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        yield "LOST: the branch of the backup does not hold what was pushed"


def _some_more(ws: Workspace, turn: int) -> None:
    for number in range(3):
        ws.tools.write_file(f"{turn}/{number}.txt", f"{turn}\n")
        ws.tools.write_file("tmp.txt", "gone\n")
        ws.tools.delete_file("tmp.txt")
    ws.tools.write_file("large.txt", os.urandom(200_000).hex())
    ws.push()


def _finish(outcome: Outcome, root: Path, last: Callable[[Workspace], object]) -> None:
    """Open a workspace undisturbed, and do something; an error is a finding."""

    def finishing(_tell: Tell) -> None:
        with Workspace.open(root, settings=oracle.settings(root)) as ws:
            last(ws)

    child = start(finishing)
    child.finish()
    outcome.hear(child)


def _tell_all(root: Path, tell: Tell) -> None:
    with scenario.quiet(root) as ws:
        scenario.acknowledge(ws, 0, tell)


def _same(root: Path, clone: Path) -> Iterator[str]:
    """Whether a clone verifies, and says the same as where it came from."""

    def looking(tell: Tell) -> None:
        digests = []
        for place in (root, clone):
            try:
                with Workspace.open(place, settings=oracle.settings(place)) as ws:
                    digests.append(ws.state.digest)
                    for finding in ws.verify().findings:
                        tell({"finding": f"verify {place.name}: {finding}"})
            except AgentXError as error:
                tell({"finding": f"opening {place.name} fails: {error}"})
        if len(set(digests)) != 1:
            tell({"finding": f"LOST: the clone says something else: {digests}"})

    child = start(looking)
    told = child.finish()
    yield from (message["finding"] for message in told if "finding" in message)
    yield from (
        f"the look at the clone: {message['error'].strip()[-400:]}" for message in told if "error" in message
    )
    if child.hung:
        yield "the look at the clone hangs"
