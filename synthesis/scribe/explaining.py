"""Explains what becomes of a message: its demands, and the notes that the scribe would take of the rest."""

from agentx.storage.text import clip, one_line
from agentx.synthesis.demands.explanation import MessagePart, explain
from agentx.synthesis.scribe.statements import Sort, Statement, statements

_QUESTION = 80
"""Characters shown of the question that is answered."""

_WHY: dict[Sort, str] = {
    "decision": "a choice",
    "knowledge": "something to remember",
    "context": "the situation; it replaces what was noted on the same topic",
    "discovery": "a finding",
    "learning": "a lesson",
}


def explained(text: str, question: str = "") -> tuple[MessagePart, ...]:
    """Return every part of a user's message in order, and what becomes of each.

    Args:
        text: The whole message.
        question: The agent's sentence that it answers; empty for none.

    >>> for part in explained("Never use tabs. We'll host in Frankfurt. Thanks a lot!"):
    ...     print(part.verdict, part.kind or "-", "|", part.why.partition(",")[0])
    active constraint | read as "never"
    active decision | a plain decision
    left - | few or no signs that it outlives the message
    """
    parts = explain(text)
    rules = [part for part in parts if part.verdict not in ("left", "material")]
    notes = [
        _of_note(one, question)
        for one in statements(text, question)
        if one.sort != "task" and not any(_overlap(one.span.start, one.span.end, rule) for rule in rules)
    ]
    left = [
        part
        for part in parts
        if part in rules or not any(_overlap(note.start, note.end, part) for note in notes)
    ]
    return tuple(sorted((*left, *notes), key=lambda part: (part.start, part.end)))


def _of_note(one: Statement, question: str) -> MessagePart:
    why = _WHY.get(one.sort, "")
    if one.plain:
        why = "a plain decision" if one.sort == "decision" else "a plain fact"
    if one.answers:
        why = f"answers “{clip(one_line(question), _QUESTION)}”"
    if not one.sure:
        why += "; it is not certain that it lasts"
    kind = "situation" if one.sort == "context" else one.sort
    return MessagePart(
        start=one.span.start,
        end=one.span.end,
        verdict="active" if one.sure else "candidate",
        kind=kind,
        why=why,
    )


def _overlap(start: int, end: int, part: MessagePart) -> bool:
    return part.start < end and start < part.end
