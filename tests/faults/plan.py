"""Which faults are brought about, how many of each, and what is said of them in the end."""

import dataclasses
import random
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from . import backups, by_hand, crowds, disks, hooking, pipelines, runs, serving
from .runs import Job, Outcome

RUNS = {
    "many": crowds.many,
    "queue": crowds.queue,
    "sabotage": crowds.sabotage,
    "locked_out": crowds.locked_out,
    "kill": runs.kill,
    "create": runs.create,
    "load": crowds.load,
    "cut": runs.cut,
    "damage": by_hand.damage,
    "ref": by_hand.ref,
    "line": by_hand.line,
    "lock": by_hand.lock,
    "holder": by_hand.holder,
    "refuse": runs.refuse,
    "full": disks.full,
    "read_only": disks.read_only,
    "rights": disks.rights,
    "stopped": pipelines.stopped,
    "stopped_at": pipelines.stopped_at,
    "interrupted": pipelines.interrupted,
    "starved": pipelines.starved,
    "pushed": backups.pushed,
    "pulled": backups.pulled,
    "cloned": backups.cloned,
    "reopened": backups.reopened,
    "served": serving.served,
    "stale": serving.stale,
    "twins": serving.twins,
    "versions": serving.versions,
    "crammed": serving.crammed,
    "hooked": hooking.hooked,
}

SECTIONS = {
    "writers": ("writers at once, amid readers", ("many", "locked_out")),
    "queue": ("writers that wait for each other", ("queue",)),
    "unlocked": ("writers where locks do nothing", ("sabotage",)),
    "steps": ("crashes at each step", ("kill", "create")),
    "load": ("crashes under load", ("load",)),
    "power": ("power cuts", ("cut",)),
    "damage": ("torn objects, refs and lines", ("damage", "ref", "line")),
    "locks": ("locks left by the dead", ("lock", "holder")),
    "errors": ("refused calls at each step", ("refuse",)),
    "disks": ("disks full or read-only", ("full", "read_only", "rights")),
    "pipelines": (
        "pipelines that die and go on",
        ("stopped", "stopped_at", "interrupted", "starved"),
    ),
    "backups": (
        "pushes, pulls, clones and openings that die",
        ("pushed", "pulled", "cloned", "reopened"),
    ),
    "server": ("servers that die", ("served", "stale", "twins", "versions", "crammed")),
    "hooks": ("hooks of hosts amid faults", ("hooked",)),
}
"""By name: what a person is told of it, and the runs that belong to it."""

WHOLE = 500
"""The figure that scales everything: so many crashes under load, and every step of the write path."""

_AFTERWARDS = 40
"""So many of the power cuts come after a clean end."""

_QUEUE_S = 60
_ROUNDS = 5
_KILLED_A_ROUND = 3
_STOPPED = 8
_KINDS_OF_EXCHANGE = 4
_KILLS_A_RUN = 8
_SMALL = 20
_HOOKS_A_RUN = 25
_ERRORS = ("ENOSPC", "EIO", "EROFS", "EACCES")


def do(job: Job, template: Path, *, keep: bool = False) -> tuple[Outcome, Path]:
    """Do one job; what became of it, and where."""
    began = time.monotonic()
    outcome = Outcome(job)
    with runs.a_place(template, keep=keep) as place:
        RUNS[job.kind](job, outcome, place)
    outcome.seconds = time.monotonic() - began
    return outcome, place


