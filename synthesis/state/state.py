"""State is a fold over history: the same events give the same state, to the byte.

Nothing here reads a clock, a file or a model. Only a ``Concluded`` event changes memory; every other event moves the
bookkeeping that an agent and a person are shown (recent messages, open runs, calls that wait).
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import Any

import msgspec

from agentx.storage.events.cognition_events import Interacted, Recognized
from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued, ReusePolicy
from agentx.storage.events.pipeline_events import Dispatched, FileRule, PipelineStarted
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
from agentx.synthesis.memory.conclusions import MAINTENANCE, MODEL, PERSON, Add, Concluded
from agentx.synthesis.memory.items import Kind, MemoryItem, Status
from agentx.synthesis.state.mind import Mind

FOLD_VERSION = 7
"""Raised whenever the same history would fold to a different state; snapshots of another version are not read."""

RECENT_MESSAGES = 30
"""How many messages the state keeps at hand (tier 1 of the context)."""

RECENT_TEXT = 2_000
"""Characters kept of each of them; the event has the rest."""

RECENT_RUNS = 50
"""How many runs the state keeps at hand: what a director reads."""

RECENT_INSTRUCTIONS, RECENT_DIRECTIVES = 20, 5
"""How many of the user's messages, and of the director's directives and failures, are named: what a director reads."""

RUN_TEXT = 500
"""Characters kept of what a run was asked, and of what came of it."""


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message of the conversation, as the context shows it."""

    seq: int
    at: str
    actor: str
    text: str
    run: str = ""


