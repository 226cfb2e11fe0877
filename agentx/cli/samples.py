"""Samples: stories that play offline, in a fresh copy, with a model whose words are read from a file.

A sample is a directory ``sample_workspaces/NAME`` with a ``sample.toml``; each step is one of three things::

    title = "Add a report endpoint"
    start = "start"                                     # becomes the artifacts; left out, the workspace is empty
    [config]
    checks.tests.command = "python -m pytest -q"        # settings of agentx.toml

    [[steps]]                                           # somebody says something, and an agent works on it
    title = "A rule is broken"                          # what to watch; may be left out
    say = "Add fetch_orders to services.py."            # the user's words; none: the agent goes on with what is unfinished
    script = "turns-1.jsonl"                            # the model's words
    yes = true                                          # a person's word on every call that asks: yes
    ends = 1                                            # the exit status that the story expects, 0 by default

    [[steps]]                                           # a person types a command
    run = "agentx memory list"

    [[steps]]                                           # time goes by, and others talk
    past = "weeks.jsonl"                                # a message in each line, recorded at once
"""

import contextlib
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from agentx.storage.errors import UsageError

FOLDER = "sample_workspaces"
FILE = "sample.toml"


class SampleInvalid(UsageError):
    """There is no such sample, or its ``sample.toml`` says something else than a sample."""


class Step(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step of a story: exactly one of ``script``, ``run`` and ``past``.

    Attributes:
        title: What to watch, in one line.
        say: What the user says; empty to go on with what is unfinished.
        script: File with what the model does about it.
        run: A command line, as a person types it; a backslash at the end of a line goes on in the next.
        past: File with messages that were said meanwhile.
        yes: Whether a person said yes beforehand to every call that asks.
        ends: Exit status that the story expects of a run or a command.
    """

    title: str = ""
    say: str = ""
    script: str = ""
    run: str = ""
    past: str = ""
    yes: bool = False
    ends: int = 0

    def __post_init__(self) -> None:
        """Refuse a step that is several things, or none.

        Raises:
            ValueError: It is; the sentence names what it has.
        """
        if sum(map(bool, (self.script, self.run, self.past))) != 1:
            raise ValueError("a step is one of `script` (with what the user does `say`), `run` and `past`")
        if (self.say or self.yes) and not self.script:
            raise ValueError("`say` and `yes` go with a `script`")
        if self.run and self.command[:1] != ("agentx",):
            raise ValueError(f"`run` is a command line of agentx, and {self.run!r} is none")

    @property
    def command(self) -> tuple[str, ...]:
        """The words of ``run``; none where a quotation in it has no end."""
        with contextlib.suppress(ValueError):
            return tuple(shlex.split(self.run.replace("\\\n", " ")))
        return ()

    @property
    def file(self) -> str:
        """The file that it is read from; empty for a command."""
        return self.script or self.past


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A story that can be played.

    Attributes:
        steps: In order.
        start: Directory that becomes the artifacts, relative to the sample; empty for none.
        config: Settings, nested as TOML nests them.
        folder: Where it lies.
    """

    title: str
    steps: tuple[Step, ...]
    start: str = ""
    config: dict[str, Any] = {}
    folder: str = ""


class PastMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a ``past``: who said what, and a file of the sample that was pasted below it."""

    by: Literal["user", "agent"]
    text: str
    paste: str = ""


def find_sample(name: str) -> Sample:
    """The sample of a name, in ``sample_workspaces`` at or above the current directory, or beside the package.

    Raises:
        SampleInvalid: There is none, or it is not well-formed.
    """
    here = Path.cwd()
    roots = [folder / FOLDER for folder in (here, *here.parents, Path(__file__).resolve().parents[2])]
    there = [root for root in roots if root.is_dir()]
    if not there:
        raise SampleInvalid(
            f"There is no {FOLDER}/ at or above {here}; go to the project's root, where the samples lie."
        )
    folder = there[0] / name
    if Path(name).name != name or not (folder / FILE).is_file():
        known = sorted(path.parent.name for path in there[0].glob(f"*/{FILE}"))
        raise SampleInvalid(
            f"There is no sample {name!r} in {there[0]}; there is {', '.join(known) or 'none'}."
        )
    return _read(folder)


def _read(folder: Path) -> Sample:
    path = folder / FILE
    try:
        sample = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Sample)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise SampleInvalid(f"{path} is no sample: {error}.") from error
    named = [sample.start, *(step.file for step in sample.steps)]
    missing = [name for name in named if name and not (folder / name).exists()]
    if missing or not sample.steps:
        raise SampleInvalid(f"{path} names {missing[0] + ', which is not there' if missing else 'no steps'}.")
    return msgspec.structs.replace(sample, folder=str(folder))


def read_past(sample: Sample, step: Step) -> Iterator[tuple[str, str]]:
    """Who said what, message by message, with what was pasted.

    Raises:
        SampleInvalid: A line is no message, or names a file that cannot be read; the sentence says which.
    """
    path = Path(sample.folder) / step.past
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            said = msgspec.json.decode(line, type=PastMessage)
            pasted = (Path(sample.folder) / said.paste).read_text("utf-8") if said.paste else ""
        except (msgspec.DecodeError, OSError, UnicodeDecodeError) as error:
            raise SampleInvalid(f"{path}, line {number}, is no message: {error}.") from error
        yield said.by, f"{said.text}\n\n{pasted}" if pasted else said.text
