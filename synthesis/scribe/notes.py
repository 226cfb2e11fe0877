"""The extractor ``scribe``: takes notes of every fact, so that no agent has to remember to."""

from collections.abc import Sequence
from itertools import islice

import msgspec

from agentx.storage.events.actor import Actor
from agentx.storage.events.types import (
    AgentMessageSent,
    ApprovalDecided,
    Event,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.storage.text import one_line
from agentx.synthesis.demands.book import from_user
from agentx.synthesis.language.sentences import Span
from agentx.synthesis.memory.conclusions import Change, Patch
from agentx.synthesis.memory.items import Evidence, Kind, NoteDetail, NoteSort, Status, Trust, sort_of
from agentx.synthesis.scribe import harness
from agentx.synthesis.scribe.calls import call_name
from agentx.synthesis.scribe.ledger import Ledger, Note
from agentx.synthesis.scribe.refusals import Refusal, record
from agentx.synthesis.scribe.statements import (
    Sort,
    Statement,
    findings_of_agent,
    first_sentence,
    goes_on,
    request,
    statements,
)
from agentx.synthesis.state.answered import answered
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import Message, State

_MAX_FOUND = 2
_COVERED = 0.6
"""Share of a statement that a demand must cover so that no note is taken."""

_STATE_CHARACTERS = 200
_KINDS: dict[Sort, tuple[Kind, NoteSort]] = {
    "decision": ("decision", ""),
    "task": ("task", ""),
    "context": ("situation", "context"),
    "knowledge": ("knowledge", ""),
    "discovery": ("knowledge", "discovery"),
    "learning": ("knowledge", "learning"),
}
"""The kind of item for each sort of statement, and its sort within the kind."""

_ASKED = NoteDetail("what the user asked for")
_IN_RUN = NoteDetail("what a run works on")


class NoteTaker:
    """Draws decisions, tasks, refusals, states, discoveries and lessons from what is said and done.

    Args:
        capture_assistant: Whether to read the messages of agents, too.
    """

    name = "scribe"
    version = 3
    reads = (
        UserMessageSent,
        AgentMessageSent,
        ApprovalDecided,
        ToolCallExecuted,
        RunStarted,
        RunEnded,
    )

    def __init__(self, *, capture_assistant: bool = True) -> None:
        self._capture_assistant = capture_assistant

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return the notes of a fact; empty for most facts."""
        ledger = Ledger(event, state)
        match event.data:
            case UserMessageSent(body=body) if from_user(event.actor):
                _said(ledger, state, read(body))
            case AgentMessageSent(final=True, body=body):
                _answered(ledger, state, read(body) if self._capture_assistant else "")
            case ApprovalDecided(approved=False) as decided:
                call = state.pending.get(decided.call_id)
                tool, arguments = (call.tool, call.arguments) if call else ("", {})
                by_person, name = from_user(event.actor), call_name(tool, arguments)
                record(ledger, state, Refusal(name, tool, arguments, decided.reason, 0, by_person=by_person))
            case ToolCallExecuted(status="DENIED") as done if not done.denied_by:
                _refused_elsewhere(ledger, done, read)
            case ToolCallExecuted(status="SUCCEEDED") as done:
                _asked(ledger, done, read)
            case RunStarted() as run:
                _started(ledger, run)
            case RunEnded() as end:
                _ended(ledger, state, end)
        return tuple(ledger.changes)


def _said(ledger: Ledger, state: State, text: str) -> None:
    """Note what a message says besides its demands, which are recorded already."""
    demands = [
        place
        for item in state.items.values()
        if item.kind == "constraint" or (item.kind == "rejection" and item.status == "active")
        for place in item.evidence
        if place.seq == ledger.event.seq
    ]
    answers = answered(state, text, ledger.event.seq)
    for one in statements(text, answers.quote if answers else ""):
        evidence = ledger.evidence(text, one.span.start, one.span.end)
        taken = _covered(one.span, demands)
        if one.sort == "context":
            _tell(ledger, one, evidence)
        elif one.sort != "task" and not taken:
            kind, sort = _KINDS[one.sort]
            note = Note(
                kind=kind,
                text=one.text,
                evidence=evidence,
                trust="user",
                status="active" if one.sure else "candidate",
                detail=NoteDetail(sort=sort),
                choice=one.sort == "decision" and not one.answers and not one.plain,
                answers=answers if one.answers else None,
            )
            ledger.enter(note, over=one.over)
    # Keep a request open if the user wrote on before it was handled. The latest one is still in the
    # conversation, so it is not noted.
    before, run = state.messages[-2:-1], state.last_run
    if before and from_user(before[0].actor) and not (run and run.seq > before[0].seq):
        _request(ledger, before[0], "active")


def _covered(span: Span, demands: Sequence[Evidence]) -> bool:
    """Return whether most of a statement is already a demand."""
    shared = sum(max(0, min(one.end, span.end) - max(one.start, span.start)) for one in demands)
    return shared > _COVERED * (span.end - span.start)


def _request(ledger: Ledger, message: Message, status: Status) -> None:
    """Note the requests in a message."""
    for one in statements(message.text):
        if one.sort == "task":
            start, end = one.span.start, one.span.end
            place = Evidence(message.seq, start, end, message.text[start:end])
            note = Note(
                kind="task", text=one.text, evidence=place, trust="user", status=status, detail=_ASKED
            )
            reason = "The agent answered." if status == "closed" else ""
            ledger.enter(msgspec.structs.replace(note, reason=reason))


def _tell(ledger: Ledger, one: Statement, evidence: Evidence) -> None:
    """Note the situation of the user or the work; what was noted on the same topic before is superseded."""
    detail = NoteDetail(one.topic, "context")
    before = [item for item in ledger.standing("situation") if item.detail == detail]
    if any(item.text == one.text for item in before):
        ledger.again(before[0], evidence)
        return
    note = Note(kind="situation", text=one.text, evidence=evidence, trust="user", detail=detail)
    ledger.add(note, [item for item in before if not item.by_hand])


def _refused_elsewhere(ledger: Ledger, call: ToolCallExecuted, read: ReadBody) -> None:
    """Note a call that a harness denied. Its output or the event's actor says whether a person did."""
    text = read(call.output)
    found = harness.refused(text)
    by_agent = Actor.parse(ledger.event.actor).role in ("agent", "tool")
    if found is None or (by_agent and not found.by_person):
        return
    if text.startswith(f"A person refused {call.tool}"):
        return  # our own sentence: the user's decision is already in an earlier event
    start, end = (found.reason.start, found.reason.end) if found.reason else (0, 0)
    reason = text[start:end]
    by_person = found.by_person or from_user(ledger.event.actor)
    name = call_name(call.tool, call.arguments, call.command)
    record(ledger, ledger.state, Refusal(name, call.tool, call.arguments, reason, start, by_person=by_person))


def _asked(ledger: Ledger, call: ToolCallExecuted, read: ReadBody) -> None:
    """Note a question that the user answered, or a plan that they approved, through a tool that asks them."""
    if harness.is_question_tool(call.tool):
        _note_answers(ledger, call, read(call.output))
    elif harness.is_plan_tool(call.tool) and harness.approved(text := read(call.output)):
        plan = call.arguments.get("plan")
        if not isinstance(plan, str) or not plan.strip():
            plan = "".join(text.partition("\n# ")[1:])  # from the first top-level heading
        approved = f"Approved: {call_name(call.tool, {'plan': plan})}"
        note = Note(kind="decision", text=approved, evidence=ledger.evidence(text), trust=_heard(ledger))
        ledger.enter(note)


def _note_answers(ledger: Ledger, call: ToolCallExecuted, text: str) -> None:
    asked = call.arguments.get("question")
    for one in harness.answers(text, asked if isinstance(asked, str) else ""):
        evidence = ledger.evidence(text, one.span.start, one.span.end)
        note = Note(
            kind="decision",
            text=f"{one.answer} (asked: {one.question})",
            evidence=evidence,
            trust=_heard(ledger),
            status="dormant" if one.asks_back else "active",
            reason="The answer asks back, so nothing is decided by it." if one.asks_back else "",
            detail=NoteDetail(one.question),
        )
        before = [item for item in ledger.standing("decision") if item.detail == note.detail]
        if one.asks_back or not before:
            ledger.enter(note)
        elif before[0].text == note.text:
            ledger.again(before[0], evidence)
        else:
            ledger.add(note, before)


def _heard(ledger: Ledger) -> Trust:
    """Return the trust in the words of a user as reported by a tool."""
    return "user" if from_user(ledger.event.actor) else "reported"


def _started(ledger: Ledger, run: RunStarted) -> None:
    """Note that a run works on the user's request, or continues what an earlier one began."""
    text = run.task.text
    if run.directive or run.pipeline:  # such a prompt is not a request of the user
        return
    span = request(text)
    if span is None:
        return
    evidence = ledger.evidence(text, span.start, span.end)
    agent, resumes = run.agent, run.resumes or goes_on(text)
    for task in ledger.standing("task"):
        asked = any(place.seq == ledger.event.cause for place in task.evidence)
        if (asked and task.detail == _ASKED) or (resumes and task.detail == _IN_RUN):
            ledger.again(task, evidence)
            ledger.patch(Patch(id=task.id, detail=_IN_RUN, reason=""))
            return
    if not goes_on(text):
        task_text = one_line(text[span.start : span.end])
        note = Note(
            kind="task", text=task_text, evidence=evidence, trust="agent", agent=agent, detail=_IN_RUN
        )
        ledger.add(note)


def _ended(ledger: Ledger, state: State, end: RunEnded) -> None:
    """Resolve the tasks of a completed run; otherwise keep them open with the reason.

    Earlier requests still wait.
    """
    own = next((run for run in reversed(state.runs) if run.run == ledger.event.run), None)
    if own is None or own.directive:
        return  # it carries out a prompt, not a request of the user
    for task in list(ledger.standing("task")):
        mine = any(place.seq == own.seq for place in task.evidence)
        heard = task.detail == _ASKED and any(place.seq >= own.cause for place in task.evidence)
        if task.by_hand or task.detail not in (_IN_RUN, _ASKED) or not (mine or heard):
            continue
        if end.status == "COMPLETED":
            ledger.patch(Patch(id=task.id, status="closed", reason="The run completed it."))
        elif mine:
            why = f"{end.status.replace('_', ' ').lower()}: {one_line(end.reason)[:_STATE_CHARACTERS]}"
            ledger.patch(Patch(id=task.id, reason=why.strip(": ")))


def _answered(ledger: Ledger, state: State, text: str) -> None:
    """Note what an agent's answer says it did and found. The answer ends its turn."""
    if not ledger.event.run:
        for task in list(ledger.standing("task")):
            if task.detail == _ASKED and not task.by_hand:
                ledger.patch(Patch(id=task.id, status="closed", reason="The agent answered."))
        messages = (one for one in reversed(state.messages) if one.seq < ledger.event.seq)
        if asked := next((one for one in messages if from_user(one.actor)), None):
            _request(ledger, asked, "closed")
    span = first_sentence(text)
    if span is None:
        return
    # One entry per agent says what it did last.
    did = one_line(text[span.start : span.end])[:_STATE_CHARACTERS]
    evidence = ledger.evidence(text, span.start, span.end)
    agent = Actor.parse(ledger.event.actor).name
    states = (item for item in ledger.standing("situation") if sort_of(item) == "agent_state")
    last = next((item for item in states if item.agent == agent), None)
    if last is None:
        detail = NoteDetail(sort="agent_state")
        ledger.add(
            Note(kind="situation", text=did, evidence=evidence, trust="agent", agent=agent, detail=detail)
        )
    elif not last.by_hand:
        ledger.restate(last, did, evidence)
    for found in islice(findings_of_agent(text), _MAX_FOUND):
        words = one_line(text[found.start : found.end])
        place = ledger.evidence(text, found.start, found.end)
        detail = NoteDetail(sort="discovery")
        ledger.enter(Note(kind="knowledge", text=words, evidence=place, trust="agent", detail=detail))
