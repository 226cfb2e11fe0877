"""The audit: what the user should know about a day of agents. Pure code over history, so it is reproducible.

Costs come from the providers' answers, as recorded; an unknown price counts as 0.
"""

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from agentx.storage.events.cognition_events import Interacted
from agentx.storage.events.direction_events import DirectiveFailed, DirectiveIssued, FieldExplained
from agentx.storage.events.schedule_events import DuePassed
from agentx.storage.events.types import Event, RunEnded, RunStarted, TaskGraded, ToolCallExecuted
from agentx.storage.text import one_line, shorten
from agentx.synthesis.learning.maintenance_plan import Done, What, became
from agentx.synthesis.memory.conclusions import MAINTENANCE, Add, Concluded
from agentx.synthesis.memory.items import CapabilityDetail, HotIssueDetail, MemoryItem, sort_of
from agentx.synthesis.state.flows import advice
from agentx.synthesis.state.state import PendingCall, RunRecord, State, began, ended

LEARNED = (
    "constraint",
    "rejection",
    "rule",
    "learning",
    "knowledge",
    "discovery",
    "checkpoint",
    "flow",
)
"""Kinds and sorts of memory that are reported as learned."""

DECAYED: tuple[What, ...] = ("faded", "asleep", "retired", "merged", "archived")

_WORDS = 30


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """Usage of a component.

    Attributes:
        component: ``agent <role>``, ``director``, ``fields`` or ``scribe``.
        usd: Cost as far as prices are known.
    """

    component: str
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        """Add two costs, under the name of the first."""
        return Cost(
            component=self.component,
            calls=self.calls + other.calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            usd=self.usd + other.usd,
        )


