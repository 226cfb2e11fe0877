"""Facts: the structure of an event, and the payload of each event type that storage knows.

An event is one line of the history. Its ``type`` is the explicit name of its payload, never a class path. A
payload that has once been written must load for ever: a changed shape gets a new version and an upcaster
(:mod:`agentx.storage.events.codec`). Conclusions drawn from facts are events too; their payloads are defined
in ``synthesis``.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from agentx.storage.text import shorten

WORDS = 60
"""Maximum number of words of a message, a thought or a denial that an event's line quotes."""

NUMBERS = 10
"""Maximum number of purged events that an event's line lists."""

_VERBS = {
    "write_file": "Edit",
    "edit_file": "Edit",
    "delete_file": "Delete",
    "add": "Add",
    "undo": "Undo",
    "restore": "Restore",
    "append_log": "Note in",
    "export_rules": "Write the rules to",
}
"""What each tool does to its files."""


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all payloads; the class name is the event's ``type``.

    A subclass describes itself in ``_line`` and gives its significance in ``_rank``; see :class:`Event`.
    """

    def _line(self, _event: "Event", /) -> str:
        return ""

    def _rank(self, _event: "Event", /) -> int:
        return 2


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text of any length: complete if short, otherwise an extract and the blob with the complete text.

    Attributes:
        text: The complete text, or a bounded extract (head and tail) of it.
        blob: Git blob id of the complete text, kept under ``history/blobs``; empty if ``text`` is complete.
        size_bytes: Size of the complete text in UTF-8; 0 if ``text`` is complete.
    """

    text: str
    blob: str = ""
    size_bytes: int = 0


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """The change of one file in ``artifacts/`` from one content to another.

    Attributes:
        path: Path relative to the artifacts root, with forward slashes.
        before: Blob id before the change; empty if the file did not exist.
        after: Blob id after the change; empty if the file is gone.
        executable: Whether the file is executable afterwards.
        link: Whether the file is a symbolic link afterwards (the blob then contains its target).
        size_bytes: Size after the change.
    """

    path: str
    before: str = ""
    after: str = ""
    executable: bool = False
    link: bool = False
    size_bytes: int = 0


class ChangesFiles(Payload, frozen=True):
    """Base of the payloads of events that changed files; each of them has a field ``changes``."""


class Unknown(Payload, frozen=True):
    """A payload of a type that this version does not know: kept, skipped by the fold, and counted.

    Attributes:
        raw: The payload's JSON as written in the log.
    """

    raw: str = "{}"


class Purged(Payload, frozen=True):
    """The payload of an event whose content was purged; its digest keeps the hash chain intact."""

    def _line(self, event: "Event", /) -> str:
        return f"{event.type} of event {event.seq} was purged"


class Lost(Purged, frozen=True):
    """The payload of a damaged event of which no copy exists and whose loss the user accepted."""


class WorkspaceCreated(Payload, frozen=True):
    """The first event of every history; a later one raises the number of the record's format.

    Attributes:
        title: Title of the task.
        format: Format number of the record; a workspace with a newer one opens read-only.
        artifacts: Where the artifacts are, relative to the workspace: ``artifacts``, or ``..`` for an outer
            work tree.
    """

    title: str
    format: int
    artifacts: str = "artifacts"

    def _line(self, event: "Event", /) -> str:
        return (
            f"Raise the record's format to {self.format}"
            if event.seq > 1
            else f"Create workspace: {self.title}"
        )

    def _rank(self, event: "Event", /) -> int:
        return 2 if event.seq > 1 else 9


class WorkspaceForked(Payload, frozen=True):
    """The point of a fork: all events before it were copied from another workspace.

    Attributes:
        at: The last event that both histories share.
        hash: Hash of that event, the same in both.
    """

    at: int
    hash: str

    def _line(self, _event: "Event", /) -> str:
        return f"Fork at event {self.at}"

    def _rank(self, _event: "Event", /) -> int:
        return 9


class UserMessageSent(Payload, frozen=True):
    """A message from the user to the agents of this task.

    Attributes:
        schedule: Id of the directed schedule whose task it is; it concerns no other schedule. Empty for all.
        task: Whether it is no more than the task of a run that starts with it: said again, it is done again.
    """

    body: Body
    schedule: str = ""
    task: bool = False

    def _line(self, event: "Event", /) -> str:
        return f"{event.actor} said: {shorten(self.body.text, WORDS)}"

    def _rank(self, _event: "Event", /) -> int:
        return 5