class PendingCall(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool call that was announced and has no result: it waits for a person, or its outcome is unknown."""

    seq: int
    call_id: str
    tool: str
    arguments: dict[str, Any] = {}
    run: str = ""
    whole: Body = Body("")
    awaits_approval: bool = False
    approved: bool | None = None
    reason: str = ""


class RunRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A run: what it was asked, and how it ended where it has.

    Attributes:
        at: When it started; ``ended_at`` when it ended, empty while it goes on.
        directive: Seq of the directive that it carries out; 0 for none.
        schedule: Id of the schedule that it was due by, and ``due`` when; empty for none.
        resumed: How often it was gone on with under its own id, after it was cut off.
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
    """The directive that serves: how far its director read, how long it is valid, and how many runs it has served."""

    seq: int
    at: str
    policy: ReusePolicy
    through: int = 0
    runs: int = 0


class ScheduleRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """A schedule, and how far its due times are settled.

    Attributes:
        rule: As it was set.
        since: When that was; earlier times are not due.
        settled: The latest due time that was run or passed over; empty for none.
    """

    rule: ScheduleSet
    since: str
    settled: str = ""


class Lease(msgspec.Struct, frozen=True, omit_defaults=True):
    """A file that one run alone may write to.

    Attributes:
        run: The run; its end ends the lease.
        role: Who has it, and for which stage and item.
        until: When it expires, as UTC time in ISO 8601.
    """

    run: str
    role: str
    stage: str = ""
    item: str = ""
    until: str = ""


class Stretch(msgspec.Struct, array_like=True):
    """Events in a row, as far as a state needs them to pass over all of them in one step.

    Attributes:
        after: Hash of the event before them.
        seq: The last one.
        hash: Its hash.
        at: When it was recorded; empty where there are none.
        counts: How many there are, by type.
        lines: The lines of those that may change a state, in order.
        messages: The lines of the latest messages.
        results: By tool, the call ids of the results whose call is not among them.
        said: Seqs of the latest messages of the user.
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
    """Everything that is concluded and everything that is open, after the event ``seq``.

    Attributes:
        seq: The last event that was folded; 0 for none.
        hash: Its hash.
        at: When it was recorded: the present of whoever reads this state, so that a replay reads the same.
        watermark: How far the deterministic extractors have read, from 0.
        judged: How far a model has read.
        maintained: The last event before the latest maintenance.
        maintained_at: When that was recorded; empty where there was none.
        items: All memory items, by id, in the order of their creation.
        messages: The latest messages, oldest first.
        said: Seqs of the user's latest messages.
        pending: Tool calls without a result, by call id.
        runs: The latest runs, oldest first; those that a pipeline sends out aside.
        directive: The directive that serves; none where nobody directs.
        directed: Seqs of the latest directives, those that failed too.
        schedules: What runs again and again, by id.
        files: Files whose class is enforced, by the pipeline that says so.
        leases: Files that one run alone may write to, by path.
        minds: What cognitive agents hold at hand, by session.
        counts: Events folded, by type.
        unknown: Events of a type that this version does not know.
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
    directive: DirectiveRecord | None = None
    directed: list[int] = msgspec.field(default_factory=list)
    schedules: dict[str, ScheduleRecord] = msgspec.field(default_factory=dict)
    files: dict[str, tuple[FileRule, ...]] = msgspec.field(default_factory=dict)
    leases: dict[str, Lease] = msgspec.field(default_factory=dict)
    minds: dict[str, Mind] = msgspec.field(default_factory=dict)
    counts: dict[str, int] = msgspec.field(default_factory=dict)
    unknown: int = 0

    def apply(self, event: Event) -> None:
        """Fold one event in; events come in order, each once."""
        self.seq, self.hash, self.at = event.seq, event.hash, event.at
        self.counts[event.type] = self.counts.get(event.type, 0) + 1
        fold = _FOLDS.get(type(event.data))
        if fold is not None:
            fold(self, event, event.data)

    def apply_all(self, events: Iterable[Event]) -> "State":
        """Fold many events in and return the state itself."""
        for event in events:
            self.apply(event)
        return self

    def pass_over(self, stretch: Stretch, decode: Callable[[bytes], Event]) -> None:
        """Fold in a stretch of events that :func:`gather` went through; the state is as if each had been folded.

        Args:
            stretch: It begins behind the last event of this state.
            decode: Turns a line into its event.
        """
        for call in list(self.pending.values()):
            if call.call_id in stretch.results.get(call.tool, ()):
                del self.pending[call.call_id]
        said = [*self.said, *stretch.said][-RECENT_INSTRUCTIONS:]
        for line in (*stretch.lines, *stretch.messages):
            event = decode(line)
            _FOLDS[type(event.data)](self, event, event.data)
        self.said = said
        for name, count in stretch.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.seq, self.hash, self.at = stretch.seq, stretch.hash, stretch.at or self.at

    @property
    def last_run(self) -> RunRecord | None:
        """The latest run; none where nothing ran."""
        return self.runs[-1] if self.runs else None

    def active(self, *kinds: Kind, status: Status = "active") -> Iterator[MemoryItem]:
        """The items of some kinds (of all where none is named) that have a status, oldest first."""
        return (i for i in self.items.values() if i.status == status and (not kinds or i.kind in kinds))

    def copy(self) -> "State":
        """The same state, apart from this one: its values are immutable, its collections are copied."""
        return msgspec.structs.replace(
            self,
            items=dict(self.items),
            messages=list(self.messages),
            said=list(self.said),
            pending=dict(self.pending),
            runs=list(self.runs),
            directed=list(self.directed),
            schedules=dict(self.schedules),
            files=dict(self.files),
            leases=dict(self.leases),
            minds=dict(self.minds),
            counts=dict(self.counts),
        )

    def encode(self) -> bytes:
        """The state as canonical JSON: keys sorted, no white space."""
        return msgspec.json.encode(self, order="sorted")

    def dump(self) -> bytes:
        """The state as JSON that :meth:`decode` gives back in every respect, the order of its items too."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, content: bytes) -> "State":
        """The state that was dumped or encoded; its digest is the same.

        Raises:
            ValueError: It is none.
        """
        return msgspec.json.decode(content, type=cls)

    @property
    def digest(self) -> str:
        """Hex blake2b-256 of :meth:`encode`; two replays of one history give the same."""
        return blake2b(self.encode(), digest_size=32).hexdigest()


def is_instruction(event: Event) -> bool:
    """Whether the user said something."""
    return isinstance(event.data, UserMessageSent) and event.actor.partition(":")[0] == "user"


def gather(start: Position, events: Iterable[tuple[Event, bytes]]) -> Stretch:
    """Go through events in a row, each with its line, for a state that will pass over them.

    A result settles its call wherever between them the call was announced; where it was announced before them all, only
    the state knows of it. Either way no other event between has a say in that.

    Args:
        start: Behind the event before them.
        events: In order.
    """
    counts: dict[str, int] = {}
    lines: list[bytes] = []
    messages: deque[bytes] = deque(maxlen=RECENT_MESSAGES)
    results: defaultdict[str, set[str]] = defaultdict(set)
    said: deque[int] = deque(maxlen=RECENT_INSTRUCTIONS)
    announced: set[str] = set()
    seq, own_hash, at = start.seq, start.hash, ""
    for event, line in events:
        seq, own_hash, at, data = event.seq, event.hash, event.at, event.data
        counts[event.type] = counts.get(event.type, 0) + 1
        if isinstance(data, ToolCallExecuted) and data.call_id not in announced:
            results[data.tool].add(data.call_id)
        elif (fold := _FOLDS.get(type(data))) is _remember:
            messages.append(line)
            if is_instruction(event):
                said.append(event.seq)
        elif fold is not None:
            lines.append(line)
            if isinstance(data, ToolCallRequested):
                announced.add(data.call_id)
    return Stretch(start.hash, seq, own_hash, at, counts, lines, list(messages), results, list(said))


# --- what each type of event does to the state ------------------------------------------------------------------------


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


def _remember(state: State, event: Event, said: UserMessageSent | AgentMessageSent) -> None:
    text = said.body.text[:RECENT_TEXT]
    state.messages.append(Message(event.seq, event.at, event.actor, text, event.run))
    if len(state.messages) > RECENT_MESSAGES:
        del state.messages[0]
    if is_instruction(event):
        state.said = [*state.said, event.seq][-RECENT_INSTRUCTIONS:]


def _await(state: State, event: Event, call: ToolCallRequested) -> None:
    state.pending[call.call_id] = PendingCall(
        event.seq, call.call_id, call.tool, call.arguments, event.run, call.whole, call.awaits_approval
    )


def _decide(state: State, _event: Event, decided: ApprovalDecided) -> None:
    waiting = state.pending.get(decided.call_id)
    if waiting is not None:
        state.pending[decided.call_id] = msgspec.structs.replace(
            waiting, approved=decided.approved, reason=decided.reason
        )


def _settle(state: State, _event: Event, done: ToolCallExecuted) -> None:
    """A call has its result; one of another tool under the same id settles nothing."""
    waiting = state.pending.get(done.call_id)
    if waiting is not None and waiting.tool == done.tool:
        del state.pending[done.call_id]


def began(event: Event, run: RunStarted, before: RunRecord | None = None) -> RunRecord:
    """The record of a run that begins; of one that goes on, ``before`` it is what it was."""
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
    """The record of a run that is over."""
    return msgspec.structs.replace(
        record,
        status=end.status,
        reason=end.reason,
        summary=end.summary[:RUN_TEXT],
        ended_seq=event.seq,
        ended_at=event.at,
    )


def _start_run(state: State, event: Event, run: RunStarted) -> None:
    if run.pipeline:  # one of many at once, without memory: how far they are is the pipeline's
        return
    before = state.runs.pop() if state.runs and run.resumes == event.run == state.runs[-1].run else None
    state.runs.append(began(event, run, before))
    if len(state.runs) > RECENT_RUNS:
        del state.runs[0]
    if state.directive is not None and run.directive == state.directive.seq:
        state.directive = msgspec.structs.replace(state.directive, runs=state.directive.runs + 1)
    _settle_due(state, run.schedule, run.due)


def _end_run(state: State, event: Event, end: RunEnded) -> None:
    for path in [path for path, lease in state.leases.items() if lease.run == event.run]:
        del state.leases[path]
    for place in range(len(state.runs) - 1, -1, -1):
        if state.runs[place].run == event.run:
            state.runs[place] = ended(state.runs[place], event, end)
            return


def _start_pipeline(state: State, _event: Event, started: PipelineStarted) -> None:
    state.files[started.name] = started.files


def _dispatch(state: State, event: Event, sent: Dispatched) -> None:
    for path in sent.writes:
        state.leases[path] = Lease(event.run, sent.role, sent.stage, sent.item, sent.until)


def _recognize(state: State, _event: Event, read: Recognized) -> None:
    state.minds[read.session] = state.minds.get(read.session, Mind()).recognized(read)


def _interact(state: State, _event: Event, done: Interacted) -> None:
    state.minds[done.session] = state.minds.get(done.session, Mind()).interacted(done)


def _direct(state: State, event: Event, issued: DirectiveIssued) -> None:
    state.directive = DirectiveRecord(event.seq, event.at, issued.policy, issued.through)
    _note_directed(state, event, issued)


def _note_directed(state: State, event: Event, _payload: DirectiveIssued | DirectiveFailed) -> None:
    state.directed = [*state.directed, event.seq][-RECENT_DIRECTIVES:]


def _schedule(state: State, event: Event, rule: ScheduleSet) -> None:
    before = state.schedules.get(rule.id)
    since = before.since if before and before.rule.cron == rule.cron else event.at
    state.schedules[rule.id] = ScheduleRecord(rule, since, before.settled if before else "")


def _unschedule(state: State, _event: Event, removed: ScheduleRemoved) -> None:
    state.schedules.pop(removed.id, None)


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
    UserMessageSent: _remember,
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
    Dispatched: _dispatch,
    Recognized: _recognize,
    Interacted: _interact,
    Unknown: _skip,
}
"""What each type of event does to the state; the others move its bookkeeping alone."""
