"""The extractor ``scribe``: takes notes of every fact, so that no agent has to remember to."""

import contextlib
import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from agentx.storage.events.actor import Actor, is_own_run
from agentx.storage.events.pipeline_events import APPROVE_STAGE
from agentx.storage.events.types import (
    REPORTED,
    AgentMessageSent,
    ApprovalDecided,
    Event,
    Payload,
    RunEnded,
    RunStarted,
    ToolCallExecuted,
    UserMessageSent,
)
from agentx.storage.text import one_line
from agentx.synthesis.attribution.copies import Heard
from agentx.synthesis.demands.book import from_user
from agentx.synthesis.memory.conclusions import Change
from agentx.synthesis.memory.items import Evidence, Kind, NoteDetail, NoteSort, Trust, sort_of
from agentx.synthesis.scribe import harness
from agentx.synthesis.scribe.calls import call_name
from agentx.synthesis.scribe.ledger import Ledger, Note
from agentx.synthesis.scribe.refusals import Refusal, end_refusals, record
from agentx.synthesis.scribe.refused_calls import refused_call
from agentx.synthesis.scribe.statements import (
    Sort,
    Statement,
    findings_of_agent,
    first_sentence,
    statements,
)
from agentx.synthesis.scribe.tasks import (
    ask,
    close_asked,
    close_by_user,
    covered,
    demanded,
    end_run,
    end_what_came_of_rules,
    start,
)
from agentx.synthesis.state.answered import answered
from agentx.synthesis.state.extractor import ReadBody
from agentx.synthesis.state.state import Message, PendingCall, State

_MAX_FOUND = 2
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


class NoteTaker:
    """Draws decisions, tasks, refusals, states, discoveries and lessons from what is said and done.

    Args:
        heard: Returns who wrote what first, up to the message that is read.
        hear_ahead: Makes that quick to return; it may take long.
        capture_assistant: Whether to read the messages of agents, too.
    """

    name = "scribe"
    version = 5
    reads = (
        UserMessageSent,
        AgentMessageSent,
        ApprovalDecided,
        ToolCallExecuted,
        RunStarted,
        RunEnded,
    )

    def __init__(
        self,
        heard: Callable[[], Heard] = Heard,
        hear_ahead: Callable[[], object] = object,
        *,
        capture_assistant: bool = True,
    ) -> None:
        self._hear_ahead = hear_ahead
        self._heard, self._capture_assistant = heard, capture_assistant

    def read_ahead(self, data: Payload, actor: str, read: ReadBody) -> None:
        """Read the statements of a message that will be recorded."""
        if isinstance(data, UserMessageSent) and from_user(actor):
            statements(read(data.body))
            self._hear_ahead()
        elif isinstance(data, AgentMessageSent) and data.final and not data.recalled:
            self._hear_ahead()

    def conclude(self, event: Event, state: State, read: ReadBody) -> Sequence[Change]:
        """Return the notes of a fact; empty for most facts."""
        ledger = Ledger(event, state, self._heard)
        match event.data:
            case UserMessageSent(body=body) if from_user(event.actor):
                _said(ledger, state, read(body), is_task=event.data.task or bool(event.data.schedule))
            case AgentMessageSent(final=True, recalled=False, body=body):
                _answered(ledger, state, read(body) if self._capture_assistant else "")
            case ApprovalDecided() as decided:
                _decided(ledger, decided, read)
            case ToolCallExecuted() if event.key.startswith(REPORTED):
                pass  # an agent says so: neither a refusal nor an answer in it is the user's
            case ToolCallExecuted(status="DENIED") as done if not done.denied_by:
                _refused_elsewhere(ledger, done, read)
            case ToolCallExecuted(status="SUCCEEDED") as done:
                _asked(ledger, done, read)
            case RunStarted() as run:
                start(ledger, run)
            case RunEnded() as end:
                end_run(ledger, state, end)
        return tuple(ledger.changes)


