"""How far pipelines are: a fold over history, so that one that was stopped anywhere goes on where it was.

What is proved is proved by its event alone; whether a file still carries its marker is looked at when a pipeline starts.
"""

import msgspec

from agentx.storage.events.pipeline_events import (
    Dispatched,
    FileAmended,
    PipelineEnded,
    PipelineStarted,
    ProvedFile,
    StageProved,
    StageReopened,
)
from agentx.storage.events.types import ApprovalDecided, Event, RunEnded, RunStatus, changes_of
from agentx.storage.text import one_line
from agentx.synthesis.model.port import Usage
from agentx.synthesis.pipelines.definition.naming import key_of

VERSION = 6
"""Raised whenever the same events would be read differently."""


class Sent(msgspec.Struct):
    """An agent that is at work on a step.

    Attributes:
        seq: The event that sent it.
        at: When that was.
        writes: The files that it alone may write.
        by_engine: Whether the engine does it itself.
        decided: The latest word of a person on one of its calls.
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


class Proof(msgspec.Struct):
    """That a step is done: in which round, by which files, with which verdict."""

    seq: int
    round: int
    verdict: str
    outputs: tuple[ProvedFile, ...]


class Failure(msgspec.Struct):
    """An agent that did not do what it was sent for."""

    seq: int
    round: int
    reason: str
    status: RunStatus = "FAILED"


class Part(msgspec.Struct):
    """A part of a task that was split: the event that sent an agent for it, and its files: the last, and how many."""

    seq: int
    through: str
    holds: int


class Written(msgspec.Struct):
    """What agents wrote for a step in a round.

    Attributes:
        seq: The event that sent the latest of them.
        blobs: Blob id of each file, by path; empty where it was deleted. Parts of a task that was split are among them.
        accepted: Whether the run that wrote them was, so that only the proof is missing.
        parts: Of a task that was split, those that were written or are being written, by number.
    """

    seq: int
    round: int
    blobs: dict[str, str]
    accepted: bool = False
    parts: dict[int, Part] = msgspec.field(default_factory=dict)


class Verdict(msgspec.Struct):
    """A verdict on a round."""

    seq: int
    round: int
    passed: bool


class Progress(msgspec.Struct):
    """How far one pipeline is.

    Attributes:
        digest: Of its file, when it was last started.
        status: How it last ended; ``RUNNING`` while it does not.
        running: Agents at work, by run; those of ``waiting`` among them.
        proved: The latest proof of each step, by key.
        failures: Of the steps that are not proved since.
        written: What was written for each step in its latest round, and is not proved yet.
        verdicts: Of the steps that give one, in order.
        reopened: The latest event that reopened a stage or step, by key, and ``wishes`` why.
        amended: The latest event in which a person gave their word that a file is to be as they made it, by path.
        remembered: The proofs that left something in the long-term memory, by key.
        retried: The latest event that gave what had failed another chance.
        waiting: Runs that wait for a person's word, by key.
        anomalies: What went otherwise than planned, in order: what stands in the pipeline's log.
        dispatches: Agents that were sent out; ``retries`` those of them whose work was not accepted.
        usage: What its runs used.
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
    written: dict[str, Written] = msgspec.field(default_factory=dict)
    verdicts: dict[str, list[Verdict]] = msgspec.field(default_factory=dict)
    reopened: dict[str, int] = msgspec.field(default_factory=dict)
    wishes: dict[str, str] = msgspec.field(default_factory=dict)
    amended: dict[str, int] = msgspec.field(default_factory=dict)
    remembered: dict[str, list[int]] = msgspec.field(default_factory=dict)
    retried: int = 0
    waiting: dict[str, str] = msgspec.field(default_factory=dict)
    anomalies: list[str] = msgspec.field(default_factory=list)
    dispatches: int = 0
    retries: int = 0
    usage: Usage = Usage()


