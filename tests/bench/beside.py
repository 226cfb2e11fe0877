"""Measure the code of another revision beside this one: ``python -m tests.bench --beside REV``.

The measures are those of this checkout. The product's code is that of the checkout or of the revision, which is
extracted from Git to a scratch directory. Each measure runs in two processes, which take turns.
"""

import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.figures import COLOURS, Figure, number

from .turns import Child, take_turns

HERE = Path(__file__).parents[2]
NOW = "now"
_PRODUCT = ("agentx", "storage", "synthesis", "sample_workspaces", "pyproject.toml")
_WIDTH = 190


class Unmeasurable(Exception):
    """A comparison that cannot be made; the message says why, and what to do."""


@dataclass(frozen=True)
class Compared:
    """A figure of this code, and the same of the other revision; one of them is ``None`` where it was not measured."""

    now: Figure | None
    before: Figure | None

    @property
    def shown(self) -> Figure:
        """The figure that describes the measure."""
        shown = self.now or self.before
        assert shown is not None
        return shown

    @property
    def gain(self) -> float | None:
        """How many times as good it is now: above 1 is better, for times and for rates."""
        if self.now is None or self.before is None or not self.now.comparable:
            return None
        old, new = self.before.value, self.now.value
        return _times(new, old) if self.now.more_is_better else _times(old, new)

    @property
    def processor_gain(self) -> float | None:
        """The same by the processor's time, which other work on the machine disturbs less."""
        if self.now is None or self.before is None or self.now.processor is None:
            return None
        return _times(self.before.processor, self.now.processor)


def _times(above: float | None, below: float) -> float | None:
    return above / below if above is not None and below > 0 else None


def extract(revision: str, place: Path, checkout: Path = HERE) -> Path:
    """Extract the product's code of a revision; return its directory.

    Raises:
        Unmeasurable: The revision is not in this clone, or this is not a clone.
    """

    def git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(["git", "-C", str(checkout), *arguments], capture_output=True, check=False)

    if git("rev-parse", "--git-dir").returncode:
        raise Unmeasurable(f"{checkout} is not a Git checkout, so no other revision can be measured.")
    if git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}").returncode:
        shallow = git("rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
        todo = "; the clone is shallow: `git fetch --unshallow` gets the rest" if shallow else ""
        raise Unmeasurable(f"The revision {revision!r} is not in this clone{todo}.")
    held = git("ls-tree", "--name-only", revision).stdout.decode().split()
    wanted = [name for name in _PRODUCT if name in held]
    archive = git("archive", "--format=tar", revision, *wanted)
    if archive.returncode or "agentx" not in wanted:
        raise Unmeasurable(f"The code of {revision!r} cannot be extracted: {archive.stderr.decode().strip()}")
    with tarfile.open(fileobj=BytesIO(archive.stdout)) as files:
        files.extractall(place, filter="tar")
    return place


def measure(
    names: Iterable[str], codes: Mapping[str, Path], arguments: Sequence[str]
) -> tuple[list[Compared], list[str]]:
    """Run each measure with each code by turns.

    Args:
        names: The measures.
        codes: The directory of the code by label: that of the other revision, and :data:`NOW`.
        arguments: Further arguments of the measuring program.

    Returns:
        The figures, and a sentence for each measure that failed.
    """
    found: list[Compared] = []
    failures: list[str] = []
    for name in names:
        print(f"{name} …", end=" ", flush=True, file=sys.stderr)
        children = {label: _child(code, [name, *arguments]) for label, code in codes.items()}
        take_turns(list(children.values()))
        figures: dict[str, list[Figure]] = {}
        for label, child in children.items():
            status, output, errors = child.result()
            last = output.splitlines()[-1] if output else "[]"
            figures[label] = [] if status else [Figure(**one) for one in json.loads(last)]
            if status:
                reason = (errors.strip().splitlines() or [f"exit status {status}"])[-1]
                failures.append(f"{name} could not be measured with the code of {label}: {reason}")
        print("done", file=sys.stderr)
        found += paired(*figures.values())
    return found, failures


def paired(before: Iterable[Figure], now: Iterable[Figure]) -> list[Compared]:
    """Pair figures by key, in the order of this code."""
    old = {figure.key: figure for figure in before}
    new = {figure.key: figure for figure in now}
    return [Compared(new.get(key), old.get(key)) for key in new | old]


def as_json(figures: Iterable[Figure]) -> str:
    """Return figures in the form in which a child hands them over: one line."""
    return json.dumps([asdict(figure) for figure in figures])


def flat(compared: Iterable[Compared], machine: str, revision: str) -> str:
    """Return a JSON object with the figures of both codes, and the gain, by key."""
    rows = {
        one.shown.key: {
            revision: one.before and one.before.value,
            NOW: one.now and one.now.value,
            "gain": one.gain,
            "processor_gain": one.processor_gain,
        }
        for one in compared
    }
    return json.dumps({"machine": machine} | rows, indent=1)


def show(compared: Iterable[Compared], machine: str, revision: str) -> None:
    """Print the table."""
    Console(width=None if sys.stdout.isatty() else _WIDTH).print(table(compared, machine, revision))


def table(compared: Iterable[Compared], machine: str, revision: str) -> Table:
    """Return the table: both codes, and the gain."""
    title = f"{machine}; gain: how many times as good as {revision}, by the clock and by the processor's time"
    made = Table(title=title, title_justify="left")
    made.add_column("measure")
    for name in (revision, NOW, "gain", "processor", "at least", "aim"):
        made.add_column(name, justify="right")
    made.add_column("verdict")
    made.add_column("beside, in the same run")
    for one in compared:
        shown, before, now = one.shown, one.before, one.now
        made.add_row(
            shown.measure,
            number(before.value if before else None),
            number(now.value if now else None),
            number(one.gain),
            number(one.processor_gain),
            number(shown.at_least),
            number(shown.aim),
            now.verdict if now else "",
            now.beside if now else "",
            style=COLOURS[now.verdict if now else ""],
        )
    return made


def _child(code: Path, arguments: Sequence[str]) -> Child:
    """Start the measuring program with the product's code of a directory."""
    return Child(
        [sys.executable, "-m", "tests.bench", "--figures", *arguments],
        code,
        {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys((str(code), str(HERE))))},
    )
