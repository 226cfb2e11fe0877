"""What past runs did, as far as it may be repeated; the output of tools is left out.

A move is a tool's name, a program with bounded arguments, or the changed files; read-only moves are skipped.
Whether a run passed is measured: by its grade, its checks, and how it ended.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from agentx.storage.events.actor import Actor
from agentx.storage.events.types import (
    Event,
    RunEnded,
    RunStarted,
    TaskGraded,
    ToolCallExecuted,
    ToolCallRequested,
    UserMessageSent,
)
from agentx.synthesis.checks.command import is_check_command, masks_exit_status
from agentx.synthesis.checks.registry import parse_output
from agentx.synthesis.language.words import vocabulary
from agentx.synthesis.learning.following import is_change
from agentx.synthesis.shell.command_line import ProgramCall, steps
from agentx.synthesis.state.extractor import ReadBody

MIN_TIMES = 2
"""Minimum number of occurrences: a single one proves nothing."""

MOST = 0.6
"""Minimum share of uses that have something in common for it to count as typical."""

COMMAND_CHARACTERS = 120
QUOTE_CHARACTERS = 120
EVIDENCE = 4
"""Maximum number of runs that a proposal cites."""

_TASK_CHARACTERS = 300
_ARGUMENT_CHARACTERS = 60

Outcome = Literal["passed", "failed", "unknown"]


class RunMove(msgspec.Struct, frozen=True):
    """An action of an agent in a run.

    Attributes:
        key: The kind of move: ``$ go test``, ``edit`` or a tool's name; the same in every run.
        words: For a command: its program and arguments, bounded.
        check: Whether it is a test, a linter or a build, so that it shows how the task went.
    """

    seq: int
    key: str
    words: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    worked: bool = True
    check: bool = False


class Run(msgspec.Struct):
    """A request, what was done, and its outcome.

    Attributes:
        denied: Number of denied calls that would have changed something.
        changed: Number of calls that ran and can have changed something.
    """

    seq: int
    task: str
    moves: list[RunMove] = msgspec.field(default_factory=list)
    ended: str = ""
    graded: bool | None = None
    denied: int = 0
    changed: int = 0

    @property
    def outcome(self) -> Outcome:
        """The grade if there is one; otherwise what the last check and the run's end show.

        The outcome is unknown if neither says, or if every change was denied.
        """
        if self.denied and not self.changed:
            return "unknown"
        if self.graded is not None:
            return "passed" if self.graded else "failed"
        checked = next((move.worked for move in reversed(self.moves) if move.check), None)
        if self.ended == "FAILED" or checked is False:
            return "failed"
        return "passed" if checked or self.ended == "COMPLETED" else "unknown"


def read_runs(events: Iterable[Event], read: ReadBody) -> list[Run]:
    """Return the runs of a history, oldest first.

    A run goes from a ``RunStarted``, or a user's message outside a run, to the next one. ``read`` is called
    only for the output of checks.
    """
    replay = RunReader()
    for event in events:
        replay.take(event, read)
    return replay.past


class RunReader(msgspec.Struct):
    """Reads runs event by event; it can be stored between two events and resumed later.

    Attributes:
        open: Index into ``runs``, by run name.
        started: Names of runs that began with a ``RunStarted`` and have not ended.
        latest: Index of the run of the latest action.
    """

    runs: list[Run] = msgspec.field(default_factory=list)
    open: dict[str, int] = msgspec.field(default_factory=dict)
    started: set[str] = msgspec.field(default_factory=set)
    announced: set[str] = msgspec.field(default_factory=set)
    latest: int | None = None

    @property
    def past(self) -> list[Run]:
        """The runs that have both a request and actions."""
        return [run for run in self.runs if run.moves and run.task]

    def take(self, event: Event, read: ReadBody) -> None:
        """Read one event; ``read`` is as for :func:`read_runs`."""
        match event.data:
            case RunStarted() as started:
                self._start(event, started)
            case UserMessageSent() as said:
                if Actor.parse(event.actor).is_user and event.run not in self.started:
                    self._begin(event.run, Run(event.seq, _task(said.body.text)))
            case ToolCallRequested() as call:
                self.announced.add(call.call_id)
            case ToolCallExecuted() as call:
                # A "tool:" reports files that a command left behind; the command has its own event.
                if not event.actor.startswith("tool:"):
                    self._do(event, call, read)
            case RunEnded() as end if event.run in self.open:
                self.runs[self.open[event.run]].ended = end.status
                self.started.discard(event.run)
            case TaskGraded() as grade:
                place = self.open.get(event.run) if event.run else self.latest
                if place is not None:
                    self.runs[place].graded = grade.passed

    def _do(self, event: Event, call: ToolCallExecuted, read: ReadBody) -> None:
        place = self.open.get(event.run, self.latest)
        if place is None:
            return
        run, denied = self.runs[place], call.status == "DENIED"
        if is_change(call):
            run.denied += denied
            run.changed += not denied
        if not denied:
            run.moves += _moves(event, call, read, announced=call.call_id in self.announced)
            self.latest = place

    def _start(self, event: Event, started: RunStarted) -> None:
        before = self.open.get(started.resumes) if started.resumes else None
        if before is None:
            self._begin(event.run, Run(event.seq, _task(started.task.text)))
        else:
            self.open[event.run] = before
        self.started.add(event.run)

    def _begin(self, name: str, run: Run) -> None:
        self.open[name] = self.latest = len(self.runs)
        self.runs.append(run)


def _moves(event: Event, call: ToolCallExecuted, read: ReadBody, *, announced: bool) -> list[RunMove]:
    command = call.command_line
    worked = call.status == "SUCCEEDED"
    # ran as configured, so the tool itself is the step
    if call.tool.startswith("run_") and call.tool != "run_command":
        return [RunMove(event.seq, call.tool, worked=worked, check=True)]
    if command:
        check = is_check_command(command)
        worked = _checked(call, command, read) if check else worked
        done = [step for step in steps(command) if not only_looks(step)]
        return [RunMove(event.seq, _key(step), _bounded(step), worked=worked, check=check) for step in done]
    if call.changes:
        paths = tuple(change.path for change in call.changes)
        return [RunMove(event.seq, "edit", paths=paths)] if worked else []
    return [RunMove(event.seq, call.tool, worked=worked)] if announced else []


def _checked(call: ToolCallExecuted, command: str, read: ReadBody) -> bool:
    """Return whether a check passed: by its exit status if that is reliable, otherwise by its output."""
    if call.exit_code is not None and not masks_exit_status(command):
        return call.exit_code == 0
    outcome = parse_output(read(call.output), command=command, exit_code=call.exit_code).outcome
    return call.status == "SUCCEEDED" if outcome == "unknown" else outcome == "passed"


_TAG = re.compile(r"<[^<>]{1,80}>")


def _task(text: str) -> str:
    """Return a task in one line, without the tags that a program put around it and without repeated words."""
    words = _TAG.sub(" ", text[:_TASK_CHARACTERS]).split()
    return " ".join(word for before, word in pairwise(["", *words]) if word.strip("/") != before.strip("/"))


_LOOKS = vocabulary(
    """
    ls cat head tail grep egrep rg find fd pwd echo printf cd wc which type sed awk tree diff cmp less more
    file stat du df ps env printenv whoami date sleep true false test [ jq sort uniq cut tr xargs tee set
    export read exit wait kill lsof top uname hostname history man id
    basename dirname realpath readlink seq od xxd strings
    """
)
"""Programs that only show something or steer a command line; they change nothing."""

_LOOKING = vocabulary(
    """
    status diff log show branch rev-parse remote ls-files ls-tree cat-file blame describe reflog config
    shortlog grep list view version help get info
    """
)
"""Read-only subcommands."""

_GROUPS = vocabulary(
    "run compose pr issue release workflow rollout exec stack image container repo model db app"
)
"""Subcommands that take another subcommand."""

_PROGRAM = re.compile(r"[\w./+-]+")
_BARE = re.compile(r"[A-Za-z][\w:-]*")


def only_looks(step: ProgramCall) -> bool:
    """Return whether a program only shows something, or only steers a command line."""
    words = subcommands(step)
    looks = step.program in _LOOKS or bool(words and words[-1] in _LOOKING)
    return looks or not _PROGRAM.fullmatch(step.program)


def subcommands(step: ProgramCall) -> tuple[str, ...]:
    """Return the words that say what a program does: one, or two if the first names a group."""
    words: list[str] = []
    arguments = list(step.arguments)
    while arguments and arguments[0].startswith("-"):  # as in `git -C there push`
        del arguments[: 2 if arguments[0] in {"-C", "-c"} else 1]
    for word in arguments:
        if not _BARE.fullmatch(word) or (words and words[-1] not in _GROUPS):
            break
        words.append(word)
    return tuple(words)


def _key(step: ProgramCall) -> str:
    return " ".join(("$", step.program[:_ARGUMENT_CHARACTERS], *subcommands(step)))


def _bounded(step: ProgramCall) -> tuple[str, ...]:
    """Return a program and its arguments; arguments that are long or contain free text become ``…``."""

    def is_plain(word: str) -> bool:
        return len(word) <= _ARGUMENT_CHARACTERS and word.isprintable() and not re.search(r"[\s`$]", word)

    arguments = (word if is_plain(word) else "…" for word in step.arguments[:20])
    return (step.program[:_ARGUMENT_CHARACTERS], *arguments)


def common_form(uses: Sequence[tuple[str, ...]]) -> str:
    """Return the most common form of a command, with ``…`` for what its uses do not share."""
    usual, _ = Counter(uses).most_common(1)[0]
    shared = Counter(word for use in uses for word in set(use))
    words: list[str] = []
    for number, word in enumerate(usual):
        kept = number == 0 or shared[word] >= MOST * len(uses)
        if kept or words[-1] != "…":
            words.append(word if kept else "…")
    return " ".join(words)[:COMMAND_CHARACTERS]
