"""The progress of pipelines: a fold over history, so that a pipeline stopped anywhere can be resumed.

A proof is an event; nothing else is needed. Whether a file still has its marker is checked when a pipeline
starts.
"""

import msgspec

from agentx.storage.events.pipeline_events import (
    APPROVE_STAGE,
    Basis,
    Dispatched,
    FileAmended,
    ItemsFound,
    PipelineEnded,
    PipelineStarted,
    ProvedFile,
    StageKept,
    StageProved,
    StageReopened,
    key_of,
)
from agentx.storage.events.types import (
    ApprovalDecided,
    Body,
    Event,
    RunEnded,
    RunStatus,
    ToolCallExecuted,
    ToolCallRequested,
    changes_of,
)
from agentx.storage.text import one_line, shorten
from agentx.synthesis.model.port import Usage
from agentx.synthesis.pipelines.definition.naming import path_pattern

_WHY_WORDS = 40
"""Maximum number of words of the reason for a denied call."""

VERSION = 11
"""Raised whenever the same events would be folded differently."""


class Sent(msgspec.Struct):
    """An agent that is working on a step.

    Attributes:
        seq: Number of the event that dispatched it.
        at: When it was dispatched.
        writes: Files that it has exclusive write access to.
        by_engine: Whether the engine itself does the step.
        decided: Number of the latest event in which the user approved or denied one of its calls.
        asks: Its calls that wait for approval.
        shown: Content ids of the files that a person is asked to approve, by path.
    """

    pipeline: str
    key: str
    role: str
    round: int
    part: int
    run: str
    seq: int
    at: str
    writes: tuple[str, ...] = ()
    by_engine: bool = False
    decided: int = 0
    asks: list[str] = msgspec.field(default_factory=list)
    shown: dict[str, str] = msgspec.field(default_factory=dict)


class GivenInputs(msgspec.Struct, omit_defaults=True):
    """What a step rests on.

    Attributes:
        seq: The event since which its inputs are as they were given to it.
        inputs: Those files, as lines of a Git blob id and a path.
        basis: What else it rests on; empty where it was proved by an earlier version.
    """

    seq: int = 0
    inputs: Body = Body("")
    basis: Basis = Basis()


class Proof(msgspec.Struct):
    """The proof that a step is done: its round, its files, its verdict.

    Attributes:
        given: What it rests on.
        kept: The latest event in which its inputs were found unchanged.
        found: Whether its files were there already, or a person made them.
    """

    seq: int
    round: int
    verdict: str
    outputs: tuple[ProvedFile, ...]
    given: GivenInputs = msgspec.field(default_factory=GivenInputs)
    kept: int = 0
    found: bool = False


class Failure(msgspec.Struct):
    """An agent's failure to do its task."""

    seq: int
    round: int
    reason: str
    status: RunStatus = "FAILED"


class TaskPart(msgspec.Struct):
    """A part of a split task: the event that dispatched it, its last file, and its number of files."""

    seq: int
    through: str
    holds: int


class WrittenFile(msgspec.Struct):
    """What agents wrote for a step in a round.

    Attributes:
        seq: Number of the event that dispatched the latest of them.
        blobs: Blob id of each file, by path; empty if it was deleted. Includes the parts of a split task.
        accepted: Whether the run that wrote them was accepted, so that only the proof is missing.
        parts: The parts of a split task that are written or being written, by number.
        given: Content ids of the files that the latest of them was given, by path.
        rests: What they rest on; of a split task, what its first part rests on.
    """

    seq: int
    round: int
    blobs: dict[str, str]
    accepted: bool = False
    parts: dict[int, TaskPart] = msgspec.field(default_factory=dict)
    given: dict[str, str] = msgspec.field(default_factory=dict)
    rests: GivenInputs = msgspec.field(default_factory=GivenInputs)


class RoundVerdict(msgspec.Struct):
    """A verdict on a round."""

    seq: int
    round: int
    passed: bool


