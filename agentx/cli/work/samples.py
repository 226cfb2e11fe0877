"""Samples: stories that play offline, in a fresh copy, with a model whose words are read from a file.

A sample is a directory ``sample_workspaces/NAME`` with a ``sample.toml``. Each step is one of five things::

    title = "Add a report endpoint"
    start = "start"                               # becomes the artifacts; without it, the workspace is empty
    [config]
    checks.tests.command = "python -m pytest -q"  # settings of agentx.toml

    [[steps]]                                     # the user says something, and an agent works on it
    title = "A rule is broken"                    # what to watch; optional
    say = "Add fetch_orders to services.py."      # the user's words; if empty, the agent resumes its work
    script = "turns-1.jsonl"                      # the model's words
    yes = true                                    # approve every call that asks
    ends = 1                                      # the exit status that the story expects, 0 by default

    [[steps]]                                     # the user types a command; {sample}: the sample's directory
    run = "agentx memory list"

    [[steps]]                                     # time goes by, and others talk
    past = "weeks.jsonl"                          # one message per line, recorded at once

    [[steps]]                                     # the user talks with a cognitive agent without a model
    talk = "conversation.jsonl"                   # one message per line, with the expected content of answers

    [directed]                                    # who carries out directed runs
    executor = "reader.py"                        # a program
    tools = "newsroom.py"                         # defines `tools(world, run)`: functions by name
    compare = "compare.py"                        # defines `compare(ws, world)`: rows of the final table
    speaks = "jsonl"                              # or "text"
    schedule = "news"                             # each run is one of its due times, after a made-up moment
    since = 2026-03-02T00:00:00Z

    [[steps]]                                     # runs start, one after the other
    direct = 29
"""

import contextlib
import importlib.util
import os
import shlex
import tomllib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, TypeVar

import msgspec

from agentx.storage.errors import UsageError

FOLDER = "sample_workspaces"
FILE = "sample.toml"


class SampleInvalid(UsageError):
    """The sample does not exist, or its ``sample.toml`` is invalid."""


class StoryStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step of a story: exactly one of ``script``, ``run``, ``past``, ``talk`` and ``direct``.

    Attributes:
        title: What to watch, in one line.
        say: What the user says; empty to resume what is unfinished.
        script: File with the model's replies.
        run: A command line, as the user types it; a backslash at the end of a line continues it, and
            ``{sample}`` is the sample's directory.
        past: File with messages that were said meanwhile.
        talk: File with messages that a cognitive agent answers, one after the other.
        direct: Number of directed runs.
        yes: Whether the user approved every call in advance.
        ends: Exit status that the story expects of a run or a command.
    """

    title: str = ""
    say: str = ""
    script: str = ""
    run: str = ""
    past: str = ""
    talk: str = ""
    direct: int = 0
    yes: bool = False
    ends: int = 0

    def __post_init__(self) -> None:
        """Reject a step that is several things, or none.

        Raises:
            ValueError: The step is invalid; the message names the reason.
        """
        kinds = (self.script, self.run, self.past, self.talk, self.direct)
        if sum(map(bool, kinds)) != 1 or self.direct < 0:
            raise ValueError(
                "a step is one of `script` (with what the user does `say`), `run`, `past`, `talk` "
                "and `direct`"
            )
        if (self.say or self.yes) and not self.script:
            raise ValueError("`say` and `yes` go with a `script`")
        if self.run and self.command[:1] != ("agentx",):
            raise ValueError(f"`run` is a command line of agentx, and {self.run!r} is none")

    @property
    def command(self) -> tuple[str, ...]:
        """The words of ``run``; empty if a quotation in it is not closed."""
        with contextlib.suppress(ValueError):
            return tuple(shlex.split(self.run.replace("\\\n", " ")))
        return ()

    @property
    def file(self) -> str:
        """The file that the step is read from; empty for a command."""
        return self.script or self.past or self.talk


class Directed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who carries out directed runs: files relative to the sample, and when.

    Attributes:
        executor: A Python program, or with the ending ``.sh`` a shell script.
        tools: Its function ``tools(world, run)`` returns the tools of a run: functions by name. ``world`` is
            a directory that persists between runs; ``run`` is the number of the run or, with a schedule, its
            due time in the schedule's time zone.
        compare: Its function ``compare(ws, world)`` returns the rows of a table that ends the story; empty
            for none.
        speaks: ``jsonl``, or ``text``: a program that calls no tools, and has ``world`` as its argument.
        schedule: A schedule whose due times are the runs, one after the other; a step adds it before.
        since: The moment behind which the first due time is taken. The clock is made up.
    """

    executor: str
    tools: str
    compare: str = ""
    speaks: Literal["jsonl", "text"] = "jsonl"
    schedule: str = ""
    since: datetime | None = None

    def __post_init__(self) -> None:
        """Reject a schedule without a beginning, and a beginning without a schedule.

        Raises:
            ValueError: The section is invalid; the message names the reason.
        """
        if bool(self.schedule) != (self.since is not None and self.since.tzinfo is not None):
            raise ValueError("`schedule` and `since`, a time with its offset, go together")


