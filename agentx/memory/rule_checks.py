"""Checks of rules: set by hand, compiled again, and tried on what exists."""

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

import msgspec

from agentx.core.layout import ARTIFACTS
from agentx.engine.engine import Engine
from agentx.memory.editing import change, find, in_mode, with_checks
from agentx.storage.errors import UsageError
from agentx.storage.events.types import (
    AgentMessageSent,
    Event,
    ToolCallExecuted,
    UserMessageSent,
    changes_of,
)
from agentx.storage.log.history import told_already
from agentx.storage.text import decoded
from agentx.synthesis.compiling.compile import compile_checks
from agentx.synthesis.enforcement.breaches import CheckedChange
from agentx.synthesis.enforcement.evaluate import (
    Evaluation,
    evaluate_answer,
    evaluate_changes,
    evaluate_command,
)
from agentx.synthesis.enforcement.paths import matches
from agentx.synthesis.memory.checks import MODES, Check, FollowUpCheck, Mode, ProgramCheck
from agentx.synthesis.memory.conclusions import Patch
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, checks_of

Tried = Literal["file", "write", "command", "answer"]

_VERBS: dict[Mode, str] = {
    "observe": "report",
    "warn": "warn of",
    "ask": "ask about",
    "deny": "deny",
    "fix": "correct or deny",
}
_OWN = frozenset(("run_tests", "run_lint", "run_build", "check_document"))
"""Tools that run a command of the settings, which no rule of an agent is about."""


class TrialFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A place where checks would be broken.

    Attributes:
        what: A present file, or a recorded write, command or final answer.
        where: The path, the command line, or the answer.
        reason: One sentence: what breaks the check.
        line: Line in the text, from 1; 0 if none applies.
        seq: Event that recorded it; 0 for a present file.
        mode: What the check would do.
    """

    what: Tried
    where: str
    reason: str
    line: int = 0
    seq: int = 0
    mode: Mode = "deny"


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What checks would have done.

    Attributes:
        tried: Number of files, writes, commands and answers that were looked at.
        broken: Number of those that break a check.
        findings: Every place that breaks one.
        summary: The counts in a sentence.
    """

    tried: dict[Tried, int]
    broken: dict[Tried, int]
    findings: tuple[TrialFinding, ...]
    summary: str


def set_checks(engine: Engine, name: str, checks: Sequence[Check], actor: str) -> MemoryItem:
    """Replace the checks of an item.

    Raises:
        UsageError: The item does not exist, or its kind cannot have checks.
    """
    item = find(engine, name)
    return change(engine, Patch(id=name, detail=with_checks(item.kind, item.detail, checks)), actor)


def compiled(item: MemoryItem) -> tuple[Check, ...]:
    """Return the checks that the words of an item compile to, in the mode of its present ones."""
    if isinstance(item.detail, ConstraintDetail):
        checks = compile_checks(item.text, item.detail.modality, item.scope)
    else:
        checks = compile_checks(item.text, "must_not", item.scope)
        if not checks and item.kind == "rule":
            checks = compile_checks(item.text, "must", item.scope)
    return in_mode(checks_of(item), checks)


def try_checks(engine: Engine, item: MemoryItem, paths: Sequence[str] = ()) -> Trial:
    """Return what the checks of an item would have done to present files, and to what the history records.

    Args:
        engine: The workspace's engine.
        item: The item; it need not be recorded, nor active.
        paths: Only these files and directories, or globs; empty for all artifacts and the history.

    Raises:
        UsageError: A path names no artifact, or the item has no check.
    """
    if not checks_of(item):
        raise UsageError(f"“{item.text}” has no check: it is shown only. Write one with --check or --set.")
    items = [msgspec.structs.replace(item, status="active", perhaps_ended_by=())]
    counts = _Counts(*get_args(Tried) if not paths else ("file",))
    for one in _files(engine, paths):
        counts.add("file", evaluate_changes(items, [one]), one.path)
    for event, message in _events(engine) if not paths else ():
        match event.data:
            case AgentMessageSent(body=body, final=True):
                text = engine.read_body(body)
                counts.add("answer", evaluate_answer(items, text, message=message), text, event.seq)
            case ToolCallExecuted(command=command, tool=tool):
                if changes := list(_changes(engine, event, message)):
                    counts.add("write", evaluate_changes(items, changes), "", event.seq)
                if command and tool not in _OWN:
                    evaluation = evaluate_command(items, command, message=message)
                    counts.add("command", evaluation, command, event.seq)
    return Trial(
        tried=counts.tried,
        broken=counts.broken,
        findings=tuple(counts.found),
        summary=_summary(item, counts),
    )


