"""One run of each kind of fault: a workspace is copied, something happens to it, and it is looked at anew.

Each run takes a job that says everything, so that a finding can be had again: ``python -m tests.faults JOB``.
"""

import contextlib
import dataclasses
import errno
import os
import pickle
import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from . import oracle, power, scenario
from .children import Child, Tell, start
from .disk import Disk, Fault


@dataclasses.dataclass(frozen=True)
class Job:
    """What is to be done in one run.

    Attributes:
        kind: A function of this module.
        at: The step at which it happens; 0 where there is none.
        detail: Which of several faults.
        seed: Of everything that is left to chance.
    """

    kind: str
    at: int = 0
    detail: str = ""
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.at}:{self.detail}:{self.seed}"


@dataclasses.dataclass
class Outcome:
    """What became of a run.

    Attributes:
        survived: How many faults of its kind happened.
        acknowledged: Events whose calls had returned.
        lost: How many of them are gone.
        findings: Everything that is not as it must be.
        torn: How many writes were torn or forgotten on the way.
        step: The call before which it happened, by the process that died.
        notes: What was measured on the way.
        seconds: How long it took.
    """

    job: Job
    survived: int = 0
    acknowledged: int = 0
    lost: int = 0
    torn: int = 0
    findings: list[str] = dataclasses.field(default_factory=list)
    refusals: list[str] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    step: str = ""
    seconds: float = 0.0

    def hear(self, child: Child) -> dict[int, str]:
        """Take what a child told: its acknowledged events by seq; an error that is none of ours is a finding."""
        acknowledged: dict[int, str] = {}
        for message in child.told:
            if "ack" in message:
                acknowledged[message["ack"][0]] = message["ack"][1]
            elif "refused" in message:
                self.refusals.append(message["refused"])
            elif "step" in message:
                self.step = message["step"]
            elif "error" in message:
                self.findings.append(f"a process ended with: {message['error'].strip()[-600:]}")
        if child.hung:
            self.findings.append("a process hung and was ended")
        return acknowledged

    def judge(self, root: Path, acknowledged: dict[int, str]) -> None:
        """Let a fresh process say what does not hold."""
        self.acknowledged += len(acknowledged)
        looking = start(partial(_look, root, acknowledged))
        told = looking.finish()
        found = [message["finding"] for message in told if "finding" in message]
        if looking.hung:
            found.append("opening it hangs")
        found += [f"the look at it ended with: {m['error'].strip()[-400:]}" for m in told if "error" in m]
        self.findings += found
        self.lost += sum(1 for one in found if one.startswith("LOST"))


def _look(root: Path, acknowledged: dict[int, str], tell: Tell) -> None:
    for finding in oracle.findings(root, acknowledged):
        tell({"finding": finding})


def make_template(folder: Path) -> None:
    """Make what each run gets a copy of: a workspace in ``task``, and files to be added to it in ``material``."""
    scenario.make_material(folder / "material")
    making = start(lambda _tell: scenario.make(folder / "task"))
    told = making.finish()
    if told or making.status:
        raise RuntimeError(told[0]["error"] if told else "the workspace cannot be made")


@contextlib.contextmanager
def a_place(template: Path, *, keep: bool = False) -> Iterator[Path]:
    """A directory with a copy of the template, gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix="agentx-faults-", dir=fast_place()))
    try:
        shutil.copytree(template, place, dirs_exist_ok=True, symlinks=True)
        yield place
    finally:
        if not keep:
            shutil.rmtree(place, ignore_errors=True)


def fast_place() -> str | None:
    """In memory where there is such a place: syncing is simulated anyway."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


# --- death at a step -------------------------------------------------------------------------------------------------


def count_steps(template: Path, kind: str = "work") -> int:
    """How many steps a scenario takes; a few more or less from run to run, for names of objects are drawn."""
    with a_place(template) as place:
        root = place / ("fresh" if kind == "create" else "task")

        def work(tell: Tell) -> None:
            disk = Disk(root, Fault())
            disk.install()
            SCENARIOS[kind](root, tell)
            tell({"steps": disk.steps})

        return next(message["steps"] for message in start(work).finish() if "steps" in message)


SCENARIOS = {"work": scenario.work, "create": scenario.create}


def kill(job: Job, outcome: Outcome, place: Path) -> None:
    """``kill -9`` before a step, or amid a write; and again, at some step of the next open."""
    root = place / "task"
    torn = "tear" if job.detail == "tear" else "kill"
    acknowledged = outcome.hear(_dies(root, Fault(torn, job.at), scenario.work))
    outcome.survived, outcome.torn = 1, int(job.detail == "tear")
    if job.seed:
        again = random.Random(job.seed).randint(1, 60)
        child = _dies(root, Fault("kill", again), scenario.only_open)
        acknowledged |= outcome.hear(child)
        outcome.survived += child.status == -signal.SIGKILL
    outcome.judge(root, acknowledged)


def create(job: Job, outcome: Outcome, place: Path) -> None:
    """``kill -9`` while a workspace is made: it opens, or is refused in a sentence and can be made anew."""
    root = place / "fresh"
    acknowledged = outcome.hear(_dies(root, Fault("kill", job.at), scenario.create))
    outcome.survived = 1
    if not acknowledged:
        told = start(partial(scenario.make_again, root)).finish()
        outcome.findings += [m["finding"] for m in told if "finding" in m]
        outcome.findings += [f"making it again: {m['error'].strip()[-400:]}" for m in told if "error" in m]
        acknowledged = {m["ack"][0]: m["ack"][1] for m in told if "ack" in m}
    if acknowledged:
        outcome.judge(root, acknowledged)


def _dies(root: Path, fault: Fault, work: scenario.Work) -> Child:
    def dying(tell: Tell) -> None:
        Disk(root, fault, dies=lambda step: tell({"step": step})).install()
        work(root, tell)

    child = start(dying)
    child.finish()
    return child


# --- the power goes --------------------------------------------------------------------------------------------------


def cut(job: Job, outcome: Outcome, place: Path) -> None:
    """A power cut before a step: what was not synced is lost, kept or torn, and the workspace is looked at."""
    root, certain = place / "task", place / "certain"

    def dying(tell: Tell) -> None:
        remembers = power.Remembers(root)

        def goes(step: str) -> None:
            tell({"step": step})
            remembers.keep(certain)

        Disk(root, Fault("cut", job.at), remembers.synced, goes).install()
        scenario.work(root, tell)
        remembers.keep(certain)

    child = start(dying)
    child.finish()
    acknowledged = outcome.hear(child)
    memory = pickle.loads(certain.read_bytes())
    draw = random.Random(job.seed)
    outcome.torn = power.after_the_cut(root, memory, place / "after", draw)
    outcome.survived = 1
    outcome.judge(place / "after", acknowledged)


# --- the disk refuses ------------------------------------------------------------------------------------------------


def refuse(job: Job, outcome: Outcome, place: Path) -> None:
    """The disk refuses one call, or every call from one on; then it works again."""
    root = place / "task"
    code, _, lasting = job.detail.partition("+")

    def refused(tell: Tell) -> None:
        disk = Disk(root, Fault("refuse", job.at, getattr(errno, code), lasting=bool(lasting)))
        disk.install()
        scenario.work_against_refusals(root, tell, disk.mend)

    child = start(refused)
    child.finish()
    acknowledged = outcome.hear(child)
    outcome.survived = 1
    outcome.judge(root, acknowledged)