class AgentMessageSent(Payload, frozen=True):
    """A message from an agent to the user.

    Attributes:
        final: Whether this answers the user's message and ends the turn.
        model: Name of the model that produced it.
        kept: IDs of the rules with a check that applied to it, or to the run that it ends, and was kept.
        broke: IDs of the rules that it, or the run that it ends, broke.
        recalled: Whether it was answered from memory alone: it says nothing new, and does none of the work
            that the user asked for.
    """

    body: Body
    final: bool = False
    model: str = ""
    kept: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    recalled: bool = False

    def _line(self, event: "Event", /) -> str:
        return f"{event.actor} {'answered' if self.final else 'said'}: {shorten(self.body.text, WORDS)}"

    def _rank(self, _event: "Event", /) -> int:
        return 6 if self.final else 2


class AgentThoughtProcess(Payload, frozen=True):
    """Reasoning that an agent emitted between two tool calls."""

    body: Body
    model: str = ""

    def _line(self, event: "Event", /) -> str:
        return f"{event.actor} thought: {shorten(self.body.text, WORDS)}" if self.body.text else ""


REPORTED = "reported:"
"""Begins the key of an event that an agent reported about itself: no words in it are the user's."""


class ToolCallRequested(Payload, frozen=True):
    """A tool with effects outside the workspace is about to run; recorded durably before it does.

    Without a ``ToolCallExecuted`` of the same ``call_id`` its outcome is unknown, and is displayed as such.

    Attributes:
        arguments: Its arguments, long values cut.
        whole: The complete arguments, as JSON, so that exactly this call can be run later.
        awaits_approval: Whether it waits for the user's approval.
        acts: What it is about to do, if the tool declares what makes two calls the same act: a JSON list of
            identities, each with the values of its key and its window.
    """

    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    whole: Body = Body("")
    awaits_approval: bool = False
    acts: Body = Body("")

    def _line(self, event: "Event", /) -> str:
        return f"{event.actor} asks for approval of {self.tool}" if self.awaits_approval else ""


ToolStatus = Literal["SUCCEEDED", "FAILED", "DENIED"]


class ToolCallExecuted(ChangesFiles, frozen=True):
    """A tool ran, failed, or was denied.

    Attributes:
        call_id: Id that the model gave the call, or one that the engine generated.
        tool: Name of the tool.
        arguments: Its arguments, long values cut (file contents are referenced by blob id in ``changes``
            instead).
        status: ``SUCCEEDED``, ``FAILED`` (it ran and did not succeed) or ``DENIED`` (it was not allowed to
            run).
        output: The result returned to the agent.
        changes: Files that the call changed.
        command: For tools that run a program: the command line.
        exit_code: For tools that run a program: its exit status; ``None`` if it was killed or none ran.
        denied_by: Ids of the memory items that denied the call.
        noted: What the gate before the call added to its result for the agent.
        kept: IDs of the rules with a check that applied to it and was kept.
        broke: IDs of the rules with a check that it broke without being stopped.
        duration_ms: Duration of the call.
        reverts: For undo and restore: the seq from which the content was taken.
        report: For a check run: the test runners' own reports as JSON, if they wrote any.
        repeats: For a call that was refused as a repeat: seq of the event that did the same act, or began it.
    """

    call_id: str
    tool: str
    status: ToolStatus
    arguments: dict[str, Any] = {}
    output: Body = Body("")
    changes: tuple[FileChange, ...] = ()
    command: str = ""
    exit_code: int | None = None
    denied_by: tuple[str, ...] = ()
    noted: str = ""
    kept: tuple[str, ...] = ()
    broke: tuple[str, ...] = ()
    duration_ms: int = 0
    reverts: int = 0
    report: Body = Body("")
    repeats: int = 0

    @property
    def command_line(self) -> str:
        """The command line that it ran, or was asked to run; empty for none."""
        argument = self.arguments.get("command", "")
        return self.command or (argument if isinstance(argument, str) else "")

    def _line(self, _event: "Event", /) -> str:
        if self.status == "DENIED":
            rules = "" if self.repeats else f", against {', '.join(self.denied_by) or 'the settings'}"
            reason = shorten(self.output.text.removeprefix("Denied. "), WORDS)
            return f"Deny {f'{self.tool} {self._target()}'.rstrip()}{rules}: {reason}"
        if self.tool == "move_file" and self.changes:
            return f"Move {self.arguments.get('path')} to {self.arguments.get('to')}"
        if self.changes:
            created = self.tool == "write_file" and not self.changes[0].before
            verb = "Create" if created else _VERBS.get(self.tool, f"{self.tool} changed")
            return f"{verb} {list_paths(self.changes)}"
        if self.exit_code is not None:
            passed = "passed" if self.status == "SUCCEEDED" else "failed"
            return f"{self.tool}: {passed} (exit {self.exit_code})"
        outcome = "" if self.status == "SUCCEEDED" else f" ({self.status.lower()})"
        return f"Call {self.tool} {self._target()}".rstrip() + outcome

    def _target(self) -> str:
        for name in ("query", "path", "command", "source"):
            if self.arguments.get(name):
                return shorten(str(self.arguments[name]), 8)
        return ""

    def _rank(self, _event: "Event", /) -> int:
        if self.changes:
            return 8
        if self.status == "DENIED":
            return 1 if self.repeats else 7
        return 5 if self.exit_code is not None else 2


