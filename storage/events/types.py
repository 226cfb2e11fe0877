"""The facts: what an event is, and the payload of each type of event that storage knows.

An event is one line of the history. Its ``type`` is the explicit name of its payload, never a class path, and a
payload that has once been written must load for ever: a changed shape gets a new version and an upcaster
(:mod:`agentx.storage.events.codec`). Conclusions drawn from facts are events too; their payload lives with synthesis.
"""

from typing import Any, Literal

import msgspec


class Payload(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all payloads; the class name is the event's ``type``."""


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """Text of any length: whole when it is short, otherwise an extract and the blob that holds the whole.

    Attributes:
        text: The whole text, or a bounded extract (head and tail) of it.
        blob: Git blob id of the whole text, kept under ``history/blobs``; empty when ``text`` is whole.
        size_bytes: Size of the whole text in UTF-8; 0 when ``text`` is whole.
    """

    text: str
    blob: str = ""
    size_bytes: int = 0


class FileChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One file of ``artifacts/`` going from one content to another.

    Attributes:
        path: Path relative to the artifacts root, with forward slashes.
        before: Blob id before the change; empty where the file did not exist.
        after: Blob id after the change; empty where the file is gone.
        executable: Whether the file is executable afterwards.
        link: Whether the file is a symbolic link afterwards (the blob then holds its target).
        size_bytes: Size afterwards.
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
        raw: The payload's JSON as it stands in the log.
    """

    raw: str = "{}"


class Purged(Payload, frozen=True):
    """The payload of an event whose content was purged; its digest still holds the chain together."""


class Lost(Purged, frozen=True):
    """The payload of an event that was damaged, that no place holds, and whose loss a person accepted."""


class WorkspaceCreated(Payload, frozen=True):
    """The first event of every history.

    Attributes:
        title: What the task is called.
        format: Number of the record's format; a newer one opens read-only.
        artifacts: Where the artifacts lie, relative to the workspace: ``artifacts``, or ``..`` for an outer work tree.
    """

    title: str
    format: int
    artifacts: str = "artifacts"


class WorkspaceForked(Payload, frozen=True):
    """From here this history is its own: what stands before was copied from another workspace.

    Attributes:
        at: The last event that both have.
        hash: Its hash, which is the same in both.
    """

    at: int
    hash: str


class UserMessageSent(Payload, frozen=True):
    """A person said something to the agents of this task."""

    body: Body


class AgentMessageSent(Payload, frozen=True):
    """An agent said something to the user.

    Attributes:
        final: Whether this answers the user's message and ends the turn.
        model: Name of the model that spoke.
    """

    body: Body
    final: bool = False
    model: str = ""


class AgentThoughtProcess(Payload, frozen=True):
    """What an agent thought aloud between two tool calls."""

    body: Body
    model: str = ""


class ToolCallRequested(Payload, frozen=True):
    """A tool with effects outside the workspace is about to run; durable before it does.

    Without a ``ToolCallExecuted`` of the same ``call_id`` its outcome is unknown, and is shown so.

    Attributes:
        arguments: Its arguments, long values cut.
        whole: The arguments in full, as JSON, so that the very call can be run later.
        awaits_approval: Whether it waits for a person's word.
    """

    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    whole: Body = Body("")
    awaits_approval: bool = False


ToolStatus = Literal["SUCCEEDED", "FAILED", "DENIED"]


class ToolCallExecuted(ChangesFiles, frozen=True):
    """A tool ran, failed, or was denied.

    Attributes:
        call_id: The model's id of the call, or one of ours.
        tool: Name of the tool.
        arguments: Its arguments, long values cut (file contents are named by blob id in ``changes`` instead).
        status: ``SUCCEEDED``, ``FAILED`` (it ran and did not succeed) or ``DENIED`` (it was not allowed to run).
        output: What the agent was answered.
        changes: Files that the call changed.
        command: For tools that run a program: the command line.
        exit_code: For tools that run a program: its exit status; ``None`` where it was killed or none ran.
        denied_by: Ids of the memory items that denied the call.
        noted: What the gate before the call put in front of the agent with its result.
        duration_ms: How long it took.
        reverts: For undo and restore: the seq that the content was taken from.
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
    duration_ms: int = 0
    reverts: int = 0


class ApprovalDecided(Payload, frozen=True):
    """A person allowed or refused a tool call that waited for their word."""

    call_id: str
    approved: bool
    reason: str = ""


class ArtifactChanged(ChangesFiles, frozen=True):
    """Files in ``artifacts/`` were changed by someone other than the engine: a person, an editor, Git.

    Attributes:
        noticed: What made the engine look (``open``, ``write``, ``scan``, ``watch``, ``import``), or what of Git's it
            was found in: ``git`` for a commit, ``index`` for what was staged, ``stash``.
    """

    changes: tuple[FileChange, ...]
    noticed: str


class WriteReverted(Payload, frozen=True):
    """A recorded write that a crash cut off and that could not be rolled forward.

    Attributes:
        event: Seq of the event that announced the write.
        path: The file that keeps its earlier content.
    """

    event: int
    path: str
    reason: str


class RunStarted(Payload, frozen=True):
    """An agent set to work: on a user's message, or on the prompt that a director wrote for it.

    Attributes:
        task: What it was asked.
        agent: Its role.
        model: Who answers: a model, or the name of an executor.
        resumes: The run that it goes on with, which is its own where the run itself goes on; empty for none.
        directive: Seq of the directive whose prompt it carries out; 0 where nobody directs.
        schedule: Id of the schedule that it was due by; empty for none.
        due: When it was due, as UTC time in ISO 8601.
        pipeline: Name of the pipeline that sent it out; empty for none. Such a run works on no request of the user's.
    """

    task: Body
    agent: str
    model: str
    resumes: str = ""
    directive: int = 0
    schedule: str = ""
    due: str = ""
    pipeline: str = ""


RunStatus = Literal["COMPLETED", "FAILED", "LIMIT_REACHED", "INTERRUPTED", "WAITING"]


class RunEnded(Payload, frozen=True):
    """An agent stopped working.

    Attributes:
        status: How it ended; ``WAITING`` means that a tool call awaits a person's word.
        reason: One sentence for a person.
        summary: What came of it, in the words of whoever did it.
        cost_usd: What the model calls cost, as far as the provider's price is known.
    """

    status: RunStatus
    reason: str = ""
    summary: str = ""
    steps: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float = 0.0


class ContextProvided(Payload, frozen=True):
    """What an agent was shown: ids only, so that the same context can be assembled again.

    Attributes:
        as_of: The event that it was the state after; 0 where an older version did not say.
        tier: How much of the conversation it held.
        asked: The tier that was asked for, where it was more; 0 otherwise.
        late: What a deadline cut off, as :class:`agentx.context.assembler.Request` names it.
        digest: Hex blake2b-128 of its text.
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


class TaskGraded(Payload, frozen=True):
    """How a task went, by whoever did it or by the checks that ran: the second half of a gate.

    Attributes:
        task: What was done, in one sentence.
        passed: Whether it succeeded.
        flow: Id of the flow that it followed; empty for none.
        broke: Ids of rules that it broke.
        kept: Ids of rules that it kept, which reinforces them.
        lesson: What was learned, in one sentence; empty for nothing.
        made: What the lesson was made into: ``check``, ``flow``, ``script``, ``rule``; empty for nothing.
        domain: What the task belongs to ("payments").
    """

    task: str
    passed: bool
    flow: str = ""
    broke: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    lesson: str = ""
    made: str = ""
    domain: str = ""


class CapabilityChecked(Payload, frozen=True):
    """A command was run to find out whether a tool or a credential works.

    Attributes:
        item: Id of the memory item that names the command.
        exit_code: Its exit status; ``None`` where it could not be run or was ended.
        output: What it printed, cut.
    """

    item: str
    exit_code: int | None = None
    output: Body = Body("")


class SourceScanned(Payload, frozen=True):
    """A read-only source outside the workspace was scanned into the index.

    Attributes:
        manifest_hash: blake2b-256 over the sorted ``path NUL content-hash LF`` lines.
    """

    source: str
    manifest_hash: str
    files: int
    size_bytes: int


class EventsPurged(Payload, frozen=True):
    """The content of earlier events was purged, with every copy of it; their places in the chain of hashes hold.

    Attributes:
        events: Their seqs.
        reason: Why, in the words of whoever purged them.
    """

    events: tuple[int, ...]
    reason: str = ""


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """An event before it is appended: what happened and who did it, without a place in the history.

    Attributes:
        actor: Set by the channel, never by an argument of a tool: ``user``, ``user:<name>``, ``agent:<role>``,
            ``tool:<name>``, ``engine:<part>``, ``watch`` or ``import:<source>``.
        run: Id of the run that this belongs to.
        cause: Seq of the event that led to this one; 0 for none.
        key: Makes the append idempotent: a second event with the same key is not appended.
    """

    data: Payload
    actor: str
    run: str = ""
    cause: int = 0
    key: str = ""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the history.

    Attributes:
        seq: Place in the history, from 1, without gaps. The order of events is this, never their time.
        at: UTC time, ISO 8601 with microseconds and ``Z``.
        type: Name of the payload.
        v: Version of the payload's shape as it was written.
        hash: Hex blake2b-256 over the previous event's hash, this event's header and the digest of its salt and data.
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


def changes_of(event: Event) -> tuple[FileChange, ...]:
    """The files that an event says were changed; none for an event of another kind.

    A history from elsewhere can name any path. One that does not stay inside the artifacts is left out, so that no
    reader of changes can be led out by it; :func:`strays_of` gives those.
    """
    return tuple(made for made in _changes(event) if is_inside(made.path))


def strays_of(event: Event) -> tuple[FileChange, ...]:
    """The changes of an event that no engine has recorded: their paths lead out of the artifacts."""
    return tuple(made for made in _changes(event) if not is_inside(made.path))


def _changes(event: Event) -> tuple[FileChange, ...]:
    changes: tuple[FileChange, ...] = (
        getattr(event.data, "changes", ()) if isinstance(event.data, ChangesFiles) else ()
    )
    return changes


def is_inside(path: str) -> bool:
    """Whether a recorded path stays below the directory that it is relative to, and out of Git's.

    >>> is_inside("src/main.py"), is_inside("../main.py"), is_inside("/etc/passwd"), is_inside("a/.git/config")
    (True, False, False, False)
    """
    parts = path.split("/")
    return "\0" not in path and not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)
