"""Builds the question to a model: instructions and schema from files, and the user's numbered sentences."""

import re
from collections.abc import Iterable, Mapping, Sequence

from agentx.storage.text import one_line
from agentx.synthesis.attribution.material import own_words, straighten
from agentx.synthesis.attribution.sources import NAME
from agentx.synthesis.language.sentences import sentences
from agentx.synthesis.memory.items import ConstraintDetail, MemoryItem, is_offered, sort_of, would_change
from agentx.synthesis.model.port import ChatMessage, ToolSchema
from agentx.synthesis.model.structured import parameters, prompt
from agentx.synthesis.state.state import State

TOOL = "record_judgement"
"""The tool that a model answers with; calling it runs nothing."""

MAX_RULES = 100
MAX_CANDIDATES = 50
MAX_NOTES = 30
"""Maximum numbers of items shown, the latest ones."""

MESSAGE_CHARACTERS = 8_000
"""Number of characters of a message that are shown; a longer one is a paste."""

_ITEM_CHARACTERS = 400
_NOTE_CHARACTERS = 160
_NAME_CHARACTERS = 40


def schema() -> ToolSchema:
    """Return the shape of an answer, as a tool."""
    about = "Record what the user's messages demand, and settle the candidates."
    return ToolSchema(TOOL, about, parameters("judge.json"))


def conversation(
    said: Mapping[int, str], state: State, heard: Mapping[int, str] | None = None
) -> list[ChatMessage]:
    """Return the conversation that a model is asked to answer.

    The user's messages (``said``) and the agents' (``heard``), by seq, are those that no model has read yet.
    """
    rules = list(state.active("constraint", "rejection"))[-MAX_RULES:]
    parts = [
        ("Rules that stand", map(_item, rules)),
        ("Candidates", map(_item, candidates(state)[-MAX_CANDIDATES:])),
        *([("Notes", map(_note, noted))] if (noted := notes(state)) else []),
        *(
            (f"Message {seq}{'' if seq in said else ' (of an agent)'}", _sentences(text))
            for seq, text in sorted({**(heard or {}), **said}.items())
        ),
    ]
    asked = "\n\n".join(f"## {title}\n{_lines(lines)}" for title, lines in parts)
    return [ChatMessage("system", prompt("judge.md")), ChatMessage("user", asked)]


_NOTES = ("decision", "task", "context", "discovery", "learning")
"""Kinds and sorts that a model is shown as notes."""


def candidates(state: State) -> Sequence[MemoryItem]:
    """Return the demands and rejections that are not settled yet, oldest first."""
    waiting = state.active("constraint", "rejection", status="candidate")
    return tuple(item for item in waiting if not (is_offered(item) or would_change(item)))


def notes(state: State) -> Sequence[MemoryItem]:
    """Return the latest decisions, tasks, context, discoveries and learnings, oldest first."""
    noted = state.active("decision", "task", "situation", "knowledge")
    return tuple(item for item in noted if sort_of(item) in _NOTES)[-MAX_NOTES:]


def _note(item: MemoryItem) -> str:
    return f"{item.id} [{sort_of(item)}] {one_line(item.text)[:_NOTE_CHARACTERS]}"


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) or "None."


def _item(item: MemoryItem) -> str:
    detail = item.detail
    sort = detail.modality.replace("_", " ") if isinstance(detail, ConstraintDetail) else "rejection"
    seqs = ", ".join(dict.fromkeys(str(evidence.seq) for evidence in item.evidence))
    until = f" ({one_line(item.until)})" if item.until else ""
    return f"{item.id} [{sort}; message {seqs}] {one_line(item.text)[:_ITEM_CHARACTERS]}{until}"


def _sentences(text: str) -> Iterable[str]:
    """Yield the numbered sentences of the user's own words, up to the character limit.

    Short quoted or code phrases are included; a longer quote could instruct the model.
    """
    plain, original, room = own_words(text), straighten(text), MESSAGE_CHARACTERS

    def named(run: re.Match[str]) -> str:
        said = original[run.start() : run.end()]
        return said if len(said) <= _NAME_CHARACTERS else "…" * len(said)

    shown = re.sub(f"{NAME}+", named, plain)
    for number, span in enumerate(sentences(plain), start=1):
        line = re.sub("…+", "…", one_line(shown[span.start : span.end]))
        room -= len(line)
        if room < 0:
            yield "…"
            return
        yield f"{number}. {line}"