class Sample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A story that can be played.

    Attributes:
        steps: In order.
        start: Directory that becomes the artifacts, relative to the sample; empty for none.
        config: Settings, nested as in TOML.
        directed: Who carries out the runs of ``direct``.
        folder: Directory of the sample.
    """

    title: str
    steps: tuple[StoryStep, ...]
    start: str = ""
    config: dict[str, Any] = {}
    directed: Directed | None = None
    folder: str = ""

    def __post_init__(self) -> None:
        """Reject directed runs without an executor.

        Raises:
            ValueError: A step has ``direct``, but ``directed`` is missing.
        """
        if self.directed is None and any(step.direct for step in self.steps):
            raise ValueError("`direct` needs a [directed] that says who carries out the runs")

    @property
    def files(self) -> list[str]:
        """The files and directories that the sample names."""
        code = self.directed
        directed = (code.executor, code.tools, code.compare) if code else ()
        return [name for name in (self.start, *directed, *(step.file for step in self.steps)) if name]


class PastMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a ``past``: who said what, and a file of the sample pasted below it."""

    by: Literal["user", "agent"]
    text: str
    paste: str = ""


class TalkMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A line of a ``talk``: what the user says, and words expected in the answer."""

    say: str
    holds: tuple[str, ...] = ()


_Line = TypeVar("_Line", PastMessage, TalkMessage)


def find_sample(name: str) -> Sample:
    """Return a sample from ``sample_workspaces`` at or above the current directory, or from the package.

    Raises:
        SampleInvalid: The sample does not exist, or it is not well-formed.
    """
    here = Path.cwd()
    package, checkout = Path(__file__).resolve().parents[2:4]
    roots = [folder / FOLDER for folder in (here, *here.parents, package, checkout)]
    known = {path.parent.name: path.parent for root in reversed(roots) for path in root.glob(f"*/{FILE}")}
    if name not in known:
        raise SampleInvalid(f"Unknown sample {name!r}. Samples: {', '.join(sorted(known)) or 'none'}.")
    return _read(known[name])


def _read(folder: Path) -> Sample:
    path = folder / FILE
    try:
        sample = msgspec.convert(tomllib.loads(path.read_text("utf-8")), Sample)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise SampleInvalid(f"{path} is not a valid sample: {error}.") from error
    missing = [name for name in sample.files if not (folder / name).exists()]
    if missing or not sample.steps:
        raise SampleInvalid(
            f"{path} names {missing[0] + ', which does not exist' if missing else 'no steps'}."
        )
    place = shlex.quote(near(folder))
    steps = [msgspec.structs.replace(step, run=step.run.replace("{sample}", place)) for step in sample.steps]
    return msgspec.structs.replace(sample, folder=str(folder), steps=tuple(steps))


def near(path: Path) -> str:
    """Return a path as the user would type it here: relative if it lies below the current directory."""
    here = Path.cwd()
    return os.path.relpath(path, here) if path.is_relative_to(here) else str(path)


def load_code(path: Path, *functions: str) -> ModuleType:
    """Load a Python module of a sample, which must define some functions.

    Raises:
        SampleInvalid: It cannot be imported, or lacks one of them.
    """
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SampleInvalid(f"{path} cannot be imported: {error}.") from error
    for name in functions:
        if not callable(getattr(module, name, None)):
            raise SampleInvalid(f"{path} has no function {name}.")
    return module


def read_past(sample: Sample, step: StoryStep) -> Iterator[tuple[str, str]]:
    """Yield the messages of a past step: who said it, and the text with what was pasted.

    Raises:
        SampleInvalid: A line is not a message, or names a file that cannot be read.
    """
    folder = Path(sample.folder)
    for number, said in enumerate(_lines(folder / step.past, PastMessage), start=1):
        try:
            pasted = (folder / said.paste).read_text("utf-8") if said.paste else ""
        except (OSError, UnicodeDecodeError) as error:
            raise SampleInvalid(
                f"{folder / step.past}, line {number}, is not a valid message: {error}."
            ) from error
        yield said.by, f"{said.text}\n\n{pasted}" if pasted else said.text


def read_talk(sample: Sample, step: StoryStep) -> list[TalkMessage]:
    """Return the messages of a conversation. All are read before the first is said.

    Raises:
        SampleInvalid: A line is not a message.
    """
    return list(_lines(Path(sample.folder) / step.talk, TalkMessage))


def _lines(path: Path, shape: type[_Line]) -> Iterator[_Line]:
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            yield msgspec.json.decode(line, type=shape)
        except msgspec.DecodeError as error:
            raise SampleInvalid(f"{path}, line {number}, is not a valid message: {error}.") from error