class Progress(msgspec.Struct):
    """The progress of one pipeline.

    Attributes:
        digest: Digest of its file at the last start.
        status: How it last ended; ``RUNNING`` while it is running.
        running: Agents at work, by run, including those in ``waiting``.
        proved: The latest proof of each step, by key.
        failures: Failures since the last proof, by step.
        written: What was written for each step in its latest round and is not proved yet.
        verdicts: Verdicts in order, by step.
        reopened: The latest event that reopened a stage or step, by key. ``wishes`` has the reasons.
        doubted: The latest event that reopened it only if its inputs have changed, by key.
        amended: The latest event in which the user accepted their own version of a file, by path.
        remembered: The proofs that added something to the long-term memory, by key.
        corrected: Events in which people changed what was added to the long-term memory.
        retried: The latest event that allowed failed steps another attempt.
        waiting: Runs that wait for approval, by key.
        seen: Content ids of the files that a person last decided on, by key and path.
        judged: Content ids of the files that were given for the latest verdict, by key and path.
        anomalies: Deviations from the plan, in order; the contents of the pipeline's log.
        incidents: Those of them that the user should look at: changes from outside, denied calls, processes
            that programs left.
        paths: Patterns of the paths of its files.
        latest: The latest proof of all.
        file: Path of its file at the last start, relative to the workspace.
        definition: The pipeline's file as it was last started.
        variables: Values that replace those of the definition, by name.
        items: The items that were found, as the text of :class:`ItemsFound`.
        dispatches: Number of dispatched agents. ``retries`` counts those whose work was not accepted.
        usage: Usage of its runs.
    """

    name: str
    digest: str = ""
    status: str = ""
    reason: str = ""
    started_at: str = ""
    ended_at: str = ""
    running: dict[str, Sent] = msgspec.field(default_factory=dict)
    proved: dict[str, Proof] = msgspec.field(default_factory=dict)
    failures: dict[str, list[Failure]] = msgspec.field(default_factory=dict)
    written: dict[str, WrittenFile] = msgspec.field(default_factory=dict)
    verdicts: dict[str, list[RoundVerdict]] = msgspec.field(default_factory=dict)
    reopened: dict[str, int] = msgspec.field(default_factory=dict)
    doubted: dict[str, int] = msgspec.field(default_factory=dict)
    wishes: dict[str, str] = msgspec.field(default_factory=dict)
    amended: dict[str, int] = msgspec.field(default_factory=dict)
    remembered: dict[str, list[int]] = msgspec.field(default_factory=dict)
    corrected: list[int] = msgspec.field(default_factory=list)
    retried: int = 0
    waiting: dict[str, str] = msgspec.field(default_factory=dict)
    seen: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    judged: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    anomalies: list[str] = msgspec.field(default_factory=list)
    incidents: list[str] = msgspec.field(default_factory=list)
    paths: tuple[str, ...] = ()
    latest: int = 0
    file: str = ""
    definition: Body = Body("")
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    items: Body = Body("")
    dispatches: int = 0
    retries: int = 0
    usage: Usage = Usage()

    def report(self, incident: str) -> None:
        """Add an incident."""
        self.incidents.append(incident)
        self.anomalies.append(incident)


class Changed(msgspec.Struct, array_like=True):
    """The latest change of a file: its event, when, by whom, and the blob id of its content."""

    seq: int
    at: str
    actor: str
    blob: str
    link: bool = False


