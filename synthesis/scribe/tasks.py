"""Tasks: requests for one piece of work, from when they wait until a run, an answer or the user closes them.

A rule is not a task: words that became a demand ask for nothing besides.
"""

import re
from collections.abc import Sequence

import msgspec

from agentx.storage.events.types import RunEnded, RunStarted
from agentx.storage.text import one_line
from agentx.synthesis.language.patterns import on_use
from agentx.synthesis.language.sentences import Span
from agentx.synthesis.language.words import content_words
from agentx.synthesis.memory.conclusions import Patch
from agentx.synthesis.memory.items import Evidence, MemoryItem, NoteDetail, Status
from agentx.synthesis.scribe.ledger import Ledger, Note
from agentx.synthesis.scribe.statements import goes_on, request, statements
from agentx.synthesis.state.state import Message, State

_REASON_CHARACTERS = 200
_COVERED = 0.6
"""Share of a statement that a demand must cover so that nothing else is noted of it."""

_ASKED = NoteDetail("what the user asked for")
_IN_RUN = NoteDetail("what a run works on")

_DONE = on_use(
    r"(?:(?:ok(?:ay)?|great|good|nice|perfect|thanks?|thank you|and|so|btw|all)\b[\s,.!:-]*)*(?:(?:that"
    r"|this|it|all)(?:'s| is| was| has been) )?(?:all )?(?:already )?(?:done|sorted|finished|taken care of"
    r"|dealt with|settled)(?: (?:now|already|then|too))?\W*$",
    re.IGNORECASE,
)
"""Words with which the user says that the last task is done."""

_DROPS = on_use(
    r"(?:(?:ok(?:ay)?|no|actually|and|so|please|you can|let'?s)\b[\s,.!:-]*)*(?:(?:forget|drop|cancel"
    r"|scrap|abandon|skip|never ?mind)(?: about)? (?P<dropped>(?:the|that|my|our|all)\b[^.!?]{2,80})"
    r"|(?P<done>(?:the|that|my|our)\b[^.!?,]{2,80}?) (?:is|are|has been|have been|'s) (?:(?:now|already"
    r"|all) )?(?:done|sorted|finished|taken care of|dealt with|no longer needed|not needed any ?more"
    r"|obsolete))\b",
    re.IGNORECASE,
)
"""Words with which the user names a task that is done or no longer wanted."""


def demanded(state: State, seq: int, *, sure: bool = False) -> list[Evidence]:
    """Return the places of a message that became demands; ``sure``: without candidates."""
    return [
        place
        for item in state.items.values()
        if (item.kind == "constraint" and not (sure and item.status == "candidate"))
        or (item.kind == "rejection" and item.status == "active")
        for place in item.evidence
        if place.seq == seq
    ]


def covered(span: Span, demands: Sequence[Evidence]) -> bool:
    """Return whether most of a statement is already a demand."""
    shared = sum(max(0, min(one.end, span.end) - max(one.start, span.start)) for one in demands)
    return shared > _COVERED * (span.end - span.start)


def ask(ledger: Ledger, message: Message, status: Status) -> None:
    """Note the requests in a message."""
    demands = demanded(ledger.state, message.seq)
    for one in statements(message.text):
        if one.sort == "task" and not covered(one.span, demands):
            start, end = one.span.start, one.span.end
            place = Evidence(message.seq, start, end, message.text[start:end])
            note = Note(
                kind="task", text=one.text, evidence=place, trust="user", status=status, detail=_ASKED
            )
            reason = "The agent answered." if status == "closed" else ""
            ledger.enter(msgspec.structs.replace(note, reason=reason))


def start(ledger: Ledger, run: RunStarted) -> None:
    """Note that a run works on the user's request, or continues what an earlier one began."""
    text = run.task.text
    if run.directive or run.pipeline:  # such a prompt is not a request of the user
        return
    span = request(text)
    if span is None or covered(span, demanded(ledger.state, ledger.event.cause)):
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


def end_run(ledger: Ledger, state: State, end: RunEnded) -> None:
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
            why = f"{end.status.replace('_', ' ').lower()}: {one_line(end.reason)[:_REASON_CHARACTERS]}"
            ledger.patch(Patch(id=task.id, reason=why.strip(": ")))


def close_asked(ledger: Ledger) -> None:
    """Close what the user asked for: the agent answered outside of a run."""
    for task in list(ledger.standing("task")):
        if task.detail == _ASKED and not task.by_hand:
            ledger.patch(Patch(id=task.id, status="closed", reason="The agent answered."))


def close_by_user(ledger: Ledger, text: str) -> None:
    """Close the task that the user says is done or no longer wanted, if only one fits."""
    tasks = list(ledger.standing("task"))
    fitting: list[MemoryItem] = []
    if _DONE.match(text):
        fitting = tasks[:1]
    elif match := _DROPS.match(text):
        words = content_words(match["dropped"] or match["done"])
        fitting = [task for task in tasks if words and words <= content_words(task.text)]
    if len(fitting) == 1 and fitting[0].evidence[0].seq != ledger.event.seq:
        reason = f"The user said so: {one_line(text)[:_REASON_CHARACTERS]}"
        ledger.patch(Patch(id=fitting[0].id, status="closed", reason=reason))


def end_what_came_of_rules(ledger: Ledger) -> None:
    """Close the tasks and retire the notes that rest on the words of a rule that this message ended."""
    ended = [
        item
        for item in ledger.state.items.values()
        if item.kind in ("constraint", "rejection")
        and item.status == "retired"
        and item.changed_seq > ledger.event.seq
    ]
    words = [place for item in ended for place in item.evidence if place.seq != ledger.event.seq]
    for item in [*ledger.standing("task", "decision", "knowledge")] if words else ():
        if not item.by_hand and any(_meets(place, other) for place in item.evidence for other in words):
            status: Status = "closed" if item.kind == "task" else "retired"
            ledger.patch(Patch(id=item.id, status=status, reason="The rule of the same words has ended."))


def _meets(place: Evidence, other: Evidence) -> bool:
    return place.seq == other.seq and place.start < other.end and other.start < place.end