class AgentRuns(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of an agent, counted by how they ended; ``RUNNING`` for runs still in progress."""

    agent: str
    ended: dict[str, int]


class AuditedFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A failed run, director call or tool; ``times`` counts all, the other fields describe the latest."""

    at: str
    what: str
    why: str
    times: int = 1


class FailedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task that was graded failed, and not graded passed since.

    Attributes:
        by: Who graded it, as the actor of the event.
        flow: The flow that was followed; empty for none.
    """

    at: str
    task: str
    by: str
    run: str = ""
    flow: str = ""
    lesson: str = ""


class DirectorReflection(msgspec.Struct, frozen=True, kw_only=True):
    """A director's reflection on its own directive."""

    seq: int
    at: str
    why: str
    strategy: str
    reflection: str
    model: str


class UnknownOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A call that began and has no result."""

    call_id: str
    tool: str
    run: str
    seq: int
    arguments: str


class Todo(msgspec.Struct, frozen=True, kw_only=True):
    """A task for the user, and the command to type."""

    text: str
    command: str


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """A workspace: what happened since a moment, and its current state.

    Attributes:
        ran: The runs that began or ended since then, by agent.
        failed: What failed since then, oldest first.
        failed_tasks: The tasks graded failed since then, oldest first.
        learned: Memory items added since then that are still active.
        decayed: What nightly maintenance did to items since then.
        passed: Due times since then that did not get their own run.
        unknown: Calls with unknown outcome, however old.
        open: Failing checks, however old.
        candidates: Number of memory items that need approval.
        todo: What the user should do, most urgent first.
    """

    title: str
    root: str
    ran: tuple[AgentRuns, ...]
    failed: tuple[AuditedFailure, ...]
    failed_tasks: tuple[FailedTask, ...]
    learned: tuple[MemoryItem, ...]
    decayed: tuple[Done, ...]
    costs: tuple[Cost, ...]
    reflections: tuple[DirectorReflection, ...]
    passed: tuple[DuePassed, ...]
    unknown: tuple[UnknownOutcome, ...]
    open: tuple[MemoryItem, ...]
    candidates: int
    todo: tuple[Todo, ...]


def audit(events: Iterable[Event], since: str, root: str = "") -> Audit:
    """Report what happened since a moment, and the current state.

    Args:
        events: The whole history.
        since: The moment, in the format of :attr:`agentx.storage.events.types.Event.at`.
        root: Directory of the workspace.
    """
    day, state = _Day(), State()
    for event in events:
        if event.at >= since:
            day.take(event, state)
        state.apply(event)
    statuses: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for run in day.runs.values():
        statuses[run.agent][run.status] += 1
    faded = [(became(old, state.items[name]), name, old.score) for name, old in day.faded.items()]
    return Audit(
        title=state.title,
        root=root,
        ran=tuple(AgentRuns(agent=agent, ended=dict(statuses[agent])) for agent in sorted(statuses)),
        failed=tuple(
            sorted([*day.broken, *day.director, *day.tools.values()], key=lambda failure: failure.at)
        ),
        failed_tasks=tuple(day.tasks.values()),
        learned=tuple(item for name in day.added if (item := state.items[name]).status == "active"),
        decayed=tuple(
            Done(what=what, item=state.items[name], score=score)
            for what, name, score in faded
            if what in DECAYED
        ),
        costs=tuple(day.costs.values()),
        reflections=tuple(day.reflections),
        passed=tuple(day.passed.values()),
        unknown=tuple(
            UnknownOutcome(
                call_id=call.call_id, tool=call.tool, run=call.run, seq=call.seq, arguments=arguments_of(call)
            )
            for call in unsettled(state)
        ),
        open=tuple(state.active("hot_issue")),
        candidates=sum(item.status == "candidate" for item in state.items.values()),
        todo=tuple(_todo(state, day)),
    )


def unsettled(state: State, me: str = "") -> Iterator[PendingCall]:
    """Yield the calls with unknown outcome: they began, have no result, and their run is not in progress.

    The calls of the caller's run ``me`` do not count as in progress. A declared act that was approved is
    announced again when it begins, so it has not begun while it waits.
    """
    last = state.last_run
    at_work = last.run if last is not None and last.status == "RUNNING" and last.run != me else None
    waiting = {run.run for run in state.runs if run.status == "WAITING"}
    return (
        call
        for call in state.pending.values()
        if (not call.awaits_approval or (call.approved and call.run not in waiting and not call.acts.text))
        and (at_work is None or call.run != at_work)
    )


class _Begun(msgspec.Struct):
    key: dict[str, Any]


def settling(call: PendingCall) -> str:
    r"""Return the command by which the user says that a call with unknown outcome went through.

    >>> from agentx.storage.events.types import Body
    >>> acts = Body('[{"id":"x","key":{"patient":"Ann Lee","appointment":4711}}]')
    >>> settling(PendingCall(1, "r-1-1", "send_reminder", acts=acts))
    "agentx done send_reminder 'patient=Ann Lee' appointment=4711"

    Of a list whose entries are acts, it names all, so that some can be left out.

    >>> acts = Body('[{"id":"x","key":{"titles":"a"}},{"id":"y","key":{"titles":"b"}}]')
    >>> settling(PendingCall(1, "r-1-1", "send", acts=acts))
    'agentx done send \'titles=["a", "b"]\''
    """
    try:
        keys = [act.key for act in msgspec.json.decode(call.acts.text or "[]", type=list[_Begun])]
    except ValueError:
        keys = []
    names = list(keys[0]) if keys else []
    differ = [name for name in names if any(key.get(name) != keys[0][name] for key in keys)]
    if not keys or len(differ) > 1 or any(list(key) != names for key in keys):
        return f"agentx approve {call.call_id}"
    given = keys[0] | {name: [key[name] for key in keys] for name in differ}
    return shlex.join(["agentx", "done", call.tool, *(f"{key}={_word(one)}" for key, one in given.items())])


def _word(value: Any) -> str:
    """Return a value as a word of a command."""
    is_bare = isinstance(value, str) and not value.startswith(('"', "[", "{"))
    return str(value) if is_bare else json.dumps(value, ensure_ascii=False)


def arguments_of(call: PendingCall) -> str:
    """Render the arguments of a call in one line."""
    shown = (f"{name}={one_line(str(value))}" for name, value in call.arguments.items())
    return shorten(", ".join(shown), _WORDS)


class _Day:
    """Accumulates the audit while the events are read."""

    def __init__(self) -> None:
        self.runs: dict[str, RunRecord] = {}
        self.costs: dict[str, Cost] = {}
        self.tools: dict[str, AuditedFailure] = {}
        self.director: list[AuditedFailure] = []
        self.broken: list[AuditedFailure] = []
        self.tasks: dict[str, FailedTask] = {}
        self.added: dict[str, None] = {}
        self.faded: dict[str, MemoryItem] = {}
        self.reflections: list[DirectorReflection] = []
        self.passed: dict[tuple[str, str], DuePassed] = {}

    def take(self, event: Event, before: State) -> None:
        match event.data:
            case RunStarted() as run:
                self.runs[event.run] = began(event, run, self.runs.get(event.run))
            case RunEnded() as end:
                self._end(event, end, before)
            case ToolCallExecuted(status="FAILED" | "DENIED", repeats=0) as call:
                what, why = f"{call.tool} {call.status}", shorten(one_line(call.output.text), _WORDS)
                times = self.tools[what].times + 1 if what in self.tools else 1
                self.tools[what] = AuditedFailure(at=event.at, what=what, why=why, times=times)
            case TaskGraded() as grade:
                self._grade(event, grade)
            case Concluded() as concluded:
                self._conclude(concluded, before)
            case DirectiveIssued() as issued:
                self._spend("director", issued, calls=int(issued.prompt_tokens > 0))
                self.reflections.append(
                    DirectorReflection(
                        seq=event.seq,
                        at=event.at,
                        why=issued.why,
                        strategy=issued.strategy,
                        reflection=issued.reflection,
                        model=issued.model,
                    )
                )
            case DirectiveFailed() as failure:
                self._spend("director", failure, calls=1)
                self.director.append(AuditedFailure(at=event.at, what="the director", why=failure.error))
            case FieldExplained() | Interacted() as used:
                self._use(event.actor, used)
            case DuePassed() as passed:
                key = passed.schedule, passed.reason
                times = passed.times + (self.passed[key].times if key in self.passed else 0)
                self.passed[key] = msgspec.structs.replace(passed, times=times)

    def _end(self, event: Event, end: RunEnded, before: State) -> None:
        known = next((one for one in reversed(before.runs) if one.run == event.run), None)
        run = self.runs.get(event.run) or known or RunRecord(event.run, event.seq, "", "", "")
        self.runs[event.run] = run = ended(run, event, end)
        self._spend(f"agent {run.agent}".strip(), end, calls=end.steps)
        if end.status not in ("COMPLETED", "WAITING"):
            why = one_line(end.reason) or shorten(one_line(run.task), _WORDS)
            self.broken.append(AuditedFailure(at=event.at, what=f"{run.run} {end.status}", why=why))

    def _grade(self, event: Event, grade: TaskGraded) -> None:
        name = one_line(grade.task).casefold().rstrip(".")
        self.tasks.pop(name, None)
        if not grade.passed:
            self.tasks[name] = FailedTask(
                at=event.at,
                task=one_line(grade.task),
                by=event.actor,
                run=event.run,
                flow=grade.flow if grade.followed else "",
                lesson=grade.lesson,
            )

    def _conclude(self, concluded: Concluded, before: State) -> None:
        if concluded.model:
            self._spend("scribe", concluded, calls=1)
        for change in concluded.changes:
            if isinstance(change, Add):
                if sort_of(change.item) in LEARNED:
                    self.added.setdefault(change.item.id)
            elif concluded.extractor == MAINTENANCE and change.id in before.items:
                self.faded.setdefault(change.id, before.items[change.id])

    def _use(self, actor: str, used: FieldExplained | Interacted) -> None:
        if isinstance(used, Interacted):
            self._spend(actor.replace(":", " "), used, calls=used.calls)
        else:
            self._spend("fields", used, calls=1)

    def _spend(
        self,
        component: str,
        used: RunEnded | DirectiveIssued | DirectiveFailed | FieldExplained | Concluded | Interacted,
        *,
        calls: int,
    ) -> None:
        spent = Cost(
            component=component,
            calls=calls,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            usd=used.cost_usd,
        )
        before = self.costs.get(component)
        self.costs[component] = before + spent if before else spent


def _todo(state: State, day: _Day) -> Iterator[Todo]:
    for call in state.pending.values():
        if call.awaits_approval and call.approved is None:
            text = f"{call.tool} waits to be settled ({arguments_of(call)})."
            yield Todo(text=text, command=f"agentx approve {call.call_id}")
    for call in unsettled(state):
        command = settling(call)
        no = "--not" if command.startswith("agentx done") else "--deny"
        text = f"Look whether {call.tool} of {call.run or 'no run'} went through; with {no} it did not."
        yield Todo(text=text, command=command)
    last = state.last_run
    waiting = {c.run for c in state.pending.values() if c.awaits_approval and c.approved is None}
    left = state.unfinished_run(waiting)
    stopped = ("INTERRUPTED", "FAILED", "LIMIT_REACHED", "WAITING")
    if (
        left is not None
        and not left.directive
        and left.status in stopped
        and left.run not in waiting
        and left.cause not in state.held(waiting)
    ):
        yield Todo(text=f"{left.run} is not finished ({left.status}); resume it.", command="agentx run")
    serving = state.directives.get(last.schedule) if last is not None else None
    unanswered = last is not None and (serving is None or last.ended_seq > serving.seq)
    if last is not None and last.directive and unanswered and last.status in ("FAILED", "LIMIT_REACHED"):
        why = shorten(one_line(last.reason), _WORDS)
        yield Todo(text=f"{last.run} {last.status}: {why}", command="agentx agent direct --why")
    if day.director and (not day.reflections or day.reflections[-1].at < day.director[-1].at):
        yield Todo(text="The director failed last; ask it again.", command="agentx agent direct --now")
    yield from _problems(state)
    proposed = sum(item.status == "candidate" for item in state.items.values())
    if proposed:
        noun = "candidate waits" if proposed == 1 else "candidates wait"
        yield Todo(text=f"{proposed} {noun} for your word.", command="agentx memory review")
    for name in sorted({passed.schedule for passed in day.passed.values()} & state.schedules.keys()):
        text = f"Due times of {name} were passed over; see its rule."
        yield Todo(text=text, command="agentx schedule list")
    for one in advice(state):
        verb = "edit" if one.action == "rewrite" else "retire"
        text = f"{one.action.capitalize()} the flow {one.item}: {one.why}"
        yield Todo(text=text, command=f"agentx flow {verb} {one.item}")


def _problems(state: State) -> Iterator[Todo]:
    for issue in state.active("hot_issue"):
        detail = issue.detail
        check = detail.check if isinstance(detail, HotIssueDetail) else issue.text
        silenced = isinstance(detail, HotIssueDetail) and detail.silenced
        named = shorten(one_line(check), _WORDS)
        told = f"Run {named} again" if silenced else f"Fix {named}"
        yield Todo(text=f"{told}.", command=f"agentx run {shlex.quote(f'{told} ({issue.id})')}")
    for item in state.active("capability"):
        if isinstance(item.detail, CapabilityDetail) and item.detail.works is False:
            yield Todo(text=f"{item.text} does not work.", command=f"agentx agent capability check {item.id}")