class ApprovalDecided(Payload, frozen=True):
    """The user approved or denied a pending tool call.

    Attributes:
        asked: How the user was asked, if another program asked: ``claude-code over MCP``.
    """

    call_id: str
    approved: bool
    reason: str = ""
    asked: str = ""

    def _line(self, event: "Event", /) -> str:
        return f"{event.actor} {'approved' if self.approved else 'refused'} {self.call_id}"


class ArtifactChanged(ChangesFiles, frozen=True):
    """Files in ``artifacts/`` were changed by someone other than the engine: a person, an editor, Git.

    Attributes:
        noticed: What triggered the check (``open``, ``write``, ``scan``, ``watch``, ``import``, ``hook``), or
            where in Git it was found: ``git`` for a commit, ``index`` for staged content, ``stash``.
    """

    changes: tuple[FileChange, ...]
    noticed: str

    def _line(self, _event: "Event", /) -> str:
        return f"Edit outside: {list_paths(self.changes)}"

    def _rank(self, _event: "Event", /) -> int:
        return 8


class WriteReverted(Payload, frozen=True):
    """A recorded write that a crash interrupted and that could not be rolled forward.

    Attributes:
        event: Seq of the event that announced the write.
        path: The file that keeps its previous content.
    """

    event: int
    path: str
    reason: str

    def _line(self, _event: "Event", /) -> str:
        return f"Set back {self.path}: its write was cut off"