class Pipelines(msgspec.Struct):
    """All pipelines of a history.

    Attributes:
        runs: The pipeline of each run that goes on.
    """

    known: dict[str, Progress] = msgspec.field(default_factory=dict)
    runs: dict[str, str] = msgspec.field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Fold an event in."""
        match event.data:
            case PipelineStarted() as started:
                self._start(event, started)
            case PipelineEnded() as ended:
                progress = self.of(ended.name)
                progress.status, progress.reason, progress.ended_at = ended.status, ended.reason, event.at
            case Dispatched() as sent:
                self._send(event, sent)
            case StageProved() as proved:
                self._give_up(self.of(proved.pipeline), key_of(proved.stage, proved.item))
                _prove(self.of(proved.pipeline), event, proved)
            case StageReopened() as reopened:
                _reopen(self.of(reopened.pipeline), event, reopened)
            case FileAmended() as amended:
                for progress in self.known.values():
                    _amend(progress, event, amended)
            case _ if event.run in self.runs:
                self._go_on(self.of(self.runs[event.run]), event)

    def of(self, name: str) -> Progress:
        """The progress of a pipeline."""
        return self.known.setdefault(name, Progress(name))

    def _start(self, event: Event, started: PipelineStarted) -> None:
        progress = self.of(started.name)
        progress.digest, progress.status, progress.reason = started.digest, "RUNNING", ""
        progress.started_at, progress.ended_at = event.at, ""
        if started.retry:
            progress.retried = event.seq

    def _send(self, event: Event, sent: Dispatched) -> None:
        progress, key = self.of(sent.pipeline), key_of(sent.stage, sent.item)
        by_engine = event.actor.startswith("engine:")
        self._give_up(progress, key)
        progress.running[event.run] = Sent(
            sent.pipeline,
            key,
            sent.role,
            sent.round,
            sent.part,
            event.run,
            event.seq,
            event.at,
            sent.writes,
            by_engine,
        )
        progress.dispatches += not by_engine
        before = progress.written.get(key)
        made = Written(event.seq, sent.round, {})
        if before is not None and before.round == sent.round and (sent.part or by_engine):
            made.blobs, made.parts = before.blobs, before.parts  # what becomes of parts is not begun anew
        if sent.part:
            _forget(made, progress.running[event.run])
            made.parts[sent.part] = Part(event.seq, sent.through, sent.holds)
        progress.written[key] = made
        self.runs[event.run] = sent.pipeline

    def _give_up(self, progress: Progress, key: str) -> None:
        """Nothing comes any more of a run that waited for a person's word."""
        if run := progress.waiting.pop(key, ""):
            progress.running.pop(run, None)
            self.runs.pop(run, None)

    def _go_on(self, progress: Progress, event: Event) -> None:
        """What an agent does between its start and its end."""
        match event.data:
            case ApprovalDecided():
                progress.running[event.run].decided = event.seq
            case RunEnded(status="WAITING") as ended:
                _wait(progress, event, ended)
            case RunEnded() as ended:
                del self.runs[event.run]
                _end(progress, event, ended)
            case _:
                _write(progress, event)


def _amend(progress: Progress, event: Event, amended: FileAmended) -> None:
    why = one_line(amended.reason) or "no reason was given"
    progress.anomalies.append(f"{amended.path} was amended: {why}")
    if not amended.after:
        progress.amended.pop(amended.path, None)  # who takes a file away wants another
    elif not amended.call_id:
        progress.amended[amended.path] = event.seq


def _reopen(progress: Progress, event: Event, reopened: StageReopened) -> None:
    key, why = key_of(reopened.stage, reopened.item), one_line(reopened.reason)
    progress.reopened[key], progress.wishes[key] = event.seq, why
    progress.anomalies.append(f"{key} is done again: {why}")


def _write(progress: Progress, event: Event) -> None:
    for made in changes_of(event):
        progress.written[progress.running[event.run].key].blobs[made.path] = made.after


def _wait(progress: Progress, event: Event, ended: RunEnded) -> None:
    """The run goes on when a person has given their word, and ends for good then."""
    progress.waiting[progress.running[event.run].key] = event.run
    progress.usage += _used(ended)


def _used(ended: RunEnded) -> Usage:
    return Usage(ended.prompt_tokens, ended.completion_tokens, ended.cost_usd)


def _end(progress: Progress, event: Event, ended: RunEnded) -> None:
    sent = progress.running.pop(event.run)
    progress.waiting.pop(sent.key, None)
    progress.usage += _used(ended)
    if ended.status == "COMPLETED":
        progress.written[sent.key].accepted = not sent.part
    elif ended.status in ("FAILED", "LIMIT_REACHED"):
        _forget(progress.written[sent.key], sent)
        failure = Failure(event.seq, sent.round, ended.reason, ended.status)
        progress.failures.setdefault(sent.key, []).append(failure)
        progress.retries += not sent.by_engine
        part = f", part {sent.part}" if sent.part else ""
        progress.anomalies.append(
            f"{sent.key}, round {sent.round}{part}: {sent.role} was not accepted: {ended.reason}"
        )


def _forget(written: Written, sent: Sent) -> None:
    """A part that was not accepted is written anew; where what was joined was not, all of them."""
    if sent.by_engine:
        written.blobs.clear()
        written.parts.clear()
    elif sent.part:
        written.parts.pop(sent.part, None)
        for path in sent.writes:
            written.blobs.pop(path, None)


def _prove(progress: Progress, event: Event, proved: StageProved) -> None:
    key = key_of(proved.stage, proved.item)
    progress.proved[key] = Proof(event.seq, proved.round, proved.verdict, proved.outputs)
    progress.written[key] = Written(event.seq, proved.round, {})  # who is sent again begins anew
    progress.failures.pop(key, None)
    if proved.changes or proved.learned or proved.superseded:
        progress.remembered.setdefault(key, []).append(event.seq)
    if proved.verdict:
        passed = proved.verdict == "PASS"
        progress.verdicts.setdefault(key, []).append(Verdict(event.seq, proved.round, passed))
        if not passed:
            progress.anomalies.append(f"{key}, round {proved.round}: the verdict is FAIL")