class Pipelines(msgspec.Struct):
    """All pipelines of a history.

    Attributes:
        runs: The pipeline of each active run.
        changed: The latest change of each file, by path.
    """

    known: dict[str, Progress] = msgspec.field(default_factory=dict)
    runs: dict[str, str] = msgspec.field(default_factory=dict)
    changed: dict[str, Changed] = msgspec.field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Fold an event in."""
        for made in changes_of(event):
            blob = "" if made.link else made.after
            self.changed[made.path] = Changed(event.seq, event.at, event.actor, blob, made.link)
        self._fold(event)

    def _fold(self, event: Event) -> None:
        match event.data:
            case PipelineStarted() as started:
                progress = self.of(started.name)
                progress.digest, progress.status, progress.reason = started.digest, "RUNNING", ""
                progress.file = started.file
                progress.started_at, progress.ended_at = event.at, ""
                progress.retried = event.seq if started.retry else progress.retried
                progress.paths = started.paths
                progress.definition, progress.variables = started.definition, started.variables
            case ItemsFound() as found:
                self.of(found.pipeline).items = found.items
            case PipelineEnded() as ended:
                progress = self.of(ended.name)
                progress.status, progress.reason, progress.ended_at = ended.status, ended.reason, event.at
            case Dispatched() as sent:
                self._send(event, sent)
            case StageProved() as proved:
                self._give_up(self.of(proved.pipeline), key_of(proved.stage, proved.item))
                _prove(self.of(proved.pipeline), event, proved)
            case StageReopened() | StageKept() as decided:
                _decide(self.of(decided.pipeline), event, decided)
            case FileAmended() as amended:
                for progress in self.known.values():
                    _amend(progress, event, amended)
            case _:
                self._go_on(event)

    def of(self, name: str) -> Progress:
        """Return the progress of a pipeline."""
        return self.known.setdefault(name, Progress(name))

    def _send(self, event: Event, sent: Dispatched) -> None:
        progress, key = self.of(sent.pipeline), key_of(sent.stage, sent.item)
        by_engine = event.actor.startswith("engine:")
        self._give_up(progress, key)
        who = (sent.pipeline, key, sent.role, sent.round, sent.part)
        progress.running[event.run] = Sent(*who, event.run, event.seq, event.at, sent.writes, by_engine)
        progress.dispatches += not by_engine
        before = progress.written.get(key)
        rests = GivenInputs(event.seq, sent.inputs, sent.basis)
        shown = {one.path: one.blob for one in sent.reads}
        made = WrittenFile(event.seq, sent.round, {}, given=shown, rests=rests)
        if before is not None and before.round == sent.round and (sent.part or sent.joins or by_engine):
            made.blobs, made.parts = before.blobs, before.parts  # the parts so far are kept
            made.rests = before.rests if before.parts else made.rests
        if sent.part:
            _forget(made, progress.running[event.run])
            made.parts[sent.part] = TaskPart(event.seq, sent.through, sent.holds)
        progress.written[key] = made
        self.runs[event.run] = sent.pipeline

    def _notice(self, event: Event) -> None:
        """Report changes of a running pipeline's files that neither its agents nor the engine made."""
        changes = () if event.actor.startswith("engine:") else changes_of(event)
        by = "" if event.actor == "watch" else f" by {event.actor}"
        for progress in self.known.values() if changes else ():
            matches = [path_pattern(path).fullmatch for path in progress.paths]
            for made in changes if progress.status == "RUNNING" else ():
                if any(match(made.path) for match in matches):
                    how = "changed" if made.before and made.after else "removed" if made.before else "created"
                    where = f"{made.path} was {how} from outside{by}"
                    progress.report(f"{where} while the pipeline ran (event {event.seq})")

    def _give_up(self, progress: Progress, key: str) -> None:
        """Discard a run that waits for approval: its step is dispatched or proved otherwise."""
        if run := progress.waiting.pop(key, ""):
            progress.running.pop(run, None)
            self.runs.pop(run, None)

    def _go_on(self, event: Event) -> None:
        """Fold in an event of an agent between its start and its end, or of others."""
        if event.run not in self.runs:
            self._notice(event)
            return
        progress = self.of(self.runs[event.run])
        sent = progress.running[event.run]
        match event.data:
            case ApprovalDecided() as decided:
                sent.decided = event.seq
                sent.asks = [one for one in sent.asks if one != decided.call_id]
            case ToolCallRequested(awaits_approval=True) as asked:
                sent.asks.append(asked.call_id)
                files = asked.arguments.get("files") if asked.tool == APPROVE_STAGE else None
                sent.shown = files if isinstance(files, dict) else {}
            case RunEnded() as ended:
                progress.usage += Usage(ended.prompt_tokens, ended.completion_tokens, ended.cost_usd)
                if ended.status == "WAITING":  # resumed after the user's decision; only then it ends for good
                    progress.waiting[sent.key] = event.run
                else:
                    del self.runs[event.run]
                    _end(progress, event, ended)
            case ToolCallExecuted(status="DENIED") as call:
                why = shorten(one_line(call.output.text.removeprefix("Denied.")), _WHY_WORDS)
                where = f"{sent.key}, round {sent.round}"
                progress.report(f"{where}: {sent.role} was denied {call.tool}: {why}")
            case _:
                for made in changes_of(event):
                    progress.written[sent.key].blobs[made.path] = made.after


