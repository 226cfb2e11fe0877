"""State is a fold over history: the same events give the same state, byte for byte.

Nothing here reads a clock, a file or a model. Only a ``Concluded`` event changes memory. Every other event
updates the bookkeeping shown to agents and the user: recent messages, open runs, pending calls.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from hashlib import blake2b
from typing import Any, cast

import msgspec

from agentx.storage.events.actor import Actor
from agentx.storage.events.cognition_events import Interacted, Recognized
from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued, ReusePolicy
from agentx.storage.events.pipeline_events import Dispatched, FileRule, ItemsFound, PipelineStarted
from agentx.storage.events.schedule_events import DuePassed, ScheduleRemoved, ScheduleSet
from agentx.storage.events.types import (
    AgentMessageSent,
    ApprovalDecided,
    Body,
    Event,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    ToolCallRequested,
    Unknown,
    UserMessageSent,
    WorkspaceCreated,
)
from agentx.storage.log.history import Position
from agentx.synthesis.memory.conclusions import MAINTENANCE, MODEL, PERSON, Add, Concluded, Counted
from agentx.synthesis.memory.items import Kind, MemoryItem, RunTally, Status
from agentx.synthesis.state.mind import Mind

FOLD_VERSION = 11
"""Raised whenever the same history would fold to a different state. Snapshots of another version are ignored.
"""

RECENT_MESSAGES = 30
"""Number of recent messages in the state (tier 1 of the context)."""

RECENT_TEXT = 2_000
"""Characters kept of each message; the event has the rest."""

RECENT_END = 1_000
"""Characters kept of the end of an agent's longer message: that is where it asks."""

RECENT_RUNS = 50
"""Number of recent runs in the state of each schedule, and of those without one, for the director."""

RECENT_INSTRUCTIONS, RECENT_DIRECTIVES = 20, 5
"""Number of sequence numbers kept for the director: the user's messages, and the directives of each schedule
including failed ones.
"""

COUNTED_COMMANDS = 200
"""Number of commands whose latest test counts are kept."""

RUN_TEXT = 500
"""Characters kept of a run's task and of its result."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of the conversation, as shown in the context.

    Attributes:
        text: Its first :data:`RECENT_TEXT` characters.
        end: The last characters of an agent's longer message; empty for others.
        cut: Position of ``end`` in the message; 0 if the message is in a blob.
    """

    seq: int
    at: str
    actor: str
    text: str
    run: str = ""
    end: str = ""
    cut: int = 0


class PendingCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call without a result: it awaits approval, or its outcome is unknown."""

    seq: int
    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    run: str = ""
    whole: Body = Body("")
    awaits_approval: bool = False
    approved: bool | None = None
    reason: str = ""
    acts: Body = Body("")


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run: its task, and how it ended, if it has.

    Attributes:
        at: When it started. ``ended_at`` is when it ended; empty while it is running.
        directive: Sequence number of the directive that it carries out; 0 for none.
        schedule: Id of the schedule that started it, and ``due`` its due time; empty for none.
        resumed: How often it was resumed under the same id after an interruption.
    """

    run: str
    seq: int
    task: str
    agent: str
    model: str
    cause: int = 0
    at: str = ""
    status: str = "RUNNING"
    reason: str = ""
    summary: str = ""
    ended_seq: int = 0
    ended_at: str = ""
    directive: int = 0
    schedule: str = ""
    due: str = ""
    resumed: int = 0


class DirectiveRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The current directive: how far its director read, how long it is valid, and how many runs used it."""

    seq: int
    at: str
    policy: ReusePolicy
    through: int = 0
    runs: int = 0


class ScheduleRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schedule, and how far its due times are settled.

    Attributes:
        rule: The schedule as it was set.
        since: When it was set; earlier times are not due.
        settled: The latest due time that was run or skipped; empty for none.
        told: Sequence number of the user's message with the present task; 0 for none.
        runs: Number of runs that it started.
    """

    rule: ScheduleSet
    since: str
    settled: str = ""
    told: int = 0
    runs: int = 0


class Lease(msgspec.Struct, frozen=True, omit_defaults=True):
    """An exclusive write lock of one run on a file.

    Attributes:
        run: The run; the lease ends with it.
        role: Role of the holder; ``stage`` and ``item`` say what it works on.
        until: When it expires, as UTC time in ISO 8601.
    """

    run: str
    role: str
    stage: str = ""
    item: str = ""
    until: str = ""