class _Counts:
    """Counts what was tried, and collects what breaks a check."""

    def __init__(self, *whats: Tried) -> None:
        self.tried: dict[Tried, int] = dict.fromkeys(whats, 0)
        self.broken: dict[Tried, int] = dict.fromkeys(whats, 0)
        self.found: list[TrialFinding] = []

    def add(self, what: Tried, evaluation: Evaluation, where: str, seq: int = 0) -> None:
        self.tried[what] += 1
        self.broken[what] += bool(evaluation.violations)
        self.found += [
            TrialFinding(
                what=what, where=one.path or where, reason=one.reason, line=one.line, seq=seq, mode=one.mode
            )
            for one in evaluation.violations
        ]

    def of(self, what: Tried) -> str:
        """Return how many of those that were tried break a check."""
        tried = self.tried[what]
        return f"{self.broken[what]:,} of {tried:,} {what}{'s' * (tried != 1)}"


def _files(engine: Engine, paths: Sequence[str]) -> Iterator[CheckedChange]:
    """Return present files as if each were newly written; binary ones are left out."""
    present = engine.git.manifest()
    wanted = dict.fromkeys(present) if not paths else {}
    for given in paths:
        name = given.removeprefix("./").removeprefix(f"{ARTIFACTS}/").rstrip("/")
        named = [path for path in present if path == name or path.startswith(f"{name}/")]
        named = named or [path for path in present if matches((name,), path)]
        if not named and name not in ("", ".", ARTIFACTS):
            raise UsageError(f"No artifact matches {given!r}; paths are relative to the artifacts.")
        wanted |= dict.fromkeys(named or present)
    for path in wanted:
        text = decoded(engine.git.repo.read_blob(present[path].oid))
        if text is not None:
            yield CheckedChange(path=path, after=text)


def _events(engine: Engine) -> Iterator[tuple[Event, str]]:
    """Return the recorded events, each with the user's latest message before it."""
    message = ""
    for event in engine.log.history.read(on_damage=told_already):
        if isinstance(event.data, UserMessageSent):
            message = engine.read_body(event.data.body)
        yield event, message


def _changes(engine: Engine, event: Event, message: str) -> Iterator[CheckedChange]:
    repo = engine.git.repo
    for made in changes_of(event):
        if all(repo.has_blob(oid) for oid in (made.before, made.after) if oid):  # neither was purged
            yield CheckedChange(
                path=made.path,
                before=decoded(repo.read_blob(made.before)) if made.before else None,
                after=decoded(repo.read_blob(made.after)) if made.after else None,
                removes=not made.after,
                actor=event.actor,
                message=message,
            )


def _summary(item: MemoryItem, counts: _Counts) -> str:
    modes = {one.mode for one in counts.found} or {check.mode for check in checks_of(item)}
    verb = _VERBS[max(modes, key=MODES.index)]
    files = f"Would {verb} {counts.of('file')} today"
    late = [check for check in checks_of(item) if isinstance(check, ProgramCheck | FollowUpCheck)]
    end = " A command is only checked at the end of a run." if late else ""
    if "write" not in counts.tried:
        return f"{files}.{end}"
    past = f"{counts.of('write')}, {counts.of('command')} and {counts.of('answer')} in history"
    return f"{files}; {past}.{end}"