def jobs(section: str, n: int, seed: int, template: Path) -> list[Job]:
    """What is to be done of a section.

    Args:
        section: One of :data:`SECTIONS`.
        n: How much: :data:`WHOLE` for everything.
        seed: Of everything that is drawn.
        template: Tells how many steps there are.
    """
    draw = random.Random(f"{seed} {section}")
    share = min(1.0, n / WHOLE)
    match section:
        case "writers" | "queue" | "unlocked":
            return _crowds(n, seed)[section]
        case "steps":
            last = runs.count_steps(template)
            every = [
                Job("kill", at, "", draw.choice((0, draw.randint(1, 1 << 30)))) for at in range(1, last + 1)
            ]
            every += [Job("kill", at, "tear") for at in range(1, last + 1, 3)]
            every += [Job("create", at) for at in range(1, runs.count_steps(template, "create") + 1)]
            return _sample(every, share, draw)
        case "load":
            rounds = min(_ROUNDS, max(1, round(n / _KILLED_A_ROUND)))
            crashes = max(1, round(n / _KILLED_A_ROUND / rounds))
            return [Job("load", detail=str(rounds), seed=draw.randint(1, 1 << 30)) for _ in range(crashes)]
        case "power":
            last = runs.count_steps(template) + _AFTERWARDS
            return [Job("cut", draw.randint(1, last), "", draw.randint(1, 1 << 30)) for _ in range(n)]
        case "damage":
            every = [
                Job("damage", 0, f"{which}-{how}-{end}")
                for which in by_hand.OBJECTS
                for how in by_hand.HARMS
                for end in by_hand.ENDS
                if end == "crash" or which in by_hand.OF_THE_LAST_COMMIT
            ]
            every += [Job("ref", 0, which) for which in by_hand.REFS]
            every += [Job("line", 0, which, seed) for which in by_hand.LINES]
            return _sample(every, share, draw)
        case "locks":
            return [*(Job("lock", 0, which) for which in by_hand.LOCKS), Job("holder")]
        case "errors":
            last = runs.count_steps(template)
            every = [
                Job("refuse", at, draw.choice(_ERRORS) + draw.choice(("", "+"))) for at in range(1, last + 1)
            ]
            return _sample(every, share / 2, draw)
        case "pipelines":
            pipelines.make(template / "book")
            return _sample(list(_deaths_of_pipelines(draw, 5 if share == 1 else 2)), share, draw)
        case "backups":
            kills = min(backups.KILLS, max(1, round(n / _KINDS_OF_EXCHANGE)))
            rounds = max(1, round(n / kills / _KINDS_OF_EXCHANGE))
            found = [
                Job(kind, 0, f"{how}x{kills}", draw.randint(1, 1 << 30))
                for kind in ("pushed", "pulled")
                for how in ("alone", "all")
                for _ in range(rounds)
            ]
            for kind in ("cloned", "reopened"):
                last = backups.count_steps(template, kind)
                every = [
                    Job(kind, at, how, draw.randint(1, 1 << 30))
                    for at in range(1, last + 1)
                    for how in ("", "tear")
                ]
                found += _sample(every, share / 2, draw)
            return found
        case "server" | "hooks":
            return _deaths_of_servers(n, draw) if section == "server" else _hooks(n, draw)
        case _:
            every = [Job("full", 0, str(room)) for room in (0, 4, 16, 40, 80, 120, 200)]
            every += [Job("read_only"), *(Job("rights", 0, folder) for folder in disks.RIGHTS)]
            return _sample(every, share, draw)


def _crowds(n: int, seed: int) -> dict[str, list[Job]]:
    size = "8x500" if n >= WHOLE else f"4x{max(20, n // 2)}"
    seconds = max(1, round(_QUEUE_S * min(1.0, n / WHOLE)))
    return {
        "writers": [Job("many", detail=size, seed=seed), Job("locked_out")],
        "queue": [Job("queue", detail=f"16x{seconds}", seed=seed)],
        "unlocked": [Job("sabotage", detail=f"4x{max(10, n // 5)}", seed=seed)],
    }


def _deaths_of_pipelines(draw: random.Random, times: int) -> Iterator[Job]:
    for jobs in (1, 4):
        for _ in range(_STOPPED):
            yield Job("stopped", 0, f"{jobs}x{times}", draw.randint(1, 1 << 30))
        for name, moment in pipelines.MOMENTS.items():
            for behind in range(moment.steps):
                yield Job("stopped_at", draw.randint(1, moment.often), f"{name}+{behind}x{jobs}")
        for often in (1, 2):
            yield from (Job("interrupted", 0, f"{jobs}x{often}", draw.randint(1, 1 << 30)) for _ in range(4))
        yield from (Job("starved", draw.randint(1, 1_500), str(jobs)) for _ in range(5))


def _hooks(n: int, draw: random.Random) -> list[Job]:
    each = min(_HOOKS_A_RUN, n)
    return [Job("hooked", each, "", draw.randint(1, 1 << 30)) for _ in range(max(1, n // each))]


def _deaths_of_servers(n: int, draw: random.Random) -> list[Job]:
    kills = max(2, n // 10)
    each = min(_KILLS_A_RUN, kills)
    found = [Job("stale", 0, "socket+lock"), Job("twins", 0, "4")]
    found += [Job("served", each, "python+hand+line", draw.randint(1, 1 << 30)) for _ in range(kills // each)]
    if n >= _SMALL:
        found += [Job("stale", 0, left) for left in ("socket", "lock")]
        found += [Job("versions", 3, "", draw.randint(1, 1 << 30))]
        found += [Job("crammed", 0, str(room)) for room in (4, 40, 120)]
    return found


def _sample(every: list[Job], share: float, draw: random.Random) -> list[Job]:
    return draw.sample(every, max(4, round(len(every) * share))) if share < 1 else every


@dataclasses.dataclass
class Sum:
    """What became of a section; see :class:`Outcome`."""

    what: str
    runs: int = 0
    survived: int = 0
    torn: int = 0
    acknowledged: int = 0
    lost: int = 0
    findings: int = 0
    seconds: float = 0.0


def sums(outcomes: Iterable[Outcome]) -> dict[str, Sum]:
    """The outcomes of each section added up."""
    found = {name: Sum(what) for name, (what, _) in SECTIONS.items()}
    of = {kind: name for name, (_, kinds) in SECTIONS.items() for kind in kinds}
    for one in outcomes:
        total = found[of[one.job.kind]]
        total.runs += 1
        total.survived += one.survived
        total.torn += one.torn
        total.acknowledged += one.acknowledged
        total.lost += one.lost
        total.findings += len(one.findings)
        total.seconds += one.seconds
    return {name: total for name, total in found.items() if total.runs}