def _amend(progress: Progress, event: Event, amended: FileAmended) -> None:
    why = one_line(amended.reason) or "no reason was given"
    progress.anomalies.append(f"{amended.path} was amended: {why}")
    if not amended.after:
        progress.amended.pop(amended.path, None)  # a user who deletes a file wants a new one
    elif not amended.call_id:
        progress.amended[amended.path] = event.seq
    if amended.superseded or amended.learned:
        progress.corrected.append(event.seq)


def _end(progress: Progress, event: Event, ended: RunEnded) -> None:
    sent = progress.running.pop(event.run)
    progress.waiting.pop(sent.key, None)
    if sent.shown:
        progress.seen[sent.key] = sent.shown
    if ended.status == "COMPLETED":
        progress.written[sent.key].accepted = not sent.part
        if ended.reason:
            progress.report(f"{sent.key}, round {sent.round}: {sent.role}: {ended.reason}")
    elif ended.status in ("FAILED", "LIMIT_REACHED"):
        _forget(progress.written[sent.key], sent)
        failure = Failure(event.seq, sent.round, ended.reason, ended.status)
        progress.failures.setdefault(sent.key, []).append(failure)
        progress.retries += not sent.by_engine
        part = f", part {sent.part}" if sent.part else ""
        where = f"{sent.key}, round {sent.round}{part}"
        progress.anomalies.append(f"{where}: {sent.role} was not accepted: {ended.reason}")


def _forget(written: WrittenFile, sent: Sent) -> None:
    """Discard a part that was not accepted, so that it is written again.

    If the joined parts were not accepted, all of them are discarded.
    """
    if sent.by_engine:
        written.blobs.clear()
        written.parts.clear()
    elif sent.part:
        written.parts.pop(sent.part, None)
        for path in sent.writes:
            written.blobs.pop(path, None)


def _decide(progress: Progress, event: Event, decided: StageReopened | StageKept) -> None:
    key = key_of(decided.stage, decided.item)
    if isinstance(decided, StageKept):
        if proof := progress.proved.get(key):
            proof.kept = event.seq
        return
    progress.wishes[key] = one_line(decided.reason)
    if decided.if_changed:
        progress.doubted[key] = event.seq
    else:
        progress.reopened[key] = event.seq
    if not decided.if_changed or event.actor.startswith("engine:"):
        progress.anomalies.append(f"{key} is done again: {progress.wishes[key]}")


def _prove(progress: Progress, event: Event, proved: StageProved) -> None:
    key = key_of(proved.stage, proved.item)
    written = progress.written.get(key)
    if proved.verdict and written is not None:
        progress.judged[key] = written.given
    given = written.rests if written else GivenInputs()
    if proved.basis.prompt or not given.basis.prompt:
        given = GivenInputs(event.seq, proved.inputs, proved.basis)
    progress.proved[key] = Proof(
        event.seq, proved.round, proved.verdict, proved.outputs, given, found=proved.found
    )
    progress.latest = event.seq
    # an agent that is dispatched again starts from nothing
    progress.written[key] = WrittenFile(event.seq, proved.round, {})
    progress.failures.pop(key, None)
    if proved.changes or proved.learned or proved.superseded:
        progress.remembered.setdefault(key, []).append(event.seq)
    if proved.verdict:
        passed = proved.verdict == "PASS"
        progress.verdicts.setdefault(key, []).append(RoundVerdict(event.seq, proved.round, passed))
        if not passed:
            progress.anomalies.append(f"{key}, round {proved.round}: the verdict is FAIL")