class Stretch(msgspec.Struct, array_like=True):
    """A sequence of consecutive events, reduced to what a state needs to fold all of them in one step.

    Attributes:
        after: Hash of the event before them.
        seq: Number of the last event.
        hash: Hash of the last event.
        at: When the last event was recorded; empty if there are none.
        counts: Number of events, by type.
        lines: Lines of the events that may change a state, in order; of messages, those with a schedule's
            task.
        messages: Lines of the latest messages.
        results: By tool, the call ids of results whose call is not among these events.
        said: Sequence numbers of the user's latest messages.
    """

    after: str
    seq: int
    hash: str
    at: str
    counts: dict[str, int]
    lines: list[bytes]
    messages: list[bytes]
    results: dict[str, set[str]]
    said: list[int]


class State(msgspec.Struct, kw_only=True):
    """All conclusions and all open work after the event ``seq``.

    Attributes:
        seq: Number of the last folded event; 0 for none.
        hash: Hash of the last folded event.
        at: When that event was recorded. Readers use it as the present, so that a replay gives the same
            result.
        watermark: How far the deterministic extractors have read, from 0.
        judged: How far a model has read.
        maintained: The last event before the latest maintenance.
        maintained_at: When the latest maintenance was recorded; empty if there was none.
        items: All memory items, by id, in order of creation.
        messages: The latest messages, oldest first.
        said: Sequence numbers of the user's latest messages.
        pending: Tool calls without a result, by call id.
        runs: The latest runs of each schedule, and those without one, oldest first, except those dispatched
            by a pipeline.
        directives: The current directive of each schedule; under the empty id, that of runs without one.
        directed: By schedule, sequence numbers of the latest directives, including failed ones.
        schedules: Recurring tasks, by id.
        tasks: By schedule, the sequence numbers of the messages that stated its tasks, also former ones.
        files: Files whose class is enforced, by the pipeline that declares it.
        leases: Exclusive write locks, by path.
        minds: Memory buffers of cognitive agents, by session.
        tallies: The counts of the latest test run of each command, by a digest of the command.
        counts: Number of events folded, by type.
        unknown: Number of events of a type unknown to this version.
    """

    title: str = ""
    format: int = 0
    artifacts: str = "artifacts"
    seq: int = 0
    hash: str = ""
    at: str = ""
    watermark: int = 0
    judged: int = 0
    maintained: int = 0
    maintained_at: str = ""
    items: dict[str, MemoryItem] = msgspec.field(default_factory=dict)
    messages: list[Message] = msgspec.field(default_factory=list)
    said: list[int] = msgspec.field(default_factory=list)
    pending: dict[str, PendingCall] = msgspec.field(default_factory=dict)
    runs: list[RunRecord] = msgspec.field(default_factory=list)
    directives: dict[str, DirectiveRecord] = msgspec.field(default_factory=dict)
    directed: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    schedules: dict[str, ScheduleRecord] = msgspec.field(default_factory=dict)
    tasks: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    files: dict[str, tuple[FileRule, ...]] = msgspec.field(default_factory=dict)
    leases: dict[str, Lease] = msgspec.field(default_factory=dict)
    minds: dict[str, Mind] = msgspec.field(default_factory=dict)
    tallies: dict[str, RunTally] = msgspec.field(default_factory=dict)
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    unknown: int = 0

    def apply(self, event: Event) -> None:
        """Fold one event in. Events must come in order, each once."""
        self.seq, self.hash, self.at = event.seq, event.hash, event.at
        self.counts[event.type] = self.counts.get(event.type, 0) + 1
        fold = _FOLDS.get(type(event.data))
        if fold is not None:
            fold(self, event, event.data)

    def apply_all(self, events: Iterable[Event]) -> "State":
        """Fold many events in and return this state."""
        for event in events:
            self.apply(event)
        return self

    def pass_over(self, stretch: Stretch, decode: Callable[[bytes], Event]) -> None:
        """Fold in a stretch of events prepared by :func:`gather`, with the same result as folding each event.

        Args:
            stretch: Must begin right after the last event of this state.
            decode: Parses a line into its event.
        """
        for call in list(self.pending.values()):
            if call.call_id in stretch.results.get(call.tool, ()):
                del self.pending[call.call_id]
        said = [*self.said, *stretch.said][-RECENT_INSTRUCTIONS:]
        for line in stretch.lines:
            event = decode(line)
            if isinstance(event.data, UserMessageSent):
                _take_task(self, event, event.data)
            else:
                _FOLDS[type(event.data)](self, event, event.data)
        for line in stretch.messages:
            event = decode(line)
            _remember(self, event, cast("UserMessageSent | AgentMessageSent", event.data))
        self.said = said
        for name, count in stretch.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.seq, self.hash, self.at = stretch.seq, stretch.hash, stretch.at or self.at

    @property
    def last_run(self) -> RunRecord | None:
        """The latest run; ``None`` if nothing ran."""
        return self.runs[-1] if self.runs else None

    def unfinished_run(self, waiting: Collection[str]) -> RunRecord | None:
        """Return the run that would be resumed; ``None`` if nothing is unfinished.

        It is the last run, unless that is done or waits for a person: then another whose calls were decided
        goes on. So a run that waits holds up no other, and is found again when others came after it.

        Args:
            waiting: The runs with a call that a person has not decided on.
        """
        last = self.last_run
        if last is None:
            return None
        held = self.held(waiting)
        if last.status != "COMPLETED" and last.cause not in held:
            return last
        latest = {run.cause: run for run in self.runs}
        left = [
            run
            for run in self.runs
            if run.status == "WAITING" and run.cause and not run.directive and latest[run.cause] is run
        ]
        decided = [run for run in left if run.cause not in held]
        found = decided or ([last] if last.status != "COMPLETED" else left)
        return found[-1] if found else None

    def held(self, waiting: Collection[str]) -> set[int]:
        """Return the conversations, by the message that opened each, in which a run has an undecided call."""
        return {run.cause for run in self.runs if run.cause and run.run in waiting}

    def active(self, *kinds: Kind, status: Status = "active") -> Iterator[MemoryItem]:
        """Return the items of some kinds (all kinds if none is given) that have a status, oldest first."""
        return (i for i in self.items.values() if i.status == status and (not kinds or i.kind in kinds))

    def copy(self) -> "State":
        """Return an independent copy: values are immutable, collections are copied."""
        return msgspec.structs.replace(
            self,
            items=dict(self.items),
            messages=list(self.messages),
            said=list(self.said),
            pending=dict(self.pending),
            runs=list(self.runs),
            directives=dict(self.directives),
            directed=dict(self.directed),
            schedules=dict(self.schedules),
            tasks=dict(self.tasks),
            files=dict(self.files),
            leases=dict(self.leases),
            minds=dict(self.minds),
            tallies=dict(self.tallies),
            counts=dict(self.counts),
        )

    def encode(self) -> bytes:
        """Return the state as canonical JSON: keys sorted, no white space."""
        return msgspec.json.encode(self, order="sorted")

    def dump(self) -> bytes:
        """Return the state as JSON from which :meth:`decode` restores all, including the order of items."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, content: bytes) -> "State":
        """Parse a state that was dumped or encoded; its digest is the same.

        Raises:
            ValueError: The content is not a state.
        """
        return msgspec.json.decode(content, type=cls)

    @property
    def digest(self) -> str:
        """Hex blake2b-256 of :meth:`encode`; two replays of one history give the same digest."""
        return blake2b(self.encode(), digest_size=32).hexdigest()


def is_instruction(event: Event) -> bool:
    """Return whether an event is a message of the user."""
    return isinstance(event.data, UserMessageSent) and Actor.parse(event.actor).is_user


def gather(start: Position, events: Iterable[tuple[Event, bytes]]) -> Stretch:
    """Reduce consecutive events to a stretch for :meth:`State.pass_over`.

    A result settles its call wherever the call was announced among these events. If it was announced before
    them, only the state knows of it. In both cases no other event in between matters.

    Args:
        start: Position after the previous event.
        events: Events in order, each with its line.
    """
    counts: dict[str, int] = {}
    lines: list[bytes] = []
    messages: deque[bytes] = deque(maxlen=RECENT_MESSAGES)
    results: defaultdict[str, set[str]] = defaultdict(set)
    said: deque[int] = deque(maxlen=RECENT_INSTRUCTIONS)
    announced: set[str] = set()
    seq, own_hash, at = start.seq, start.hash, ""
    event: Event | None = None
    for event, line in events:
        data = event.data
        kind = type(data)
        counts[event.type] = counts.get(event.type, 0) + 1
        if kind not in _FOLDS:
            continue
        if isinstance(data, ToolCallExecuted) and data.call_id not in announced:
            results[data.tool].add(data.call_id)
        elif isinstance(data, UserMessageSent | AgentMessageSent):
            messages.append(line)
            if isinstance(data, UserMessageSent) and data.schedule:
                lines.append(line)
            if is_instruction(event):
                said.append(event.seq)
        else:
            lines.append(line)
            if isinstance(data, ToolCallRequested):
                announced.add(data.call_id)
    if event is not None:
        seq, own_hash, at = event.seq, event.hash, event.at
    return Stretch(start.hash, seq, own_hash, at, counts, lines, list(messages), results, list(said))


# --- how each type of event changes the state ---------------------------------------------------------------


def _create(state: State, _event: Event, created: WorkspaceCreated) -> None:
    state.title, state.format, state.artifacts = created.title, created.format, created.artifacts


def _conclude(state: State, event: Event, concluded: Concluded) -> None:
    if concluded.extractor == MODEL:
        state.judged = max(state.judged, concluded.through)
    elif concluded.extractor == MAINTENANCE:
        if concluded.through:
            state.maintained, state.maintained_at = concluded.through, event.at
    else:
        state.watermark = max(state.watermark, concluded.through)
    for change in concluded.changes:
        if isinstance(change, Counted):
            _count(state, change)
            continue
        if isinstance(change, Add):
            item = msgspec.structs.replace(change.item, created_seq=event.seq, created_at=event.at)
        elif change.id in state.items:
            item = msgspec.structs.replace(state.items[change.id], **change.fields())
        else:
            continue
        by_hand = item.by_hand or concluded.extractor == PERSON
        state.items[item.id] = msgspec.structs.replace(
            item, by_hand=by_hand, changed_seq=event.seq, changed_at=event.at
        )


def _count(state: State, counted: Counted) -> None:
    state.tallies.pop(counted.id, None)
    state.tallies[counted.id] = counted.tally
    if len(state.tallies) > COUNTED_COMMANDS:
        del state.tallies[next(iter(state.tallies))]


def _remember(state: State, event: Event, said: UserMessageSent | AgentMessageSent) -> None:
    whole, end, cut = said.body.text, "", 0
    if len(whole) > RECENT_TEXT and isinstance(said, AgentMessageSent):
        end = whole[RECENT_TEXT:][-RECENT_END:]
        cut = 0 if said.body.blob else len(whole) - len(end)
    state.messages.append(Message(event.seq, event.at, event.actor, whole[:RECENT_TEXT], event.run, end, cut))
    if len(state.messages) > RECENT_MESSAGES:
        del state.messages[0]
    if is_instruction(event):
        state.said = [*state.said, event.seq][-RECENT_INSTRUCTIONS:]


def _hear(state: State, event: Event, said: UserMessageSent) -> None:
    _take_task(state, event, said)
    _remember(state, event, said)


def _take_task(state: State, event: Event, said: UserMessageSent) -> None:
    known = state.schedules.get(said.schedule)
    if said.schedule:
        state.tasks[said.schedule] = (*state.tasks.get(said.schedule, ()), event.seq)
    if known is not None:
        state.schedules[said.schedule] = msgspec.structs.replace(known, told=event.seq)


def _await(state: State, event: Event, call: ToolCallRequested) -> None:
    state.pending[call.call_id] = PendingCall(
        event.seq,
        call.call_id,
        call.tool,
        call.arguments,
        event.run,
        call.whole,
        call.awaits_approval,
        acts=call.acts,
    )


def _decide(state: State, _event: Event, decided: ApprovalDecided) -> None:
    waiting = state.pending.get(decided.call_id)
    if waiting is not None:
        state.pending[decided.call_id] = msgspec.structs.replace(
            waiting, approved=decided.approved, reason=decided.reason
        )


def _settle(state: State, _event: Event, done: ToolCallExecuted) -> None:
    """Settle a pending call with its result. A result of another tool under the same id is ignored."""
    waiting = state.pending.get(done.call_id)
    if waiting is not None and waiting.tool == done.tool:
        del state.pending[done.call_id]


def began(event: Event, run: RunStarted, before: RunRecord | None = None) -> RunRecord:
    """Return the record of a run that starts, or of ``before`` if it resumes that run."""
    if before is not None and run.resumes == event.run:
        return msgspec.structs.replace(
            before, status="RUNNING", reason="", ended_seq=0, ended_at="", resumed=before.resumed + 1
        )
    return RunRecord(
        event.run,
        event.seq,
        run.task.text[:RUN_TEXT],
        run.agent,
        run.model,
        cause=event.cause,
        at=event.at,
        directive=run.directive,
        schedule=run.schedule,
        due=run.due,
    )


def ended(record: RunRecord, event: Event, end: RunEnded) -> RunRecord:
    """Return the record of a run that has ended."""
    return msgspec.structs.replace(
        record,
        status=end.status,
        reason=end.reason,
        summary=end.summary[:RUN_TEXT],
        ended_seq=event.seq,
        ended_at=event.at,
    )


def _start_run(state: State, event: Event, run: RunStarted) -> None:
    if run.pipeline:  # one of many parallel runs without memory: the pipeline tracks their progress
        return
    before = None
    if run.resumes == event.run:
        place = next((n for n in reversed(range(len(state.runs))) if state.runs[n].run == event.run), None)
        before = state.runs.pop(place) if place is not None else None
    state.runs.append(began(event, run, before))
    _forget_runs(state, run.schedule)
    for schedule, serving in state.directives.items():
        if run.directive == serving.seq:
            state.directives[schedule] = msgspec.structs.replace(serving, runs=serving.runs + 1)
    if before is None and run.schedule in state.schedules:
        known = state.schedules[run.schedule]
        state.schedules[run.schedule] = msgspec.structs.replace(known, runs=known.runs + 1)
    _settle_due(state, run.schedule, run.due)


def _forget_runs(state: State, schedule: str) -> None:
    """Drop the oldest runs of a schedule; those of removed schedules count as runs without one."""

    def group(run: str) -> str:
        return run if run in state.schedules else ""

    same = [place for place, run in enumerate(state.runs) if group(run.schedule) == group(schedule)]
    for place in reversed(same[:-RECENT_RUNS]):
        del state.runs[place]


def _end_run(state: State, event: Event, end: RunEnded) -> None:
    for path in [path for path, lease in state.leases.items() if lease.run == event.run]:
        del state.leases[path]
    for place in range(len(state.runs) - 1, -1, -1):
        if state.runs[place].run == event.run:
            state.runs[place] = ended(state.runs[place], event, end)
            return


def _start_pipeline(state: State, _event: Event, started: PipelineStarted) -> None:
    state.files[started.name] = started.files


def _find_items(state: State, _event: Event, found: ItemsFound) -> None:
    state.files[found.pipeline] = found.files


def _dispatch(state: State, event: Event, sent: Dispatched) -> None:
    for path in sent.writes:
        state.leases[path] = Lease(event.run, sent.role, sent.stage, sent.item, sent.until)


def _recognize(state: State, _event: Event, read: Recognized) -> None:
    state.minds[read.session] = state.minds.get(read.session, Mind()).recognized(read)


def _interact(state: State, _event: Event, done: Interacted) -> None:
    state.minds[done.session] = state.minds.get(done.session, Mind()).interacted(done)


def _direct(state: State, event: Event, issued: DirectiveIssued) -> None:
    state.directives[issued.schedule] = DirectiveRecord(event.seq, event.at, issued.policy, issued.through)
    _note_directed(state, event, issued)


def _note_directed(state: State, event: Event, payload: DirectiveIssued | DirectiveFailed) -> None:
    known = (*state.directed.get(payload.schedule, ()), event.seq)
    state.directed[payload.schedule] = known[-RECENT_DIRECTIVES:]


def _schedule(state: State, event: Event, rule: ScheduleSet) -> None:
    before = state.schedules.get(rule.id)
    if before is None:
        state.schedules[rule.id] = ScheduleRecord(rule, event.at)
        return
    since = before.since if before.rule.cron == rule.cron else event.at
    same = (before.rule.task, before.rule.whole, before.rule.directed) == (
        rule.task,
        rule.whole,
        rule.directed,
    )
    told = before.told if same else 0
    state.schedules[rule.id] = msgspec.structs.replace(before, rule=rule, since=since, told=told)


def _unschedule(state: State, _event: Event, removed: ScheduleRemoved) -> None:
    for known in (state.schedules, state.directives, state.directed):
        known.pop(removed.id, None)


def _pass_due(state: State, _event: Event, passed: DuePassed) -> None:
    _settle_due(state, passed.schedule, passed.due)


def _settle_due(state: State, schedule: str, due: str) -> None:
    known = state.schedules.get(schedule)
    if known is not None and due > known.settled:
        state.schedules[schedule] = msgspec.structs.replace(known, settled=due)


def _skip(state: State, _event: Event, _payload: Unknown) -> None:
    state.unknown += 1


_FOLDS: dict[type, Callable[[State, Event, Any], None]] = {
    WorkspaceCreated: _create,
    Concluded: _conclude,
    UserMessageSent: _hear,
    AgentMessageSent: _remember,
    ToolCallRequested: _await,
    ApprovalDecided: _decide,
    ToolCallExecuted: _settle,
    RunStarted: _start_run,
    RunEnded: _end_run,
    DirectiveIssued: _direct,
    DirectiveFailed: _note_directed,
    ScheduleSet: _schedule,
    ScheduleRemoved: _unschedule,
    DuePassed: _pass_due,
    PipelineStarted: _start_pipeline,
    ItemsFound: _find_items,
    Dispatched: _dispatch,
    Recognized: _recognize,
    Interacted: _interact,
    Unknown: _skip,
}
"""How each type of event changes the state. Other types only update its bookkeeping."""