class Followed(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far another workspace was read whose rules held here; the hash stands for its whole history.

    Attributes:
        name: Its name here; behind a slash, that of a workspace that it follows itself.
        commit: The commit that was read; empty if it could not be read at all.
        seq: Its last event.
        hash: The hash of that event.
        note: What an agent was told about it in a sentence; empty if it was read as it is.
    """

    name: str
    commit: str = ""
    seq: int = 0
    hash: str = ""
    note: str = ""


class RunStarted(Payload, frozen=True):
    """An agent began to work, on a user's message or on a prompt written by a director.

    Attributes:
        task: Its instructions.
        agent: Its role.
        model: Name of the model, or of the executor.
        resumes: Id of the run that it continues; its own id if the same run is resumed; empty for none.
        directive: Seq of the directive whose prompt it carries out; 0 without a director.
        schedule: Id of the schedule that triggered it; empty for none.
        due: When it was due, as UTC time in ISO 8601.
        pipeline: Name of the pipeline that dispatched it; empty for none. Such a run does not serve a user's
            request.
        followed: The workspaces whose rules held here.
    """

    task: Body
    agent: str
    model: str
    resumes: str = ""
    directive: int = 0
    schedule: str = ""
    due: str = ""
    pipeline: str = ""
    followed: tuple[Followed, ...] = ()

    def _line(self, event: "Event", /) -> str:
        return f"Run {event.run} starts ({self.agent}, {self.model})"

    def _rank(self, _event: "Event", /) -> int:
        return 1


RunStatus = Literal["COMPLETED", "FAILED", "LIMIT_REACHED", "INTERRUPTED", "WAITING"]


class RunEnded(Payload, frozen=True):
    """An agent stopped working.

    Attributes:
        status: How it ended; ``WAITING`` means that a tool call awaits the user's approval.
        reason: One sentence for a human reader.
        summary: The outcome, in the words of the agent or executor.
        cost_usd: Cost of the model calls, as far as the provider's price is known.
    """

    status: RunStatus
    reason: str = ""
    summary: str = ""
    steps: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0

    def _line(self, event: "Event", /) -> str:
        after = f" after {self.steps} step{'s' * (self.steps != 1)}" if self.steps else ""
        why = f": {shorten(self.reason, WORDS)}" if self.reason and self.status != "COMPLETED" else ""
        return f"Run {event.run} ends: {self.status}{after}{why}"

    def _rank(self, _event: "Event", /) -> int:
        return 1


class ContextProvided(Payload, frozen=True):
    """The context that an agent was given: ids only, so that the same context can be assembled again.

    Attributes:
        as_of: The event whose resulting state it shows; 0 if an older version did not record it.
        tier: How much of the conversation it included.
        asked: The requested tier, if it was higher; 0 otherwise.
        late: What was cut off by a deadline, as :class:`agentx.context.assembler.Request` names it.
        digest: Hex blake2b-128 of its text.
        followed: The workspaces whose rules held here; ``items`` names theirs as ``NAME:ID``.
    """

    items: tuple[str, ...] = ()
    recalled: tuple[str, ...] = ()
    tokens: int = 0
    max_tokens: int = 0
    omitted: int = 0
    as_of: int = 0
    tier: int = 1
    asked: int = 0
    digest: str = ""
    late: tuple[str, ...] = ()
    followed: tuple[Followed, ...] = ()

    def _rank(self, _event: "Event", /) -> int:
        return 1


class TaskGraded(Payload, frozen=True):
    """The grade of a task, given by its agent or by the checks that ran: the second half of a gate.

    Attributes:
        task: What was done, in one sentence.
        passed: Whether it succeeded.
        flow: Id of the flow that was followed; empty for none.
        broke: Ids of the rules that were broken.
        kept: Ids of the rules that were kept, which reinforces them.
        lesson: What was learned, in one sentence; empty for nothing.
        made: What the lesson was turned into: ``check``, ``flow``, ``script``, ``rule``; empty for nothing.
        domain: Domain of the task ("payments").
        followed: Whether the flow was followed; otherwise the task only called for it.
        steps_seen: Number of the flow's steps that the calls of the run show.
        steps: Number of its steps that calls can show; 0 if that was not measured.
    """

    task: str
    passed: bool
    flow: str = ""
    broke: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    lesson: str = ""
    made: str = ""
    domain: str = ""
    followed: bool = True
    steps_seen: int = 0
    steps: int = 0

    def _line(self, _event: "Event", /) -> str:
        by = f"by {self.flow}" if self.followed else f"{self.flow} matched, not followed"
        seen = f", steps seen {self.steps_seen} of {self.steps}" if self.steps else ""
        by = f" ({by}{seen})" if self.flow else ""
        return f"Task {'passed' if self.passed else 'failed'}: {shorten(self.task, WORDS)}{by}"

    def _rank(self, event: "Event", /) -> int:
        return 1 if event.actor.startswith("engine:") else 6  # what the run did is more significant


class CapabilityChecked(Payload, frozen=True):
    """A command was run to check whether a tool or a credential works.

    Attributes:
        item: Id of the memory item that names the command.
        exit_code: Its exit status; ``None`` if it could not be run or was killed.
        output: Its output, cut.
    """

    item: str
    exit_code: int | None = None
    output: Body = Body("")

    def _line(self, _event: "Event", /) -> str:
        return f"Check {self.item}: {'it works' if self.exit_code == 0 else 'it does not work'}"


class SourceScanned(Payload, frozen=True):
    """A read-only source outside the workspace was scanned into the index.

    Attributes:
        manifest_hash: blake2b-256 over the sorted ``path NUL content-hash LF`` lines.
    """

    source: str
    manifest_hash: str
    files: int
    size_bytes: int

    def _line(self, _event: "Event", /) -> str:
        return f"Scan source {self.source}: {self.files} file{'s' * (self.files != 1)}"


class EventsPurged(Payload, frozen=True):
    """The content of earlier events was purged, with every copy of it; their hashes stay in the chain.

    Attributes:
        events: Seqs of the purged events.
        reason: The reason, in the words of whoever purged them.
    """

    events: tuple[int, ...]
    reason: str = ""

    def _line(self, _event: "Event", /) -> str:
        shown = ", ".join(map(str, self.events[:NUMBERS]))
        more = f" and {len(self.events) - NUMBERS} more" if len(self.events) > NUMBERS else ""
        reason = f": {self.reason}" if self.reason else ""
        return f"Purge event{'s' * (len(self.events) != 1)} {shown}{more}{reason}"

    def _rank(self, _event: "Event", /) -> int:
        return 9


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An event before it is appended: content and actor, without a place in the history.

    Attributes:
        actor: Set by the channel, never by an argument of a tool: ``user``, ``user:<name>``,
            ``agent:<role>``, ``tool:<name>``, ``engine:<part>``, ``watch`` or ``import:<source>``.
        run: Id of the run that this belongs to.
        cause: Seq of the event that led to this one; 0 for none.
        key: Makes the append idempotent: a second event with the same key is not appended.
        at: When it happened, if that was earlier than now, as in an imported transcript; ``None`` for now.
    """

    data: Payload
    actor: str
    run: str = ""
    cause: int = 0
    key: str = ""
    at: datetime | None = None


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history.

    Attributes:
        seq: Place in the history, from 1, without gaps. It alone orders events, never their time.
        at: UTC time, ISO 8601 with microseconds and ``Z``: when it was recorded; of imported events, when it
            happened.
        type: Name of the payload.
        v: Version of the payload's shape as it was written.
        hash: Hex blake2b-256 over the previous event's hash, this event's header, and the digest of its salt
            and data.
    """

    seq: int
    at: str
    type: str
    v: int
    actor: str
    data: Payload
    run: str = ""
    cause: int = 0
    key: str = ""
    hash: str = ""

    def describe(self) -> str:
        """Describe the event in one line for the user; empty if it is not worth reporting."""
        return self.data._line(self)  # noqa: SLF001 - each payload describes itself beside its fields

    def rank(self) -> int:
        """Return how significant the event is for the subject of a commit, from 1 to 9."""
        return self.data._rank(self)  # noqa: SLF001 - as for ``describe``


def list_paths(changes: Sequence[FileChange]) -> str:
    """Return the paths of changed files for the user, the first of them if there are many.

    >>> list_paths([FileChange("a.py"), FileChange("b.py"), FileChange("c.py"), FileChange("d.py")])
    'a.py, b.py and 2 more'
    """
    names = [change.path for change in changes]
    shown = 3 if len(names) == 3 else 2  # noqa: PLR2004 - "and 1 more" is longer than the name
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more


def changes_of(event: Event | Draft) -> tuple[FileChange, ...]:
    """Return the files that an event (or its draft) records as changed; none for an event of another kind.

    A history from elsewhere can name any path. Paths that leave the artifacts are left out, so that they
    cannot lead any reader of changes outside; :func:`strays_of` returns those.
    """
    return tuple(made for made in _changes(event) if is_inside(made.path))


def strays_of(event: Event) -> tuple[FileChange, ...]:
    """Return the changes of an event whose paths lead out of the artifacts.

    The engine never records such changes.
    """
    return tuple(made for made in _changes(event) if not is_inside(made.path))


def _changes(event: Event | Draft) -> tuple[FileChange, ...]:
    changes: tuple[FileChange, ...] = (
        getattr(event.data, "changes", ()) if isinstance(event.data, ChangesFiles) else ()
    )
    return changes


def is_inside(path: str) -> bool:
    """Return whether a recorded path stays below its base directory and outside ``.git``.

    >>> [is_inside(path) for path in ("src/main.py", "../main.py", "/etc/passwd", "a/.git/config")]
    [True, False, False, False]
    """
    parts = path.split("/")
    return "\0" not in path and not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)