def _said(ledger: Ledger, state: State, text: str, *, is_task: bool) -> None:
    """Note what a message says besides its demands, which are recorded already."""
    copied = ledger.heard().copied(text)
    text = copied.masked(text)
    demands = demanded(state, ledger.event.seq)
    certain = demanded(state, ledger.event.seq, sure=True)
    answers = answered(state, text, ledger.event.seq)
    for one in statements(text, answers.quote if answers else ""):
        # A sentence that the agent wrote before may be pasted; to choose what it offered is an answer.
        doubtful = not one.answers and copied.doubts(one.span.start, one.span.end)
        if doubtful:
            one = one._replace(sure=False, plain=True, over="")  # noqa: PLW2901
        evidence = ledger.evidence(text, one.span.start, one.span.end)
        taken = covered(one.span, certain if one.sure and not one.plain else demands)
        if one.sort == "context":
            _tell(ledger, one, evidence, confirms=not (doubtful or is_task))
        elif one.sort != "task" and not taken:
            kind, sort = _KINDS[one.sort]
            note = Note(
                kind=kind,
                text=one.text,
                evidence=evidence,
                trust="user",
                status="active" if one.sure else "candidate",
                detail=NoteDetail(sort=sort),
                confirms=not (doubtful or is_task),
                choice=one.sort == "decision" and not one.answers and not one.plain,
                answers=answers if one.answers or one.replies else None,
                worded_by=_speaker(state, answers.seq) if answers and one.proposed else "",
            )
            ledger.enter(note, over=one.over, answer=one.answers)
    end_what_came_of_rules(ledger)
    # Keep a request open if the user wrote on before it was handled. The latest one is still in the
    # conversation, so it is not noted.
    before, run = state.messages[-2:-1], state.last_run
    if before and from_user(before[0].actor) and not (run and run.seq > before[0].seq):
        ask(ledger, _own(ledger, before[0]), "active")
    if not answers:
        close_by_user(ledger, copied.own(text).strip())


def _own(ledger: Ledger, message: Message) -> Message:
    """Return a message of the user without what was copied into it."""
    return msgspec.structs.replace(message, text=ledger.heard().copied(message.text).masked(message.text))


def _speaker(state: State, seq: int) -> str:
    """Return who sent a recent message; empty if it is not recent."""
    return next((one.actor for one in reversed(state.messages) if one.seq == seq), "")


def _tell(ledger: Ledger, one: Statement, evidence: Evidence, *, confirms: bool) -> None:
    """Note the situation of the user or the work; what was noted on the same topic before is superseded."""
    detail = NoteDetail(one.topic, "context")
    before = [item for item in ledger.standing("situation") if item.detail == detail]
    if not one.sure:
        ledger.enter(
            Note(
                kind="situation",
                text=one.text,
                evidence=evidence,
                trust="user",
                status="candidate",
                detail=detail,
                confirms=confirms,
            )
        )
        return
    if any(item.text == one.text for item in before):
        ledger.again(before[0], evidence)
        return
    note = Note(kind="situation", text=one.text, evidence=evidence, trust="user", detail=detail)
    ledger.add(note, [item for item in before if not item.by_hand])


def _decided(ledger: Ledger, decided: ApprovalDecided, read: ReadBody) -> None:
    """Note a call that the user refused; a call that they approve ends the refusals of calls like it."""
    by_person, call = from_user(ledger.event.actor), ledger.state.pending.get(decided.call_id)
    if decided.approved:
        if call is not None and by_person:
            end_refusals(ledger, call.tool, _whole(call, read))
        return
    if call is not None and call.tool == APPROVE_STAGE:  # its reason is for the next draft
        return
    tool, arguments = (call.tool, call.arguments) if call else ("", {})
    made = refused_call(tool, _whole(call, read)) if call else None
    name = call_name(tool, arguments)
    record(
        ledger,
        ledger.state,
        Refusal(name, tool, arguments, decided.reason, 0, by_person=by_person, made=made),
    )


def _whole(call: PendingCall, read: ReadBody) -> Mapping[str, Any]:
    """Return the arguments of a pending call, uncut if they are recorded so."""
    with contextlib.suppress(ValueError):
        found = json.loads(read(call.whole) or "null")
        if isinstance(found, dict):
            return found
    return call.arguments


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
    made = refused_call(call.tool, call.arguments, call.command)
    record(
        ledger,
        ledger.state,
        Refusal(name, call.tool, call.arguments, reason, start, by_person=by_person, made=made),
    )


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


def _answered(ledger: Ledger, state: State, text: str) -> None:
    """Note what an agent's answer says it did and found. The answer ends its turn."""
    if not is_own_run(ledger.event.run):
        close_asked(ledger)
        messages = (one for one in reversed(state.messages) if one.seq < ledger.event.seq)
        if asked := next((one for one in messages if from_user(one.actor)), None):
            ask(ledger, _own(ledger, asked), "closed")
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
