"""Parses a model's answer from a tool call or text: keeps valid entries and reports broken ones."""

from typing import Any, Literal, TypeVar

import msgspec

from agentx.storage.text import clip, one_line
from agentx.synthesis.judgement.question import TOOL
from agentx.synthesis.model.port import Reply
from agentx.synthesis.model.structured import AnswerUnreadable, object_of

MAX_ENTRIES = 200
"""Maximum number of entries of each sort that are read."""

_EXTRACT = 80


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a model found in a message; see ``synthesis/prompts/judge.md``."""

    message: int
    quote: str
    kind: Literal["constraint", "rejection", "ending", "decision", "task", "context", "discovery", "learning"]
    lasting: Literal["yes", "perhaps", "no"]
    modality: Literal["must", "must_not", "prefer"] = "must"
    scope: str = ""
    until: str = ""
    repeats: str = ""
    replaces: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    reason: str = ""


class ProposalVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A model's judgement of a candidate."""

    id: str
    verdict: Literal["keep", "drop", "leave"]
    reason: str = ""


class RefusedEntry(msgspec.Struct, frozen=True):
    """A part of an answer that was not accepted: its shortened text, and why."""

    what: str
    why: str


class JudgeAnswer(msgspec.Struct, frozen=True):
    """An answer, entry by entry.

    Attributes:
        refused: Entries with an invalid shape.
        beyond: Number of entries over the limit, which are ignored.
    """

    found: tuple[Found, ...] = ()
    verdicts: tuple[ProposalVerdict, ...] = ()
    refused: tuple[RefusedEntry, ...] = ()
    beyond: int = 0


_Entry = TypeVar("_Entry", Found, ProposalVerdict)


def read(reply: Reply) -> JudgeAnswer:
    """Parse a reply.

    Raises :class:`AnswerUnreadable`, with a sentence for the model, if both lists are missing.
    """
    whole = object_of(reply, TOOL)
    lists = [whole.get("found", []), whole.get("verdicts", [])]
    if not whole.keys() & {"found", "verdicts"} or not all(isinstance(one, list) for one in lists):
        raise AnswerUnreadable(f"the answer of {reply.model} has no lists `found` and `verdicts`")
    refused: list[RefusedEntry] = []
    return JudgeAnswer(
        found=_entries(lists[0], Found, refused),
        verdicts=_entries(lists[1], ProposalVerdict, refused),
        refused=tuple(refused),
        beyond=sum(max(0, len(one) - MAX_ENTRIES) for one in lists),
    )


def _entries(raw: list[Any], shape: type[_Entry], refused: list[RefusedEntry]) -> tuple[_Entry, ...]:
    entries: list[_Entry] = []
    for one in raw[:MAX_ENTRIES]:
        try:
            entries.append(msgspec.convert(one, shape))
        except msgspec.ValidationError as error:
            refused.append(RefusedEntry(shortened(str(one)), f"It is not an entry: {error}."))
    return tuple(entries)


def shortened(text: str) -> str:
    """Return untrusted text as one printable line of bounded length."""
    return clip(one_line(text[: 4 * _EXTRACT]), _EXTRACT)
